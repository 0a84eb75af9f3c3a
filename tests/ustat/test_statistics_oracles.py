"""umpc.ustat.statistics: every kernel against a direct formula and other libraries, with ties."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb, log, log2, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.ustat.statistic_oracles import (
    ORACLES,
    TWO_SAMPLES,
    Rows,
    average,
    quadruple,
    spearman,
)
from tests.ustat.tables import CLASSES, UNIT, columns_of, expressions, means, values
from umpc.errors import KernelError
from umpc.ustat.estimators import estimate
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY


def table(name: str, rows: Rows) -> dict[str, list[int]]:
    return dict(zip(columns_of(name), map(list, zip(*rows, strict=True)), strict=True))


def small(name: str, span: int = 6):
    """A record: numbers in steps of 1/2, classes 0, 1, 2."""
    return st.tuples(
        *(st.integers(0, 2) if c in CLASSES else st.integers(-span, span) for c in columns_of(name))
    )


def test_every_statistic_of_the_library_has_an_oracle():
    assert ORACLES.keys() | TWO_SAMPLES.keys() == LIBRARY.keys()


@pytest.mark.parametrize("span", [1, 6], ids=["many ties", "few ties"])
@pytest.mark.parametrize("name", ORACLES)
@settings(max_examples=60)
@given(data=st.data())
def test_random_tables(name, span, data):
    rows = data.draw(st.lists(small(name, span), min_size=LIBRARY[name].degree, max_size=8))
    assert means(name, table(name, rows)) == ORACLES[name](rows)


@pytest.mark.parametrize("name", TWO_SAMPLES)
@settings(max_examples=60)
@given(data=st.data())
def test_random_samples(name, data):
    first, second = (data.draw(st.lists(small(name, 3), min_size=1, max_size=6)) for _ in range(2))
    pairs = [TWO_SAMPLES[name](p, q) for p in first for q in second]
    sums = [pair if isinstance(pair, (list, tuple)) else [pair] for pair in pairs]
    expected = [average(column) for column in zip(*sums, strict=True)]
    assert means(name, table(name, first), table(name, second)) == expected


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize(
    "pairs",
    [
        [(2, 2)] * 5,
        [(-6, -6), (6, 6)] * 2,
        [(-6, 6), (6, -6)] * 2,
        [(i, 1) for i in range(5)],
        [(0, 0)] * 3 + [(6, 2)],
    ],
    ids=["all equal", "both bounds", "opposite bounds", "one column constant", "one differs"],
)
def test_ties_bounds_and_equal_values(name, pairs):
    columns = columns_of(name)
    rows = [
        tuple((x % 3, x, y)[-len(columns) :])
        if columns[0] == "label"
        else (x, y, x + y, abs(x - y))[: len(columns)]
        for x, y in pairs
    ]
    rows = [
        tuple(v % 3 if c in CLASSES else v for c, v in zip(columns, row, strict=True))
        for row in rows
    ]
    assert means(name, table(name, rows)) == ORACLES[name](rows)


def test_tau_star_is_the_papers_kernel_on_all_orders_of_four_records():
    """Bergsma & Dassios 2014: the mean of a(x)·a(y) over 24 permutations, on 4^4 · 4^4 points."""
    points = np.array(list(product(range(4), repeat=4)))
    signs = np.array(
        [[quadruple(point[list(order)]) for order in permutations(range(4))] for point in points]
    )
    x, y = (index.ravel() for index in np.mgrid[: len(points), : len(points)])
    records = [{"x": points[x, i], "y": points[y, i]} for i in range(4)]
    (value,) = values("bergsma_dassios_tau_star", records)
    assert np.array_equal(value, (signs @ signs.T).ravel() * int(1 / UNIT) // 24)


def test_vus_on_all_triples_of_scores():
    points = np.array(list(product(range(3), repeat=3)))
    records = [{"score": points[:, i], "label": np.full(len(points), i)} for i in range(3)]
    right, different = values("vus", records)
    a, b, c = points.T
    expected = (
        (a < b) * (b < c) + ((a == b) * (b < c) + (a < b) * (b == c)) / 2 + (a == b) * (b == c) / 6
    )
    assert np.allclose(right * float(UNIT), expected) and np.all(different * UNIT == 1)


@pytest.mark.parametrize("name", ["ranking_hinge", "contrastive_loss"])
def test_losses_take_weights_and_margin(name):
    rng = np.random.default_rng(5)
    x, y, w, margin = rng.integers(-6, 7, (2, 9)), rng.integers(-6, 7, (2, 9)), (0.5, -2.0), 1.5
    records = [{"x": x[i], "y": y[i], "label": rng.integers(0, 2, 9)} for i in range(2)]
    (value,) = values(name, records, (("weights", ("0.5", -2)), ("margin", "3/2")))
    difference = (w[0] * (x[0] - x[1]) + w[1] * (y[0] - y[1])) / 2
    expected = np.maximum(0, margin - difference)
    if name == "contrastive_loss":
        same = records[0]["label"] == records[1]["label"]
        expected = np.where(same, difference**2, np.maximum(0, margin - np.abs(difference)) ** 2)
    assert np.allclose(value * float(UNIT), expected)


def released(name: str, sums: list[Fraction], sets: int = 1) -> float:
    """The estimator's value, without noise."""
    nothing = [0.0] * len(sums)
    return estimate(LIBRARY[name].estimator, sums, nothing, nothing, sets).value


@pytest.mark.parametrize("span", [2, 6], ids=["many ties", "few ties"])
@pytest.mark.parametrize("seed", range(3))
def test_other_libraries_agree_with_ties(span, seed):
    from sklearn.metrics import rand_score, roc_auc_score

    rng = np.random.default_rng(seed)
    x, y = rng.integers(-span, span + 1, (2, 30))
    label = rng.integers(0, 2, 30)
    both = {"x": x, "y": y}
    assert float(means("mean", {"x": x})[0]) == pytest.approx(np.mean(x / 2))
    assert float(means("variance", {"x": x})[0]) == pytest.approx(np.var(x / 2, ddof=1))
    assert float(means("covariance", both)[0]) == pytest.approx(np.cov(x / 2, y / 2)[0, 1])
    assert float(means("rand_index", both)[0]) == pytest.approx(rand_score(x, y))
    assert released("kendall_tau_b", means("kendall_tau_b", both)) == pytest.approx(
        stats.kendalltau(x, y).statistic
    )
    gamma = means("goodman_kruskal_gamma", both)
    assert released("goodman_kruskal_gamma", gamma) == pytest.approx(
        stats.somersd(x, y).statistic * untied_y(x, y)
    )
    sides = {"score": x[label == 1]}, {"score": x[label == 0]}
    auc, pairs = roc_auc_score(label, x), len(sides[0]["score"]) * len(sides[1]["score"])
    assert float(means("auc", *sides)[0]) == pytest.approx(auc)
    assert released(
        "auc_private", means("auc_private", {"score": x, "label": label})
    ) == pytest.approx(auc)
    u = stats.mannwhitneyu(*(side["score"] for side in sides)).statistic
    assert released("mann_whitney_u", means("mann_whitney_u", *sides), pairs) == pytest.approx(u)
    frequencies = np.bincount(x + span) / 30
    collisions = (np.sum(frequencies**2) * 30 - 1) / 29
    assert released("renyi_entropy", means("renyi_entropy", {"x": x})) == pytest.approx(
        -log2(collisions)
    )
    # Bell et al. 2020, equation 5: −ln of the sum of squared probabilities
    in_nats = released("renyi_entropy_nats", means("renyi_entropy_nats", {"x": x}))
    assert in_nats == pytest.approx(-log(collisions))


def untied_y(x, y) -> float:
    """Pairs untied in x, the denominator of Somers' D of y given x, per pair untied in both."""
    pairs = list(combinations(zip(x, y, strict=True), 2))
    return sum(p[0] != q[0] for p, q in pairs) / sum(
        p[0] != q[0] and p[1] != q[1] for p, q in pairs
    )


@pytest.mark.parametrize("seed", range(5))
def test_other_libraries_agree_without_ties(seed):
    """scipy's Kendall is tau-b, which is tau-a where nothing is tied.

    Its Spearman mixes the U-statistic with tau.
    """
    rng = np.random.default_rng(seed)
    n = 13
    x, y = rng.permutation(n) - 6, rng.permutation(n) - 6
    tau, u = (float(means(name, {"x": x, "y": y})[0]) for name in ("kendall_tau", "spearman_rho"))
    assert tau == pytest.approx(stats.kendalltau(x, y).statistic)
    assert (n - 2) / (n + 1) * u + 3 / (n + 1) * tau == pytest.approx(
        stats.spearmanr(x, y).statistic
    )
    signed = rng.choice((-1, 1), 6) * rng.permutation(range(1, 7))
    above = comb(6, 2) * float(means("wilcoxon_signed_rank", {"x": signed})[0]) + np.sum(signed > 0)
    assert above == pytest.approx(stats.wilcoxon(signed, alternative="greater").statistic)


@pytest.mark.parametrize("seed", range(3))
def test_spearman_with_ties_is_the_correlation_of_mid_ranks_in_a_population(seed):
    """Nešlehová 2007: of a law on few values, whose mid-distribution functions are exact.

    The mean over all triples of n equally likely records tends to the law's value as n grows. So
    the table is a multiple of the law, in which each point stands as often as it is likely.
    """
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (3, 3))
    x, y = (index.ravel() for index in np.mgrid[:3, :3])
    copies = 4
    rows = [(a, b) for a, b, c in zip(x, y, counts.ravel(), strict=True) for _ in range(copies * c)]
    sums = means("spearman_rho_b", table("spearman_rho_b", rows))
    expected = stats.spearmanr(*zip(*rows, strict=True)).statistic  # of mid-ranks, with ties
    assert released("spearman_rho_b", sums) == pytest.approx(expected, abs=0.12)
    uncorrected = released("spearman_rho", sums[:1])
    assert abs(uncorrected) < abs(released("spearman_rho_b", sums))
    law = counts / counts.sum()
    mids = [p.cumsum() - p / 2 for p in (law.sum(1), law.sum(0))]
    centred = [mid - 0.5 for mid in mids]
    covariance_ = centred[0] @ law @ centred[1]
    spreads = [np.sqrt(c**2 @ p) for c, p in zip(centred, (law.sum(1), law.sum(0)), strict=True)]
    truth = covariance_ / np.prod(spreads)
    assert truth == pytest.approx(expected, abs=1e-9)
    ties = [1 - float(np.sum(p**3)) for p in (law.sum(1), law.sum(0))]
    assert 12 * covariance_ / np.sqrt(np.prod(ties)) == pytest.approx(truth)


def test_spearman_without_ties_needs_no_correction():
    rows = list(zip(range(6), (3, 1, 0, 5, 4, 2), strict=True))
    assert means("spearman_rho_b", table("spearman_rho_b", rows)) == [*spearman(rows), 1, 1]


WORDS = {
    "auc_private": {"label": 2},
    "vus": {"label": 3},
    "kendall_tau_label": {"label": 2},
    "phi_coefficient": {"x": 3, "y": 2},
    "usp_independence": {"x": 3, "y": 2},
    "clustering_scatter": {"label": 3},
    "cramer_von_mises": {"label": 2},
    "energy_distance": {"label": 2},
    "stratified_kendall_tau": {"stratum": 3},
    "stratified_superiority": {"label": 2, "stratum": 3},
    "concordance_index": {"event": 2},
    "auc_difference": {"label": 2},
    "concordance_difference": {"event": 2},
}
"""Columns that may have so many categories."""


@pytest.mark.parametrize("name", WORDS)
def test_private_labels_may_be_words(name):
    """Categories count 0, 1, 2 in the order of their list."""
    whole, step = Fraction(0), Fraction(1)
    given = {
        each: FieldSchema(each, whole, Fraction(n - 1), step, ("low", "middle", "high")[:n])
        for each, n in WORDS[name].items()
    }
    others = [
        FieldSchema(each, whole, Fraction(5), step)
        for each in columns_of(name)
        if each not in given
    ]
    schemas = [
        Schema([*others, *labels])
        for labels in (given.values(), [replace(e, categories=()) for e in given.values()])
    ]
    degree = LIBRARY[name].degree
    rng = np.random.default_rng(4)
    records = [
        {field.name: rng.integers(0, field.upper_units + 1, 200) for field in schemas[0]}
        for _ in range(degree)
    ]
    for expression in expressions(name):
        kernels = [Kernel(expression, schema, degree) for schema in schemas]
        assert kernels[0].unit == kernels[1].unit and kernels[0].interval == kernels[1].interval
        assert np.array_equal(*(kernel.evaluate(records) for kernel in kernels))


def test_a_label_of_too_few_words_is_refused_with_those_that_there_are():
    label = FieldSchema("label", Fraction(0), Fraction(1), Fraction(1), ("low", "high"))
    score = FieldSchema("score", Fraction(0), Fraction(5), Fraction(1))
    with pytest.raises(KernelError, match=r"'label'.*with 2; .*\(0 for 'low', 1 for 'high'\)"):
        Kernel(expressions("vus")[0], Schema([score, label]), 3)


def test_tau_b_of_one_table_by_hand():
    """Five records, one tie in x, one in y: ten pairs, seven concordant, one discordant."""
    sums = means("kendall_tau_b", {"x": [1, 1, 2, 3, 4], "y": [1, 2, 2, 4, 3]})
    assert sums == [Fraction(6, 10), Fraction(9, 10), Fraction(9, 10)]
    assert released("kendall_tau_b", sums) == pytest.approx(6 / sqrt(81))
