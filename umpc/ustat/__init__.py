"""The statistic: its kernel, its edges, what follows from both, and their evaluation in the clear.

| file | what it is |
|---|---|
| `schema.py` | a field's type: bounds and resolution, hence its integers |
| `expression.py` | kernels as immutable expressions, and the visitor of all interpreters |
| `tracing.py` | from a Python function to an expression |
| `text.py` | from an expression to its canonical text and back, without running anything |
| `ranges.py` | interpreter: an interval of a kernel's values, hence its sensitivity |
| `robust.py` | what a lying owner of a pair can do to a kernel's value |
| `normal_form.py` | the normal form: atoms, functions of bits over GF(2), polynomials |
| `polynomial.py` | interpreter: the normal form; polynomials of one owner's records |
| `clear.py` | interpreter: numpy, the oracle of every backend |
| `blocks.py` | independent blocks of a computation, by all cores of a process |
| `kernel.py` | a kernel with everything that follows from it and its schema |
| `statistics/` | the library, from the mean to Bergsma and Dassios' tau* |
| `estimators.py` | ratios, totals and entropies of the released means, with their errors |
| `pair_quantiles.py` | disjoint cells of pairs, whose shares give medians and other quantiles |
| `intervals.py` | the interval for the statistic on all sets: noise and sampling together |
| `released_means.py` | the released means, and a bound of the variance that they leave |
| `error_law.py` | the law of noise and sampling together |
| `over_noise.py` | the mean interval over tables with noise, which a plan promises |
| `joint_values.py` | the values that several kernels have on the same records |
| `design.py` | how much of a kernel's variance is left in its mean over E, at most |
| `sampling.py` | edge sets from a seed: balanced, pairings, across classes, or drawn |
| `edge_blocks.py` | graphs and larger sets with degrees as equal as possible |
| `condition.py` | a condition on one record, such as age >= 40 |
| `strata.py` | kernels inside a stratum, and pairs over triples |
| `cell_rows.py` | all cells as rows of arrays; numbered subsets |
| `hypergraph.py` | the edge set of a study, divided into cells by owners |

These modules import numpy and `umpc.errors`, and nothing else from outside.
"""
