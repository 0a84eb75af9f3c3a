"""Figures and tables of Sinh & Ramon 2025, sections 5 and 6 and appendices D and E.

| file | what it holds |
|---|---|
| `figure_1.py`, `figure_2.py`, `figure_3.py` | one figure each |
| `figure_4.py`, `figure_5.py`, `figure_6.py` | one figure each |
| `table_1.py`, `table_2.py`, `table_3.py` | one table each |
| `expressions.py` | the paper's asymptotic expressions |
| `constants.py` | measured numbers over these expressions |
| `data.py` | the tables of records |
| `protocols.py` | one run of each protocol, and its predicted error |
| `theory.py` | the exact error of sampling E, for the records at hand |
| `traffic.py` | bytes |
| `clocks.py` | seconds of a processor |
| `measures.py` | errors, bytes and seconds of one batch |
| `series.py`, `claims.py` | names and numbers of runs; words of the agreement lines |

Nothing comes from the paper's code, which runs no protocol. docs/papers.md says what is wrong with
its baselines.
"""

from reproduction.figures.paper003 import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    table_1,
    table_2,
    table_3,
)

MODULES = (figure_1, figure_2, figure_3, figure_4, figure_5, figure_6, table_1, table_2, table_3)
FIGURES = tuple(each.FIGURE for each in MODULES)
