"""umpc.study.report: every number of a report, and the report as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from tests.support.protocols import with_facts
from tests.support.reports import GINI_STUDY as STUDY
from tests.support.reports import attempt_over, build_report, shares_of, statistic_of
from umpc.mpc.backends import predict
from umpc.study.cost import Measured, Moment, count_online
from umpc.study.messages import StepBytes
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.study.sizes import Sizes
from umpc.ustat.error_law import ErrorLaw
from umpc.ustat.intervals import covering_interval

MEASURED = Measured(
    3, [60, 40], {"masked_fields": 80, "open 1": 12, "reveal": 8}, 200, 0.5, 0.25, 1.0, False
)


def test_the_estimate_is_the_mean_over_the_edges_in_the_kernels_unit():
    run = attempt_over()
    report = build_report(STUDY, shares_of(-87, 2, run.ring.bytes), run, MEASURED)
    assert report.edges == 20 and report.estimate == float(Fraction(-87, 20) * Fraction(1, 2))


def test_every_number_follows_from_study_and_attempt():
    run = attempt_over()
    report, cost = build_report(STUDY, shares_of(1, 2, run.ring.bytes), run, MEASURED), predict(run)
    assert (report.study, report.statistic, report.estimator) == (
        "report",
        "gini_mean_difference",
        "mean",
    )
    assert (report.degree, report.edges, report.sets) == (2, 20, 45)
    assert (report.epsilon, report.delta) == (1.0, 0.0)
    assert (report.records, report.nodes, report.max_colluding, report.max_degree) == (10, 2, 1, 4)
    assert (report.rounds, report.bytes_online, report.bytes_offline) == (3, 100, 200)
    assert (report.seconds_online, report.seconds_offline, report.seconds_total) == (0.5, 0.25, 1.0)
    assert report.rounds_predicted == cost.rounds
    assert (report.bytes_online_predicted, report.bytes_offline_predicted) == (
        cost.bytes_online,
        cost.bytes_offline,
    )
    assert (report.bytes_online_by_node, sum(report.bytes_online_by_step.values())) == (
        [60, 40],
        100,
    )
    assert sum(report.bytes_online_by_node_predicted) == cost.bytes_online
    assert list(report.bytes_online_by_step_predicted) == ["masked_fields", "open 1", "reveal"]
    assert sum(report.bytes_online_by_step_predicted.values()) == cost.bytes_online
    assert report.study_hash == STUDY.hash.hex() and report.joint_seed == run.seed.hex()
    assert report.records_by_node == [4, 6] and not report.replayed
    (entry,) = report.sums
    assert (entry.kernel, entry.epsilon) == (STUDY.kernels[0], 1.0)
    same = (entry.mean, entry.noise_std, entry.sampling_std_bound)
    assert same == (report.estimate, report.noise_std, report.sampling_std_bound)
    alone = statistic_of(STUDY, report.sums).noise_alone
    assert (report.noise_low, report.noise_high) == covering_interval("mean", alone, 45)
    # the noise is wide: ends are cut to the kernel's range
    assert 0 == report.low == report.noise_low < entry.mean < report.noise_high < report.high < 10
    assert report.interval_covers == "the value on all pairs of the records"
    assert report.low < entry.mean < report.high and report.note == ""
    assert 0 < report.sampling_std <= report.sampling_std_bound


def test_the_first_interval_is_for_all_sets_and_holds_noise_and_sampling():
    """A mean inside its range: the interval is wider than that of the noise alone."""
    run = attempt_over()
    report = build_report(STUDY, shares_of(100, 2, run.ring.bytes), run, MEASURED)
    statistic = statistic_of(STUDY, report.sums, report.edges)
    assert (report.low, report.high) == covering_interval("mean", statistic, 45)
    alone = build_report(
        with_facts(STUDY, edges="all"),
        shares_of(225, 2, run.ring.bytes),
        attempt_over(with_facts(STUDY, edges="all")),
        MEASURED,
    )
    assert alone.estimate == report.estimate and alone.sampling_std == 0
    (law,) = [entry.noise for entry in statistic.sums]
    assert (law.std, law.step, law.shape) == (report.noise_std, 0.5 / 20, 1.0 * 2 / 1)
    half = ErrorLaw([law], [1.0]).central(0.025)[1]
    assert statistic.law([1.0], report.estimate).central(0.025)[1] > half


def test_a_total_is_scaled_by_the_number_of_possible_sets():
    """The mean over E times all 45 pairs, whatever E is."""
    study = with_facts(STUDY, estimator="total")
    run = attempt_over(study)
    report = build_report(study, shares_of(-87, 2, run.ring.bytes), run, MEASURED)
    (entry,) = report.sums
    assert report.estimate == pytest.approx(45 * entry.mean) == pytest.approx(45 * -87 / 40)
    assert report.noise_std == pytest.approx(45 * entry.noise_std)
    assert report.sampling_std_bound == pytest.approx(45 * entry.sampling_std_bound)


def test_bytes_are_counted_by_node_and_by_step_in_the_order_of_the_rounds():
    north = (StepBytes("masked_fields", 0, 10), StepBytes("open", 1, 3), StepBytes("open", 10, 5))
    south = (StepBytes("open", 2, 7), StepBytes("labels", 0, 1))
    counted = count_online([north, south, ()], [4, 4, 8])
    assert counted["bytes_online_by_node"] == [22, 12, 8]
    steps = {"masked_fields": 10, "open 1": 3, "open 2": 7, "open 10": 5, "labels": 1, "reveal": 16}
    assert list(counted["bytes_online_by_step"].items()) == list(steps.items())


def test_a_replay_needs_only_the_sizes():
    report = build_report(STUDY, shares_of(40, 2, 4), Sizes(STUDY, 10), Measured(replayed=True))
    assert (
        report.replayed
        and report.estimate == 1.0
        and report.joint_seed == ""
        and report.records_by_node == []
    )
    assert (
        report.rounds_predicted,
        report.bytes_online_predicted,
        report.bytes_offline_predicted,
    ) == (0, 0, 0)
    assert (
        report.noise_std
        == build_report(STUDY, shares_of(0, 2, 4), attempt_over(), MEASURED).noise_std
    )


def test_a_report_has_every_field_with_its_bounds_and_its_resolution():
    report = build_report(STUDY, shares_of(40, 2, 4), attempt_over(), MEASURED)
    assert [FieldText.from_dict(each) for each in report.fields] == list(STUDY.fields)
    (field,) = report.fields
    assert (field["lower"], field["upper"], field["resolution"]) == ("0", "10", "0.5")


def test_a_report_survives_json_and_ignores_what_it_does_not_know():
    report = build_report(STUDY, shares_of(40, 2, 4), attempt_over(), MEASURED)
    values = json.loads(json.dumps(report.to_dict()))
    assert Report.from_dict(values | {"exact_all_pairs": 1.0}) == report


def test_entries_of_later_reports_are_ignored_and_no_shift_is_not_written():
    """Reports of before were read with exactly the keys of their sums."""
    report = build_report(STUDY, shares_of(40, 2, 4), attempt_over(), MEASURED)
    values = report.to_dict()
    assert "noise_shift" not in values["sums"][0]
    values["sums"][0]["later"] = 1.0
    assert Report.from_dict(values) == report
    shifted = replace(report, sums=[replace(report.sums[0], noise_shift=0.5)])
    assert shifted.to_dict()["sums"][0]["noise_shift"] == 0.5
    assert Report.from_dict(shifted.to_dict()) == shifted


def test_times_of_remote_steps_are_coarse():
    """Tenths of a second for a node's step, hundredths for a whole run."""
    moment = Moment("prepare", "node-0", 1.2345, 1.3512)
    assert (moment.asked, moment.answered) == (1.2, 1.4)
    measured = Measured(seconds_online=0.12345, seconds_offline=0.009, seconds_total=1.666)
    seconds = (measured.seconds_online, measured.seconds_offline, measured.seconds_total)
    assert seconds == (0.12, 0.01, 1.67)
