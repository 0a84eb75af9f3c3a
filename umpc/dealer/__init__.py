"""The dealer process: deals correlated randomness to the nodes; never sees data or anything computed from data.

| file | what it is |
|---|---|
| `session.py` | the sans-IO session: seeds and material of one attempt |
| `server.py` | the gRPC shell: one stream to every node, back-pressure, one-time use |
"""
