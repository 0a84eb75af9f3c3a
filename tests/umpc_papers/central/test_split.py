"""The split estimator: what it gains in a wide range, its noise, where it cuts, ε."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.support.curated import GINI, SeededBits, accept_law, audited, columns, draws, heavy_cdf
from umpc.dp.events import PureEvent
from umpc.errors import InvalidEpsilon, StudyError, TooFewRecords
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.central.global_sensitivity import GlobalSensitivity
from umpc_papers.central.split import SplitHajek

ONE = Fraction(1)
WIDE = Kernel.from_text(
    "abs(a.x - b.x)", Schema([FieldSchema("x", Fraction(0), Fraction(100_000), ONE)])
)
SPLIT = SplitHajek(WIDE, Fraction(4), ONE, grid=Fraction(1, 1 << 10))


def test_it_gains_in_a_wide_range():
    """Values lie within a few units of a range of 100,000: far less noise than the global one."""
    records = 4000
    assert SPLIT.cut_units(records) < 1000
    assert (
        SPLIT.noise_variance(records)
        < GlobalSensitivity(WIDE, Fraction(4)).noise_variance(records) / 100
    )
    assert SPLIT.mse(records, (0.1, 0.5)) > SPLIT.noise_variance(records)


def test_its_noise_is_the_predicted_one():
    """All records are equal, so both halves are, and the whole error is noise."""
    table, protocol = (
        columns([7] * 16),
        replace(SPLIT, epsilon=Fraction(1000), grid=Fraction(1, 1 << 14)),
    )
    found = draws(lambda bits: protocol.estimate(table, bits), 800, "split")
    accept_law(found, heavy_cdf, protocol.noise_variance(16) ** 0.5)


def test_the_cut_is_around_the_coarse_mean_and_inside_the_range():
    length = SPLIT.cut_units(4000)
    for centre in (-50, 0, 500, 50_000, 99_999, 10**6):
        low, high = SPLIT.cut_interval(Fraction(centre), 4000)
        assert 0 <= low < high <= 100_000 and high - low == length
        assert low <= min(max(centre, 0), 100_000) <= high
    assert SplitHajek(GINI, ONE, Fraction(100)).cut_units(40) == 3


def test_its_loss_is_at_most_epsilon():
    tables = columns([0] * 8), columns([0] * 7 + [3])
    protocol = SplitHajek(GINI, ONE, ONE, grid=Fraction(1, 1 << 10))
    assert audited(*(lambda b, t=t: protocol.estimate(t, b) for t in tables), 100, "split") <= 1
    assert protocol.event == PureEvent(ONE)
    loud = replace(protocol, epsilon=Fraction(500))
    assert audited(*(lambda b, t=t: loud.estimate(t, b) for t in tables), 400, "loud split") > 1


def test_refusals():
    for change in (
        {"spread": Fraction(0)},
        {"spread": 1.0},
        {"failure": ONE},
        {"grid": Fraction(0)},
    ):
        with pytest.raises(StudyError):
            replace(SPLIT, **change)
    with pytest.raises(InvalidEpsilon):
        replace(SPLIT, epsilon=0.5)
    with pytest.raises(TooFewRecords):
        SPLIT.estimate({"x": np.zeros(7, dtype=np.int64)}, SeededBits("unused"))
