"""What a study (`umpc/study.py`) may say: its parts, and the entries of protocols that have rules of their own.

| file | of |
|---|---|
| `parts.py` | participants, fields, bins |
| `local.py` | one-message protocols |
| `gopa.py` | noise that cancels |
| `central.py` | a trusted curator |
"""
