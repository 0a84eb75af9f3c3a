"""Studies of a curator that state ξ or τ: less noise, the same ε, and a report that says so."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.support.central import central_study
from tests.support.protocols import assert_refused, with_facts
from tests.support.studies import Entropy, table
from umpc.errors import StudyError
from umpc.protocols.registry import decode_study, protocol_of
from umpc.simulation import simulate
from umpc_papers.central.hajek import bernstein_concentration
from umpc_papers.central.messages import CuratorMessages

EQUAL = "a.x == b.x"
"""Degenerate under uniform values: every record's mean is near that of all."""


def noise_of(study, records: int = 400) -> float:
    return CuratorMessages(study).usual_std(records)


def test_what_is_known_lowers_the_noise_and_a_larger_value_than_the_range_does_not():
    for noise, key in (
        ("hajek", "concentration"),
        ("hajek_subsampled", "concentration"),
        ("coinpress_naive", "spread"),
        ("coinpress_all", "spread"),
        ("hajek_split", "spread"),
    ):
        usual = noise_of(central_study(noise, kernels=EQUAL))
        known = central_study(noise, kernels=EQUAL, **{key: "0.02"})
        assert noise_of(known) < usual, noise
        assert noise_of(central_study(noise, kernels=EQUAL, **{key: "50"})) == usual
        assert decode_study(known.encode()) == known


def test_the_concentration_of_a_degenerate_kernel_is_corollary_2s():
    study = central_study("hajek", kernels=EQUAL, concentration="degenerate")
    messages = CuratorMessages(study)
    width = Fraction(1)
    for records in (100, 20_000):
        expected = bernstein_concentration(records, 2, width, width / 4, Fraction(1, 100))
        assert messages.concentration(records) == expected
        # Corollary 2: ξ falls as 1/√n, but for the logarithm
        assert 2 < float(expected) * records**0.5 < 8


def test_where_corollary_2_gains_over_laplace():
    """With all constants, local Hájek projections need some records, which the plan knows."""
    laplace = central_study("laplace", kernels=EQUAL)
    hajek = central_study("hajek", kernels=EQUAL, concentration="degenerate")
    assert noise_of(hajek, 60) > noise_of(laplace, 60)
    assert noise_of(hajek, 1000) < noise_of(laplace, 1000)


def test_a_wrong_statement_keeps_epsilon_and_the_report_names_it():
    """Two tables that differ in one record, and ξ far too small: the ratio of odds stays e^ε."""
    study = central_study("hajek", kernels="a.x * b.x", concentration="0.01", epsilon="1")
    full = table([3] * 7, [0] * 7)
    found = []
    for value in (3, 0):
        entropy = Entropy(f"knowledge {value}")
        runs = [simulate(study, [full, table([value], [0])], entropy).report for _ in range(30)]
        found.append(np.array([report.estimate for report in runs]))
        assert "concentration = '0.01'" in runs[0].interval_covers
        assert "epsilon holds in any case" in runs[0].note
    for threshold in (4.5, 6.75, 9.0):
        first, second = (max(1, np.sum(values > threshold)) for values in found)
        # e for ε = 1, times four standard errors of two counts of at least 1 in 30
        assert first / second < np.e * 6 and second / first < np.e * 6
    lines = dict(protocol_of(study).describe(study))
    assert "rest on concentration" in lines["assumed"]
    assert "assumed" not in dict(protocol_of(study).describe(central_study("hajek")))


@pytest.mark.parametrize(
    ("noise", "changes", "message"),
    [
        ("laplace", {"concentration": "1"}, "concentration goes with noise = 'hajek' or"),
        ("hajek", {"spread": "1"}, "spread goes with noise = 'coinpress_naive' or"),
        ("coinpress_all", {"concentration": "degenerate"}, "concentration goes with"),
        ("hajek", {"concentration": "0"}, "concentration must be a number above 0"),
        ("hajek_split", {"spread": "-1"}, "spread"),
        ("hajek_split", {"spread": "degenerate"}, "spread"),
    ],
)
def test_what_cannot_be_stated(noise, changes, message):
    assert_refused(with_facts(central_study(noise), **changes), StudyError, message)
