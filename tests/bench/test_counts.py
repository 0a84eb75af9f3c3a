"""The benchmark of intervals from counts: each case makes its shares, on small made-up data."""

from __future__ import annotations

import numpy as np
import pytest

from bench.counts import Case, cases_of, measure, type_one

RNG = np.random.default_rng(50)
SURVIVAL = {
    "time": RNG.integers(1, 1100, 60).astype(float),
    "event": RNG.integers(0, 2, 60).astype(float),
    "age": RNG.integers(30, 90, 60).astype(float),
}
DATA = {
    "lung": SURVIVAL,
    "heart": {"age": SURVIVAL["age"], "disease": SURVIVAL["event"]},
}
CASES = cases_of(DATA)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_makes_a_share_for_every_kind_of_interval(case):
    """At so large an epsilon that no noise is drawn, every interval of these records holds."""
    found = measure(case, 1e6, 2, 1)
    assert {each.kind for each in found} >= {"records", "population"}
    for each in found:
        assert 0 <= each.worst <= each.covered <= 1
        assert each.kind == "population" or each.covered == 1, each


def test_a_share_of_rejected_hypotheses():
    tests = [case for case in CASES if case.kind == "contingency"]
    (case,) = tests
    assert 0 <= type_one(case, 1.0, 3, 1) <= 1
    groups = next(case for case in CASES if len(case.axes) == 3)
    logrank = Case(groups.name, "logrank", groups.axes, groups.columns)
    assert 0 <= type_one(logrank, 1.0, 3, 1) <= 1
