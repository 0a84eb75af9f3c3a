"""Central protocols: one trusted curator sees all records. Baselines, to compare the federated protocol with.

| file | protocol | guarantee, replace-one |
|---|---|---|
| `global_sensitivity.py` | Laplace noise on the complete U-statistic | epsilon |
| `coinpress.py` | private mean by narrowing intervals | epsilon |
| `adaptations.py` | CoinPress on disjoint, all or subsampled k-sets | epsilon |
| `hajek.py` | local Hájek projections, reweighted, smooth sensitivity; also subsampled | epsilon |
| `split.py` | the same for kernels of wide range: one half of the records finds where the values lie | epsilon |
| `median.py` | the median of a protocol's answers on parts of the records | that of the protocol |
| `uniformity.py` | is a column uniform? by collisions | epsilon |
| `triangles.py` | share of triangles of a graph whose nodes are records | epsilon, node with its edges |
| `gopa.py` | federated mean with noise that cancels between neighbours | rho-zCDP, epsilon and delta |
| `dpsgd.py` | linear ranking by gradient descent on pairs | epsilon and delta |

| file | what they share |
|---|---|
| `terms.py` | f over k-sets of records; families of sets, drawn from random bits |
| `moments.py` | variances without privacy |
| `smooth.py` | the bound on the local sensitivity behind `hajek`, proved |
| `heavy_tail.py` | noise whose scale may depend on the data, drawn exactly |
| `amplification.py` | what secret batches gain |
| `choices.py` | each mechanism by its name, its parameters from what is public alone: what a study can run |
| `columns.py` | a node's records as it sends them to the curator |
| `cost.py` | bytes, rounds, operations |

Every protocol is a frozen dataclass of public parameters with a method that takes data and `RandomBits`, and functions
that predict its error. Releases are exact numbers, except for θ of `dpsgd`, which is computed from such.
"""
