"""The privacy budget of a node's data set, on disk.

| file | what it is |
|---|---|
| `ledger.py` | the ledger: reserve, hold, charge, answer |
| `ledger_store.py` | the ledger's file while a process holds it: opened, written, recovered |
| `store.py` | the Store: all that studies leave beside the ledger's rows |
| `budget_account.py` | the ledger's rows: the balances they add up to, and their keyed hashes |
| `ledger_place.py` | a ledger's paths, lock, connection, key and anchor; copies of its files |
| `ledgerfile.py` | the ledger's file is read, also beside a running node, created and appended to |
"""
