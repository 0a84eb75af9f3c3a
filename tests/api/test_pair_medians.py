"""Hodges–Lehmann and Theil–Sen from Python: values, intervals, documents, plans and refusals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import umpc
from bench.plan_widths import Case, compare
from umpc.errors import KernelError, StudyError
from umpc.reporting.json_document import check_document
from umpc.study.report import Report
from umpc.testing import lying

RNG = np.random.default_rng(49)
X = np.clip(np.rint(RNG.normal(40, 12, 40)), 0, 100).astype(int)
Y = np.clip(np.rint(X / 2 + RNG.normal(20, 5, 40)), 0, 100).astype(int)
ARM = np.array(["control", "treated"] * 20)
SHIFTED = np.clip(Y + 8 * (ARM == "treated"), 0, 100)
TABLE = {"x": X, "y": Y, "arm": ARM, "shifted": SHIFTED}
SITES = [
    {name: each[part] for name, each in TABLE.items()} for part in (slice(0, 16), slice(16, 40))
]
BOUNDS = {"x": (0, 100), "y": (0, 100), "shifted": (0, 100)}
ASKED = {
    "hodges_lehmann": {"columns": ["x"]},
    "hodges_lehmann_shift": {"columns": ["shifted"], "label": ("arm", "treated")},
    "theil_sen": {"columns": ["x", "y"], "parameters": {"thresholds": "0 0.2 0.4 0.5 0.6 0.8 1"}},
}
WAYS = {"pairs": {"backend": "shared", "edges": "all"}, "grid": {"backend": "grid"}}


def values_of(name: str) -> np.ndarray:
    """The values of all pairs, by numpy alone."""
    if name == "hodges_lehmann":
        return np.array([(one + other) / 2 for one, other in combinations(X, 2)])
    if name == "hodges_lehmann_shift":
        return np.subtract.outer(SHIFTED[ARM == "treated"], SHIFTED[ARM == "control"]).ravel()
    pairs = combinations(range(40), 2)
    return np.array([(Y[j] - Y[i]) / (X[j] - X[i]) for i, j in pairs if X[i] != X[j]])


def asked(name: str, **changes) -> umpc.Result:
    settings = {**ASKED[name], "epsilon": 5, **WAYS["pairs"], **changes}
    bounds = {each: BOUNDS[each] for each in settings["columns"]}
    return umpc.estimate(name, SITES, bounds=bounds, **settings)


def exact(name: str, **changes) -> umpc.Result:
    with lying("everybody", draw=lambda *_: 0):
        return asked(name, **{"noise": "distributed", "epsilon": 10**6, **changes})


CASES = [(name, way) for name in ASKED for way in WAYS if (name, way) != ("theil_sen", "grid")]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_without_noise_cells_are_the_histogram_and_hold_the_median(name, way):
    result, values = exact(name, **WAYS[way]), values_of(name)
    quantile = result.pair_quantile(0.5)
    assert quantile.low <= np.median(values) <= quantile.high
    assert quantile.low <= result.estimate <= quantile.high
    pairs = 400 if name == "hodges_lehmann_shift" else 780
    below = np.cumsum([0, *(entry.mean for entry in result.report.sums)])
    for end in (quantile.low, quantile.high):
        assert np.abs(below - (values < end).sum() / pairs).min() == pytest.approx(0, abs=1e-9)
    assert result.report.estimator == "pair_median" and result.report.delta == 0


def test_theil_and_sens_slope_is_scipys():
    fine = [f"{number / 100}" for number in range(0, 101, 2)]
    result = exact("theil_sen", parameters={"thresholds": fine})
    slope = stats.theilslopes(Y, X).slope
    assert result.estimate == pytest.approx(slope, abs=0.02)
    assert result.report.low <= slope <= result.report.high
    # the population's interval counts more errors than Sen's normal law
    low, high = result.interval(kind="population")
    assert low <= stats.theilslopes(Y, X).low_slope + 0.02
    assert high >= stats.theilslopes(Y, X).high_slope - 0.02


def test_one_release_has_all_quantiles():
    result, values = exact("hodges_lehmann"), values_of("hodges_lehmann")
    found = [result.pair_quantile(share) for share in (0.1, 0.25, 0.5, 0.75, 0.9)]
    for each in found:
        truth = np.quantile(values, each.share, method="inverted_cdf")
        assert each.low <= truth <= each.high and each.low <= each.value <= each.high
    assert [each.value for each in found] == sorted(each.value for each in found)
    with pytest.raises(StudyError, match="share between 0 and 1"):
        result.pair_quantile(1)


def test_noise_is_for_two_cells_whatever_their_number():
    few = asked("hodges_lehmann", parameters={"thresholds": "30 40 50"}).report
    many = asked("hodges_lehmann", parameters={"thresholds": [*range(20, 70)]}).report
    stds = {entry.noise_std for entry in (*few.sums, *many.sums)}
    assert len(many.sums) == 51 and max(stds) == pytest.approx(min(stds))
    # discrete Laplace of scale δ_max/(ε/2), δ_max = n − 1 of n(n − 1)/2 pairs
    assert max(stds) == pytest.approx(2**0.5 * 2 / 40 / 2.5, rel=0.05)


def test_noisy_intervals_hold_the_median():
    values, inside = np.median(values_of("hodges_lehmann")), 0
    for _ in range(12):
        low, high = asked("hodges_lehmann", epsilon=1, backend="grid").interval()
        inside += low <= values <= high
    assert inside >= 9


def test_document_and_page():
    result = asked("theil_sen", epsilon=20)
    values = result.to_dict()
    check_document(values)
    again = umpc.Result(Report.from_dict(values))
    assert again.pair_quantile(0.3) == result.pair_quantile(0.3)
    assert "theil_sen" in result.to_html()
    kinds = [each["kind"] for each in values["inference"]["intervals"]]
    assert kinds == ["noise", "records", "population", "hoeffding"]
    with pytest.raises(StudyError, match="intervals and no test"):
        result.test(null=0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"parameters": {"thresholds": "40 30"}}, "ascending numbers, each once"),
        ({"parameters": {"thresholds": "30 30"}}, "ascending numbers, each once"),
        ({"parameters": {"thresholds": []}}, "ascending numbers, each once"),
        ({"parameters": {"thresholds": "30 many"}}, "must be a number"),
        ({"parameters": {"thresholds": "50 200"}}, "inside the possible values"),
        ({"parameters": {"thresholds": "0 50"}}, "inside the possible values"),
        ({"split": ["1/2", "1/2"]}, "no split"),
        ({"noise": "skellam", "delta": "1e-9"}, "share epsilon under discrete Laplace"),
        ({"adversary": "lying_nodes", "noise": "distributed"}, "share epsilon under"),
        ({"protocol": "vector", "delta": "1e-6", "backend": "shared"}, "means as they are|share"),
    ],
)
def test_what_cannot_be_is_refused_in_words(changes, reason):
    with pytest.raises((StudyError, KernelError), match=reason):
        asked("hodges_lehmann", **changes)


def test_liars_are_allowed_where_tables_are_proved():
    found = asked("hodges_lehmann", adversary="lying_nodes", backend="grid", edges="all")
    assert found.report.adversary == "lying_nodes" and len(found.report.sums) == 32


def test_a_median_beyond_the_thresholds_is_withheld_in_words():
    found = asked("hodges_lehmann", parameters={"thresholds": "90 95"}, epsilon=100)
    assert found.estimate is None and "below the lowest threshold, 90" in found.report.note


def test_a_plan_of_a_median_beside_a_threshold_tells_the_mean_interval():
    """Without noise it is 10 wide: the share below 0 is just contradicted to be a half, which noise
    changes in every other run. Then it is 20 wide.
    """
    arms = np.repeat([0, 1], 25)
    table = {"x": np.concatenate([np.full(25, 10), np.repeat([5, 15], [11, 14])]), "arm": arms}
    settings = {"edges": "all", "preprocessing": "none", "parameters": {"thresholds": "-10 0 10"}}
    case = Case("made", "hodges_lehmann_shift", {"x": (0, 20), "arm": (0, 1)}, settings, "arm")
    planned, found = compare(case, table, 4.0, 150)
    assert planned > 6.5, "without noise it would be 5"
    assert found == pytest.approx(planned, rel=0.15)
