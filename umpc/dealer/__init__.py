"""The dealer process: it deals correlated randomness to the nodes.

It never sees data or anything that is computed from data.

| file | what it is |
|---|---|
| `material.py` | seeds and material of one attempt, without IO |
| `people.py` | studies of people: secrets of places and keys, on disk; without a network |
| `server.py` | the gRPC server: one stream to every node, one-time use; the task that deals |
"""
