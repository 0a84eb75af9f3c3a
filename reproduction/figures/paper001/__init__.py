"""Figures of Bell, Bellet, Gascón & Kulkarni 2020, section 6 and appendix D.

| file | what it holds |
|---|---|
| `figure_3.py`, `figure_4.py`, `figure_7.py` | on the paper's data, if given, and on other data |
| `figure_5.py`, `figure_6.py` | on synthetic scores |
| `scores.py`, `classifier.py` | scores of two classes: synthetic, or of a logistic regression |
| `ratings.py` | two columns of six values |
| `auc.py`, `kendall.py` | a run of each protocol, and its error in theory |
| `auc_law.py` | the law of the sums of messages of `BellAuc` |
| `generic_auc.py` | the generic protocol on the AUC's pairs, with its variance |
| `errors.py` | means of absolute errors, measured and in theory |
| `pictures.py`, `claims.py` | pictures by data set; words of the agreement lines |
"""

from reproduction.figures.paper001 import figure_3, figure_4, figure_5, figure_6, figure_7

FIGURES = (
    figure_3.FIGURE,
    figure_3.SUBSTITUTE,
    figure_4.FIGURE,
    figure_4.SUBSTITUTE,
    figure_5.FIGURE,
    figure_6.FIGURE,
    figure_7.FIGURE,
    figure_7.SUBSTITUTE,
)
