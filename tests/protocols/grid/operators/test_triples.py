"""umpc.protocols.grid.operators.triples: sums over triples, in the clear and under masks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.protocols.grid.operators.sums import MODULUS, clear_sum, inner, random_words, signed
from tests.support.kernels import SCHEMA, TRIPLE_KERNELS, random_records
from tests.support.mpc_studies import make_schema
from umpc.errors import KernelError
from umpc.protocols.grid.operators import compile_grid
from umpc.protocols.grid.operators.triples import TripleForm
from umpc.ustat.kernel import Kernel
from umpc.ustat.statistics import find_statistic
from umpc.ustat.tracing import sign, trace

REFUSED = {
    "distance_against_a_third",
    "leaning",
    "wide_leaning",
    "triples_skewness",
    "leaning_times_value",
    "sum_against_a_constant",
    "product_against_a_product",
}
CLASSES = make_schema(score=("0", "4"), label=("0", "2"))
RNG = np.random.default_rng(3)


def masked_sum(form: TripleForm, table: np.ndarray, sites: int = 3) -> int:
    """Return the sum as the protocol has it: from a masked table and additive shares."""
    masks = [random_words(RNG, len(table)) for _ in range(sites)]
    mask = sum(masks, np.zeros_like(table))
    masked = table + mask
    vector, scalar = form.dealt(mask)
    total = form.value(masked) + inner(masked, vector) + scalar
    total -= sum(inner(each, form.gradient(masked)) for each in masks)
    total += inner(form.diagonal(), table)
    assert signed(total) % 6 == 0
    return signed(total) // 6


def assert_sums(kernels: list[Kernel], columns: dict[str, np.ndarray]) -> None:
    grid = compile_grid(kernels, kernels[0].schema)
    table = grid.tabulate(columns)
    for kernel, form in zip(kernels, grid.forms, strict=True):
        wanted = clear_sum(kernel, columns)
        clear = form.value(table) + inner(form.diagonal(), table)
        assert clear % MODULUS == 6 * wanted % MODULUS
        assert masked_sum(form, table) == wanted


@pytest.mark.parametrize("records", [0, 2, 3, 12])
def test_spearmans_rho_equals_its_clear_sum(records):
    expression = find_statistic("spearman_rho").expression(["x", "y"])
    assert_sums([Kernel(expression, SCHEMA, 3)], random_records(RNG, records))


def test_the_volume_under_the_surface_equals_its_clear_sums_with_ties():
    statistic = find_statistic("vus").expressions(["score", "label"])
    columns = {"score": RNG.integers(0, 5, 14), "label": RNG.integers(0, 3, 14)}
    assert_sums([Kernel(each, CLASSES, 3) for each in statistic], columns)


@pytest.mark.parametrize("name", sorted(TRIPLE_KERNELS.keys() - REFUSED))
def test_a_kernel_of_three_records_equals_its_clear_sum(name):
    records = random_records(RNG, 5)
    columns = {field: np.concatenate([column, column]) for field, column in records.items()}
    assert_sums([TRIPLE_KERNELS[name]], columns)


def test_the_cubic_gradient_is_the_change_of_the_cubic_part():
    expression = find_statistic("spearman_rho").expression(["x", "y"])
    grid = compile_grid([Kernel(expression, SCHEMA, 3)], SCHEMA)
    (form,) = grid.forms
    v = random_words(RNG, grid.cells)
    # value − scalar = 2·C, and C is homogeneous of degree 3, so that ⟨v, ∇C(v)⟩ = 3·C(v)
    gradient, scalar = form.dealt(v)
    doubled = form.value(v) - scalar
    assert 2 * inner(v, gradient) % MODULUS == 3 * doubled % MODULUS


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_kernel_that_mixes_all_three_records_is_refused(name):
    with pytest.raises(KernelError, match="compare one of them with both others"):
        compile_grid([TRIPLE_KERNELS[name]], SCHEMA)


def test_a_triangle_of_different_columns_is_refused():
    def half(a, b, c):
        return sign(a.x - b.x) * sign(b.y - c.y) * sign(a.z - c.z)

    kernel = Kernel(trace(half), SCHEMA, 3, symmetric=False)
    with pytest.raises(KernelError, match="compare one of them with both others"):
        compile_grid([kernel], SCHEMA)


def test_four_records_are_refused():
    tau_star = find_statistic("bergsma_dassios_tau_star").expression(["x", "y"])
    with pytest.raises(KernelError, match="2 or 3 records"):
        compile_grid([Kernel(tau_star, SCHEMA, 4)], SCHEMA)
