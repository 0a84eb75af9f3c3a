"""U-MPC and the grid: one folder each, the base that protocols share, and the registry.

| folder or file | what it is |
|---|---|
| `registry.py` | every protocol by its name; a study from its bytes |
| `auto.py` | `backend = "auto"`: the cheaper of the grid and of pairs |
| `base/` | the protocol object, and both sides of a study |
| `u_mpc/` | noisy sums under secret sharing |
| `grid/` | noisy sums over all sets, from one masked histogram |
| `people/` | the grid over shares of one histogram: people with one message each, linked rows |
| `overlap/` | how many people two sites share |
| `counts/` | a table of noisy counts of records, as one release |
| `vector/` | a vector of noisy sums under one joint sensitivity, and pairwise losses |
"""
