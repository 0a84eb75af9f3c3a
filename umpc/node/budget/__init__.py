"""The privacy budget of a node's data set, on disk.

| file | what it is |
|---|---|
| `ledger.py` | the ledger: reserve, charge, release, answer |
| `budget_account.py` | the ledger's rows: the balances they add up to, and their keyed hashes |
| `budget_limits.py` | the ε and δ that a ledger accepts, and its refusal |
| `ledgerfile.py` | the ledger's file: created, appended to, and read, also beside a running node |
| `anchor.py` | the ledger's key, and the anchor that detects an older copy |
"""
