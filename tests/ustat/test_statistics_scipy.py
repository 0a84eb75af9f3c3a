"""umpc.ustat.statistics: released values against scipy and textbook formulas, on whole tables."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import pdist, squareform

from tests.ustat.tables import means
from umpc.ustat.estimators import estimate
from umpc.ustat.statistics import LIBRARY

ONE = 2
"""The number 1 in steps of the columns of numbers, which are halves."""


def released(name: str, **table) -> float | None:
    """The estimator's value over all edges, without noise."""
    sums = means(name, table)
    nothing = [0.0] * len(sums)
    return estimate(LIBRARY[name].estimator, sums, nothing, nothing, 1).value


def columns(seed: int, count: int = 24, span: int = 3):
    """Two columns with ties that depend on each other, and a label that depends on them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-span, span + 1, count)
    y = np.clip(x + rng.integers(-2, 3, count), -6, 6)
    return x, y, (x + rng.integers(-4, 5, count) > 0).astype(int)


@pytest.mark.parametrize("seed", range(2))
def test_pairs(seed):
    x, y, label = columns(seed)
    assert released("somers_d", x=x, y=y) == pytest.approx(stats.somersd(x, y).statistic)
    tau = stats.kendalltau(x, label).statistic
    assert released("kendall_tau_label", x=x, label=label) == pytest.approx(tau)
    squares = pdist(np.stack([x, y], axis=1) / 2, "sqeuclidean")
    together = pdist(label[:, None]) == 0
    scatter = released("clustering_scatter", label=label, x=x, y=y)
    assert scatter == pytest.approx(np.mean(squares * together))


def test_the_gini_coefficient_is_that_of_the_lorenz_curve():
    """Twice the area between the diagonal and the Lorenz curve, times n/(n − 1)."""
    x = np.sort(np.random.default_rng(3).integers(0, 7, 20))
    lorenz = np.concatenate([[0], np.cumsum(x) / x.sum()])
    area = np.sum(lorenz[1:] + lorenz[:-1]) / 2 / 20
    assert released("gini_coefficient", x=x) == pytest.approx((1 - 2 * area) * 20 / 19)


def test_asymmetry_is_about_the_centre():
    symmetric = np.array([-4, -2, 0, 2, 4] * 4)
    moved = {"x": symmetric + 2}
    sums = means("asymmetry", moved, parameters=(("centre", 1),))
    assert sums == means("asymmetry", {"x": symmetric})
    # symmetric: nearly 0, and below it because no record is paired with itself
    assert -0.1 < float(sums[0] / sums[1]) < 0
    assert released("asymmetry", **moved) > 0.1
    assert released("asymmetry", x=np.full(4, 3)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_n_phi_squared_is_pearsons_chi_squared(seed):
    x, y, _ = columns(seed, 40, 2)
    table = np.array(
        [[np.sum(((x == ONE) == i) & ((y == ONE) == j)) for j in (0, 1)] for i in (0, 1)]
    )
    chi_squared = stats.chi2_contingency(table, correction=False).statistic
    phi = released("phi_coefficient", x=x, y=y)
    assert 40 * phi**2 == pytest.approx(chi_squared)
    assert np.sign(phi) == np.sign(np.linalg.det(table))


@pytest.mark.parametrize("seed", range(3))
def test_cramer_von_mises_is_scipys_without_bias(seed):
    """For n records of each class without ties: 2/(n − 1)·(T − its mean under the null law).

    The mean is 1/6 + 1/(12n) (Anderson 1962).
    """
    n = 6
    x = np.random.default_rng(seed).permutation(2 * n) - n
    label = np.repeat([1, 0], n)
    found = stats.cramervonmises_2samp(x[:n], x[n:], method="asymptotic").statistic
    expected = 2 / (n - 1) * (found - 1 / 6 - 1 / (12 * n))
    assert released("cramer_von_mises", x=x, label=label) == pytest.approx(expected)


def test_cramer_von_mises_is_the_squared_distance_of_two_laws_on_two_values():
    """All orders of n values are equally likely under the null law: the mean is 0 with ties."""
    label = [1, 1, 0, 0]
    tied = [(0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 1, 0), (1, 0, 0, 1), (1, 0, 1, 0), (1, 1, 0, 0)]
    found = [released("cramer_von_mises", x=x, label=label) for x in tied]
    assert sum(found) == pytest.approx(0) and max(found) == pytest.approx(1 / 3)


@pytest.mark.parametrize("seed", range(2))
def test_the_energy_distance_is_scipys_without_bias(seed):
    """scipy's square counts the pairs of a record with itself inside each class."""
    x, _, label = columns(seed, 14)
    sides = [x[label == 1] / 2, x[label == 0] / 2]
    biased = stats.energy_distance(*sides) ** 2
    inside = sum(np.mean(pdist(side[:, None])) / len(side) for side in sides)
    assert released("energy_distance", x=x, label=label) == pytest.approx(biased - inside)


@pytest.mark.parametrize("seed", range(2))
def test_four_records_measure_the_covariance_of_distances(seed):
    """Székely & Rizzo 2014, from numpy's matrices; equality for a contingency table."""
    x, y, _ = columns(seed, 14)
    n = len(x)

    def centred(matrix):
        np.fill_diagonal(matrix, 0)
        margin = matrix.sum(0) / (n - 2)
        whole = matrix.sum() / ((n - 1) * (n - 2))
        found = matrix - margin - margin[:, None] + whole
        np.fill_diagonal(found, 0)
        return found

    def inner(first, second):
        return np.sum(centred(first) * centred(second)) / (n * (n - 3))

    distances = [squareform(pdist(c[:, None] / 2)) for c in (x, y)]
    equal = [(c[:, None] == c).astype(float) for c in (x, y)]
    assert released("distance_covariance", x=x, y=y) == pytest.approx(inner(*distances))
    assert released("usp_independence", x=x, y=y) == pytest.approx(inner(*equal))
    assert released("distance_covariance", x=x, y=np.full(n, 2)) == 0


def test_usp_estimates_the_squared_distance_of_a_table_to_independence():
    """On a large table it is near Σ (p_ij − p_i·p_j)² of its own shares."""
    x, y = np.repeat([0, 0, 2, 2], (9, 3, 2, 10)), np.repeat([0, 2, 0, 2], (9, 3, 2, 10))
    shares = np.array([[9, 3], [2, 10]]) / 24
    expected = np.sum((shares - np.outer(shares.sum(1), shares.sum(0))) ** 2)
    assert released("usp_independence", x=x, y=y) == pytest.approx(expected, abs=0.02)


def test_one_stratum_is_no_stratum_and_strata_hide_what_lies_between_them():
    x, y, label = columns(5)
    one = np.zeros(len(x), dtype=int)
    tau = released("kendall_tau", x=x, y=y)
    assert released("stratified_kendall_tau", x=x, y=y, stratum=one) == pytest.approx(tau)
    auc = released("auc_private", score=x, label=label)
    found = released("stratified_superiority", score=x, label=label, stratum=one)
    assert found == pytest.approx(auc)
    # Simpson: falling inside each stratum, rising between them
    stratum = np.repeat([0, 1], 4)
    rising = np.array([0, 1, 2, 3, 3, 4, 5, 6])
    falling = np.array([2, 1, 0, -1, 6, 5, 4, 3])
    assert released("stratified_kendall_tau", x=rising, y=falling, stratum=stratum) == -1
    assert released("kendall_tau", x=rising, y=falling) > 0


def test_harrells_c_without_censoring_is_kendalls_tau_and_by_hand_with_it():
    rng = np.random.default_rng(1)
    score, time = rng.permutation(12) - 6, rng.permutation(12) - 6
    index = released("concordance_index", score=score, time=time, event=np.ones(12, dtype=int))
    assert index == pytest.approx((1 - stats.kendalltau(score, time).statistic) / 2)
    # comparable: the event at 1 with all three others, the event at 2 with the last; 5/2 are right
    sums = means(
        "concordance_index",
        {"score": [3, 4, 1, 1], "time": [1, 1, 2, 3], "event": [1, 0, 1, 0]},
    )
    assert [6 * each for each in sums] == [2.5, 4]


def test_phi_of_a_table_by_hand():
    """3 both, 1 and 2 single, 4 neither: (3·4 − 1·2) / √(4·6·5·5)."""
    x = ONE * np.repeat([1, 1, 0, 0], (3, 1, 2, 4))
    y = ONE * np.repeat([1, 0, 1, 0], (3, 1, 2, 4))
    assert released("phi_coefficient", x=x, y=y) == pytest.approx(10 / sqrt(600))
