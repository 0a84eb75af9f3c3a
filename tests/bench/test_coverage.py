"""bench.coverage: a short form of what it prints, and its power."""

from __future__ import annotations

import pytest

from bench.coverage import STATISTICS, Case, cases, measure, proposed, rare_cases

RUNS = 120
LEAST = 0.87
"""95 % in 120 runs are below this once in 10^3 tests; seeds are fixed."""


@pytest.mark.parametrize(
    "name, protocol, edges",
    [
        ("kendall_tau", "u-mpc", "1n"),
        ("kendall_tau", "bell-2pc", "1p"),
        ("renyi_entropy", "u-mpc", "2n"),
        ("goodman_kruskal_gamma", "u-mpc", "2n"),
        ("kendall_tau_b", "u-mpc", "1n"),
        ("auc", "u-mpc", "40"),
        ("spearman_rho", "u-mpc", "1n"),
    ],
)
def test_intervals_hold_the_value_on_all_sets(name, protocol, edges):
    found = measure(Case(proposed(name, protocol, edges)), RUNS, seed=7)
    assert found.covered >= LEAST, found
    assert found.withheld < RUNS // 4 and 1.5 < found.length < 6


def test_the_noise_alone_does_not_cover_where_e_is_small():
    found = measure(Case(proposed("kendall_tau", "u-mpc", "1n")), RUNS, seed=8)
    assert found.by_noise < 0.7 < LEAST <= found.covered


@pytest.mark.parametrize("case", list(rare_cases()), ids=lambda case: case.study.edges)
def test_one_equal_pair_is_held_where_a_study_sees_it_once_or_not_at_all(case):
    """The ends held it in 80 % of studies over 2n pairs."""
    found = measure(case, RUNS, seed=9)
    assert found.covered >= 0.97 and not found.withheld, found


def test_ten_statistics_two_protocols_and_three_sizes_are_drawn():
    drawn = {(case.study.statistic, case.study.protocol) for case in cases()}
    assert len(STATISTICS) == 10 and len(drawn) == 19
    assert len(list(cases())) == 57
