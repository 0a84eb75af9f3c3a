"""umpc.protocols.grid.operators.dyadic: sums at a resolution, against their definition by pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.protocols.grid.operators.sums import (
    clear_sum,
    form_sum,
    inner,
    random_columns,
    random_words,
)
from tests.support.mpc_studies import make_schema
from umpc.errors import KernelError, RangeError
from umpc.protocols.grid.operators import compile_dyadic, compile_grid, ties_of_uniform_columns
from umpc.protocols.grid.operators.dyadic import DyadicForm, Signs
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import find_statistic
from umpc.ustat.tracing import sign, trace

SCHEMA = make_schema(x=("-5", "7"), y=("0", "31"), z=("0", "1"))
WIDTHS = {"x": 4, "y": 5, "z": 1}
WIDE = make_schema(x=("0", "18014398509481980", "4"), y=("-2251799813685248", "2251799813685247"))
NAMES = ("kendall_tau", "kendall_tau_b", "goodman_kruskal_gamma")
RNG = np.random.default_rng(9)


def kernels_of(name: str, schema=SCHEMA, columns: tuple[str, str] = ("x", "y")) -> list[Kernel]:
    return [Kernel(each, schema) for each in find_statistic(name).expressions(columns)]


def level(column: np.ndarray, low: int, width: int, a: int, b: int) -> int:
    """Return the length of the common prefix of two records' values."""
    return width - int((column[a] - low) ^ (column[b] - low)).bit_length()


def defined_sum(kernel: Kernel, columns, names: tuple[str, str], resolution: int) -> int:
    """Return the sum by the definition: by pairs, each with its two levels."""
    first, second = names
    values = {(x, y): value(kernel, {first: x, second: y}) for x in (-1, 0, 1) for y in (-1, 0, 1)}
    total = 0
    for a, b in combinations(range(len(columns[first])), 2):
        signs, levels = {}, {}
        for name in names:
            low = kernel.schema[name].lower_units
            levels[name] = level(columns[name], low, WIDTHS[name], a, b)
            signs[name] = int(np.sign(columns[name][a] - columns[name][b]))
        if sum(levels.values()) <= resolution and all(signs.values()):
            total += values[signs[first], signs[second]]
            continue
        x, y = (signs[name] if levels[name] <= resolution else 0 for name in names)
        total += values[x, 0] + values[0, y] - values[0, 0]
    return total


def value(kernel: Kernel, signs: dict[str, int]) -> int:
    """Return the kernel's value in units at these signs of the first record minus the second."""
    low = {name: kernel.schema[name].lower_units for name in signs}
    first = {name: np.array([low[name] + max(signs[name], 0)]) for name in signs}
    second = {name: np.array([low[name] + max(-signs[name], 0)]) for name in signs}
    return int(kernel.evaluate([first, second])[0])


@pytest.mark.parametrize("columns", [("x", "y"), ("x", "z"), ("y", "z")])
@pytest.mark.parametrize("resolution", [0, 1, 2, 3, 5, 7])
@pytest.mark.parametrize("name", NAMES)
def test_a_sum_is_the_sum_by_its_definition(name, resolution, columns):
    kernels = kernels_of(name, columns=columns)
    grid = compile_dyadic(kernels, resolution)
    for count in (0, 1, 2, 24):
        records = random_columns(SCHEMA, RNG, count)
        table = grid.tabulate(records)
        for kernel, form in zip(kernels, grid.forms, strict=True):
            wanted = defined_sum(kernel, records, columns, resolution)
            assert form_sum(form, table) == wanted


@pytest.mark.parametrize("name", NAMES)
def test_at_full_resolution_a_sum_is_exact(name):
    kernels = kernels_of(name)
    grid = compile_dyadic(kernels, WIDTHS["x"] + WIDTHS["y"] - 2)
    records = random_columns(SCHEMA, RNG, 60)
    sums = [form_sum(form, grid.tabulate(records)) for form in grid.forms]
    assert sums == [clear_sum(kernel, records) for kernel in kernels]


def test_one_level_less_is_not_exact():
    kernels = kernels_of("goodman_kruskal_gamma")
    grid = compile_dyadic(kernels, WIDTHS["x"] + WIDTHS["y"] - 3)
    records = {"x": np.array([0, 1]), "y": np.array([0, 1]), "z": np.array([0, 0])}
    low = SCHEMA["x"].lower_units
    records["x"] += low
    assert form_sum(grid.forms[1], grid.tabulate(records)) == 0
    assert clear_sum(kernels[1], records) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_matrix_is_symmetric_on_uniform_words(name):
    for form in compile_dyadic(kernels_of(name), 4).forms:
        v, w = (random_words(RNG, form.cells) for _ in range(2))
        assert inner(w, form.apply(v)) == inner(v, form.apply(w))


def test_wide_columns_have_a_table_of_the_resolution_size():
    (kernel,) = kernels_of("kendall_tau", WIDE)
    grid = compile_dyadic([kernel], 10)
    assert grid.cells == 11 * 2**12
    records = random_columns(WIDE, RNG, 400)
    table = grid.tabulate(records)
    decided = form_sum(DyadicForm(grid.forms[0].tables, Signs(1, 1, 0, 0, 0), 1), table)
    ties = 400 * 399 // 2 - decided
    exact, coarse = clear_sum(kernel, records), form_sum(grid.forms[0], table)
    assert abs(exact - coarse) <= ties < 3 * ties_of_uniform_columns(10) * 400 * 399 / 2
    with pytest.raises(RangeError, match=r"x to at most 8192 values .* and y to at most 8192"):
        compile_grid([kernel], WIDE)


def test_the_expected_share_of_ties_is_that_of_all_pairs_of_prefixes():
    levels = [(i, j) for i in range(40) for j in range(40) if i + j > 6]
    assert ties_of_uniform_columns(6) == pytest.approx(sum(2.0 ** -(i + j + 2) for i, j in levels))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda a, b: abs(a.x - b.x) * sign(a.y - b.y) ** 2, "does more"),
        (lambda a, b: sign(a.x - b.x) ** 2, "two columns"),
        (lambda a, b: sign(a.x - b.x) ** 2 * (a.y == b.y) * (a.z == b.z), "two columns"),
        (lambda a, b: (a.x != b.x) | (a.y != b.y), "outside its range"),
    ],
)
def test_other_kernels_are_refused(kernel, words):
    with pytest.raises(KernelError, match=words):
        compile_dyadic([Kernel(trace(kernel), SCHEMA)], 4)


def test_too_high_a_resolution_is_refused():
    with pytest.raises(RangeError, match="take at most 19 levels"):
        compile_dyadic(kernels_of("kendall_tau", WIDE), 25)
    with pytest.raises(RangeError, match="from 0 on"):
        compile_dyadic(kernels_of("kendall_tau", WIDE), -1)


def test_tables_of_all_levels_are_the_same_for_every_order_of_the_records():
    grid = compile_dyadic(kernels_of("kendall_tau"), 6)
    columns = random_columns(SCHEMA, RNG, 40)
    order = RNG.permutation(40)
    turned = {name: column[order] for name, column in columns.items()}
    assert np.array_equal(grid.tabulate(turned), grid.tabulate(columns))
