"""umpc.ustat.robust: which kernels a lying owner cannot move far, and how far it moves the others.

tests/mpc/masked/test_lying_owner.py runs the liar itself.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest

from tests.support.mpc_studies import make_schema
from umpc.errors import KernelError, RangeError
from umpc.ustat.kernel import Kernel
from umpc.ustat.robust import MAX_BITS, obstacle
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

BITS = ("label", "event", "stratum")
FIELDS = [*"xyz", "score", "score_a", "score_b", "time", "vertex", *BITS]
SCHEMA = make_schema(**{name: ("0", "1") if name in BITS else ("-9", "9") for name in FIELDS})
MANY = make_schema(**{f"f{number}": ("0", "9") for number in range(MAX_BITS + 2)})


def kernel(text: str, degree: int = 2, schema=SCHEMA) -> Kernel:
    return Kernel.from_text(text, schema, degree, symmetric=False)


ROBUST = {
    "hodges_lehmann": [1] * 4,
    "hodges_lehmann_shift": [1] * 4,
    "mean": [18],
    "wilcoxon_signed_rank": [Fraction(3, 2)],
    "duplicate_pair_ratio": [1],
    "renyi_entropy": [1],
    "renyi_entropy_nats": [1],
    "uniformity": [1],
    "rand_index": [1],
    "kendall_tau": [6],
    "kendall_tau_b": [6, 1, 1],
    "goodman_kruskal_gamma": [6, 1],
    "auc": [Fraction(3, 2)],
    "auc_private": [Fraction(3, 2), 1],
    "mann_whitney_u": [Fraction(3, 2)],
    "somers_d": [6, 1],
    "kendall_tau_label": [3, 1, 1],
    "phi_coefficient": [3, 1, 1],
    "stratified_kendall_tau": [6, 1],
    "stratified_superiority": [1, 1],
    "concordance_index": [1, 1],
    "auc_difference": [1, 1, 1],
    "auc_difference_public": [Fraction(5, 2), Fraction(5, 2)],
    "tau_difference": [2, 2],
    "concordance_difference": [1, 1, 1],
}
"""The robust sensitivity of each sum; other statistics have none."""
PARAMETERS = {
    "uniformity": {"cells": 5},
    "ranking_hinge": {"weights": [2], "margin": 1},
    "contrastive_loss": {"weights": [1], "margin": 2},
}


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library(name):
    statistic = LIBRARY[name]
    columns = [argument.removesuffix("...") for argument in statistic.arguments]
    expressions = statistic.expressions(columns, PARAMETERS.get(name))
    kernels = [kernel(to_text(each), statistic.degree) for each in expressions]
    reasons = {obstacle(each.polynomial, each.degree) for each in kernels}
    assert (name in ROBUST) == (reasons == {""})
    if name in ROBUST:
        assert [each.robust.change for each in kernels] == ROBUST[name]
        for each in kernels:
            assert each.robust.change >= each.interval.width
            assert each.robust.interval.low <= each.interval.low
            assert each.robust.interval.high >= each.interval.high


@pytest.mark.parametrize(
    ("text", "degree", "reason"),
    [
        ("a.x * b.x", 2, "multiplies a number of one record"),
        ("(a.x < b.x) * a.y", 2, "multiplies a number of one record"),
        ("a.x * (b.x == 1)", 2, "multiplies a number of one record"),
        ("(a.x * b.y < a.y * b.x)", 2, "products or comparisons of both records"),
        ("((a.x < b.x) + (a.y < b.y) + a.z < b.z)", 2, "products or comparisons of both records"),
        ("(a.x < b.x) * (b.x < c.x)", 3, "3 owners"),
        ("a.x + b.x + c.x", 3, "3 owners"),
    ],
)
def test_what_has_no_bound_is_refused_with_the_reason(text, degree, reason):
    refused = kernel(text, degree)
    assert reason in obstacle(refused.polynomial, degree)
    with pytest.raises(KernelError, match="no bound holds against lying nodes"):
        _ = refused.robust


@pytest.mark.parametrize(
    ("text", "low", "high", "change"),
    [
        ("a.x * a.y + b.x * b.y", -162, 162, 324),  # nothing is opened
        ("a.x + b.x + (a.y < b.y)", -18, 19, 37),
        ("(a.x * a.y < b.x * b.y)", 0, 1, 1),  # each owner makes its own number
        ("sign(a.x - b.x) + sign(a.y - b.y)", -4, 2, 6),
        ("sign(a.x - b.x) * sign(a.y - b.y) * sign(a.z - b.z)", -8, 4, 12),
        ("(a.x == 1) * (b.x == 2)", 0, 1, 1),
        ("3", 3, 3, 0),
    ],
)
def test_intervals_and_changes(text, low, high, change):
    robust = kernel(text).robust
    assert (robust.interval.low, robust.interval.high, robust.change) == (low, high, change)


def test_bits_that_no_product_joins_are_enumerated_apart():
    parts = [f"sign(a.f{number} - b.f{number})" for number in range(MAX_BITS)]
    assert kernel(" + ".join(parts), schema=MANY).robust.change == 3 * MAX_BITS


def test_too_many_bits_that_depend_on_each_other_are_refused():
    parts = [f"(a.f{number} < b.f{number})" for number in range(MAX_BITS + 1)]
    chain = " + ".join(f"{one} * {two}" for one, two in pairwise(parts))
    with pytest.raises(RangeError, match=f"{MAX_BITS + 1} bits that depend on each other"):
        _ = kernel(chain, schema=MANY).robust
