"""The coordinator process: proposes a study to the nodes, leads them through its steps, adds up their shares.

| file | what it is |
|---|---|
| `session.py` | the sans-IO session: what it says at each step, and what it checks |
| `onemessage.py` | the session of a one-message protocol: it checks the messages and estimates |
| `report.py` | the result: estimate, errors, cost predicted and measured |
| `client.py` | the gRPC shell: leads all nodes through a run, or through a preparation |
| `links.py` | the stream to one node: deadlines, and who went away |
| `studyfile.py` | study.toml, as people write it |
| `kernelfile.py` | one's own kernel: a Python file and function, traced here and nowhere else |
"""
