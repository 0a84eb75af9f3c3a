"""Evaluation of edges under masks that a dealer knows, for any number of owners.

| file | what it is |
|---|---|
| `plan_items.py` | the items that a plan lists: wires, places, bits, terms |
| `plan.py` | the computation of the owners of an edge, layer by layer |
| `compiler.py` | from kernels' normal forms to the plan of each pattern of owners |
| `dcf.py` | keys of the distributed comparison function, for studies of few edges |
| `edge_layout.py` | edges of several chunks behind each other, and the bytes of each chunk |
| `material.py` | the dealer's material for chunks, and what owners expand from seeds |
| `evaluation.py` | the owners' computation for chunks |
| `bit_shares.py` | a party's shares of the bits that a chunk opens |
| `cells.py` | one node's part in all its cells |
| `tasks.py` | the work of chunks as a value that any process of the site computes |
"""
