"""umpc.ustat.strata: both sums over all triples, against pairs in the clear."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from umpc.ustat.expression import Add, Constant, Multiply
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.strata import THIRD, is_over_triples, over_triples
from umpc.ustat.text import from_text, to_text

SCHEMA = Schema([FieldSchema(name, Fraction(-3), Fraction(3), Fraction(1)) for name in "xy"])
CASES = {
    "kendall_tau": ("x", "y"),
    "covariance": ("x", "y"),
    "gini_mean_difference": ("x",),
    "wilcoxon_signed_rank": ("x",),
}


def values(kernel: Kernel, table: dict[str, np.ndarray], sets: list[tuple[int, ...]]) -> list:
    places = np.array(sets).T
    records = [{name: column[each] for name, column in table.items()} for each in places]
    found = kernel.evaluate(records)
    return [int(value) * kernel.unit for value in np.broadcast_to(found, len(sets))]


def test_both_sums_over_all_triples_are_those_of_the_pairs():
    rng = np.random.default_rng(1)
    for name, columns in CASES.items():
        pair = LIBRARY[name].expression(columns)
        first, second = over_triples(pair)
        kernels = [Kernel(each, SCHEMA, 3) for each in (first, second)]
        table = {column: rng.integers(-3, 4, 6) for column in columns}
        pairs = list(permutations(range(6), 2))
        f = dict(zip(pairs, values(Kernel(pair, SCHEMA), table, pairs), strict=True))
        triples = list(combinations(range(6), 3))
        means = [sum(values(each, table, triples)) / len(triples) for each in kernels]
        products = [f[a, b] * f[a, c] for a, b, c in permutations(range(6), 3)]
        assert means[0] == sum(f.values()) / len(f), name
        assert means[1] == sum(products) / len(products), name


def test_both_kernels_are_known_again_from_their_texts_and_no_others_are():
    for name, columns in CASES.items():
        pair = LIBRARY[name].expression(columns)
        first, second = (from_text(to_text(each)) for each in over_triples(pair))
        assert is_over_triples(first, second), name
        assert not is_over_triples(second, first) and not is_over_triples(first, first)
        assert not is_over_triples(first, Multiply(second, THIRD))
    three = LIBRARY["spearman_rho"].expression(("x", "y"))
    assert not is_over_triples(three, three)
    assert not is_over_triples(*over_triples(three))
    with_more = Multiply(Add(first.left, Constant(1)), THIRD)
    assert not is_over_triples(with_more, second)


def test_exact_ends_of_the_second_kernel_make_its_noise_smaller():
    """Three signs have products with a sum of at least −1, and not −3."""
    pair = LIBRARY["kendall_tau"].expression(("x", "y"))
    second = Kernel(over_triples(pair)[1], SCHEMA, 3)
    assert float(second.interval.low) == pytest.approx(-1 / 3) and second.interval.high == 1
