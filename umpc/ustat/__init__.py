"""The statistic: what is computed, over which records, and what that implies. Imports numpy only.

| file | what it is |
|---|---|
| `schema.py` | a field's type: bounds and resolution, hence its integers |
| `expression.py` | kernels as immutable expressions, and the visitor that every interpreter shares |
| `tracing.py` | from a Python function to an expression |
| `text.py` | from an expression to its canonical text and back, without running anything |
| `ranges.py` | interpreter: the exact interval of a kernel, hence its sensitivity |
| `polynomial.py` | interpreter: the normal form that shares are computed from; units, symmetry |
| `clear.py` | interpreter: numpy, the oracle of every other backend |
| `kernel.py` | a kernel with everything that follows from it and its schema |
| `statistics.py` | the library: Kendall's tau, Gini mean difference |
| `local.py` | polynomials of one record, which its owner evaluates alone |
| `sampling.py` | edge sets from a seed: balanced, complete |
| `hypergraph.py` | edges by their owners: cells and chunks |
"""
