"""`gopa`: a federated mean under noise that cancels between nodes (Sabater et al.).

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object |
| `settings.py` | the settings of a study, and their rules |
| `messages.py` | a node's message: its sum under noise |
| `graph.py` | which nodes share noise: all, or a random k-out graph |
| `calibration.py` | how much noise, shared and of one's own |
| `node.py` | a node's side: it shares noise with every other node |
"""
