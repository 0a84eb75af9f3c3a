"""A committee tosses a study's coins by transfers, without a dealer or beside one.

The release keeps ε, and it has the exact law. The transfers are those of `bell.without_transfers`,
since only the release is judged. `mpc/transfers/test_toss_views.py` tests what they hide.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.audit.auditor import Case, audit
from tests.audit.mutants import Broken, no_coin_falls, second_geometric_missing
from tests.support.bell import without_transfers
from tests.support.garbled import garbled_study
from tests.support.studies import KENDALL, make_study
from umpc.testing import lying

THREE = ("0", "2")
CASE = Case(
    "degree 2, garbled, in_mpc, t = 1 of 2",
    garbled_study(KENDALL, 2, noise="in_mpc", x=THREE, y=THREE, max_colluding=1, epsilon="0.5"),
    (((1, 1),), ()),
    ((0, 0), (0, 2)),
    90,
)
BESIDE_A_DEALER = Case(
    "degree 1, coins from transfers beside a dealer, t = 1 of 2",
    make_study("a.x", 2, degree=1, x=THREE, noise="in_mpc", coins="transfers", max_colluding=1),
    (((1, 1),), ()),
    ((0, 0), (2, 0)),
    90,
)


def all_draw_the_same() -> Broken:
    """Equal numbers of two members cancel, so every coin falls. Unbounded loss, and law."""

    def drawn_numbers(honest, seed, count):
        return np.full(count, 1 << 62, dtype=np.uint64)

    return lying("node", drawn_numbers=drawn_numbers)


MUTANTS = {
    no_coin_falls: ("loss", "law"),
    second_geometric_missing: ("law",),
    all_draw_the_same: ("loss", "law"),
}


AUDITS = {
    CASE: MUTANTS,
    BESIDE_A_DEALER: {all_draw_the_same: ("loss", "law")},
}


@pytest.mark.parametrize("case", AUDITS, ids=lambda case: case.name)
def test_the_real_code_keeps_its_promise_and_the_same_runs_find_broken_code(case):
    with without_transfers():
        verdict = audit(case)
        assert verdict.sound, str(verdict)
        for mutant, finders in AUDITS[case].items():
            verdict = audit(case, mutant)
            assert verdict.caught_by(*finders), f"not found: {verdict}"
