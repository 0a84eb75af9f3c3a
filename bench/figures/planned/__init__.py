"""What `umpc plan` predicts beside what whole runs of every protocol miss, on the bank data."""

from bench.figures.planned import figure

FIGURES = (figure.FIGURE,)
