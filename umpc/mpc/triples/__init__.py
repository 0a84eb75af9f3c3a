"""Edges of any number of owners by Boolean triples, without a dealer.

| file | what it is |
|---|---|
| `plan.py` | the public facts: which owners a gate concerns, rounds, chunks, messages |
| `cells.py` | one node's part in all its cells |
"""
