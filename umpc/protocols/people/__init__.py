"""People with one value each: the grid over shares of one histogram (docs/people.md).

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object, chosen by `protocol = "people"`, and both sides |
| `settings.py` | the settings of a study, and their rules |
"""
