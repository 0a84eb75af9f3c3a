"""The shuffler process: takes all nodes' messages out of order, and sees uniform numbers.

| file | what it is |
|---|---|
| `session.py` | the sans-IO session: one run of one attempt |
| `run.py` | who is waited for, and the end of everything that somebody's end ends |
| `server.py` | the gRPC shell |
"""
