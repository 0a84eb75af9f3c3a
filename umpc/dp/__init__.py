"""Differential privacy: exact noise of which every node adds a share, so that nobody knows the sum.

| file | what it holds |
|---|---|
| `calibration.py` | `DistributedLaplace`: from epsilon, sensitivity and honest nodes to shares, std, tail |
| `laplace.py` | `sample_share`: one node's share; `DiscreteLaplace`: the law that h shares sum to |
| `polya.py` | `sample_polya`: an exact draw of the negative binomial with real shape |
| `committee.py` | discrete Laplace noise from independent coins, for a committee to compute under shares |
| `pairs.py` | noise of every pair's value by itself, and what that costs a record |
| `skellam.py` | `DistributedSkellam`: the same for several sums at once, (epsilon, delta)-DP together |
| `poisson.py` | `sample_poisson`: an exact draw at any rational mean up to 2^128 |
| `binomial.py` | `least_coins`: how many shared fair coins make a sum (epsilon, delta)-DP, exactly |
| `collusion.py` | `remaining_epsilon`: what is left if fewer nodes are honest than assumed |
| `gopa.py` | `PairwiseNoise`: noise that nodes share and that cancels, and what of it the honest have |
| `gaussian.py` | `sample_discrete_gaussian`, `calibrate_gaussian`: noise at one trusted place |
| `mechanisms.py` | Laplace, Gaussian, randomised response, exponential mechanism at one trusted place |
| `events.py` | what was released, as frozen data: `LaplaceEvent`, `SkellamEvent`, ... |
| `accounting.py` | `compose`: what several events cost together |
| `renyi.py` | Rényi divergences of the mechanisms, and from them to epsilon and delta |
| `losses.py` | privacy loss distributions, composed as polynomials of balls |
| `coins.py` | `bernoulli_exp`, `sample_discrete_laplace`: exact coins from random bits |
| `balls.py` | fractions to certified balls and back, rounded towards more noise |
| `checks.py` | which epsilon, delta, sensitivity and number of nodes is refused |
| `local/` | the papers' local protocols, for comparison: each record randomised at its node |

| `central/` | protocols with a trusted curator, for comparison |
| `random_bits.py` | `RandomBits`: the only source of randomness; `LazyUniform`: a real number bit by bit |

Integers, fractions and certified balls on every path to a noise value; floats only where a law is described.
"""
