"""umpc.protocols.grid.operators: cut points, sizes and kernels that are refused, and the remedy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.protocols.grid.operators.sums import clear_sum, form_sum, random_columns
from tests.support.mpc_studies import make_schema
from umpc.errors import KernelError, LocalProtocolError, RangeError, UnknownField
from umpc.protocols.grid.operators import compile_grid
from umpc.protocols.grid.operators.compiler import DenseForm
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import find_statistic
from umpc.ustat.tracing import sign, trace

SCHEMA = make_schema(x=("0", "99"), y=("-10", "10", "0.5"), wide=("0", "99999999"))
CUTS = {"x": [10, 21, 99], "y": [0, 4]}
RNG = np.random.default_rng(4)


def kernel_of(function, schema=SCHEMA, degree: int = 2) -> Kernel:
    return Kernel(trace(function), schema, degree)


def test_cut_points_make_ties_of_the_values_between_them():
    tau = find_statistic("kendall_tau_b").expressions(["x", "y"])
    kernels = [Kernel(each, SCHEMA) for each in tau]
    grid = compile_grid(kernels, SCHEMA, cuts=CUTS)
    assert grid.cells == 4 * 3
    columns = random_columns(SCHEMA, RNG, 50)
    columns["x"][:4] = 9, 10, 20, 21
    # the definition: a value's number of cut points that are not above it
    binned = {
        name: np.array([sum(cut <= v for cut in CUTS[name]) for v in columns[name]])
        for name in ("x", "y")
    }
    coarse = make_schema(x=("0", "3"), y=("0", "2"))
    table = grid.tabulate(columns)
    for expression, form in zip(tau, grid.forms, strict=True):
        assert form_sum(form, table) == clear_sum(Kernel(expression, coarse), binned)


@pytest.mark.parametrize(
    "points", [(), (5, 5), (7, 3), (0,), (100,)], ids=["none", "twice", "falling", "low", "high"]
)
def test_wrong_cut_points_are_refused(points):
    with pytest.raises(RangeError, match="rising numbers above 0 and up to 99"):
        compile_grid([kernel_of(lambda a, b: a.x == b.x)], SCHEMA, cuts={"x": points})


def test_cut_points_of_an_unknown_field_are_refused():
    with pytest.raises(UnknownField):
        compile_grid([kernel_of(lambda a, b: a.x == b.x)], SCHEMA, cuts={"z": [1]})


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: abs(a.x - b.x),
        lambda a, b: (a.x - b.x < 5) & (b.x - a.x < 5),
        lambda a, b: (a.x < 50) & (b.x < 50),
        lambda a, b: a.x + a.y == b.x + b.y,
    ],
)
def test_more_than_the_order_of_a_cut_field_is_refused(function):
    with pytest.raises(KernelError, match="may only compare it between records"):
        compile_grid([kernel_of(function)], SCHEMA, cuts={"x": CUTS["x"]})


def test_too_large_a_table_is_refused_with_the_number_of_values_to_keep():
    kernel = kernel_of(lambda a, b: sign(a.x - b.x) * sign(a.wide - b.wide))
    with pytest.raises(RangeError) as caught:
        compile_grid([kernel], SCHEMA)
    kept = (1 << 26) // 100
    assert f"coarsen wide to at most {kept} values" in caught.value.message
    assert f"or {kept} bins)" in caught.value.message
    resolution = caught.value.message.split("a resolution of ")[1].split(" ")[0]
    # the remedy fits
    upper = 99999999 // int(resolution) * int(resolution)
    schema = make_schema(x=("0", "99"), wide=("0", str(upper), resolution))
    grid = compile_grid([Kernel(kernel.expression, schema)], schema)
    assert grid.cells <= 1 << 26
    assert compile_grid([kernel], SCHEMA, cuts={"wide": [5]}).cells == 200
    finest = {"wide": list(range(1, kept))}
    assert compile_grid([kernel], SCHEMA, cuts=finest).cells == 100 * kept
    finest["wide"].append(kept)
    with pytest.raises(RangeError, match=rf"wide to at most {kept} values \({kept} bins\)"):
        compile_grid([kernel], SCHEMA, cuts=finest)


def test_cut_points_are_no_advice_where_more_than_the_order_counts():
    with pytest.raises(RangeError) as caught:
        compile_grid([kernel_of(lambda a, b: abs(a.wide - b.wide))], SCHEMA)
    assert "a resolution of 2 or more)" in caught.value.message


def test_a_kernel_that_does_not_factor_is_refused_from_32768_cells_on():
    def function(a, b):
        return a.x * b.y + a.y * b.x < 3

    small = make_schema(x=("0", "127"), y=("0", "255"))
    grid = compile_grid([kernel_of(function, small)], small)
    assert grid.cells == 1 << 15 and isinstance(grid.forms[0], DenseForm)
    large = make_schema(x=("0", "128"), y=("0", "255"))
    with pytest.raises(RangeError, match=r"y to at most 254 values"):
        compile_grid([kernel_of(function, large)], large)


def test_a_value_outside_the_bounds_is_refused():
    grid = compile_grid([kernel_of(lambda a, b: a.x == b.x)], SCHEMA)
    with pytest.raises(LocalProtocolError, match="clipped before"):
        grid.tabulate({"x": np.array([3, 100])})


def test_what_a_table_is_not_asked_for_is_refused():
    grid = compile_grid([kernel_of(lambda a, b: a.x * b.x)], SCHEMA)
    with pytest.raises(LocalProtocolError, match="take tabulate"):
        grid.cell_of({"x": np.array([3])})
