"""The audit trail of a node: who asked what, who decided, what was charged, and what left.

| file | what it is |
|---|---|
| `trail.py` | rows are appended, also by two processes at once, and after a crash |
| `reading.py` | rows are read and verified, one at a time, and compared with the ledger |
"""
