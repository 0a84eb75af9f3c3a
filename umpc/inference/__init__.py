"""Inference from a report alone: intervals for the population, and p-values. It costs no further ε.

Everything here is post-processing of what was released: the noisy sums, the law of their noise, the
numbers of records, and the fields' public bounds.

| file | what it is |
|---|---|
| `report_inference.py` | intervals, tests and the four sources of error of a report |
| `hypotheses.py` | what each statistic of the library tests, and its law if that is true |
| `null_laws.py` | laws without noise: of counts, normal, sums of chi-squares; the p-value |
| `matrix.py` | one statistic of all pairs of columns: Holm's p-values, the nearest matrix |

These modules import numpy, `umpc.ustat`, `umpc.study` and `umpc.errors`, and nothing else.
"""
