"""`counts`: a table of noisy counts of records, in cells of up to three fields, as one release.

| file | what it is |
|---|---|
| `settings.py` | what a study says, its rules, its cells, and the noise of each |
| `protocol.py` | the protocol object, and both sides |
"""
