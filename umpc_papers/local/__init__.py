"""Local protocols: every record is randomised at its node, and leaves in the node's one message.

| file | what it holds |
|---|---|
| `protocol.py` | the protocol objects of `ghazi-ldp`, `bell-auc` and `local-mean` |
| `bell_ldp_protocol.py` | the protocol object of `bell-ldp` |
| `settings.py` | the settings of a study with bins, and their rules |
| `search_settings.py` | the settings of adaptive bins, and their rules |
| `mean_settings.py` | the settings of `local-mean`, and their rules |
| `quantisation.py` | records as cells, and the kernel as a matrix |
| `cell_kernels.py` | the average and the midpoint of a kernel between two cells |
| `messages.py` | a node's message, and what the coordinator makes of all of them |
| `bell_ldp.py` | randomised response on cells: any pair kernel from the histogram of answers |
| `bell_ldp_classes.py` | the same for a kernel of two public classes |
| `adaptive_messages.py` | both messages of a node whose first one finds the cut points |
| `bin_search.py` | the first round of adaptive bins: one bit of each record |
| `bell_auc.py` | the AUC from hierarchical histograms |
| `ghazi_ldp.py` | one-bit vectors that factor the kernel |
| `local_mean.py` | a mean over single records from their random points |
| `hadamard.py` | the frequency oracle of one bit |
| `auc_tree.py` | the walk down the tree of counts, and its error |
| `tuning.py` | the bins and levels with the least error over a table |
| `factors.py` | A = V' G V, and its projection |
| `sphere.py` | the unbiased randomiser of vectors |
| `estimate.py` | an estimate, and the cost of a local protocol |
| `noise_estimate.py` | the variance of an estimate, from the answers themselves |
| `rounding_noise.py` | a bound on what randomised rounding adds to it |
"""
