"""People with one value each: the grid over shares of one histogram (docs/people.md).

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object, chosen by `protocol = "people"`, and the coordinator's side |
| `settings.py` | the settings of a study, and their rules |
| `terms.py` | the places and the counted people of a study, as all processes check them |
| `linked.py` | `protocol = "linked"`: columns at different sites, its rules and its promise |
| `split.py` | which axes of a table of linked rows lie at which site |
| `checked.py` | where aggregators may lie: the check of the total, and the dealer's answer |
| `node.py` | an aggregator's side: its share in place of a table of records |
| `in_memory.py` | shares of a known table, for simulations and plans |
"""
