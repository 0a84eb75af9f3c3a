"""Processes of a whole study on this machine, for `umpc demo` and `umpc.local_consortium`.

| file | what it is |
|---|---|
| `processes.py` | certificates, and the start and end of nodes, dealer and shufflers |
| `fork_server.py` | one process that imports everything and forks the others |
"""
