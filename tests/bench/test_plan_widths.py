"""The benchmark of planned widths: the plan is near the mean of reports, on lung."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.plan_widths import CASES, DUE, compare, row
from tests.support.released_tables import lung
from umpc.api.proposal import BINS, BINS_OF_TIME


@pytest.mark.parametrize("name", ["quantiles", "kaplan_meier", "roc", "contingency"])
def test_a_plan_of_lung_is_near_the_mean_of_reports(name):
    case = next(each for each in CASES if (each.data, each.statistic) == ("lung", name))
    predicted, measured = compare(case, lung(), 4.0, 40)
    assert abs(predicted / measured - 1) < DUE


def test_a_case_with_a_public_label_is_planned_and_run():
    case = next(each for each in CASES if each.statistic == "hodges_lehmann_shift")
    predicted, measured = compare(case, lung(), 100.0, 1)
    assert abs(predicted / measured - 1) < DUE


def test_a_statistic_without_an_interval_is_said_to_have_none():
    case = next(each for each in CASES if each.statistic == "logrank")
    assert row(case, lung(), 4.0, 1)[-1] == "no interval"


def test_with_little_epsilon_the_proposed_bins_of_a_time_have_shorter_intervals():
    case = next(each for each in CASES if each.statistic == "kaplan_meier")
    few, many = (
        compare(replace(case, more={"bins": {"time": bins}}), lung(), 1.0, 1)[0]
        for bins in (BINS_OF_TIME, BINS)
    )
    assert few < many
