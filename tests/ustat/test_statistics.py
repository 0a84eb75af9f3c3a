"""umpc.ustat.statistics: the library's statements are true, and wrong arguments are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, permutations, product
from statistics import pvariance

import numpy as np
import pytest

from tests.ustat.tables import (
    CELLS,
    CLASSES,
    NUMBERS,
    SCHEMA,
    UNIT,
    columns_of,
    expressions,
    means,
    values,
)
from umpc.errors import KernelError
from umpc.ustat.estimators import ANY, ESTIMATORS
from umpc.ustat.expression import records_of
from umpc.ustat.kernel import Kernel
from umpc.ustat.ranges import Interval, exact_interval, interval_of
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY, Parameter, Statistic, find_statistic
from umpc.ustat.text import from_text, to_text
from umpc.ustat.tracing import arity

TWO_SAMPLE = {name for name, statistic in LIBRARY.items() if statistic.sampling == "two_sample"}

RANGES = {
    "mean": [(-3, 3)],
    "gini_mean_difference": [(0, 6)],
    "variance": [(0, 18)],
    "wilcoxon_signed_rank": [(0, 1)],
    "triples_skewness": [("-1/3", "1/3")],
    "duplicate_pair_ratio": [(0, 1)],
    "renyi_entropy": [(0, 1)],
    "renyi_entropy_nats": [(0, 1)],
    "uniformity": [("-1/5", "4/5")],
    "rand_index": [(0, 1)],
    "covariance": [(-18, 18)],
    "kendall_tau": [(-1, 1)],
    "hodges_lehmann": [(0, 1)] * 4,
    "hodges_lehmann_shift": [(0, 1)] * 4,
    "theil_sen": [(0, 1)] * 5,
    "kendall_tau_b": [(-1, 1), (0, 1), (0, 1)],
    "goodman_kruskal_gamma": [(-1, 1), (0, 1)],
    "spearman_rho": [(-1, 1)],
    "spearman_rho_b": [(-1, 1), (0, 1), (0, 1)],
    "bergsma_dassios_tau_star": [("-1/3", "2/3")],
    "auc": [(0, 1)],
    "auc_private": [(0, 1), (0, 1)],
    "mann_whitney_u": [(0, 1)],
    "vus": [(0, 1), (0, 1)],
    "ranking_hinge": [(0, 13)],
    "contrastive_loss": [(0, 144)],
    "gini_coefficient": [(0, 6), (-6, 6)],
    "asymmetry": [(-6, 6), (0, 6)],
    "somers_d": [(-1, 1), (0, 1)],
    "kendall_tau_label": [(-1, 1), (0, 1), (0, 1)],
    "phi_coefficient": [(-1, 1), (0, 1), (0, 1)],
    "clustering_scatter": [(0, 72)],
    "cramer_von_mises": [("-1/6", "1/3"), (0, 1)],
    "energy_distance": [(-12, 12), (0, 1)],
    "distance_covariance": [(-36, 36)],
    "usp_independence": [("-1/3", "2/3")],
    "stratified_kendall_tau": [(-1, 1), (0, 1)],
    "stratified_superiority": [(0, 1), (0, 1)],
    "concordance_index": [(0, 1), (0, 1)],
    "triangle_density": [(0, 1)],
    "auc_difference": [(0, 1), (0, 1), (0, 1)],
    "auc_difference_public": [(0, 1), (0, 1)],
    "tau_difference": [(0, 2), (0, 2)],
    "concordance_difference": [(0, 1), (0, 1), (0, 1)],
}
"""The least and the greatest value of each sum's kernel. The noise follows from their distance."""
LOOSE = {"energy_distance": [(-6, 12), (0, 1)], "distance_covariance": [(-12, 24)]}
"""The ranges of kernels that have too many points here to be enumerated, by their theory."""


def random_records(count: int, seed: int) -> list[dict[str, np.ndarray]]:
    """For four records, columns with ties and without."""
    rng = np.random.default_rng(seed)
    spans = [2 if edge % 2 else 6 for edge in range(count)]
    return [
        {name: rng.integers(np.negative(spans), spans, endpoint=True) for name in NUMBERS}
        | {name: rng.integers(0, 3, count) for name in CLASSES}
        for _ in range(4)
    ]


@pytest.mark.parametrize("name", LIBRARY)
def test_what_a_statistic_says_of_itself_fits_together(name):
    statistic = find_statistic(name)
    kernels = expressions(name)
    assert statistic.name == name and statistic.title and re.search(r"[0-9]{4}", statistic.citation)
    assert statistic.sampling in ("balanced", "two_sample") and (
        name not in TWO_SAMPLE or statistic.degree == 2
    )
    assert ESTIMATORS[statistic.estimator].sums in (ANY, len(kernels))
    read = statistic.read_parameters(columns_of(name), dict(CELLS.get(name, ())))
    assert arity(statistic.build(*columns_of(name), **read)) == statistic.degree
    assert frozenset().union(*map(records_of, kernels)) == set(range(statistic.degree))


@pytest.mark.parametrize("name", LIBRARY)
def test_the_ranges_and_so_the_sensitivities_are_exact(name):
    intervals = [exact_interval(e, SCHEMA) or interval_of(e, SCHEMA) for e in expressions(name)]
    assert intervals == [Interval(Fraction(low), Fraction(high)) for low, high in RANGES[name]]


@pytest.mark.parametrize("name", LOOSE)
def test_few_points_have_the_range_of_the_theory(name):
    """On two values a field, all of whose sets are enumerated."""
    ends = [FieldSchema(column, Fraction(0), Fraction(6), Fraction(6)) for column in "xy"]
    label = replace(SCHEMA["label"], upper=Fraction(1))
    found = [exact_interval(each, Schema([*ends, label])) for each in expressions(name)]
    assert found == [Interval(Fraction(low), Fraction(high)) for low, high in LOOSE[name]]
    widths = [high - low for low, high in RANGES[name]]
    assert all(each.width <= wide for each, wide in zip(found, widths, strict=True))


@pytest.mark.parametrize("name", sorted(LIBRARY.keys() - TWO_SAMPLE))
def test_kernels_of_balanced_edges_are_symmetric(name):
    records = random_records(300, seed=11)[: LIBRARY[name].degree]
    expected = values(name, records)
    for order in permutations(records):
        for value, other in zip(expected, values(name, order), strict=True):
            assert np.array_equal(value, other)


@pytest.mark.parametrize("name", LIBRARY)
def test_each_sum_is_a_kernel_that_can_be_shared(name):
    for number, expression in enumerate(expressions(name)):
        kernel = Kernel(
            expression, SCHEMA, degree=LIBRARY[name].degree, symmetric=name not in TWO_SAMPLE
        )
        records = random_records(300, seed=12)[: kernel.degree]
        assert np.array_equal(
            kernel.evaluate(records) * kernel.unit, values(name, records)[number] * UNIT
        )


def test_the_librarys_texts():
    assert [to_text(e) for e in expressions("kendall_tau_b")] == [
        "sign(a.x - b.x) * sign(a.y - b.y)",
        "(~(a.x == b.x))",
        "(~(a.y == b.y))",
    ]
    assert to_text(LIBRARY["gini_mean_difference"].expression(["x"])) == "abs(a.x - b.x)"


@pytest.mark.parametrize("name", LIBRARY)
def test_each_kernel_travels_as_text(name):
    for expression in expressions(name):
        assert from_text(to_text(expression)) == expression


def all_means(name: str, tables: Iterable[tuple]) -> list[Fraction]:
    return [means(name, *table)[0] for table in tables]


NULLS = {
    "kendall_tau": [(n,) for n in (2, 3, 4, 5, 6)],
    "somers_d": [(2,), (4,)],
    "spearman_rho": [(n,) for n in (3, 4, 5, 6)],
    "bergsma_dassios_tau_star": [(n,) for n in (4, 5, 6)],
    "wilcoxon_signed_rank": [(n,) for n in (2, 3, 6)],
    "auc": [(1, 1), (2, 3), (4, 2), (3, 3)],
    "mann_whitney_u": [(2, 3)],
    "uniformity": [(2,), (3,), (4,)],
}


def null_tables(name: str, sizes: tuple[int, ...]) -> Iterable[tuple]:
    """All tables of so many records that are equally likely under the null hypothesis."""
    n = sum(sizes)
    if name in TWO_SAMPLE:
        for first in combinations(range(n), sizes[0]):
            yield {"score": first}, {"score": sorted(set(range(n)) - set(first))}
    elif name == "wilcoxon_signed_rank":
        for signs in product((-1, 1), repeat=n):
            yield ({"x": [sign * rank for sign, rank in zip(signs, range(1, n + 1), strict=True)]},)
    elif name == "uniformity":
        yield from (({"x": cells},) for cells in product(range(5), repeat=n))
    else:
        yield from (({"x": range(n), "y": order},) for order in permutations(range(n)))


def test_every_null_variance_is_tested():
    assert NULLS.keys() == {name for name, statistic in LIBRARY.items() if statistic.null_variance}


@pytest.mark.parametrize(
    ("name", "sizes"), [(name, sizes) for name in NULLS for sizes in NULLS[name]]
)
def test_null_variances_are_those_of_all_equally_likely_tables(name, sizes):
    statistic = LIBRARY[name]
    parameters = statistic.read_parameters(columns_of(name), dict(CELLS.get(name, ())))
    expected = pvariance(all_means(name, null_tables(name, sizes)))
    assert statistic.null_variance(*sizes, **parameters) == expected


@pytest.mark.parametrize("name", LIBRARY)
def test_a_wrong_number_of_columns_is_refused(name):
    statistic = LIBRARY[name]
    count = len(statistic.arguments)
    with pytest.raises(
        KernelError, match=rf"{name} takes .*{count} field\(s\) \({statistic.arguments[0]}.*got 0"
    ):
        statistic.expressions([])
    if not statistic.is_variadic:
        with pytest.raises(KernelError, match=rf"{name} takes {count} field.*got 5: u, v, w, x, z"):
            statistic.expressions(["u", "v", "w", "x", "z"])


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("kendall_tau", {"margin": 1}, "kendall_tau has no parameter margin; its parameters: none"),
        (
            "ranking_hinge",
            {"weight": 1, "cells": 2},
            "no parameter cells, weight; its parameters: weights, margin",
        ),
        ("uniformity", {}, r"needs the parameter cells; .* or with --parameter cells=VALUE"),
        ("uniformity", {"cells": 0}, "cells must be a positive whole number, .* got '0'"),
        ("uniformity", {"cells": "1/2"}, "cells must be a positive whole number"),
        ("ranking_hinge", {"margin": "-1"}, "margin must be a positive number"),
        ("ranking_hinge", {"margin": [1]}, r"margin must be a positive number, .* got '\[1\]'"),
        (
            "ranking_hinge",
            {"margin": 0.5},
            "margin must be a positive number, as a whole number or as text",
        ),
        ("ranking_hinge", {"margin": True}, "margin must be"),
        ("ranking_hinge", {"margin": "1e99999999"}, "margin must be"),
        ("ranking_hinge", {"margin": "1/0"}, "margin must be"),
        ("ranking_hinge", {"margin": "9" * 41}, "margin must be"),
        ("ranking_hinge", {"margin": "nan"}, "margin must be"),
        (
            "ranking_hinge",
            {"weights": ["1", "2", "3"]},
            "each of the 2 feature columns .*; 3 were given",
        ),
        ("ranking_hinge", {"weights": ["1", "two"]}, "weights must be a number, .* got 'two'"),
    ],
)
def test_wrong_parameters_are_refused(name, given, words):
    with pytest.raises(KernelError, match=words):
        LIBRARY[name].expressions(columns_of(name), given)


@pytest.mark.parametrize("given", ["1.5", "3/2", Decimal("1.5"), Fraction(3, 2)])
def test_parameters_are_exact_however_they_are_written(given):
    read = LIBRARY["ranking_hinge"].read_parameters(
        ["x", "y"], {"margin": given, "weights": [given, -2]}
    )
    assert read == {"margin": Fraction(3, 2), "weights": (Fraction(3, 2), Fraction(-2))}


def test_defaults_stand_for_what_is_not_given():
    assert LIBRARY["contrastive_loss"].read_parameters(["c", "x", "y"]) == {
        "margin": 1,
        "weights": (1, 1),
    }
    assert Parameter("weights", per_column=True).read("0.5", 3) == (Fraction(1, 2),) * 3


def test_a_single_expression_is_refused_where_it_is_not_the_statistic():
    for name in ("kendall_tau_b", "renyi_entropy", "mann_whitney_u"):
        with pytest.raises(KernelError, match=f"{name} is not the mean of one kernel"):
            LIBRARY[name].expression(columns_of(name))


def test_an_unknown_statistic_is_refused_with_the_librarys_names():
    with pytest.raises(
        KernelError,
        match=r"no statistic 'median'; did you mean 'mean'\? the library has asymmetry, auc",
    ):
        find_statistic("median")


def test_a_statistic_of_ones_own_is_made_the_same_way():
    own = Statistic(
        "range3", "Range", ("x",), "nobody 2025", lambda x: lambda a, b: abs(a[x] - b[x]) / 2
    )
    assert to_text(own.expressions(["age"])[0]) == "abs(a.age - b.age) * (1/2)"
