"""`central`: a trusted curator sees all records. A baseline (Chaudhuri et al. 2024).

Raw records leave a node through this protocol only, and only if its site's policy allows it.

| file | what it holds |
|---|---|
| `protocol.py` | the protocol object |
| `settings.py` | the settings of a study, and their rules |
| `messages.py` | a node's records on their way, and the curator's private number |
| `columns.py` | a node's records as bytes |
| `coordinator.py` | the coordinator's side: the curator |
| `central_mechanisms.py` | each mechanism by its name, with parameters that are public |
| `global_sensitivity.py` | Laplace noise on the complete statistic |
| `laplace.py` | Laplace noise at one trusted place, on integers and on a grid of reals |
| `heavy_tail.py` | noise of density 1/(1 + z^4), for scales that depend on the data |
| `coinpress.py` | a private mean by narrowing intervals |
| `adaptations.py` | CoinPress on disjoint, all or subsampled sets |
| `hajek.py` | local Hájek projections with smooth sensitivity |
| `split.py` | the same for kernels of wide range |
| `private_spread.py` | the spread of a kernel from a share of epsilon |
| `graph_terms.py` | the triangle density over sets of vertices |
| `edges.py` | the concentration of a triangle density from a private share of edges |
| `uniformity.py` | a test whether a column is uniform, with bounds of its errors |
| `smooth.py` | the bound on the local sensitivity, proved |
| `moments.py` | variances without privacy |
| `terms.py` | the kernel over sets of records, and families of sets |
"""
