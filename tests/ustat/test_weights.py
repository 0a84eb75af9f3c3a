"""Weights: a pair counts as much as the product of its records' weights, on every backend."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import umpc
from umpc.errors import KernelError, StudyError
from umpc.node.policy import computes
from umpc.ustat.kernel import Kernel
from umpc.ustat.released_means import joint_values
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.strata import ONE, product_of, restricted, weighted, without_weight
from umpc.ustat.text import from_text, to_text

LOUD = 10**9
DEALT = {"dealer": {"dealer": "c:1"}, "weight": "w"}
RECORDS = 24
RNG = np.random.default_rng(50)
X = RNG.integers(0, 9, RECORDS)
Y = np.clip(X + RNG.integers(-4, 5, RECORDS), 0, 9)
LABEL = RNG.integers(0, 2, RECORDS)
W = RNG.integers(0, 7, RECORDS) / 2
SEX = np.where(np.arange(RECORDS) % 3 == 0, "f", "m")
TABLE = {"x": X, "y": Y, "label": LABEL, "w": W, "sex": SEX, "time": RNG.integers(0, 9, RECORDS)}
BOUNDS = {"x": (0, 9), "y": (0, 9), "time": (0, 9), "label": (0, 1), "sex": ["m", "f"]}
WEIGHTS = {"w": (0, 3, "0.5")}
FIRST, SECOND = np.triu_indices(RECORDS, 1)
PRODUCTS = W[FIRST] * W[SECOND]


def estimate(statistic, columns=None, *, bounds=WEIGHTS, also=(), **settings) -> umpc.Result:
    names = list(columns or [each for _, own in statistic for each in own])
    cut = RECORDS // 3
    frames = [
        {k: v[:cut].tolist() for k, v in TABLE.items()},
        {k: v[cut:].tolist() for k, v in TABLE.items()},
    ]
    given = {name: BOUNDS[name] for name in (*names, *also)} | bounds
    usual = {"epsilon": LOUD, "weight": "w", "edges": "all"}
    return umpc.estimate(statistic, frames, columns, bounds=given, **{**usual, **settings})


def signs(column) -> np.ndarray:
    return np.sign(column[FIRST].astype(int) - column[SECOND])


def mean_of(values, products=PRODUCTS) -> float:
    return float((values * products).sum() / products.sum())


BACKENDS = {
    "shares": {"backend": "shared"},
    "grid": {"backend": "grid"},
    "garbled": {"backend": "garbled", "preprocessing": "none"},
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_weighted_statistics_are_those_by_hand(backend):
    settings = BACKENDS[backend]
    tau = estimate("kendall_tau", ["x", "y"], **settings)
    assert tau.estimate == pytest.approx(mean_of(signs(X) * signs(Y)))
    assert tau.report.statistic == "kendall_tau weighted by w" and len(tau.report.sums) == 2
    different = LABEL[FIRST] != LABEL[SECOND]
    right = (1 + signs(X) * signs(LABEL)) / 2
    auc = estimate("auc_private", ["x", "label"], **settings)
    assert auc.estimate == pytest.approx(mean_of(right[different], PRODUCTS[different]))
    tau_b = estimate("kendall_tau_b", ["x", "y"], **settings)
    parts = [mean_of(values) for values in (signs(X) * signs(Y), signs(X) ** 2, signs(Y) ** 2)]
    assert tau_b.estimate == pytest.approx(parts[0] / np.sqrt(parts[1] * parts[2]))


def test_weighted_concordance_and_differences():
    time, event = TABLE["time"], LABEL
    comparable, right, other = np.zeros((3, len(FIRST)))
    for place, (i, j) in enumerate(zip(FIRST, SECOND, strict=True)):
        for p, q in ((i, j), (j, i)):
            is_later = time[q] > time[p] or (time[q] == time[p] and not event[q])
            if event[p] and is_later:
                comparable[place] = 1
                right[place], other[place] = ((1 + np.sign(c[p] - c[q])) / 2 for c in (X, Y))
    index = estimate("concordance_index", ["x", "time", "label"])
    assert index.estimate == pytest.approx((right * PRODUCTS).sum() / (comparable @ PRODUCTS))
    difference = estimate("concordance_difference", ["x", "y", "time", "label"])
    expected = ((right - other) * PRODUCTS).sum() / (comparable @ PRODUCTS)
    assert difference.estimate == pytest.approx(expected)
    taus = estimate("tau_difference", ["x", "y", "time"])
    due = signs(time)
    assert taus.estimate == pytest.approx(mean_of(due * (signs(X) - signs(Y))))
    with pytest.raises(StudyError, match="no hypothesis whose law is known"):
        taus.p_value()
    assert 0 < taus.p_value(null=0) <= 1


def test_public_labels_one_record_several_statistics_and_strata():
    auc = estimate("auc", ["x"], also=["sex"], label=("sex", "f"))
    ones, others = SEX == "f", SEX == "m"
    wins = (1 + np.sign(X[ones][:, None] - X[others])) / 2
    assert auc.estimate == pytest.approx(np.average(wins, weights=np.outer(W[ones], W[others])))
    mean = estimate("mean", ["x"])
    assert mean.estimate == pytest.approx(np.average(X, weights=W))
    several = estimate([("kendall_tau", ["x", "y"]), ("auc_private", ["x", "label"])])
    values = [part.estimate for part in several.parts.values()]
    assert values[0] == pytest.approx(mean_of(signs(X) * signs(Y)))
    strata = estimate("kendall_tau", ["x", "y"], also=["sex"], strata="sex")
    for sex, part in zip(("m", "f"), strata.parts.values(), strict=True):
        inside = (SEX[FIRST] == sex) & (SEX[SECOND] == sex)
        expected = mean_of((signs(X) * signs(Y))[inside], PRODUCTS[inside])
        assert part.estimate == pytest.approx(expected), sex


def test_the_range_of_a_weighted_sum_follows_from_the_bounds_of_the_weights():
    """With weights of at most b, a sum and its noise are up to b² times as large."""
    fields = [FieldSchema(name, Fraction(0), Fraction(9), Fraction(1)) for name in "xy"]
    w = FieldSchema("w", Fraction(1, 2), Fraction(3), Fraction(1, 2))
    schema, tau = Schema([*fields, w]), LIBRARY["kendall_tau"].expressions(["x", "y"])
    kernels, estimator = weighted(tau, "mean", "w", 2)
    found = [Kernel(from_text(to_text(each)), schema) for each in kernels]
    assert estimator == "ratio"
    assert [each.interval.width for each in found] == [18, 9 - Fraction(1, 4)]
    points = [[-9, 9], [-0.25, 0.25], [0, 0.25], [0, 9], [0.25, 0.25], [9, 9]]
    assert joint_values(found).tolist() == points, "no numerator is above its denominator"


def test_weights_are_told_from_other_kernels():
    tau = from_text("sign(a.x - b.x) * sign(a.y - b.y)")
    kernels, _ = weighted([tau], "mean", "w", 2)
    assert without_weight(kernels[0], 2) == (tau, "w")
    assert without_weight(kernels[1], 2) == (ONE, "w")
    assert without_weight(tau, 2) is None and without_weight(from_text("a.x + b.x"), 2) is None
    (single, share), _ = weighted([from_text("a.x")], "mean", "w", 1)
    assert without_weight(single, 1) == (from_text("a.x"), "w")
    assert without_weight(share, 1) == (ONE, "w") and share == product_of("w", 1)
    assert restricted(kernels, "ratio", "sex", 0, 2)[1] == "ratio"
    with pytest.raises(KernelError, match="weight takes a statistic whose estimator is"):
        weighted([tau], "collision_entropy", "w", 2)


@pytest.mark.parametrize(
    ("statistic", "columns", "bounds", "words"),
    [
        ("kendall_tau", ["x", "y"], {"w": (-1, 3, "0.5")}, "lower bound of 0 or above.*has -1 to"),
        ("kendall_tau", ["x", "y"], {"w": ["0", "1"]}, "lower bound of 0 or above.*'0', '1'"),
        ("spearman_rho", ["x", "y"], WEIGHTS, "over one or two records.*is over 3"),
        ("renyi_entropy", ["x"], WEIGHTS, "weight takes a statistic whose estimator is"),
    ],
)
def test_what_has_no_weights_is_refused(statistic, columns, bounds, words):
    with pytest.raises((StudyError, KernelError), match=words):
        estimate(statistic, columns, bounds=bounds)


def test_a_label_of_other_numbers_is_refused_with_weights_too():
    """The rules of the statistic hold for the weighted one."""
    TABLE["status"] = LABEL + 1
    BOUNDS["status"] = (1, 2)
    with pytest.raises(umpc.errors.RangeError, match="the label of auc_private"):
        estimate("auc_private", ["x", "status"])


def test_an_allow_list_of_statistics_does_not_admit_the_weighted_one():
    given = {"x": (0, 9, 1), "y": (0, 9, 1), "w": (0, 3, "0.5")}
    facts = {"epsilon": 1, "nodes": {"north": "a:1", "south": "b:1"}, "identity": "."}
    tau, weighted_tau = (
        umpc.Study(
            "s", "kendall_tau", ["x", "y"], bounds={n: given[n] for n in names}, **facts, **more
        ).file.study("coordinator")
        for names, more in (("xy", {"dealer": {"dealer": "c:1"}}), ("xyw", DEALT))
    )
    assert computes(tau, LIBRARY["kendall_tau"])
    assert not any(computes(weighted_tau, each) for each in LIBRARY.values())
