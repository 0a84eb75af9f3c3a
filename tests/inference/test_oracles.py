"""Statistics and p-values against scipy, by whole studies over all sets without noise.

docs/inference.md says where a p-value of ours is another one than scipy's, and why.
"""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import stats

import umpc
from umpc.inference.null_laws import signed_pairs

LOUD = 10**9
FINE = {name: (-(1 << 19), 1 << 19) for name in "xyz"}


def run(statistic: str, columns, table, *, bounds=FINE, **settings) -> umpc.Result:
    """A study of two sites over all sets, without noise."""
    cut = len(next(iter(table.values()))) // 3
    frames = [{k: v[:cut] for k, v in table.items()}, {k: v[cut:] for k, v in table.items()}]
    return umpc.estimate(
        statistic, frames, columns, bounds=bounds, epsilon=LOUD, edges="all", **settings
    )


def normal(seed: int, records: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, records)) * 9000
    groups = np.where(np.arange(records) % 5 < 2, "a", "b")
    return {"x": np.rint(x), "y": np.rint(y + 0.3 * x), "g": groups}


@pytest.mark.parametrize(("records", "method"), [(23, "exact"), (150, "asymptotic")])
def test_kendalls_tau(records, method):
    table = normal(1, records)
    found = run("kendall_tau", ["x", "y"], table)
    for alternative in ("two-sided", "greater", "less"):
        scipys = stats.kendalltau(table["x"], table["y"], method=method, alternative=alternative)
        assert found.estimate == pytest.approx(scipys.statistic, abs=1e-12)
        assert found.p_value(alternative) == pytest.approx(scipys.pvalue, rel=1e-6)


def test_without_noise_p_values_far_below_the_least_one_of_noise_are_scipys():
    x = np.arange(400.0)
    table = {"x": x, "y": x + np.random.default_rng(8).normal(size=400) * 60}
    rounded = {name: np.rint(column * 100) for name, column in table.items()}
    found = run("kendall_tau", ["x", "y"], rounded).test()
    scipys = stats.kendalltau(rounded["x"], rounded["y"], method="asymptotic")
    assert 0 < scipys.pvalue < 1e-90 and not found.is_below
    assert found.p_value == pytest.approx(scipys.pvalue, rel=1e-6)


@pytest.mark.parametrize(("records", "method"), [(21, "exact"), (170, "asymptotic")])
def test_the_auc_and_mann_and_whitneys_u(records, method):
    table = normal(2, records)
    first, second = (table["x"][table["g"] == group] for group in "ab")
    settings = {"label": ("g", "a"), "bounds": {**FINE, "g": ["a", "b"]}}
    auc = run("auc", ["x"], table, **settings)
    total = run("mann_whitney_u", ["x"], table, **settings)
    for alternative in ("two-sided", "greater", "less"):
        scipys = stats.mannwhitneyu(
            first, second, method=method, alternative=alternative, use_continuity=False
        )
        assert total.estimate == pytest.approx(scipys.statistic)
        assert auc.estimate == pytest.approx(scipys.statistic / (len(first) * len(second)))
        for found in (auc, total):
            assert found.p_value(alternative) == pytest.approx(scipys.pvalue, rel=1e-6)


def test_uniformity_is_pearsons_chi_square():
    """Exact up to some records, and far beyond them scipy's limit."""
    cells = np.random.default_rng(3).integers(0, 6, 400)
    found = run("uniformity", ["c"], {"c": cells}, bounds={"c": (0, 5)}, parameters={"cells": 6})
    scipys = stats.chisquare(np.bincount(cells, minlength=6))
    assert found.test().law == "chi-square law"
    assert found.p_value() == pytest.approx(scipys.pvalue, rel=1e-6)
    few = cells[:80]
    found = run("uniformity", ["c"], {"c": few}, bounds={"c": (0, 5)}, parameters={"cells": 6})
    assert found.test().law == "exact law of equal pairs"
    scipys = stats.chisquare(np.bincount(few, minlength=6))
    assert found.p_value() == pytest.approx(scipys.pvalue, rel=0.05)


def test_the_signed_rank_of_pairs_has_its_own_exact_law():
    """Scipy's statistic counts each record with itself as a pair, and ours does not."""
    table = normal(4, 12)
    found = run("wilcoxon_signed_rank", ["x"], table)
    values = table["x"]
    pairs = [values[i] + values[j] > 0 for i in range(12) for j in range(i)]
    assert found.estimate == pytest.approx(np.mean(pairs))
    ranks = stats.rankdata(np.abs(values)) - 1
    flips = np.array(list(product((0, 1), repeat=12)))
    law = np.bincount((flips @ ranks).astype(int), minlength=comb(12, 2) + 1) / len(flips)
    assert signed_pairs(12) == pytest.approx(law, abs=1e-15)
    above = (flips @ ranks >= sum(pairs) - 1e-9).mean()
    assert found.p_value("greater") == pytest.approx(above, rel=1e-9)
    assert abs(found.p_value() - stats.wilcoxon(values, method="exact").pvalue) < 0.2


def test_ratios_have_scipys_values_and_a_bounded_test():
    table = normal(5, 40)
    half = {"x": table["x"] // 6000, "y": table["y"] // 6000}
    bounds = {"x": (-10, 10), "y": (-10, 10)}
    found = run("kendall_tau_b", ["x", "y"], half, bounds=bounds)
    scipys = stats.kendalltau(half["x"], half["y"])
    assert found.estimate == pytest.approx(scipys.statistic)
    assert scipys.pvalue <= found.p_value() < 5 * scipys.pvalue
    found = run("somers_d", ["x", "y"], half, bounds=bounds)
    assert found.estimate == pytest.approx(stats.somersd(half["x"], half["y"]).statistic)


def test_spearmans_rho_is_that_of_the_ranks_by_hoeffdings_identity():
    table, n = normal(6, 15), 15
    found = run("spearman_rho", ["x", "y"], table)
    r = stats.spearmanr(table["x"], table["y"]).statistic
    tau = stats.kendalltau(table["x"], table["y"]).statistic
    assert (n - 2) / (n + 1) * found.estimate + 3 / (n + 1) * tau == pytest.approx(r)
