"""The grid without a dealer on its worst neighbours, and the same runs find broken code.

The release is twice the noisy sum, as with a dealer, so half of the shares' sum is judged. Base
transfers take no curve points here: the channels are tested elsewhere.
"""

from __future__ import annotations

import pytest

from tests.audit import mutants
from tests.audit.auditor import audit
from tests.audit.test_grid import LAW, GridCase, case, view
from tests.support.garbled import without_points

ALONE = {"preprocessing": "none", "dealer": None}


def alone(runs: int, name: str, nodes: int, **changes) -> GridCase:
    """Kendall's tau of three records, of which one is replaced, like the audit with a dealer."""
    return case(runs, f"without a dealer, {name}", nodes, **ALONE, **changes)


AUDITS = {alone(110, "t = 0 of 2", 2): {mutants.half_the_range: LAW}}


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with without_points():
        yield


@pytest.mark.parametrize("case", AUDITS, ids=lambda case: case.name)
def test_cross_terms_keep_the_promise_and_the_same_runs_find_broken_code(case):
    verdict = audit(case, view=view)
    assert verdict.sound, str(verdict)
    for mutant, finders in AUDITS[case].items():
        verdict = audit(case, mutant, view)
        assert verdict.caught_by(*finders), f"not found: {verdict}"
