"""`hajek-grid` on its worst neighbours: both releases together within ε, and broken code is found.

Four records are alike, or one of them differs. Then the squares of the projections and the sum both
change by all that their noise is for, and the bound is the sensitivity for all tables.
"""

from __future__ import annotations

import numpy as np

from tests.audit.auditor import MORE, Verdict, broken_by, law_of, loss_bound, remembered
from tests.audit.mutants import Broken, Mutant
from tests.support.grid import grid_study
from tests.support.studies import Entropy
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.study.sizes import Sizes
from umpc_papers.hajek_grid import binding
from umpc_papers.hajek_grid.binding import squares_law, value_law
from umpc_papers.testing import lying

STUDY = checked(
    grid_study(
        "a.x == b.x",
        2,
        protocol="hajek-grid",
        delta="1e-9",
        bound_share="1/2",
        max_colluding=0,
        x=("0", "1"),
    )
)
SIZES = Sizes(STUDY, 4, 0, 2)
SQUARES, SUMS = (6, 0), (6, 3)
"""P and S of either table."""
RUNS = 130


def silent_squares() -> Broken:
    """The squares are released without noise."""
    return lying("node", own_noise=lambda honest, node, attempt: [0, 0])


def bound_of_nobody() -> Broken:
    """The bound counts no record, so the sum has no noise."""
    return lying("node", bound_of=lambda honest, sizes, squares: 0)


def released(record: int, number: int) -> np.ndarray:
    """Return (runs, 2): the noisy P and the noisy S of many runs."""
    tables = [{"x": np.array([1, 1])}, {"x": np.array([1, record])}]
    entropy = Entropy(f"hajek grid, {number}")
    seen = []
    with remembered():
        for _ in range(RUNS * MORE):
            script = simulate(STUDY, tables, entropy).transcript
            seen.append([noisy_sums(of, 1)[0] // 2 for of in (script.shares, script.answers)])
    return np.array(seen)


def score(seen: np.ndarray) -> np.ndarray:
    """Return log P'(y)/P(y) of both releases under the claimed laws."""
    laws = (squares_law(SIZES), value_law(SIZES, SIZES.sensitivities[0]))
    total = np.zeros(len(seen))
    for column, noise, (first, second) in zip(seen.T, laws, (SQUARES, SUMS), strict=True):
        law = law_of(noise)
        total += law.logpmf(column - second) - law.logpmf(column - first)
    return total


def audit(mutant: Mutant | None = None) -> Verdict:
    with broken_by(mutant) as name:
        first, second = (released(record, number) for number, record in enumerate((1, 0)))
    loss = loss_bound(score(first), score(second), (0.99, 1e-9, -0.99), 1e-9)
    # Either release by itself: less of P or of S speaks for the second table.
    loss = max(loss, *(loss_bound(-first[:, k], -second[:, k], (-4.5, -3.0)) for k in (0, 1)))
    verdict = Verdict(f"hajek-grid: {name}", len(first), loss, 1.0)
    print(verdict)
    return verdict


def test_both_releases_keep_the_promise_and_the_same_runs_find_broken_code():
    assert binding.bound_of(SIZES, 0) == SIZES.sensitivities[0] == SUMS[0] - SUMS[1]
    assert binding.hajek_grid_of(STUDY).projections.sensitivity_of_squares(4) == SQUARES[0]
    verdict = audit()
    assert verdict.sound, str(verdict)
    for mutant in (silent_squares, bound_of_nobody):
        verdict = audit(mutant)
        assert verdict.caught_by("loss"), f"not found: {verdict}"
