"""Survival curves against R's survival without noise; their bounds, which no noise can break."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.released_tables import asker, cells_of_columns, flag, lung, whole, words
from umpc.counts.answers import BAND, POPULATION, RECORDS
from umpc.counts.survival import Group
from umpc.counts.table import RUNS, NoisyNumbers
from umpc.errors import StudyError

HERE = Path(__file__).parent
BY_R = json.loads((HERE / "lung_by_r.json").read_text(encoding="utf-8"))
DAYS = whole("time", 0, 1022, range(1, 1023))
OLD = whole("age", 30, 90, [65])


def of_lung(*axes):
    data = lung()
    return axes, cells_of_columns(axes, [data[axis.field] for axis in axes])


def survival(cells: np.ndarray) -> np.ndarray:
    """S by its definition. Args: cells: (T, 2) censored records and events."""
    found, value, left = [], 1.0, cells.sum()
    for lost, events in cells:
        value *= 1 - events / left if left else 1.0
        found.append(value)
        left -= lost + events
    return np.array(found)


WANTED = "quit(status = !all(c('survival', 'pROC', 'jsonlite') %in% .packages(TRUE)))"
HAS_R = shutil.which("Rscript") and not subprocess.run(["Rscript", "-e", WANTED]).returncode

if HAS_R:

    def test_the_stored_numbers_are_those_of_this_r():
        ran = subprocess.run(["Rscript", "lung.R"], cwd=HERE, capture_output=True, check=True)
        again = json.loads(ran.stdout)
        assert again.keys() == BY_R.keys()
        for name, values in again.items():
            assert values == pytest.approx(BY_R[name]), name


def test_without_noise_the_curve_is_survfits_at_every_event_time():
    asked = asker(*of_lung(DAYS, flag("event")))
    answer = asked.ask("kaplan_meier")
    curve = dict(zip(answer.series[0].x, answer.series[0].value, strict=True))
    assert [curve[time] for time in BY_R["time"]] == pytest.approx(BY_R["surv"], abs=1e-12)
    assert answer.number("median").value == BY_R["medians"][0]
    assert answer.number("restricted mean").value == pytest.approx(BY_R["means"][0])
    hazard = asked.ask("nelson_aalen").series[0]
    found = dict(zip(hazard.x, hazard.value, strict=True))
    assert [found[time] for time in BY_R["time"]] == pytest.approx(BY_R["cumhaz"], abs=1e-12)
    low, high = answer.number("median").intervals[POPULATION]
    assert low <= 285 and high >= 363  # those of survfit


def test_without_noise_groups_and_their_test_are_rs():
    asked = asker(*of_lung(DAYS, flag("event"), OLD))
    answer = asked.ask("kaplan_meier")
    medians = [each.value for each in answer.numbers if each.name.startswith("median")]
    assert medians == BY_R["medians"][1:]
    means = [each.value for each in answer.numbers if each.name.startswith("restricted")]
    assert means == pytest.approx(BY_R["means"][1:])
    test = asked.ask("logrank")
    assert test.number("chi-squared").value == pytest.approx(BY_R["logrank"][0])
    assert test.number("degrees of freedom").value == 1
    assert test.number("p-value").value == pytest.approx(0.055, abs=0.03)


STAYS = st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=2, max_size=25)
"""Times and whether each is an event."""


@settings(max_examples=40, deadline=None)
@given(STAYS, STAYS)
def test_without_noise_curves_and_their_test_are_scipys(one, other):
    columns = [np.array(each) for each in zip(*one, *other, strict=True)]
    groups = np.repeat([0, 1], [len(one), len(other)])
    axes = [whole("t", 0, 9, range(1, 10)), flag("e"), words("arm", "a", "b")]
    asked = asker(axes, cells_of_columns(axes, [*columns, groups]))
    sides = [
        stats.CensoredData.right_censored(times, ~events)
        for times, events in ([each[groups == arm] for each in columns] for arm in (0, 1))
    ]
    for series, side in zip(asked.ask("kaplan_meier").series, sides, strict=True):
        curve = stats.ecdf(side).sf.evaluate(np.arange(10))
        assert series.value == pytest.approx(curve, abs=1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs = stats.logrank(*sides).statistic ** 2
    assume(np.isfinite(theirs))  # else it never happens that some of two groups have an event
    assert asked.ask("logrank").number("chi-squared").value == pytest.approx(theirs, rel=1e-4)


def gehans_u(cells: np.ndarray) -> float:
    """Gehan's sum over pairs of the two groups: who surely lived longer. Args: cells: (T, 2, 2)."""
    rows = [
        (at, event, group)
        for (at, event, group), many in np.ndenumerate(cells)
        for _ in range(int(many))
    ]
    total = 0
    for one, event, _ in (row for row in rows if row[2] == 0):
        for other, happened, _ in (row for row in rows if row[2] == 1):
            # at one time, an event is before a censored record
            first_longer = happened and (one > other or (one == other and not event))
            other_longer = event and (other > one or (one == other and not happened))
            total += bool(first_longer) - bool(other_longer)
    return float(total)


def test_gehans_statistic_is_the_sum_over_pairs_by_its_variance():
    rng = np.random.default_rng(2)
    cells = rng.integers(0, 4, (5, 2, 2))
    cells[:, 1, 0] += 2
    axes = [whole("time", 0, 4, range(1, 5)), flag("event"), flag("group")]
    found = asker(axes, cells).ask("gehan").number("chi-squared").value
    variance, left = 0.0, cells.sum(axis=(0, 1)).astype(float)
    for lost, events in cells:
        d, r = events.sum(), left.sum()
        if r > 1:
            variance += r * r * d * (left[0] / r) * (left[1] / r) * (r - d) / (r - 1)
        left -= lost + events
    assert found == pytest.approx(gehans_u(cells) ** 2 / variance)


tables = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(tables, st.data())
def test_any_errors_inside_the_box_leave_the_curve_inside_its_bounds(rows, data):
    """The theorem of the module, where all errors have the size that the bounds allow."""
    cells = np.array(rows, dtype=float)
    cells[-1, 0] += 1
    number = st.floats(-2, 2)
    moved = np.array(data.draw(st.lists(number, min_size=cells.size, max_size=cells.size)))
    moved = moved.reshape(cells.shape)
    if data.draw(st.booleans()):
        moved -= moved.mean()  # the number of records is public
    signs = np.where(np.arange(RUNS) % 2, 1.0, -1.0)
    group = Group("all", NoisyNumbers(cells + moved, signs[:, None, None] * moved, 1))
    truth = survival(cells)
    known = cells.sum() - np.cumsum(cells[:, 1]) - np.cumsum(cells[:, 0]) + cells[:, 0]
    for together in (False, True):
        low, high, least = group.survival(0.95, together)
        assert np.all(low <= truth + 1e-7) and np.all(truth <= high + 1e-7)
        assert np.all(least <= known + 1e-7)
    left = cells.sum() - np.cumsum(cells.sum(axis=1)) + cells.sum(axis=1)
    hazard = np.cumsum(np.where(left > 0, cells[:, 1] / np.maximum(left, 1), 0))
    for together in (False, True):
        low, high = group.cumulative_hazard(0.95, together)
        assert np.all(low <= hazard + 1e-7) and np.all(hazard <= high + 1e-7)


@pytest.mark.parametrize("scale", [4.0, 1.0])  # epsilon 0.5 and 2
def test_bounds_hold_the_curve_the_median_and_the_mean(scale):
    """60 releases and 60 samples of lung in eleven wide bins, all at 95 %."""
    rng, runs = np.random.default_rng(13), 60
    axes, cells = of_lung(whole("time", 0, 1099, range(100, 1099, 100)), flag("event"))
    clear = asker(*of_lung(DAYS, flag("event"))).ask("kaplan_meier")
    at = {time: value for time, value in zip(clear.series[0].x, clear.series[0].value, strict=True)}
    truth = np.array([at[min(time, 1022)] for time in range(99, 1100, 100)])
    mean = clear.number("restricted mean").value + 77 * truth[-1]
    held = {name: 0 for name in ("curve", "median", "mean", "sampled", "sampled median")}
    half = 0.0
    for _ in range(runs):
        answer = asker(axes, cells, scale=scale, rng=rng).ask("kaplan_meier")
        band = answer.series[0].intervals[BAND]
        low, high = np.array(band.low), np.array(band.high)
        half += float(np.mean(high - low)) / 2 / runs
        held["curve"] += bool(np.all((low <= truth + 1e-9) & (truth <= high + 1e-9)))
        low, high = answer.number("median").intervals[RECORDS]
        held["median"] += low <= clear.number("median").value <= (high or np.inf)
        low, high = answer.number("restricted mean").intervals[RECORDS]
        held["mean"] += low <= mean <= high
        drawn = rng.multinomial(228, cells.ravel() / 228).reshape(cells.shape)
        answer = asker(axes, drawn, scale=scale, rng=rng).ask("kaplan_meier")
        ends = answer.series[0].intervals[POPULATION]
        held["sampled"] += ends.low[3] <= truth[3] <= ends.high[3]
        low, high = answer.number("median").intervals[POPULATION]
        held["sampled median"] += low <= clear.number("median").value <= (high or np.inf)
    assert min(held.values()) >= runs * (0.95 - 4 * (0.0475 / runs) ** 0.5), held
    assert half < {4.0: 0.35, 1.0: 0.12}[scale]  # an interval of all values would hold them, too


def mixed(rng, runs):
    """Times 0–99 of 2,000 records whose events and censored times mix, by step: (100, 2)."""
    for _ in range(runs):
        event, lost = (np.floor(rng.exponential(1 / rate, 2000)) for rate in (0.02, 0.03))
        is_event = (event <= lost) & (event <= 99)
        shown = np.minimum(np.minimum(event, lost), 99).astype(int)
        yield cells_of_columns([whole("t", 0, 99, range(1, 100)), flag("e")], [shown, is_event])


@pytest.mark.parametrize("few", [4, 24])
def test_wide_bins_hold_the_exact_curve_for_every_order_inside_them(few):
    rng, runs = np.random.default_rng(5), 10
    cuts = np.ceil(np.arange(1, few) * 100 / few)
    axes = [whole("t", 0, 99, cuts), flag("e")]
    ends = np.append(cuts - 1, 99).astype(int)
    held = {name: 0 for name in ("curve", "band", "median", "mean", "value")}
    held |= {"hazard": 0, "hazard band": 0}
    for cells in mixed(rng, runs):
        exact = survival(cells)
        wide = np.add.reduceat(cells, np.append(0, cuts).astype(int), axis=0)
        asked = asker(axes, wide, scale=2.0, rng=rng)
        answer = asked.ask("kaplan_meier")
        assert "every order of events and censored times" in answer.notes[0]
        curve, truth = answer.series[0], exact[ends]
        for name, kind in (("curve", RECORDS), ("band", BAND)):
            low, high = np.array(curve.intervals[kind].low), np.array(curve.intervals[kind].high)
            held[name] += bool(np.all((low <= truth) & (truth <= high)))
        held["value"] += bool(np.all(np.abs(np.array(curve.value) - truth)[:-1] < 0.1))
        low, high = answer.number("median").intervals[RECORDS]
        median = int(np.flatnonzero(exact <= 0.5)[0])
        held["median"] += low <= median <= high
        low, high = answer.number("restricted mean").intervals[RECORDS]
        held["mean"] += low <= exact[:-1].sum() <= high
        left = 2000 - np.append(0, np.cumsum(cells.sum(axis=1)))[:-1]
        hazard = np.cumsum(cells[:, 1] / np.maximum(left, 1))[ends]
        found = asked.ask("nelson_aalen").series[0]
        for name, kind in (("hazard", RECORDS), ("hazard band", BAND)):
            low, high = np.array(found.intervals[kind].low), np.array(found.intervals[kind].high)
            held[name] += bool(np.all((low <= hazard) & (hazard <= high)))
    assert min(held.values()) >= runs - 1, held


def test_any_errors_inside_the_box_leave_wide_bins_inside_their_bounds():
    """Every order inside three bins of three steps, with all errors as large as allowed."""
    rng = np.random.default_rng(8)
    signs = np.where(np.arange(RUNS) % 2, 1.0, -1.0)[:, None, None]
    for _ in range(100):
        steps = rng.integers(0, 3, (9, 2)).astype(float)
        steps[-1, 0] += 1
        cells = steps.reshape(3, 3, 2).sum(axis=1)
        moved = rng.uniform(-1, 1, cells.shape)
        group = Group("all", NoisyNumbers(cells + moved, signs * moved, 1), [True] * 3)
        truth = survival(steps)
        left = steps.sum() - np.cumsum(steps.sum(axis=1)) + steps.sum(axis=1)
        hazard = np.cumsum(np.where(left > 0, steps[:, 1] / np.maximum(left, 1), 0))
        for together in (False, True):
            low, high, _ = group.survival(0.95, together)
            assert np.all(low <= truth[2::3] + 1e-7) and np.all(truth[2::3] <= high + 1e-7)
            low, high = group.cumulative_hazard(0.95, together)
            assert np.all(low <= hazard[2::3] + 1e-7) and np.all(hazard[2::3] <= high + 1e-7)


def test_a_hazard_without_any_event_has_an_upper_end_for_the_population():
    rng, runs, bins = np.random.default_rng(3), 300, (0, 1, 3, 6)
    axes, held = [whole("t", 0, 9, range(1, 10)), flag("e")], np.zeros(4)
    for _ in range(runs):
        time = rng.geometric(0.005, 100) - 1
        cells = cells_of_columns(axes, [np.minimum(time, 9), time < 9])
        answer = asker(axes, cells, scale=0.1, rng=rng).ask("nelson_aalen")
        bounds = answer.series[0].intervals[POPULATION]
        for place, at in enumerate(bins):
            held[place] += bounds.low[at] <= 0.005 * (at + 1) <= bounds.high[at]
            assert bounds.high[at] < 0.3
    assert np.all(held >= 0.95 * runs), held


def test_the_test_rejects_true_hypotheses_rarely_and_false_ones_often():
    """100 studies or fewer each: two groups with one law, and with medians of which one is half."""
    rng, runs = np.random.default_rng(17), 100
    axes = [whole("time", 0, 19, range(2, 20, 2)), flag("event"), words("arm", "a", "b")]

    def study(rate: float):
        arm = rng.integers(0, 2, 400)
        time = rng.exponential(6 * np.where(arm, rate, 1.0))
        end = rng.uniform(4, 25, 400)
        shown = np.minimum(np.minimum(time, end), 19).astype(int)
        event = (time <= end) & (time < 20)
        return asker(axes, cells_of_columns(axes, [shown, event, arm]), scale=2.0, rng=rng)

    for kind in ("logrank", "gehan"):
        sizes = [study(1.0).ask(kind).number("p-value").value for _ in range(runs)]
        most = 0.05 + 4 * (0.0475 / runs) ** 0.5
        assert np.mean(np.array(sizes) <= 0.05) <= most
        powers = [study(2.0).ask(kind).number("p-value").value for _ in range(runs // 4)]
        assert np.mean(np.array(powers) <= 0.05) > 0.7


def test_a_small_group_is_not_found_different_by_noise_and_a_different_one_is():
    """10 of 200 records with few events: the test once rejected 17 % of true hypotheses here."""
    rng, runs = np.random.default_rng(47), 80
    axes = [whole("time", 0, 9, range(1, 10)), flag("event"), words("arm", "a", "b")]
    arm = (np.arange(200) < 10).astype(int)

    def sizes(rate: float, scale: float, many: int) -> np.ndarray:
        found = []
        for _ in range(many):
            time = rng.geometric(np.where(arm, 0.007 * rate, 0.007)) - 1
            end = np.where(rng.random(200) < 0.5, rng.integers(0, 10, 200), 9)
            columns = [np.minimum(np.minimum(time, end), 9), time <= end, arm]
            asked = asker(axes, cells_of_columns(axes, columns), scale=scale, rng=rng)
            value = asked.ask("logrank").number("p-value").value
            found.append(1 if value is None else value)
        return np.array(found)

    assert np.mean(sizes(1.0, 2.0, runs) <= 0.05) <= 0.05 + 3 * (0.0475 / runs) ** 0.5
    assert np.mean(sizes(40.0, 0.5, runs // 8) <= 0.05) > 0.7


def test_there_is_no_p_value_where_the_noise_hides_a_group():
    cells, rng = np.full((10, 2, 2), 20), np.random.default_rng(53)
    cells[:, :, 1] = 0
    cells[0, :, 1] = 2
    axes = [whole("time", 0, 9, range(1, 10)), flag("event"), words("arm", "a", "b")]
    number = asker(axes, cells, scale=2.0, rng=rng).ask("logrank").number("p-value")
    assert number.value is None and number.note.endswith("or in a group")
    assert asker(axes, cells).ask("logrank").number("p-value").value is not None


def test_no_event_all_events_and_an_empty_group():
    time, event = whole("time", 0, 3, [1, 2, 3]), flag("event")
    censored = np.array([[2, 0], [1, 0], [1, 0], [3, 0]])
    answer = asker([time, event], censored).ask("kaplan_meier")
    assert answer.series[0].value == [1, 1, 1, 1] and answer.number("median").value is None
    assert "stays above 1/2" in answer.number("median").note
    answer = asker([time, event], censored[:, ::-1]).ask("kaplan_meier")
    assert answer.series[0].value[-1] == pytest.approx(0)
    empty = np.zeros((4, 2, 2), dtype=int)
    empty[:, :, 0] = censored
    empty[:, 1, 0] = 1
    asked = asker([time, event, words("arm", "a", "b")], empty)
    assert len(asked.ask("kaplan_meier").series) == 2
    assert asked.ask("logrank").number("p-value").value > 0.5
    one = asker([time, event, words("arm", "a")], empty[:, :, :1])
    assert one.ask("logrank").number("p-value").value == 1


def test_fields_that_cannot_be_times_or_events_are_refused():
    cells = np.ones((3, 3), dtype=int)
    time, job = whole("time", 0, 2, [1, 2]), words("job", "a", "b", "c")
    with pytest.raises(StudyError, match=r"the event .*has two values, and 'job' has 3 cells"):
        asker([time, job], cells).ask("kaplan_meier")
    with pytest.raises(StudyError, match="numbers were expected as time, and 'job' has cat"):
        asker([job, time], cells).ask("nelson_aalen")
