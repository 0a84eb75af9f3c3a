"""Where the mechanisms of Chaudhuri et al. 2024 gain over Laplace noise. The paper has no figure.

| file | what it holds |
|---|---|
| `gain.py` | the error by the number of records, with and without a curator |
"""

from reproduction.figures.paper002 import gain

FIGURES = (gain.FIGURE,)
"""The figures, in order."""
