"""Evaluation of edges under masks that a dealer knows, for any number of owners.

| file | what it is |
|---|---|
| `plan_items.py` | the items that a plan lists, a plan in the making, comparison by tables |
| `plan.py` | the computation of the owners of an edge, layer by layer |
| `compiler.py` | from kernels' normal forms to the plan of each pattern of owners |
| `dcf.py` | the distributed comparison function; one-hot rows of masks |
| `edge_layout.py` | edges of several chunks behind each other, and the bytes of each chunk |
| `material.py` | the dealer's material, a party's inputs, and a committee's dealt coins |
| `evaluation.py` | the owners' computation for chunks |
| `bit_shares.py` | a party's shares of the bits that a chunk opens |
| `cells.py` | one node's part in all its cells |
| `tasks.py` | the work of chunks as a value that any process of the site computes |
"""
