"""Differential privacy: exact noise that every node adds in shares, so that no node knows the sum.

| file | what it is |
|---|---|
| `calibration.py` | `DistributedLaplace`: from epsilon and sensitivity to shares |
| `polya.py` | `sample_polyas`: exact draws of the negative binomial with real shape |
| `skellam.py` | `DistributedSkellam`: noise on several sums, (epsilon, delta)-DP together |
| `distributed_gaussian.py` | `joint_gaussian`: nodes' discrete Gaussian shares on a vector |
| `poisson.py` | `sample_poisson`: an exact draw at any rational mean up to 2^128 |
| `committee.py` | noise from independent coins, which a committee computes under shares |
| `events.py` | releases as data: pure, approximate, Laplace, Gaussian, Skellam and others |
| `composition.py` | `Composition`: what releases cost together, chosen one after another |
| `geometric.py` | geometric and discrete Laplace draws: one coin for each binary digit |
| `trials.py` | `first_accepted`: rejection in a fixed number of trials |
| `fixed_coins.py` | exact coins and table look-ups whose work does not depend on the outcome |
| `random_bits.py` | `RandomBits`: the only source of randomness; `LazyUniform`: a lazy real |
| `checks.py` | tests that refuse an impossible epsilon, delta, sensitivity or number of nodes |

The work of a draw follows from its law, not from its value. The exceptions are paths that a draw
takes with probability below 2^-64.

Every path to a noise value uses integers, fractions and certified balls only. Floats appear only
where a law is described. Mechanisms that only a protocol of the papers uses are beside it. Further
theorems of composition, and mechanisms that no protocol uses, are in `reproduction/baselines`
(docs/privacy.md, closer composition, says why).
"""
