"""The privacy budget of a node's data set, on disk.

| file | what it is |
|---|---|
| `ledger.py` | the ledger: reserve, hold, charge, answer |
| `ledger_store.py` | the ledger's file while a process holds it: opened, written, recovered |
| `held_attempts.py` | finished attempts that wait for their charge |
| `budget_account.py` | the ledger's rows: the balances they add up to, and their keyed hashes |
| `budget_limits.py` | the ε and δ that a ledger accepts, and its refusal |
| `ledgerfile.py` | the ledger's file: created, appended to, and read, also beside a running node |
| `anchor.py` | the ledger's key, and the anchor that detects an older copy |
"""
