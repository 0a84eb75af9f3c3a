"""bench.consortium: three sizes of consortium, and what grows with the square of their number."""

from __future__ import annotations

import os

import numpy as np
import pytest

from bench.consortium import grid_study, of_grid, of_pairs
from bench.simulated_study import members_of, messages_of, study_of
from bench.work import Work
from umpc.planning.prediction import attempt_over
from umpc.protocols.registry import protocol_of
from umpc.simulation import simulate

FREE = Work(*[0.0] * 10)
"""A machine whose work takes no time, so that delays and bytes alone are left."""


def test_the_bytes_of_the_grid_are_those_of_a_run():
    study, sites, records = grid_study(3), 3, 20
    rng = np.random.default_rng(0)
    tables = [
        {name: rng.integers(0, 128, records) for name in ("age", "balance")} for _ in range(sites)
    ]
    attempt = attempt_over(study, ",".join([str(records)] * sites))
    report = simulate(study, tables, os.urandom).report
    assert protocol_of(study).cost(attempt).bytes_online == report.bytes_online > 0


def test_what_a_site_hears_of_the_others_grows_with_their_number():
    """So what passes the coordinator grows with the square."""
    heard = [messages_of(study_of(n), members_of(study_of(n), 1))["agree"] for n in (10, 100)]
    assert heard[1] == pytest.approx(10 * heard[0], rel=0.02)


@pytest.mark.parametrize("row", [of_grid, of_pairs])
def test_a_larger_consortium_takes_more_of_everything(row):
    small, large = (row(sites, FREE, 0.001) for sites in (4, 40))

    def figure(text: str) -> float:
        return float(text.split()[0].replace(",", ""))

    for place in (2, 4, 5, 6, 7):
        assert figure(large[place]) > figure(small[place]), (small, large)
    assert figure(large[6]) == pytest.approx(0.04), "40 checks of a millisecond"
    links = {of_grid: (2, 2), of_pairs: (5, 41)}[row]
    assert tuple(figure(each[1]) for each in (small, large)) == links
