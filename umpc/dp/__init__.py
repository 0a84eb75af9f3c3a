"""Differential privacy: exact noise that every node adds in shares, so that no node knows the sum.

| file | what it is |
|---|---|
| `calibration.py` | `DistributedLaplace`: from epsilon and sensitivity to shares |
| `polya.py` | `sample_polyas`: exact draws of the negative binomial with real shape |
| `skellam.py` | `DistributedSkellam`: noise on several sums, (epsilon, delta)-DP together |
| `distributed_gaussian.py` | `joint_gaussian`: nodes' discrete Gaussian shares on a vector |
| `geometric_poisson.py` | exact geometric, Laplace and Poisson numbers |
| `committee.py` | noise from independent coins, which a committee computes under shares |
| `events.py` | releases as data, and the checks of ε, δ and Δ |
| `composition.py` | `Composition`: what releases cost together, chosen one after another |
| `random_bits.py` | `RandomBits`: the only source of randomness; coins and trials of fixed work |

The work of a draw follows from its law, not from its value. The exceptions are paths that a draw
takes with probability below 2^-64.

Every path to a noise value uses integers, fractions and certified balls only. Floats appear only
where a law is described. Mechanisms that only a protocol of the papers uses are beside it. Further
theorems of composition, and mechanisms that no protocol uses, are in `reproduction/baselines`
(docs/privacy.md, closer composition, says why).
"""
