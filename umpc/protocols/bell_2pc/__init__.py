"""Bell et al. 2020 between pairs of nodes: every pair's value leaves with noise of its own.

| file | what it holds |
|---|---|
| `protocol.py` | `BellTwoPc`, the protocol object |
| `settings.py` | the settings of a study, and their rules |
| `pair_mechanisms.py` | the laws of one pair's noise, and what they cost a record |
| `noise_binding.py` | the noise of each sum's pairs, and the attempt |
| `node.py` | a node's side: values of pairs in place of sums |
| `coordinator.py` | the coordinator's side: it adds up the noisy pairs |
"""
