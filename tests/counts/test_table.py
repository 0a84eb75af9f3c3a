"""A released table: least squares with the public total and a tree, and the law of its error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.released_tables import (
    asker,
    flag,
    levels_of,
    released,
    whole,
    words,
)
from umpc.counts.table import (
    MOST_LEVEL,
    RUNS,
    CountTable,
    ends_of_bins,
    law_of_noise,
    names_of_cells,
    order_of,
    wilson,
)
from umpc.errors import StudyError


def axis_of(size: int, field: str = "x"):
    return whole(field, 0, size - 1, range(1, size))


def least_squares(table: CountTable) -> np.ndarray:
    """The fit by the normal equations, with the total as an equation without error."""
    shape = table.shape
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    rows = [
        np.concatenate([level.ravel() for level in levels_of(unit, table.report.tree)])
        for unit in units
    ]
    design = np.array(rows).T
    cells = design.shape[1]
    system = np.zeros((cells + 1, cells + 1))
    system[:cells, :cells] = design.T @ design
    system[cells, :cells] = system[:cells, cells] = 1
    right = np.append(design.T @ np.array(table.report.values, float), table.records)
    return np.linalg.solve(system, right)[:cells].reshape(shape)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from([(7,), (1,), (5, 2), (3, 2, 2), (2, 6)]), st.integers(-1, 1))
def test_the_consistent_table_is_the_least_squares_fit(data, shape, tree):
    tree = min(tree, len(shape) - 1)
    counts = st.lists(st.integers(0, 9), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
    cells = np.array(data.draw(counts)).reshape(shape)
    cells.flat[0] += 1
    axes = [axis_of(size, name) for size, name in zip(shape, "xyz", strict=False)]
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    report = released(axes, cells, scale=3.0, rng=rng, tree=tree)
    table = CountTable.of(report, int(cells.sum()))
    assert table.released.value == pytest.approx(least_squares(table), abs=1e-6)
    assert table.released.value.sum() == pytest.approx(cells.sum())
    assert table.released.errors.sum(axis=tuple(range(1, len(shape) + 1))) == pytest.approx(
        np.zeros(RUNS), abs=1e-6
    )


def test_a_tree_makes_long_ranges_far_less_noisy():
    cells = np.full(256, 2)
    axes = [axis_of(256)]
    flat = asker(axes, cells, scale=2.0).table
    tree = asker(axes, cells, scale=2.0 * 9, tree=0).table

    def spread(table: CountTable) -> float:
        return float(table.released.map(lambda values: values[..., :128].sum(axis=-1)).errors.std())

    assert spread(tree) < 3 * spread(flat)  # and not 9 times, by which each count is noisier
    alone = CountTable.of(released(axes, cells, scale=18.0), 512)
    assert spread(tree) < 0.5 * spread(alone)


@pytest.mark.parametrize(
    ("noise", "scale", "shape", "std"),
    [
        ("laplace", 2.0, 1.0, stats.dlaplace(1 / 2.0).std()),
        ("laplace", 2.0, 1.5, stats.dlaplace(1 / 2.0).std() * 1.5**0.5),
        ("laplace", 1e4, 1.0, 2**0.5 * 1e4),
        ("laplace", 1e-6, 1.0, 0.0),
        ("gaussian", 9.0, 1.0, 3.0),
        ("gaussian", 1e8, 1.0, 1e4),
    ],
)
def test_the_law_of_the_noise(noise, scale, shape, std):
    report = released([axis_of(2)], np.array([1, 1]), noise=noise, scale=scale, shape=shape)
    places, below = law_of_noise(report)
    mass = np.diff(np.concatenate([[0.0], below, [1.0]]))
    assert mass @ places == pytest.approx(0, abs=1e-6 * max(std, 1))
    assert np.sqrt(mass @ places**2) == pytest.approx(std, rel=1e-3, abs=1e-9)
    if (noise, scale, shape) == ("laplace", 2.0, 1.0):
        law = stats.dlaplace(1 / 2.0)
        assert below == pytest.approx(law.cdf(places[:-1]), abs=1e-9)


def test_every_reader_draws_the_same_errors_and_another_table_others():
    cells = np.array([3, 4, 5])
    one, same = (asker([axis_of(3)], cells, scale=2.0).table.released.errors for _ in range(2))
    other = asker([axis_of(3)], cells + 1, scale=2.0).table.released.errors
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_intervals_hold_as_often_as_they_say_and_less_wide_ones_do_not():
    """2,000 tables: each cell, all cells at once, and one range, at 90 %."""
    rng = np.random.default_rng(5)
    cells = np.array([0, 30, 2, 0, 8, 1])
    held = np.zeros((4, 2000))
    for run in range(2000):
        numbers = asker([axis_of(6)], cells, scale=2.0, rng=rng).table.released
        low, high = numbers.ends(0.9)
        held[0, run] = low[1] <= 30 <= high[1]
        middle, half = numbers.value, numbers.half(0.9)
        held[3, run] = abs(middle[1] - 30) <= 0.7 * half[1]
        low, high = numbers.ends(0.9, 1)
        held[1, run] = np.all((low <= cells) & (cells <= high))
        low, high = numbers.map(lambda values: values[..., 1:4].sum(axis=-1)).ends(0.9)
        held[2, run] = low <= 32 <= high
    shares = held.mean(axis=1)
    error = (0.9 * 0.1 / 2000) ** 0.5
    assert np.all(shares[:3] >= 0.9 - 4 * error) and np.all(shares[:3] <= 0.96)
    assert shares[3] < 0.9 - 4 * error


def test_axes_are_summed_out_and_put_in_any_order():
    cells = np.arange(24).reshape(2, 3, 4)
    axes = [axis_of(2, "x"), axis_of(3, "y"), axis_of(4, "z")]
    table = asker(axes, cells).table
    assert table.onto(2, 0).value == pytest.approx(cells.sum(axis=1).T)
    assert table.onto(1).value == pytest.approx(cells.sum(axis=(0, 2)))
    assert table.onto(1, 2, 0).errors.shape == (RUNS, 3, 4, 2)


def test_bins_of_whole_numbers_have_first_and_last_values():
    first, last = ends_of_bins(whole("x", 0, 10, [2.5, 5]))
    assert first.tolist() == [0, 3, 5] and last.tolist() == [2, 4, 10]
    assert names_of_cells(whole("x", 0, 2, [1, 2])) == ["0", "1", "2"]
    assert names_of_cells(words("g", "a", "b")) == ["a", "b"]


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(StudyError, match="holds no table of counts"):
        CountTable.of(None, 5)
    damaged = released([axis_of(4)], np.ones(4, dtype=int), tree=0)
    damaged.values.pop()
    with pytest.raises(StudyError, match="4 cells has 7 released numbers, got 6"):
        CountTable.of(damaged, 4)
    with pytest.raises(StudyError, match="at least one record"):
        CountTable.of(released([flag("x")], np.array([0, 0])), 0)
    with pytest.raises(StudyError, match=f"from 0.5 to {MOST_LEVEL}"):
        order_of(0.999)


@pytest.mark.parametrize("n", [3, 20, 500])
@pytest.mark.parametrize("successes", [0, 1, 3])
def test_the_interval_of_a_share_is_newcombes(n, successes):
    known = stats.binomtest(successes, n).proportion_ci(0.95, method="wilsoncc")
    low, high = wilson(np.array(successes / n), n, 0.025)
    assert (float(low), float(high)) == pytest.approx((known.low, known.high), abs=1e-9)
    assert wilson(np.array(0.3), 0.0, 0.025) == (0.0, 1.0)
