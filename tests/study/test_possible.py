"""Possible sums: every sum of honest parties is, and one step beyond the range is not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.support.protocols import coordinator_of
from tests.support.studies import (
    AUC,
    GINI,
    KENDALL,
    Entropy,
    clear_sums,
    graph_of,
    make_study,
    random_tables,
)
from umpc.errors import ImpossibleResult, error_classes
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.simulation import simulate
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.study.making_report import check_sums, edge_range, sum_range
from umpc.study.sizes import Sizes
from umpc.transport.status import grpc, status_of

STUDY = make_study(KENDALL, 3)
SIZES = Sizes(STUDY, 9, holders=3)
(LAW,) = noise_of_sums(SIZES)
(KERNEL,) = STUDY.parsed_kernels
LOW, HIGH = sum_range(STUDY, KERNEL, SIZES.edges, LAW.tail_bound())


def test_a_range_is_that_of_all_edges_and_the_tail():
    assert edge_range(STUDY, KERNEL) == (-1, 1)
    assert -36 - LAW.tail_bound() == LOW
    assert 36 + LAW.tail_bound() == HIGH


@pytest.mark.parametrize("kernel", [AUC, GINI])
def test_a_range_is_counted_in_units_and_not_wider_than_needed(kernel):
    facts = {"sampling": "two_sample"} if kernel == AUC else {}
    study = make_study(kernel, 2, **facts)
    (one,) = study.parsed_kernels
    low, high = edge_range(study, one)
    assert (low * one.unit, high * one.unit) == (one.interval.low, one.interval.high)


@pytest.mark.parametrize("total", [LOW, 0, HIGH])
def test_a_possible_sum_passes(total):
    check_sums(SIZES, [total], [LAW.tail_bound()])


@pytest.mark.parametrize("total", [LOW - 1, HIGH + 1, -185292, 3167, 1 << 40])
def test_one_step_beyond_is_refused_and_the_sum_is_not_shown(total):
    with pytest.raises(ImpossibleResult) as caught:
        check_sums(SIZES, [total], [LAW.tail_bound()])
    text = caught.value.message
    assert "deviated" in text and "memory failed" in text and "No estimate is shown" in text
    assert str(total) not in text
    assert (caught.value.step, caught.value.culprit) == ("release", None)


def test_each_of_several_sums_is_looked_at():
    study = make_study((KENDALL, GINI), 3, estimator="ratio")
    sizes = Sizes(study, 9, holders=3)
    tails = [law.tail_bound() for law in noise_of_sums(sizes)]
    check_sums(sizes, [0, 0], tails)
    with pytest.raises(ImpossibleResult):
        check_sums(sizes, [0, 1 << 30], tails)


def test_the_extreme_sums_of_honest_records_pass():
    """All pairs agree: the sum is at the end of its range, and the study is released."""
    study = make_study(KENDALL, 2, epsilon="1e12")
    x = np.arange(2, dtype=np.int64)
    tables = [{"x": 2 * x + node, "y": 2 * x + node} for node in range(2)]
    run = simulate(study, tables, Entropy("extreme"))
    assert clear_sums(study, tables, graph_of(study, run.report)) == [6]
    assert run.report.estimate == 1


@pytest.mark.parametrize("again", [False, True], ids=["first", "replayed"])
def test_a_coordinator_refuses_an_impossible_share_also_in_a_replay(again):
    study = make_study(KENDALL, 2, epsilon="1000")
    run = simulate(study, random_tables([4, 4], "share"), Entropy("share"))
    answers = [
        m.Released(run.attempt.id, share, member.records)
        for share, member in zip(run.transcript.shares, run.attempt.members, strict=True)
    ]
    bad = bytes([*answers[0].share[:2], answers[0].share[2] ^ 1, *answers[0].share[3:]])
    coordinator = coordinator_of(study)
    with pytest.raises(ImpossibleResult):
        coordinator.replay([replace(answers[0], share=bad), answers[1]], Measured(replayed=again))
    assert coordinator.replay(answers, Measured(replayed=True)).estimate is not None


def test_the_tail_is_exceeded_no_more_often_than_it_says():
    """The false alarms: the bound of each law holds with 2^-64, and committees never exceed it."""
    study = make_study(KENDALL, 3, noise="in_mpc")
    (committee,) = noise_of_sums(Sizes(study, 9, holders=3))
    assert sum(weight for weight in committee.weights if weight > 0) == committee.tail_bound()
    study = make_study(KENDALL, 1, noise="distributed")
    (law,) = noise_of_sums(Sizes(study, 9))
    # one node's discrete Laplace: P(|X| > T) = 2 q^(T+1)/(1 + q)
    ratio = float(law.log_ratio)
    exponent = Fraction(law.tail_bound() + 1) * law.log_ratio
    assert float(exponent) + np.log((1 + np.exp(-ratio)) / 2) >= 64 * np.log(2)


def test_the_error_has_an_exit_code_and_a_status_of_its_own():
    codes = [cls.exit_code for cls in error_classes().values()]
    assert codes.count(ImpossibleResult.exit_code) == 1
    assert status_of(ImpossibleResult("x"))[0] is grpc.StatusCode.DATA_LOSS
