"""Bell et al. 2020 between pairs of nodes: every pair's value leaves with noise of its own.

| file | what it holds |
|---|---|
| `protocol.py` | `BellTwoPc`, the protocol object |
| `settings.py` | the settings of a study, and their rules |
| `pair_mechanisms.py` | the laws of one pair's noise, and what they cost a record |
| `pair_noise.py` | the noise of a pair's value as gates, and on clear values |
| `group_mechanism.py` | the noise of a group of pairs, and what it costs a record |
| `noise_binding.py` | the noise of each sum's pairs, and the attempt |
| `drawn_alone.py` | the error if every record drew its partners alone |
| `node.py` | a node's side: values of pairs in place of sums |
| `group_node.py` | a node's side with noisy sums of groups of pairs |
| `coordinator.py` | the coordinator's side: it adds up the noisy pairs |
"""
