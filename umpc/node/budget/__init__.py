"""The privacy budget of a node's data set, on disk.

| file | what it is |
|---|---|
| `ledger.py` | the ledger: reserve, hold, charge, answer |
| `ledger_store.py` | the ledger's file while a process holds it: opened, written, recovered |
| `held_attempts.py` | finished attempts that wait for their charge |
| `charge_events.py` | the mechanisms of studies on disk, for compositions closer than basic |
| `prepared_costs.py` | what studies prepared ahead reserve, in a file for the site's commands |
| `cohort_records.py` | the fingerprints of studies' records on disk, for the administrator |
| `budget_account.py` | the ledger's rows: the balances they add up to, and their keyed hashes |
| `ledger_place.py` | a ledger's paths, its lock and its database connection |
| `ledger_reading.py` | the ledger's file is read, also beside a running node |
| `ledgerfile.py` | the ledger's file is created and appended to |
| `anchor.py` | the ledger's key, and the anchor that detects an older copy |
"""
