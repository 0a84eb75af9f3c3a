"""The approvals' page of a node: pending studies, budget and history, in a browser on this machine.

The page loads nothing from elsewhere and runs no script. It shows what `umpc approve show`, `umpc
budget show` and `umpc audit show` print, and never a value of the table.

| file | what it is |
|---|---|
| `contents.py` | what the page shows |
| `calls.py` | who may read the page and decide: token, host, origin |
| `server.py` | the server on the loopback address |
"""
