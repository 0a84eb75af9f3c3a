"""Tests of few records reject a true hypothesis in at most α, at every α: by enumeration."""

from __future__ import annotations

from itertools import combinations, permutations, product
from math import comb, inf

import numpy as np
import pytest

from tests.support.statistical import ALPHA
from umpc.inference.hypotheses import HYPOTHESES, DrawnRecords
from umpc.inference.null_laws import (
    LargestTailLaw,
    NormalLaw,
    TauStarLaw,
    count_concordant_fours,
    p_value,
)
from umpc.ustat.error_law import ErrorLaw

NOTHING = ErrorLaw([], [])
RUNS = 40_000
SEED = 20
FREE = (inf, inf)


def signs(values):
    """Signs of all differences: (runs, n, n)."""
    return np.sign(values[:, :, None] - values[:, None, :]).astype(np.int64)


def tau(x, y):
    n = x.shape[1]
    return (signs(x) * signs(y)).sum(axis=(1, 2)) / (n * (n - 1))


def rho(x, y):
    n = x.shape[1]
    products = (signs(x).sum(axis=2) * signs(y).sum(axis=2)).sum(axis=1)
    return 3 * (products - n * (n - 1) * tau(x, y)) / (n * (n - 1) * (n - 2))


def tau_star(x, y):
    """2/3 for four records that both columns split in the same halves, and −1/3 for others."""
    sets = list(combinations(range(x.shape[1]), 4))
    total = np.zeros(len(y))
    for four in sets:
        low_x, low_y = (each[:, four].argsort().argsort() < 2 for each in (x, y))
        same = (low_x == low_y).all(axis=1) | (low_x != low_y).all(axis=1)
        total += np.where(same, 2 / 3, -1 / 3)
    return total / len(sets)


def all_orders(records):
    orders = np.array(list(permutations(range(records))))
    return np.tile(np.arange(records), (len(orders), 1)), orders


def most_over_level(law, values, chances, alternatives):
    """The largest P(p <= α) − α over all p-values α that occur, and all alternatives."""
    values = np.round(values, 12)
    found, places = np.unique(values, return_inverse=True)
    worst = -1.0
    for alternative in alternatives:
        ps = np.array([p_value(law, NOTHING, float(value), alternative) for value in found])
        order = np.argsort(ps)
        reached = np.cumsum(np.bincount(places, chances)[order])
        last = np.append(np.diff(ps[order]) > 1e-12, True)
        worst = max(worst, float((reached - ps[order])[last].max()))
    return worst


def check(statistic, drawn, values, chances=None):
    hypothesis = HYPOTHESES[statistic]
    chances = np.full(len(values), 1 / len(values)) if chances is None else chances
    law = hypothesis.law(drawn)
    over = most_over_level(law, values, chances, hypothesis.alternatives)
    assert over < 1e-9, (statistic, drawn, over)
    return law


@pytest.mark.parametrize("records", [4, 5, 6, 7])
def test_two_columns(records):
    x, y = all_orders(records)
    drawn = DrawnRecords(records, None, FREE)
    for statistic, of in (("kendall_tau", tau), ("spearman_rho", rho)):
        check(statistic, drawn, of(x, y))
    check("bergsma_dassios_tau_star", drawn, tau_star(x, y))


def test_the_limits_would_not_do_so():
    x, y = all_orders(6)
    sides = ("two-sided", "greater", "less")
    chances = np.full(720, 1 / 720)
    normal = NormalLaw(0.0, float(np.std(rho(x, y))))
    assert most_over_level(normal, rho(x, y), chances, sides) > 0.009
    limit = TauStarLaw(float(np.std(tau_star(x, y))))
    assert most_over_level(limit, tau_star(x, y), chances, ["greater"]) > 0.015


@pytest.mark.parametrize("records", [2, 5, 8])
def test_one_column(records):
    orders = np.array(list(product((-1, 1), repeat=records)))
    column = orders * np.arange(1, records + 1)
    pairs = [np.sign(column[:, i] + column[:, j]) for i in range(records) for j in range(i)]
    check("wilcoxon_signed_rank", DrawnRecords(records, None, (inf,)), np.mean(pairs, axis=0) / 2)


@pytest.mark.parametrize(("first", "second"), [(1, 4), (3, 4), (4, 4)])
def test_two_classes(first, second):
    n = first + second
    chosen = np.array(list(combinations(range(n), first)))
    values = (chosen.sum(axis=1) - first * (first - 1) / 2) / (first * second) - 0.5
    check("auc", DrawnRecords(n, (first, second), (inf,)), values)
    column = np.array(list(product((0, 1), repeat=n)))
    values = (column[:, :first].mean(axis=1) - column[:, first:].mean(axis=1)) / 2
    for share in (0.5, 0.3):
        chances = np.prod(np.where(column, share, 1 - share), axis=1)
        law = check("auc", DrawnRecords(n, (first, second), (2.0,)), values, chances)
        assert isinstance(law, LargestTailLaw)


@pytest.mark.parametrize("records", [3, 5, 6])
def test_labels(records):
    """All tables of two columns of two values, and all orders with each number of a label."""
    columns = np.array(list(product((0, 1), repeat=records)))
    pairs = np.array(list(product(range(len(columns)), repeat=2)))
    x, y = columns[pairs[:, 0]], columns[pairs[:, 1]]
    values = tau(x, y)
    for p, q in ((0.5, 0.5), (0.5, 0.2), (0.3, 0.1)):
        chances = np.prod(np.where(x, p, 1 - p) * np.where(y, q, 1 - q), axis=1)
        for statistic in ("phi_coefficient", "kendall_tau", "kendall_tau_label"):
            check(statistic, DrawnRecords(records, None, (2.0, 2.0)), values, chances)
        check("auc_private", DrawnRecords(records, None, (2.0, 2.0)), values / 2, chances)
    for labelled in range(records + 1):
        label = np.tile(np.arange(records) < labelled, (len(all_orders(records)[1]), 1))
        values = tau(label.astype(np.int64), all_orders(records)[1])
        for statistic in ("kendall_tau", "kendall_tau_label"):
            check(statistic, DrawnRecords(records, None, (99.0, 2.0)), values)
        check("auc_private", DrawnRecords(records, None, (99.0, 2.0)), values / 2)


@pytest.mark.parametrize(("records", "cells"), [(2, 2), (5, 4), (8, 2), (6, 5), (4, 9)])
def test_cells(records, cells):
    column = np.array(list(product(range(cells), repeat=records)))
    equal = (signs(column) == 0).sum(axis=(1, 2)) - records
    values = equal / (records * (records - 1)) - 1 / cells
    check("uniformity", DrawnRecords(records, None, (cells,), -1 / cells), values)


def test_sets_of_four_are_counted_as_one_by_one():
    x, y = all_orders(6)
    counted = count_concordant_fours(y) / comb(6, 4) - 1 / 3
    assert counted == pytest.approx(tau_star(x, y))


@pytest.mark.parametrize("records", [9, 10, 14])
def test_more_records_have_a_limit_with_room(records):
    """Drawn orders. Without the factor, tau* of 10 records rejects 10.9 % at 10 %."""
    rng = np.random.default_rng(SEED)
    orders = rng.permuted(np.tile(np.arange(records), (RUNS, 1)), axis=1)
    x = np.broadcast_to(np.arange(records), orders.shape)
    fours = [count_concordant_fours(part) for part in np.array_split(orders, 10)]
    values = {
        "spearman_rho": rho(x[:1], orders),
        "bergsma_dassios_tau_star": np.concatenate(fours) / comb(records, 4) - 1 / 3,
    }
    for statistic, seen in values.items():
        law = HYPOTHESES[statistic].law(DrawnRecords(records, None, FREE))
        for level in (0.2, 0.1, 0.05, 0.01):
            share = (law.at_least(seen) <= level).mean()
            excess = (share - level) / np.sqrt(level * (1 - level) / RUNS)
            assert excess < -np.log10(ALPHA), (statistic, level, share)
    short = TauStarLaw(law.std)
    share = (short.at_least(values["bergsma_dassios_tau_star"]) <= 0.1).mean()
    assert share > 0.103, "power: the limit itself is too short"


@pytest.mark.parametrize("values", [(inf, 3.0), (3.0, 3.0), (10.0, 10.0), (2.0, 3.0)])
def test_columns_of_few_values(values):
    rng = np.random.default_rng(SEED)
    x, y = (
        rng.random((RUNS, 8)) if each == inf else rng.integers(0, int(each), (RUNS, 8))
        for each in values
    )
    drawn = DrawnRecords(8, None, values)
    for statistic, seen in (("kendall_tau", tau(x, y)), ("spearman_rho", rho(x, y))):
        law = HYPOTHESES[statistic].law(drawn)
        for level in (0.1, 0.05, 0.01):
            share = (law.at_least(seen) <= level).mean()
            excess = (share - level) / np.sqrt(level * (1 - level) / RUNS)
            assert excess < -np.log10(ALPHA), (statistic, values, level, share)


def test_many_records_of_two_values_have_a_normal_law_of_whole_steps():
    exact, beyond = (
        HYPOTHESES["phi_coefficient"].law(DrawnRecords(n, None, (2.0, 2.0))) for n in (120, 121)
    )
    assert isinstance(exact, LargestTailLaw) and isinstance(beyond, NormalLaw)
    for seen in (0.05, 0.1, 0.15):
        at = np.array([seen])
        assert beyond.at_least(at) == pytest.approx(exact.at_least(at), rel=0.25)
