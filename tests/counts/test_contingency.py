"""Tables of two fields against scipy without noise; the test and the association with it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats.contingency import association

from tests.support.released_tables import asker, cells_of_columns, flag, lung, whole, words
from umpc.counts.answers import RECORDS

BY_R = json.loads((Path(__file__).parent / "lung_by_r.json").read_text(encoding="utf-8"))
JOB, SITE = words("job", "a", "b", "c"), words("site", "n", "s")


def test_the_statistic_of_lung_is_rs():
    data, axes = lung(), [whole("age", 30, 90, [60]), flag("event")]
    cells = cells_of_columns(axes, [data["age"], data["event"]])
    found = asker(axes, cells).ask("contingency").number("chi-squared").value
    assert found == pytest.approx(BY_R["chi_squared"][0])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=6, max_size=6))
def test_without_noise_it_is_scipys(counts):
    cells = np.array(counts).reshape(3, 2)
    assume(cells.sum(axis=0).all() and cells.sum(axis=1).all())
    for axes, own in (([JOB, SITE], cells), ([SITE, JOB], cells.T)):
        asked = asker(axes, own)
        answer = asked.ask("contingency", x="job", y="site")
        known = stats.chi2_contingency(cells, correction=False)
        assert answer.number("chi-squared").value == pytest.approx(known.statistic, abs=1e-6)
        assert answer.number("degrees of freedom").value == known.dof == 2
        measure = answer.number("Cramér's V")
        assert measure.value == pytest.approx(association(cells, "cramer"), abs=1e-6)
        assert measure.intervals[RECORDS] == pytest.approx((measure.value,) * 2, abs=1e-6)
        assert answer.series[0].value == pytest.approx(cells.ravel())
        assert answer.series[0].labels[1] == "a, s"
    if cells.sum() > 40 and known.expected_freq.min() >= 5:
        assert answer.number("p-value").value == pytest.approx(known.pvalue, abs=0.08)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_an_association_is_between_0_and_1_and_inside_its_own_interval(scale):
    """The bias that is taken off once left it a little below."""
    rng = np.random.default_rng(23)
    for _ in range(4):
        cells = rng.multinomial(200, np.full(6, 1 / 6)).reshape(3, 2)
        measure = asker([JOB, SITE], cells, scale=scale, rng=rng).ask("contingency")
        found = measure.number("Cramér's V")
        low, high = found.intervals[RECORDS]
        assert 0 <= low <= found.value <= high <= 1


def test_true_hypotheses_are_rejected_rarely_and_false_ones_often():
    rng, runs, n = np.random.default_rng(19), 160, 300
    law = np.outer([0.5, 0.3, 0.2], [0.7, 0.3])
    other = law + np.array([[0.1, -0.1], [-0.05, 0.05], [-0.05, 0.05]])

    def rejected(shares: np.ndarray, many: int) -> float:
        found = 0
        for _ in range(many):
            cells = rng.multinomial(n, shares.ravel()).reshape(3, 2)
            answer = asker([JOB, SITE], cells, scale=4.0, rng=rng).ask("contingency")
            found += answer.number("p-value").value <= 0.05
        return found / many

    assert rejected(law, runs) <= 0.05 + 4 * (0.0475 / runs) ** 0.5
    assert rejected(other, runs // 4) > 0.6
    # with the test that knows of no noise, a tenth of the true ones would go, and more
    without = 0
    for _ in range(runs // 4):
        cells = rng.multinomial(n, law.ravel()).reshape(3, 2)
        noisy = asker([JOB, SITE], cells, scale=4.0, rng=rng).ask("contingency")
        released = np.reshape(noisy.series[0].value, (3, 2))
        without += stats.chi2_contingency(released, correction=False).pvalue <= 0.05
    assert without / (runs // 4) > 0.1


def test_sparse_margins_do_not_reject_true_hypotheses_and_a_false_one_goes():
    """Noise makes 19 nearly empty rows seem filled; the test once rejected 19 % and more here."""
    rng, runs, n = np.random.default_rng(41), 80, 200
    axes = [words("row", *map(str, range(20))), SITE]
    law = np.outer([0.9, *[0.1 / 19] * 19], [0.96, 0.04])

    def sizes(law: np.ndarray, scale: float, many: int) -> np.ndarray:
        tables = (rng.multinomial(n, law.ravel()).reshape(law.shape) for _ in range(many))
        asked = (asker(axes, cells, scale=scale, rng=rng).ask("contingency") for cells in tables)
        return np.array([answer.number("p-value").value for answer in asked])

    assert np.mean(sizes(law, 2 / 0.3, runs) <= 0.05) <= 0.05 + 3 * (0.0475 / runs) ** 0.5
    law[:2] = [[0.45, 0.05], [0.15, 0.25]]
    assert np.mean(sizes(law, 2.0, runs // 8) <= 0.05) > 0.7


def test_there_is_no_p_value_where_the_noise_is_as_large_as_the_records():
    cells, rng = np.full((3, 2), 5), np.random.default_rng(43)
    answer = asker([JOB, SITE], cells, scale=20.0, rng=rng).ask("contingency")
    number = answer.number("p-value")
    assert number.value is None and number.note.startswith("the noise is too large")
    assert answer.number("chi-squared").value > 0


@pytest.mark.parametrize("moved", [0.0, 0.12])
def test_intervals_of_the_association_hold_it(moved):
    rng, runs, n = np.random.default_rng(23), 100, 400
    law = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    law += moved * np.array([[1, -1], [-1, 1], [0, 0]])
    cells = rng.multinomial(n, law.ravel()).reshape(3, 2)
    truth = association(cells, "cramer")
    held = 0
    for _ in range(runs):
        answer = asker([JOB, SITE], cells, scale=4.0, rng=rng).ask("contingency")
        low, high = answer.number("Cramér's V").intervals[RECORDS]
        held += low <= truth <= high
    assert held / runs >= 0.95 - 4 * (0.0475 / runs) ** 0.5


def test_rows_without_a_record_are_no_association():
    """A negative margin once counted as association, so that intervals lay too high."""
    rng = np.random.default_rng(61)
    cells = np.zeros((13, 2), dtype=np.int64)
    cells[:10] = [
        [9, 2],
        [12, 6],
        [40, 20],
        [66, 30],
        [61, 53],
        [94, 86],
        [68, 127],
        [37, 113],
        [22, 50],
        [7, 17],
    ]
    truth, runs = association(cells[:10], "cramer"), 120
    age = whole("age", 20, 90, range(25, 85, 5))
    found = [
        asker([age, SITE], cells, scale=0.5, rng=rng).ask("contingency").number("Cramér's V")
        for _ in range(runs)
    ]
    below = sum(truth < number.intervals[RECORDS][0] for number in found)
    assert below <= stats.binom(runs, 0.025).ppf(0.999)
    assert np.mean([number.value for number in found]) == pytest.approx(truth, abs=0.003)


def test_a_table_of_one_row_has_no_association():
    answer = asker([words("x", "a"), SITE], np.array([[3, 4]])).ask("contingency")
    assert answer.number("Cramér's V").value is None
    assert answer.number("p-value").value == 1
