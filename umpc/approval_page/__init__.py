"""The approvals' page of a node: pending studies, budget and history, in a browser on this machine.

The page loads nothing from elsewhere and runs no script. It shows what `umpc approve show`, `umpc
budget show` and `umpc audit show` print, and never a value of the table.

| file | what it is |
|---|---|
| `server.py` | the page's contents and calls, and its server on the loopback address |
"""
