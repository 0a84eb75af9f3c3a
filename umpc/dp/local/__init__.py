"""The papers' local protocols: each record is randomised at its node, the coordinator only adds up.

Each is a frozen dataclass of parameters with `randomise` (a node's message), `aggregate` (the coordinator's estimate),
`predicted_mse`, `message_bytes` and `cost`. What the coordinator sees of a record is epsilon-DP by itself, whoever
colludes; nothing is trusted but the node that has the record (`ghazi_shuffle`: and the shufflers). `umpc.protocols`
makes studies of them.

| file | what it holds |
|---|---|
| `bell_ldp.py` | `BellLdp`: randomised response on cells, any pair kernel from the histogram of answers |
| `bell_auc.py` | `BellAuc`: the AUC from hierarchical histograms |
| `ghazi_ldp.py` | `GhaziLdp`: one-bit vectors that factor the kernel |
| `ghazi_rounds.py` | `GhaziRounds`: the same with a question that depends on a first look |
| `ghazi_shuffle.py` | `GhaziShuffle`: noisy sums of vectors by split and mix |
| `cells.py` | `Bins`, `Points`, `Cells`: quantisation, and the kernel as a matrix |
| `hadamard.py` | the frequency oracle of one bit |
| `auc_tree.py`, `auc_theory.py` | the walk down the tree and its error; theorem 3 |
| `factors.py`, `sphere.py` | A = V' G V and its projection; the unbiased randomiser of vectors |
| `split_mix.py` | shares, shuffling, sums modulo 2^w, and how many shares it takes |
| `estimate.py` | `LocalEstimate`, `Cost` |
| `draws.py`, `packing.py` | arrays of exact draws from a seed; messages of a few bits a value |
"""
