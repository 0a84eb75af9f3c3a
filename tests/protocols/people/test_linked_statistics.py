"""Statistics of columns at two sites, from the dealt keys to the report, are the slow formulas'.

The first column lies at the first site and the second one at the other: two numbers, a score and a
private label, or both sides of a contingency table.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.support.linked import LinkedPair, LinkedRun
from tests.ustat.statistic_oracles import ORACLES
from umpc.study.settings import HONEST, LYING_NODES
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

ROWS = 12
CELLS = [
    f"(((a.x == {i}) & (a.y == {j})) + ((b.x == {i}) & (b.y == {j}))) * (1/2)"
    for i, j in product(range(3), range(2))
]
"""The share of the records in each cell of a contingency table of three rows and two columns."""


def shares(rows):
    """The oracle of `CELLS`."""
    return [sum(row == cell for row in rows) / len(rows) for cell in product(range(3), range(2))]


def phi(rows):
    """The numerator and both denominators of phi, over pairs."""
    pairs = [(p, q) for p in rows for q in rows if p is not q]
    of = [[(p[i] - q[i]) for p, q in pairs] for i in (0, 1)]
    both = [sum(a * b for a, b in zip(*of, strict=True)), *(sum(a * a for a in one) for one in of)]
    return [each / len(pairs) for each in both]


CASES = {
    "kendall_tau": (ORACLES["kendall_tau"], ("0", "3"), ("0", "3")),
    "kendall_tau_b": (ORACLES["kendall_tau_b"], ("0", "3"), ("0", "3")),
    "spearman_rho": (ORACLES["spearman_rho"], ("0", "3"), ("0", "3")),
    "auc_private": (ORACLES["auc_private"], ("0", "5"), ("0", "1")),
    "phi_coefficient": (phi, ("0", "1"), ("0", "1")),
    "contingency table": (shares, ("0", "2"), ("0", "1")),
}
"""Name → the means of its kernels by a slow formula, and the bounds of both columns."""


@pytest.mark.parametrize("grade", [HONEST, LYING_NODES])
@pytest.mark.parametrize("name", CASES)
def test_columns_at_two_sites_have_the_oracles_statistics(tmp_path: Path, name: str, grade: str):
    oracle, *bounds = CASES[name]
    rng = np.random.default_rng(4)
    values = [rng.integers(0, int(high) + 1, ROWS) for _, high in bounds]
    facts = dict(zip("xy", bounds, strict=True)) | {"kernels": CELLS, "estimator": "means"}
    if name in LIBRARY:
        expressions = LIBRARY[name].expressions(["x", "y"])
        facts["kernels"] = [*map(to_text, expressions)]
        facts |= {"estimator": LIBRARY[name].estimator, "degree": LIBRARY[name].degree}
    pair = LinkedPair(tmp_path, values, grade, **facts)
    try:
        signed = pair.signed()
        for side in (0, 1):
            pair.add_up(signed, side)
        run = LinkedRun(pair, signed, "statistics")
        run = run.prepare().count().up().down() if grade == HONEST else run.committed()
        report = run.confirm().finish()
    finally:
        pair.stop()
    rows = list(zip(*(each.tolist() for each in values), strict=True))
    due = [float(each) for each in oracle(rows)]
    assert [each.mean for each in report.sums] == pytest.approx(due, abs=1e-6)
    assert report.records == ROWS
