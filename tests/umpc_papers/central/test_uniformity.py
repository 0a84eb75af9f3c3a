"""A study that tests uniformity: accept or reject, with bounds of its errors."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.central import central_study
from tests.support.protocols import assert_refused, with_facts
from tests.support.studies import Entropy, table
from umpc.errors import StudyError, TooFewRecords
from umpc.simulation import simulate
from umpc_papers.central.messages import CuratorMessages

UNIFORMITY = "(a.x == b.x) - 1/4"
RECORDS = 600
UNIFORM, FAR = [0.25] * 4, [0.5, 0.5, 0, 0]


def uniformity_study(noise: str = "hajek", **changes):
    return central_study(noise, kernels=UNIFORMITY, **({"distance": "1", "epsilon": "2"} | changes))


def tables(odds: list[float], seed: int) -> list[dict[str, np.ndarray]]:
    x = np.random.default_rng(seed).choice(4, RECORDS, p=odds)
    return [table(part.tolist(), [0] * len(part)) for part in np.split(x, 2)]


@pytest.mark.parametrize("noise", ["laplace", "hajek"])
def test_it_tells_uniform_from_far_and_says_how_often_it_errs(noise):
    study = uniformity_study(noise)
    for odds, verdict in ((UNIFORM, "accepts"), (FAR, "rejects")):
        for seed in range(2):
            entropy = Entropy(f"uniformity {noise} {verdict} {seed}")
            report = simulate(study, tables(odds, seed), entropy).report
            assert f"the test {verdict} that x is uniform" in report.note
            bounds = [float(found) for found in re.findall(r"at most (0\.\d+)", report.note)]
            assert bounds and max(bounds[-2:]) < 0.5


def test_the_bounds_are_those_of_the_test_and_laplace_noise_never_fails_by_its_xi():
    for noise in ("laplace", "hajek"):
        messages = CuratorMessages(uniformity_study(noise))
        test = messages.test(RECORDS)
        near, far = test.error_bounds(messages.fixed_noise(RECORDS))
        assert 0 < near < 1 and 0 < far < 1
        assert test.error_bounds(1e9) == (1.0, 1.0)
        assert (near > float(test.failure)) or noise == "laplace"
        noise_of_more = messages.fixed_noise(2 * RECORDS)
        assert sum(messages.test(2 * RECORDS).error_bounds(noise_of_more)) < near + far


def test_the_threshold_lies_half_way():
    test = CuratorMessages(uniformity_study(distance="0.5")).test(RECORDS)
    assert test.categories == 4
    assert test.threshold - 1 / test.categories == pytest.approx(0.75 * 0.25 / 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kernels": ("a.x == b.x",)}, 'distance goes with statistic = "uniformity"'),
        ({"distance": "0"}, "distance must be above 0"),
        ({"distance": "1.5"}, "distance must be above 0 and at most 1"),
        ({"noise": "coinpress_all"}, "distance goes with noise = 'laplace' or 'hajek'"),
        ({"concentration": "0.5"}, "without concentration"),
    ],
    ids=str,
)
def test_what_cannot_be_uniformity_study(changes, message):
    assert_refused(with_facts(uniformity_study(), **changes), StudyError, message)


def test_too_few_records_are_refused_before_anything_leaves():
    with pytest.raises(TooFewRecords, match="at least 4 records"):
        CuratorMessages(uniformity_study()).check_records(3)


def test_a_study_without_distance_does_not_test():
    study = central_study("hajek", kernels=UNIFORMITY)
    assert CuratorMessages(study).test(RECORDS) is None
