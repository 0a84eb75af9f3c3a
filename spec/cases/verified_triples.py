"""The vectors of `verified_triples.py`: a rank correlation of triples, with nodes of the grid."""

from __future__ import annotations

from itertools import permutations

from spec import field
from spec.cases.grid import CELLS
from spec.cases.vectors import Arguments, Bad, Good
from spec.cases.verified_grid import DEALT, OWNS, RANDOMS, STUDY


def sign(number: int) -> int:
    """−1, 0 or 1."""
    return (number > 0) - (number < 0)


def ranks(*cells: int) -> int:
    """Σ sign(x_i − x_j)·sign(y_i − y_k) over the six orders of three records (Hoeffding 1948)."""
    orders = permutations(CELLS[cell] for cell in cells)
    return sum(sign(p[0] - q[0]) * sign(p[1] - r[1]) for p, q, r in orders)


PLACES = range(len(CELLS))
CUBE = [[[ranks(c, d, e) for e in PLACES] for d in PLACES] for c in PLACES]
RUN: Arguments = {
    "study": {
        **STUDY,
        "cube": CUBE,
        "classes": [list(PLACES)],
        "counts": [[n] for n in STUDY["sizes"]],
    },
    "owns": OWNS,
    "dealt": DEALT,
    "randoms": RANDOMS,
}
GOOD: Good = [("run", "three nodes", RUN)]
BAD: Bad = [
    ("release", "no multiple of six", {"shares": [field.P - 4, 9, 3], "factor": 6}),
]
