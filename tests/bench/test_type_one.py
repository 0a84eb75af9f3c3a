"""bench.type_one and bench.power: sums by a table of orders, and tests of false hypotheses."""

from __future__ import annotations

import numpy as np

from bench.clear_studies import totals_by_kernel
from bench.order_patterns import totals_by_order
from bench.power import FalseCase
from bench.type_one import BY_ORDER, FINE, STATISTICS, NullCase, rejections

SETS = 400


def test_a_table_of_orders_gives_the_sums_of_the_kernels():
    rng = np.random.default_rng(3)
    for statistic in BY_ORDER:
        for values in (FINE, 3):  # without ties, and with many
            case = NullCase(statistic, "1", "all", values)
            table, sets = case.table(rng, 3), rng.permuted(case.sets(rng), axis=1)[:SETS]
            found = totals_by_order(case.study, table, sets)
            assert (found == totals_by_kernel(case.study, table, sets)).all(), (statistic, values)


def test_eleven_statistics_and_four_differences_are_simulated():
    assert len(STATISTICS) == 15 and set(BY_ORDER) < set(STATISTICS)


def test_a_false_hypothesis_is_rejected_more_often_the_further_it_is_from_the_truth():
    rng = np.random.default_rng(4)
    truths, runs = (0.0, 0.15, 0.4), 100
    cases = [FalseCase("kendall_tau", "4", truth=truth) for truth in truths]
    totals = np.concatenate([case.totals(rng, runs) for case in cases])
    means = totals.reshape(len(truths), runs) / cases[0].sizes.sets
    assert np.abs(means.mean(axis=1) - truths).max() < 0.03
    noisy = totals + cases[0].noise(rng, len(totals))
    none, some, most = rejections(cases[0], noisy, 0.05).reshape(-1, runs).mean(axis=1)
    assert none < 0.2 < some < 0.9 < most
