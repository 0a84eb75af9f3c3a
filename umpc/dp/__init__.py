"""Differential privacy: exact noise of which every node adds a share, so that nobody knows the sum.

| file | what it holds |
|---|---|
| `calibration.py` | `DistributedLaplace`: from epsilon, sensitivity and honest nodes to shares, std, tail |
| `laplace.py` | `sample_share`: one node's share; `DiscreteLaplace`: the law that h shares sum to |
| `polya.py` | `sample_polya`: an exact draw of the negative binomial with real shape |
| `random_bits.py` | `RandomBits`: the only source of randomness; `LazyUniform`: a real number bit by bit |

Integers, fractions and certified balls on every path to a noise value; floats only where a law is described.
"""
