"""A study by a median of means: parallel composition, its bound of the error, and its words."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tests.support.central import central_study
from tests.support.curated import EQUAL, PRODUCT, SeededBits, audited, columns, random_columns
from tests.support.protocols import assert_refused, with_facts
from tests.support.studies import Entropy
from umpc.errors import StudyError, TooFewRecords
from umpc.planning.prediction import attempt_over
from umpc.protocols.registry import checked, decode_study, protocol_of
from umpc.simulation import simulate
from umpc_papers.central.central_mechanisms import Choice, failure
from umpc_papers.testing import lying

ONE = Fraction(1)


def test_a_study_of_parts_says_what_its_median_promises():
    study = checked(with_facts(central_study("laplace", kernels="a.x == b.x"), chunks=5))
    assert decode_study(study.encode()) == study
    given = [{"x": random_columns(30, seed)["x"]} for seed in (1, 2)]
    report = simulate(study, given, Entropy("median")).report
    messages = protocol_of(study).messages(study)
    choice = messages.choice(60)
    assert report.edges == choice.sets(60) == 5 * math.comb(12, 2)
    single = Choice("laplace", study.parsed_kernels[0], study.exact_epsilon)
    expected = math.sqrt(10 / 6) * single.noise_std(12, single.family(12, SeededBits("none")))
    assert report.noise_std == pytest.approx(expected)
    words = "the median of 5 parts errs by more than"
    assert words in report.note
    assert words in dict(protocol_of(study).compare_noise(attempt_over(study, "30,30")))["median"]
    assert "median" not in dict(
        protocol_of(study).compare_noise(attempt_over(central_study("laplace"), "30,30"))
    )


def test_the_stated_error_is_exceeded_no_more_often_than_stated():
    """Wrapper 1 and lemma A.4, with the exact binomial tail in place of Hoeffding's bound."""
    given = random_columns(90, 7)
    counts = np.bincount(given["x"])
    exact = float((counts * (counts - 1)).sum()) / (90 * 89)
    choice = Choice("laplace", EQUAL, ONE / 4, chunks=9)
    bits = SeededBits("miss")
    error, chance = choice.miss_of_median(90, choice.family(90, bits))
    assert chance == float(failure(9, Fraction(1, 4))) < 0.05
    found = np.array([float(choice.estimate(given, bits)) for _ in range(60)])
    assert (np.abs(found - exact) > error).mean() <= chance
    deviation = math.hypot(choice.noise_std(90, choice.family(90, bits)), choice.sampling_bound(90))
    assert np.sqrt(((found - exact) ** 2).mean()) < deviation


def test_parts_cost_no_more_than_one_and_overlapping_parts_are_found():
    """One record is in one part. Where every part has all records, each shows it."""
    tables = columns([3] * 6), columns([3] * 5 + [0])
    choice = Choice("laplace", PRODUCT, ONE, chunks=3)

    def loss() -> float:
        return audited(*(lambda bits, t=t: choice.estimate(t, bits) for t in tables), 250, "parts")

    assert loss() <= 1
    last = columns([3, 3]), columns([3, 0])

    def overlapping() -> float:
        return audited(*(lambda bits, t=t: choice.estimate(t, bits) for t in last), 250, "over")

    with lying("everybody", estimate=every_part_has_all):
        assert overlapping() > 1


def every_part_has_all(honest, of, given, bits):
    """Return the median of estimates that all see the same records."""
    return sorted(of.inner.estimate(given, bits) for _ in range(9))[4]


def test_what_cannot_be_split_is_refused():
    for noise, facts, message in (
        ("laplace", {"chunks": 4}, "chunks must be an odd number"),
        ("hajek_subsampled", {"chunks": 3}, "chunks goes with"),
    ):
        assert_refused(with_facts(central_study(noise), **facts), StudyError, message)
    with pytest.raises(TooFewRecords, match="in 5 parts needs at least 10 records, 9 came"):
        Choice("laplace", EQUAL, ONE, chunks=5).check_records(9)
