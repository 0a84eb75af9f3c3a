"""The backup of a site's files, and their return: a restored ledger never forgets a charge.

| file | what it is |
|---|---|
| `archive.py` | the one file of a backup: its members, its manifest and its seal |
| `restoring.py` | a backup is put back, and what is lost counts as charged |
"""
