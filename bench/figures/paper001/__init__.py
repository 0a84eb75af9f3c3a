"""Figures of Bell, Bellet, Gascón & Kulkarni 2020, section 6 and appendix D.

| file | what it holds |
|---|---|
| `figure_3.py`, … | one figure each; 3, 4 and 7 twice: on the paper's data, if given, and on a substitute |
| `scores.py`, `classifier.py` | two classes of scores: synthetic, and of a logistic regression |
| `ratings.py` | two columns of six values |
| `auc.py`, `kendall.py` | a run of each protocol, and its error in theory |
| `auc_law.py` | the law of what messages of `BellAuc` add up to |
| `generic_auc.py` | the generic protocol on the AUC's pairs, with its variance |
| `errors.py` | means of absolute errors, measured and in theory |
| `pictures.py`, `claims.py` | pictures by data set; words of the agreement lines |
"""

from bench.figures.paper001 import figure_3, figure_4, figure_5, figure_6, figure_7

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
