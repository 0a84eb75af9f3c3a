"""Curves from counts against numpy, scipy and R without noise; their intervals with noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.released_tables import asker, cells_of_columns, flag, lung, whole, words
from umpc.counts.answers import BAND, POPULATION, POPULATION_BAND, RECORDS
from umpc.errors import StudyError

BY_R = json.loads((Path(__file__).parent / "lung_by_r.json").read_text(encoding="utf-8"))
AGES = whole("age", 30, 90, range(31, 91))
VALUES = whole("x", 0, 9, range(1, 10))
columns = st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=40)


def test_quartiles_and_the_area_of_lung_are_those_of_r():
    data = lung()
    one = asker([AGES], cells_of_columns([AGES], [data["age"]]))
    numbers = one.ask("quantiles").numbers
    assert [each.value for each in numbers[:3]] == BY_R["quartiles"]
    assert numbers[3].value == BY_R["quartiles"][2] - BY_R["quartiles"][0]
    axes = [AGES, flag("event")]
    curve = asker(axes, cells_of_columns(axes, [data["age"], data["event"]])).ask("roc")
    area = curve.number("area under the curve")
    assert area.value == pytest.approx(BY_R["area"][0], abs=1e-12)
    assert area.intervals[RECORDS] == pytest.approx((area.value, area.value))


@settings(max_examples=40, deadline=None)
@given(columns)
def test_without_noise_every_curve_is_the_clear_one(rows):
    x, label = (np.array(each) for each in zip(*rows, strict=True))
    n = len(x)
    axes = [VALUES, flag("label")]
    asked = asker(axes, cells_of_columns(axes, [x, label]))
    curve = asked.ask("ecdf").series[0]
    assert curve.value == pytest.approx([np.mean(x <= at) for at in range(10)])
    assert curve.value == pytest.approx(stats.ecdf(x).cdf.evaluate(np.arange(10)))
    for bounds in (curve.intervals[RECORDS], curve.intervals[BAND]):
        assert bounds.low == pytest.approx(curve.value)
        assert bounds.high == pytest.approx(curve.value)
    for share in (0.1, 0.5, 0.8):
        number = asked.ask("quantiles", at_share=share).numbers[0]
        assert number.value == np.quantile(x, share, method="inverted_cdf")
        assert number.intervals[RECORDS] == (number.value, number.value)
    bars = asked.ask("histogram").series[0]
    assert bars.value == pytest.approx(np.bincount(x, minlength=10))
    if 0 < label.sum() < n:
        answer = asked.ask("roc", at_share=0.75)
        ones, zeros = x[label], x[~label]
        area = answer.number("area under the curve")
        found = area.value
        assert area.intervals[RECORDS] == pytest.approx((found, found))
        rank = stats.mannwhitneyu(ones, zeros).statistic / (len(ones) * len(zeros))
        assert found == pytest.approx(rank)
        assert answer.series[0].value == pytest.approx([np.mean(ones >= at) for at in range(10)])
        false = np.array([np.mean(zeros >= at) for at in range(10)])
        assert answer.series[1].value == pytest.approx(false)
        best = max([np.mean(ones >= at) for at in range(10) if false[at] <= 0.25], default=0)
        told = answer.number("sensitivity at specificity 0.75")
        assert told.value == pytest.approx(best)
        assert told.intervals[RECORDS] == pytest.approx((best, best))
        low, high = told.intervals[POPULATION]
        assert 0 <= low <= best <= high <= 1
        pairs = asked.ask("qq", group="label").series[0]
        shares = (np.arange(19) + 1) / 20
        assert pairs.x == np.quantile(zeros, shares, method="inverted_cdf").tolist()
        assert pairs.value == np.quantile(ones, shares, method="inverted_cdf").tolist()


def held_share(truth: dict, answers: list[dict]) -> dict[str, float]:
    """How many of the intervals of each name hold the truth."""
    return {
        name: float(np.mean([low[name] <= value <= high[name] for low, high in answers]))
        for name, value in truth.items()
    }


@pytest.mark.parametrize("scale", [4.0, 1.0])  # epsilon 0.5 and 2
def test_intervals_with_noise_hold_their_value(scale):
    """150 releases: all intervals of these records at 95 %, up to four standard errors."""
    data, rng, runs = lung(), np.random.default_rng(7), 150
    axes = [whole("age", 30, 90, range(40, 90, 5)), flag("event")]
    cells = cells_of_columns(axes, [data["age"], data["event"]])
    clear = asker(axes, cells)

    def ends(answer, kind):
        low = {each.name: each.intervals[kind][0] for each in answer.numbers if each.intervals}
        high = {each.name: each.intervals[kind][1] for each in answer.numbers if each.intervals}
        return low, high

    exact = {kind: clear.ask(kind) for kind in ("roc", "ecdf", "contingency")}
    tables = [asker(axes, cells, scale=scale, rng=rng) for _ in range(runs)]
    least = 0.95 - 4 * (0.95 * 0.05 / runs) ** 0.5
    for kind, answer in exact.items():
        answers = [table.ask(kind) for table in tables]
        # a quartile inside a bin of several values is any of these
        truth = {each.name: each.value for each in answer.numbers if each.intervals}
        found = held_share(truth, [ends(each, RECORDS) for each in answers])
        assert min(found.values()) >= least, (kind, found)
        for place, series in enumerate(answer.series):
            bounds = [each.series[place].intervals[BAND] for each in answers]
            value = np.array(series.value)
            whole_curve = [
                np.all((np.array(b.low) <= value + 1e-9) & (value <= np.array(b.high) + 1e-9))
                for b in bounds
            ]
            assert np.mean(whole_curve) >= least, (kind, series.name)


def test_quantiles_for_the_population_hold_it():
    """300 samples with noise: the median and the first quartile of a known law."""
    rng, n = np.random.default_rng(11), 120
    law = np.array([0.1, 0.05, 0.2, 0.1, 0.02, 0.18, 0.05, 0.15, 0.1, 0.05])
    medians = quarters = bands = 0
    for _ in range(300):
        cells = rng.multinomial(n, law)
        answer = asker([VALUES], cells, scale=2.0, rng=rng).ask("ecdf")
        low, high = answer.number("median").intervals[POPULATION]
        medians += low <= 5 <= high  # P(x <= 4) is 0.47
        low, high = answer.number("first quartile").intervals[POPULATION]
        quarters += low <= 2 <= high
        band = answer.series[0].intervals[POPULATION_BAND]
        sums = np.cumsum(law)
        bands += bool(np.all((band.low <= sums + 1e-9) & (sums <= np.array(band.high) + 1e-9)))
    assert min(medians, quarters, bands) >= 300 * (0.95 - 4 * (0.0475 / 300) ** 0.5)


def test_values_stay_possible_whatever_the_noise():
    rng = np.random.default_rng(3)
    axes = [VALUES, flag("label")]
    cells = cells_of_columns(axes, [np.arange(10), np.arange(10) % 2])
    for _ in range(5):
        asked = asker(axes, cells, scale=300.0, rng=rng)
        curve = asked.ask("ecdf").series[0]
        assert np.all(np.diff([0, *curve.value]) >= 0) and curve.value[-1] == pytest.approx(1)
        assert min(asked.ask("histogram").series[0].value) >= 0
        for each in asked.ask("quantiles").numbers:
            for low, high in each.intervals.values():
                assert 0 <= low <= high <= 9
        for each in asked.ask("roc").series:
            assert 0 <= min(each.intervals[BAND].low) <= max(each.intervals[BAND].high) <= 1


def test_an_area_lies_in_its_own_interval():
    """Many fine cells at little noise: their repair alone would take the area far towards 1/2."""
    rng = np.random.default_rng(9)
    axes = [whole("x", 0, 127, range(1, 128)), flag("label")]
    x = rng.integers(0, 128, 500)
    cells = cells_of_columns(axes, [x, (x > 60).astype(int)])
    for _ in range(5):
        area = asker(axes, cells, scale=2.0, rng=rng).ask("roc").number("area under the curve")
        low, high = area.intervals[RECORDS]
        assert low <= area.value <= high and high > 0.9


def test_questions_that_do_not_fit_say_what_is_missing():
    cells = np.ones((3, 3), dtype=int)
    asked = asker([words("job", "a", "b", "c"), whole("x", 0, 2, [1, 2])], cells)
    with pytest.raises(StudyError, match="numbers were expected as x, and 'job' has cat"):
        asked.ask("ecdf")
    with pytest.raises(StudyError, match=r"the label .*has two values, and 'job' has 3 cells"):
        asked.ask("roc", score="x", label="job")
    with pytest.raises(StudyError, match=r"needs the field 'y'.*has 'job', 'x'"):
        asked.ask("ecdf", x="y")
    with pytest.raises(StudyError, match="the event needs one more field"):
        asker([VALUES], np.arange(10)).ask("kaplan_meier")
    with pytest.raises(StudyError, match=r"share between 0 and 1, got 1.5"):
        asked.ask("quantiles", at_share=1.5, x="x")
    with pytest.raises(StudyError, match="specificity is between 0 and 1, got 0"):
        asker([VALUES, flag("y")], np.ones((10, 2), dtype=int)).ask("roc", at_share=0.0)
    with pytest.raises(StudyError, match=r"has the numbers 'first quartile'.*got 'mean'"):
        asked.ask("quantiles", x="x").number("mean")


def test_a_coarse_bin_says_so():
    asked = asker([whole("x", 0, 9, [5])], np.array([4, 6]))
    answer = asked.ask("ecdf")
    assert "bins of x hold several values" in answer.notes[0]
    assert answer.series[0].x == [4, 9]
    assert answer.number("median").intervals[RECORDS] == (5, 9)
    assert not asker([VALUES], np.ones(10, dtype=int)).ask("ecdf").notes
