"""umpc.protocols.grid.operators: every kernel's sum, with ties, bounds and random kernels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.protocols.grid.operators.sums import (
    clear_sum,
    form_sum,
    inner,
    random_columns,
    random_words,
)
from tests.support.kernels import (
    KERNELS,
    SCHEMA,
    SMALL,
    expressions,
    random_records,
    record_corners,
    symmetrised,
)
from tests.support.mpc_studies import make_schema
from umpc.errors import KernelError, LocalProtocolError, RangeError
from umpc.protocols.grid.operators import Grid, compile_grid, layout
from umpc.protocols.grid.operators.compiler import DenseForm
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import find_statistic
from umpc.ustat.tracing import trace

WIDE = {"wide_sign", "wide_distance"}
RNG = np.random.default_rng(15)
EXAMPLES = 20
"""Random kernels; more of them found nothing."""
MOST_WORK = 1 << 26
"""Ring operations of one product, at most: some random kernels would take minutes."""


def assert_sums(kernel: Kernel, columns: dict[str, np.ndarray], label: str = "") -> Grid:
    """Assert that the grid's sum is the clear one and that its matrix is symmetric."""
    grid = compile_grid([kernel], kernel.schema, label=label)
    (form,) = grid.forms
    assert form_sum(form, grid.tabulate(columns)) == clear_sum(kernel, columns, label)
    v, w = (random_words(RNG, grid.cells) for _ in range(2))
    assert inner(w, form.apply(v)) == inner(v, form.apply(w))
    return grid


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - WIDE))
def test_a_kernel_equals_its_clear_sum_at_all_corners_and_with_ties(name):
    corners = record_corners()
    more = random_records(RNG, 6)
    columns = {field: np.concatenate([corners[field], *[more[field]] * 2]) for field in corners}
    assert_sums(KERNELS[name], columns)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - WIDE))
def test_the_table_of_all_records_is_the_sum_of_the_nodes_tables(name):
    grid = compile_grid([KERNELS[name]], SCHEMA)
    sites = [random_records(RNG, count) for count in (5, 0, 1)]
    pooled = {field: np.concatenate([site[field] for site in sites]) for field in sites[0]}
    tables = sum(map(grid.tabulate, sites), np.zeros(grid.cells, dtype=np.uint64))
    assert np.array_equal(tables, grid.tabulate(pooled))


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - WIDE))
def test_a_matrix_is_linear_and_symmetric_on_uniform_words(name):
    grid = compile_grid([KERNELS[name]], SCHEMA)
    (form,) = grid.forms
    v, w = (random_words(RNG, grid.cells) for _ in range(2))
    kept = v.copy()
    image = form.apply(v)
    assert inner(w, image) == inner(v, form.apply(w))
    assert np.array_equal(form.apply(v + w), image + form.apply(w))
    assert np.array_equal(v, kept)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(half=expressions(degree=2, size=10), seed=st.integers(0, 1 << 16))
def test_a_random_kernel_equals_its_clear_sum(half, seed):
    try:
        kernel = Kernel(symmetrised(half, 2), SMALL)
        grid = compile_grid([kernel], SMALL)
    except (KernelError, RangeError):
        return
    assume(grid.forms[0].cost <= MOST_WORK)
    assert_sums(kernel, random_columns(SMALL, np.random.default_rng(seed), 12))


def test_a_kernel_that_is_no_product_over_axes_is_computed_entry_by_entry():
    kernel = Kernel(trace(lambda a, b: a.x * b.y + a.y * b.x < 3), SCHEMA)
    grid = assert_sums(kernel, random_records(RNG, 20))
    assert isinstance(grid.forms[0], DenseForm)


def test_a_matrix_entry_by_entry_is_zero_within_a_class():
    expression = trace(lambda a, b: a.x * b.x < a.y * b.x * b.y + 1)
    kernel = Kernel(expression, SCHEMA, symmetric=False)
    grid = assert_sums(kernel, random_records(RNG, 20), "label")
    assert isinstance(grid.forms[0], DenseForm)


def test_several_sums_share_one_table():
    statistic = find_statistic("kendall_tau_b")
    kernels = [Kernel(each, SCHEMA) for each in statistic.expressions(["x", "y"])]
    grid = compile_grid(kernels, SCHEMA)
    columns = random_records(RNG, 25)
    table = grid.tabulate(columns)
    assert grid.counts
    assert np.array_equal(table, np.bincount(grid.cell_of(columns), minlength=grid.cells))
    assert [form_sum(form, table) for form in grid.forms] == [
        clear_sum(kernel, columns) for kernel in kernels
    ]


def test_numbers_that_are_multiplied_need_no_cell_for_each_value():
    grid = compile_grid([KERNELS["covariance"]], SCHEMA)
    assert grid.cells == 4 and grid.axes == () and not grid.counts


@pytest.mark.parametrize(("x", "y"), [(1, 2), (2, -1), (-1, 1)])
def test_a_sum_of_fields_needs_its_own_axis_and_nothing_else(x, y):
    def function(a, b):
        return abs(x * (a.x - b.x) + y * (a.y - b.y))

    schema = make_schema(x=("0", "5"), y=("-4", "4"))
    kernel = Kernel(trace(function), schema)
    grid = assert_sums(kernel, random_columns(schema, RNG, 20))
    assert grid.cells == grid.axes[0].size == abs(x) * 5 + abs(y) * 8 + 1


@pytest.mark.parametrize("records", [0, 1, 7, 8, 25])
def test_records_that_are_placed_in_several_blocks_have_the_same_cells(records, limit):
    kernel = Kernel(find_statistic("kendall_tau").expressions(["x", "y"])[0], SCHEMA)
    grid = compile_grid([kernel], SCHEMA)
    columns = random_records(RNG, records)
    at_once = grid.cell_of(columns)
    limit(layout, CACHED=8)
    assert np.array_equal(grid.cell_of(columns), at_once) and len(at_once) == records
    beyond = {name: np.append(column, 1 << 40) for name, column in columns.items()}
    with pytest.raises(LocalProtocolError, match="clipped before"):
        grid.cell_of(beyond)


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - WIDE))
def test_a_table_is_the_same_for_every_order_of_the_records(name):
    """So a node of a grid need not number its records anew."""
    grid = compile_grid([KERNELS[name]], SCHEMA)
    columns = random_records(RNG, 30)
    order = RNG.permutation(30)
    turned = {field: column[order] for field, column in columns.items()}
    assert np.array_equal(grid.tabulate(turned), grid.tabulate(columns))


def test_a_table_over_bins_is_the_same_for_every_order_of_the_records():
    kernel = Kernel(find_statistic("kendall_tau").expressions(["x", "y"])[0], SCHEMA)
    low = SCHEMA["x"].lower_units
    grid = compile_grid([kernel], SCHEMA, cuts={"x": [low + 1, low + 2]})
    columns = random_records(RNG, 30)
    order = RNG.permutation(30)
    turned = {field: column[order] for field, column in columns.items()}
    assert np.array_equal(grid.tabulate(turned), grid.tabulate(columns))
