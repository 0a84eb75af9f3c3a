"""The kernel between cells: equations 14 and 15, and the bias that theorem 2 allows them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.support.local import bins, local_study
from tests.support.moments import GINI, KENDALL, SCHEMA
from umpc.errors import StudyError
from umpc.protocols.registry import checked
from umpc.study.parts import FieldText
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.local import cell_kernels
from umpc_papers.local.quantisation import Bins, Points, Quantiser
from umpc_papers.local.settings import CellSettings, quantiser_of

NEAR = "abs(a.x - b.x) < 5"
KERNELS = (
    NEAR,
    GINI,
    KENDALL,
    "a.x == b.x",
    "(a.x - b.x) * (a.y - b.y)",
    "abs(a.x - b.x) * (abs(a.y - b.y) < 1/2)",
    "abs(a.x + 4*a.y - b.x - 4*b.y) < 3",
)
"""Smooth and not, of one field and two; the last one is no sum of products over fields."""
WIDE = FieldSchema("x", Fraction(0), Fraction(999), Fraction(1))


def cells(text: str, cell_kernel: str, count: int = 4, schema: Schema = SCHEMA) -> Quantiser:
    kernel = Kernel.from_text(text, schema)
    axes = tuple(Bins.equal(schema[name], count) for name in kernel.fields)
    return Quantiser(kernel, axes, cell_kernel)


def values_between(made: Quantiser, own: int, other: int) -> np.ndarray:
    """The kernel at all pairs of values of two cells."""
    sides = []
    for cell in (own, other):
        numbers = np.unravel_index(cell, [axis.size for axis in made.axes])
        spans = [
            axis.field.lower_units + np.arange(*axis.starts[number : number + 2])
            for axis, number in zip(made.axes, numbers, strict=True)
        ]
        sides.append(np.stack(np.meshgrid(*spans, indexing="ij")).reshape(len(spans), -1))
    first, second = sides
    names = [axis.field.name for axis in made.axes]
    many, few = first.shape[1], second.shape[1]
    a = dict(zip(names, np.repeat(first, few, axis=1), strict=True))
    b = dict(zip(names, np.tile(second, many), strict=True))
    return made.kernel.evaluate([a, b]) * float(made.kernel.unit)


def test_average_midpoint_and_spread_are_those_of_all_pairs_of_values():
    for text in KERNELS:
        average, midpoint = cells(text, "average"), cells(text, "midpoint")
        places = np.random.default_rng(1).integers(0, average.size, (12, 2))
        for own, other in [(0, 0), *places.tolist()]:
            values = values_between(average, own, other)
            assert average.matrix[own, other] == pytest.approx(values.mean(), abs=1e-12), text
            middle = (values.max() + values.min()) / 2
            assert midpoint.matrix[own, other] == pytest.approx(middle), text
            half = (values.max() - values.min()) / 2
            assert midpoint.spread[own, other] == pytest.approx(half**2), text


def test_with_another_measure_the_average_is_weighted_by_it():
    """Equation 15 takes any λ. One that is constant changes nothing, whatever its scale."""
    rng = np.random.default_rng(4)
    for text in KERNELS:
        plain = cells(text, "average")
        lengths = {name: int(each[-1]) for name, each in plain.starts.items()}
        weights = {name: rng.uniform(0.1, 1, length) for name, length in lengths.items()}
        made = replace(plain, weights=weights)
        flat = replace(plain, weights={name: np.full(n, 7.0) for name, n in lengths.items()})
        assert flat.matrix == pytest.approx(plain.matrix)
        for own, other in rng.integers(0, plain.size, (6, 2)).tolist():
            values = values_between(plain, own, other)
            product = np.outer(*(weights_of(made, cell) for cell in (own, other))).reshape(-1)
            expected = values @ product / product.sum()
            assert made.matrix[own, other] == pytest.approx(expected, abs=1e-9), text


def weights_of(made: Quantiser, cell: int) -> np.ndarray:
    """λ of each combination of values in a cell, in the order of `values_between`."""
    product = np.ones(1)
    for number, axis in zip(
        np.unravel_index(cell, [a.size for a in made.axes]), made.axes, strict=True
    ):
        own = made.weights[axis.field.name][slice(*axis.starts[number : number + 2])]
        product = np.outer(product, own).reshape(-1)
    return product


def test_where_the_measure_is_the_records_own_the_average_has_no_bias_at_all():
    """The records' density against it is constant, so L_μ = 0 in theorem 2."""
    law = np.exp(-np.arange(1000) / 60)
    law /= law.sum()
    distances = np.abs(np.subtract.outer(np.arange(1000), np.arange(1000)))
    truth = float(law @ distances @ law)
    plain = cells(GINI, "average", 4, Schema([WIDE]))
    bias = {}
    for name, made in (("even", plain), ("own", replace(plain, weights={"x": law}))):
        shares = np.add.reduceat(law, made.starts["x"][:-1])
        bias[name] = float(shares @ made.matrix @ shares) - truth
    assert bias["own"] == pytest.approx(0, abs=1e-9) and bias["even"] > truth / 4


def test_on_uniform_records_the_average_has_no_bias_and_the_middles_have():
    """A density that is constant is 0-Lipschitz, so theorem 2 allows no bias at all."""
    schema = Schema([WIDE])
    text = "abs(a.x - b.x) < 250"
    truth = float(np.mean(np.abs(np.subtract.outer(np.arange(1000), np.arange(1000))) < 250))
    bias = {}
    for count in (4, 8, 20):
        for chosen in ("average", "middle"):
            made = cells(text, chosen, count, schema)
            shares = np.diff(made.starts["x"]) / 1000
            bias[count, chosen] = float(shares @ made.matrix @ shares) - truth
        assert abs(bias[count, "average"]) < 1e-12
        assert bias[count, "middle"] == pytest.approx(-0.75 / count, rel=0.03)


def test_the_average_keeps_lemma_3_for_densities_that_are_not_constant():
    """The density 1 + L(x − 1/2) on k bins: |bias| ≤ 2LD + 2L²D², D = 1/k."""
    schema, values = Schema([WIDE]), np.arange(1000)
    for slope in (0.5, 2.0):
        density = 1 + slope * ((values + 0.5) / 1000 - 0.5)
        weights = density / density.sum()
        near = np.abs(np.subtract.outer(values, values)) < 250
        truth = float(weights @ near @ weights)
        for count in (4, 16):
            made = cells("abs(a.x - b.x) < 250", "average", count, schema)
            shares = np.add.reduceat(weights, made.starts["x"][:-1])
            bias = abs(float(shares @ made.matrix @ shares) - truth)
            assert 0 < bias <= 2 * slope / count + 2 * slope**2 / count**2
            assert bias < 0.1 / count, "it is of second order here"


def test_the_midpoint_keeps_lemma_2_for_every_distribution_and_reaches_it():
    """|x − y| is 1-Lipschitz: no record can be further off than 1/k, in units of the range."""
    made = cells("abs(a.x - b.x)", "midpoint", 10, Schema([WIDE]))
    for own in range(10):
        for other in range(10):
            off = np.abs(values_between(made, own, other) - made.matrix[own, other]).max()
            assert off <= 1000 / 10
    assert np.sqrt(made.spread.max()) == pytest.approx(99), "two bins that do not touch"


def test_kernels_of_many_values_are_averaged_only_where_they_are_products(limit):
    limit(cell_kernels, MOST_PAIRS=1000)
    assert cells(NEAR, "average").matrix.shape == (4, 4)
    entangled = cells(KERNELS[-1], "average")
    assert not cell_kernels.has_average(entangled.kernel, entangled.starts)
    for refused in (lambda: entangled.matrix, lambda: cells(GINI, "midpoint").matrix):
        with pytest.raises(StudyError, match="pairs of values, at most 1,000"):
            _ = refused()
    points = Quantiser(Kernel.from_text(GINI, SCHEMA), (Points.equal(SCHEMA["x"], 4),), "average")
    with pytest.raises(StudyError, match="randomised rounding has points"):
        _ = points.matrix
    limit(cell_kernels, MOST_VALUES=10)
    with pytest.raises(StudyError, match="32 values, and a kernel is averaged over the"):
        _ = cells(NEAR, "average").matrix


def test_a_study_has_the_average_where_bins_have_several_values():
    def chosen(**changes) -> str:
        return local_study("bell-ldp", **changes).settings_as(CellSettings).kernel_of_cells

    wide = {"x": ("0", "99"), "kernels": GINI}
    assert chosen(**wide) == "average"
    assert chosen(**wide, bins=bins(x=["10", "30"])) == "average"
    assert chosen(**wide, cell_kernel="midpoint") == "midpoint"
    assert chosen(**wide, rounding="randomised") == "middle"
    assert chosen() == "middle", "each value has a bin of its own"
    study = local_study("bell-ldp", **wide)
    assert np.allclose(np.diag(quantiser_of(study).matrix), (25**2 - 1) / (3 * 25))


def test_a_study_whose_midpoints_are_too_many_is_refused():
    wide = FieldText("x", "0", "99999", whole=True)
    study = local_study("bell-ldp", fields=(wide,), kernels=GINI)
    with pytest.raises(StudyError, match='"midpoint" goes through all pairs of values'):
        checked(study.replaced(cell_kernel="midpoint"))
