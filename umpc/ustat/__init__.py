"""The statistic: what is computed, over which records, and what that implies. Imports numpy only.

| file | what it is |
|---|---|
| `schema.py` | a field's type: bounds and resolution, hence its integers |
| `expression.py` | kernels as immutable expressions, and the visitor that every interpreter shares |
| `tracing.py` | from a Python function to an expression |
| `text.py` | from an expression to its canonical text and back, without running anything |
| `ranges.py` | interpreter: an interval of a kernel's values, hence its sensitivity |
| `enumeration.py` | the exact interval, and equality of kernels, by all values of small domains |
| `polynomial.py` | interpreter: the normal form that shares are computed from; units, symmetry |
| `logic.py` | Boolean functions of comparisons in their normal form over GF(2) |
| `clear.py` | interpreter: numpy, the oracle of every other backend |
| `kernel.py` | a kernel with everything that follows from it and its schema |
| `statistics/` | the library, from the mean to Bergsma and Dassios' tau* |
| `estimators.py` | what is computed from the released means: ratios, totals, entropies, with their errors |
| `local.py` | polynomials of one owner's records, which it evaluates alone |
| `sampling.py` | edge sets from a seed: balanced, or across two classes |
| `combinations.py` | all subsets of a given size, by number |
| `hypergraph.py` | edges by their owners: cells |
"""
