"""`hajek-grid`: a sum over all pairs under noise for a private bound of its local sensitivity.

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object |
| `settings.py` | the settings of a study, and their rules |
| `binding.py` | a study's two sums, their noise, ring and attempt |
| `node.py` | the node's side |
| `coordinator.py` | the coordinator's side |
"""
