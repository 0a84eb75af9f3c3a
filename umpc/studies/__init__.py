"""What a study (`umpc/study.py`) may say: its parts, and the entries of protocols that have rules of their own.

| file | of |
|---|---|
| `parts.py` | participants, fields, bins |
| `kinds.py` | the names that it chooses from |
| `rules.py` | what every study must fulfil |
| `local.py` | one-message protocols |
| `gopa.py` | noise that cancels |
| `central.py` | a trusted curator |
"""
