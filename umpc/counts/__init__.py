"""Curves, quantiles, tables and tests from a released table of counts. They take no further ε.

| file | what it is |
|---|---|
| `statistics.py` | the statistics by name, with the roles of their fields; questions to a table |
| `table.py` | a released table: consistent values, and the law of their error by simulation |
| `curves.py` | distribution, quantiles, histogram, ROC curve, quantiles of two groups |
| `survival.py` | Kaplan–Meier and Nelson–Aalen curves, log-rank and Gehan's test |
| `contingency.py` | tables of two fields: the chi-squared test with the noise, Cramér's V |
| `simulated.py` | the p-value of a test with noise, by simulated studies |
| `answers.py` | an answer: numbers, intervals, and its picture |

Everything is computed from the report alone. These modules import numpy, `umpc.crypto`,
`umpc.study` and `umpc.errors`, and a picture writes its file with `umpc.text_file`.
"""

from umpc.counts.statistics import COUNTED, answers_of, headline, reach

__all__ = ["COUNTED", "answers_of", "headline", "reach"]
