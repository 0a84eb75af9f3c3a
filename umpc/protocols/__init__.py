"""The protocols: one folder each, the base that they share, and the registry.

| folder or file | what it is |
|---|---|
| `registry.py` | every protocol by its name |
| `loading.py` | protocols by name, each loaded when it is first asked for |
| `auto.py` | `backend = "auto"`: the cheaper of the grid and of pairs |
| `left_open.py` | whether a study file leaves the choice between these two open |
| `arrays.py` | names for the types of arrays |
| `base/` | the protocol object, and both sides of a study |
| `u_mpc/` | noisy sums under secret sharing |
| `grid/` | noisy sums over all sets, from one masked histogram |
| `hajek_grid/` | the same with noise for a private bound of the local sensitivity |
| `vector/` | a vector of noisy sums under one joint sensitivity, and pairwise losses |
| `bell_2pc/` | a noisy value of every pair |
| `local/` | `bell-ldp`, `ghazi-ldp`, `bell-auc`, `local-mean`: records randomised at their node |
| `ghazi_rounds/` | a local protocol with a question after a first look |
| `ghazi_shuffle/` | noisy counts through two shufflers |
| `gopa/` | a mean under noise that cancels between nodes |
| `central/` | a trusted curator: a baseline |
"""
