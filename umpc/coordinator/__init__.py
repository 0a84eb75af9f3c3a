"""The coordinator process: it proposes a study to the nodes, leads them, and adds up their shares.

| file | what it is |
|---|---|
| `client.py` | the gRPC client: a run, a preparation, and who reaches whom |
| `conductor.py` | the steps of a study, with all nodes at once |
| `links.py` | the stream to one node, one step with all nodes, and nodes that are lost |
| `people.py` | a study of people is opened, and its people are counted |
| `shufflers.py` | the stream from one shuffler |
| `studyfile.py` | a study as people write it: study.toml, and a kernel of their own |
| `studyfile_entries.py` | its keys, their help texts, and how they go together |
| `studyfile_text.py` | write a study.toml |
"""
