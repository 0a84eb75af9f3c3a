"""The shuffler process: it permutes the messages of all nodes, and sees uniform numbers only.

| file | what it is |
|---|---|
| `command.py` | the command `umpc shuffler` |
| `run.py` | one run of an attempt: its participants, the order, and its end |
| `server.py` | the gRPC server |
"""
