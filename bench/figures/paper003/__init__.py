"""Figures and tables of Sinh & Ramon 2025, sections 5 and 6 and appendices D and E.

| file | what it holds |
|---|---|
| `figure_1.py`, … | one figure or table each |
| `data.py` | the tables of records |
| `protocols.py` | one run of each protocol, and the error that is predicted |
| `theory.py` | the error of taking E, exactly, for the records at hand |
| `traffic.py` | bytes |
| `clocks.py` | seconds of a processor |
| `series.py`, `claims.py` | names and numbers of runs; words of the agreement lines |

Nothing is taken from the paper's code, which runs no protocol (docs/papers.md says what is wrong with its baselines).
"""

from bench.figures.paper003 import figure_1

FIGURES = (figure_1.FIGURE,)
