"""The errors that `umpc plan` predicts, beside those of whole runs of every protocol.

| file | what it holds |
|---|---|
| `figure.py` | the figure |
| `cases.py` | three statistics of the bank data, as a study of each protocol |
"""

from reproduction.figures.planned import figure

FIGURES = (figure.FIGURE,)
