"""The dealer process: it deals correlated randomness to the nodes.

It never sees data or anything that is computed from data.

| file | what it is |
|---|---|
| `session.py` | the sans-IO session: seeds and material of one attempt |
| `server.py` | the gRPC server: one stream to every node, one-time use; the task that deals |
"""
