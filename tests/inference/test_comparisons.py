"""Differences of two scores on the same records: values, tests and intervals without noise, and how
often a true hypothesis is rejected with it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import umpc
from bench.type_one import NullCase, excess, rejected
from tests.inference.test_oracles import run
from umpc.errors import StudyError
from umpc.inference.hypotheses import HYPOTHESES
from umpc.inference.report_inference import MISSED, Inference

PLACES = np.arange(120)
LABEL = ((PLACES * 7) % 5 < 2).astype(int)
A = (PLACES * 37) % 101 + 30 * LABEL
B = (PLACES * 37) % 101 + 4 * ((PLACES * 53) % 17) + 10 * LABEL
WORDS = np.where(LABEL == 1, "sick", "well")
BOUNDS = {"a": (0, 200), "b": (0, 200), "label": (0, 1)}
DELONG = {"difference": 0.166377314815, "z": 5.39929686173}
"""R 4 and pROC 1.18:
i <- 0:119; label <- as.integer((i * 7) %% 5 < 2); a <- (i * 37) %% 101 + 30 * label
b <- (i * 37) %% 101 + 4 * ((i * 53) %% 17) + 10 * label
t <- roc.test(roc(label, a, direction = "<"), roc(label, b, direction = "<"), method = "delong")
t$estimate[1] - t$estimate[2]; t$statistic
"""
ALTERNATIVES = ("two-sided", "greater", "less")


def compared(statistic: str) -> umpc.Result:
    table = {"a": A, "b": B, "label": LABEL, "word": WORDS}
    if statistic == "auc_difference":
        return run(statistic, ["a", "b", "label"], table, bounds=BOUNDS)
    bounds = {"a": (0, 200), "b": (0, 200), "word": ["well", "sick"]}
    return run(statistic, ["a", "b"], table, bounds=bounds, label=("word", "sick"))


def delong_std() -> float:
    """DeLong, DeLong & Clarke-Pearson 1988: structural components of both scores."""
    parts = []
    for score in (A, B):
        wins = (np.sign(score[LABEL == 1][:, None] - score[LABEL == 0]) + 1) / 2
        parts.append((wins.mean(axis=1), wins.mean(axis=0)))
    ones, zeros = (one - other for one, other in zip(*parts, strict=True))
    return float(np.sqrt(np.var(ones, ddof=1) / len(ones) + np.var(zeros, ddof=1) / len(zeros)))


@pytest.mark.parametrize("statistic", ["auc_difference", "auc_difference_public"])
def test_the_difference_is_that_of_proc_and_the_test_is_more_careful_than_delongs(statistic):
    found = compared(statistic)
    assert found.estimate == pytest.approx(DELONG["difference"], abs=1e-11)
    std = delong_std()
    assert DELONG["difference"] / std == pytest.approx(DELONG["z"], rel=1e-9)
    population = found.errors()[-1]
    assert std < population.std < 5 * std and "how often the two differ" in population.about
    low, high = found.interval(kind="population")
    assert low < found.estimate - 1.96 * std and found.estimate + 1.96 * std < high
    assert 1e-7 < found.p_value() < 0.1, "DeLong's p-value is 6.7e-8"
    tests = {each: found.test(each) for each in ALTERNATIVES}
    assert tests["two-sided"].hypothesis == "both scores have the same AUC"
    assert tests["two-sided"].law == "normal law, by how often the two differ"
    assert tests["greater"].p_value < tests["two-sided"].p_value < 1 == tests["less"].p_value
    half = {each: found.p_value(each, null=0.15) for each in ALTERNATIVES}
    assert half["greater"] == pytest.approx(half["two-sided"] / 2, rel=0.05)


def test_a_value_is_rejected_exactly_where_the_interval_ends():
    found = compared("auc_difference_public")
    for level in (0.9, 0.99):
        low, high = found.interval(level, kind="population")
        for end, side in ((low, -1), (high, 1)):
            inside, outside = (found.p_value(null=end + side * step) for step in (-0.01, 0.01))
            assert outside < 1 - level < inside


def test_scores_that_agree_have_a_shorter_interval_than_the_largest_variance():
    """Equal scores never differ, and the upper end for that falls with the records."""
    table = {"a": A, "b": A, "word": WORDS}
    bounds = {"a": (0, 200), "b": (0, 200), "word": ["well", "sick"]}
    alike = run("auc_difference_public", ["a", "b"], table, bounds=bounds, label=("word", "sick"))
    low, high = alike.interval(kind="population")
    far = compared("auc_difference_public").interval(kind="population")
    assert low == pytest.approx(-high, rel=0.01) and high < 0.4 * (far.high - far.low) / 2 * 1.5
    assert alike.p_value() == 1


def test_tau_and_concordance_differences_are_those_of_both_statistics():
    rng = np.random.default_rng(9)
    z = rng.permutation(60)
    table = {"x": z + rng.integers(-20, 20, 60), "y": z + rng.integers(-9, 9, 60), "z": z}
    table |= {"event": rng.integers(0, 2, 60), "time": rng.integers(0, 20, 60)}
    bounds = {"x": (-40, 100), "y": (-40, 100), "z": (0, 60), "time": (0, 20), "event": (0, 1)}
    taus = [
        run("kendall_tau", [each, "z"], table, bounds={each: bounds[each], "z": bounds["z"]})
        for each in "xy"
    ]
    of = {name: bounds[name] for name in "xyz"}
    found = run("tau_difference", ["x", "y", "z"], table, bounds=of)
    assert found.estimate == pytest.approx(taus[0].estimate - taus[1].estimate)
    assert found.test().hypothesis == "both columns have the same tau with the third"
    own = {name: bounds[name] for name in ("time", "event")}
    indices = [
        run("concordance_index", [e, "time", "event"], table, bounds={e: bounds[e], **own})
        for e in "xy"
    ]
    of = {"x": bounds["x"], "y": bounds["y"], **own}
    both = run("concordance_difference", ["x", "y", "time", "event"], table, bounds=of)
    assert both.estimate == pytest.approx(indices[0].estimate - indices[1].estimate)
    for each, difference in ((found, of_taus), (both, of_concordances)):
        assert difference(table) == pytest.approx(each.estimate)
        drawn = (rng.integers(0, 60, 60) for _ in range(400))
        values = [difference({key: of[rows] for key, of in table.items()}) for rows in drawn]
        spread, bound = np.std(values), each.errors()[-1].std
        assert spread < bound < 6 * spread, "the bound is above the bootstrap's spread"


def of_taus(table) -> float:
    x, y, z = (np.sign(np.subtract.outer(table[name], table[name])) for name in "xyz")
    return ((x - y) * z).sum() / (60 * 59)


def of_concordances(table) -> float:
    """Each comparable pair once: the first record has its event while the other is at risk."""
    time, event = table["time"], table["event"].astype(bool)
    same = (time[:, None] == time) & ~event
    pairs = event[:, None] & ((time[:, None] < time) | same)
    x, y = (np.sign(np.subtract.outer(table[name], table[name])) / 2 for name in "xy")
    return (x - y)[pairs].mean()


def test_a_difference_inside_strata_has_a_value_and_tests_no_hypothesis_of_its_own():
    table = {"a": A, "b": B, "label": LABEL, "sex": np.where(PLACES % 2, "f", "m")}
    bounds = {**BOUNDS, "sex": ["f", "m"]}
    found = run("auc_difference", ["a", "b", "label"], table, bounds=bounds, strata="sex")
    for sex, part in found.parts.items():
        rows = table["sex"] == sex.rpartition("= ")[2].strip("'")
        ones, zeros = rows & (LABEL == 1), rows & (LABEL == 0)
        aucs = [((np.sign(s[ones][:, None] - s[zeros]) + 1) / 2).mean() for s in (A, B)]
        assert part.estimate == pytest.approx(aucs[0] - aucs[1])
        with pytest.raises(StudyError, match="no hypothesis whose law is known"):
            part.p_value()
        assert 0 < part.p_value(null=0) < 1


def test_the_end_for_how_often_two_scores_differ_is_above_it():
    """At no noise it is the end of a share of m independent pairs, above the one that came."""
    found = compared("auc_difference_public")
    ones, zeros = (A[LABEL == 1], B[LABEL == 1]), (A[LABEL == 0], B[LABEL == 0])
    differ = [np.sign(one[:, None] - zero) for one, zero in zip(ones, zeros, strict=True)]
    share = float(np.abs(differ[0] - differ[1]).mean() / 2)
    assert sum(each.mean for each in found.report.sums) == pytest.approx(share)
    ends = [Inference(found.report).bounded(level).largest for level in (0.5, 0.05, 0.001)]
    assert share < ends[0] < ends[1] < ends[2] <= 1
    m = min(LABEL.sum(), (1 - LABEL).sum())
    normal = {0.5: 1.6449, 0.05: 2.5758, 0.001: 3.7190}  # quantiles at MISSED times the level
    assert MISSED == 0.1
    for (level, z), end in zip(normal.items(), ends, strict=True):
        assert abs(end - share) == pytest.approx(z * np.sqrt(end * (1 - end) / m), rel=0.02), level


def test_the_hypotheses_of_differences_have_no_law_of_their_own():
    found = compared("auc_difference_public")
    with pytest.raises(StudyError, match="the law is not known if both scores have the same AUC"):
        Inference(found.report).null_law(HYPOTHESES["auc_difference_public"])
    other = Inference(replace(found.report, statistic="of_ones_own"))
    assert not other.bounded_by and other.test(null=0).p_value > found.p_value()


@pytest.mark.parametrize("opposed", [False, True], ids=["alike", "opposed"])
@pytest.mark.parametrize(
    ("statistic", "edges"),
    [
        ("auc_difference_public", "all"),
        ("tau_difference", "2n"),
        ("auc_difference", "2n"),
        ("concordance_difference", "2n"),
    ],
)
def test_a_true_hypothesis_is_rejected_in_at_most_alpha(statistic, edges, opposed):
    """The whole table is `python -m bench.type_one`."""
    runs = 200
    rng = np.random.default_rng([len(statistic), opposed])
    case = NullCase(statistic, "2", edges, many=60, opposed=opposed)
    totals, noise = case.totals(rng, runs), case.noise(rng, runs)
    (share,) = rejected(case, totals + noise, [0.1])
    assert excess(share, 0.1, runs) < 3.3, (statistic, share)
    totals[:, 0] += case.sizes.edges * 9 // 10 * 2
    (found,) = rejected(case, totals + noise, [0.1])
    assert found > 0.9, "power: a large difference is found"


def test_both_parts_of_a_pair_are_never_above_zero_together():
    """The bound of the variance rests on it."""
    for p, q in combinations(range(20), 2):
        one, other = (float(np.sign(s[p] - s[q]) + 1) / 2 for s in (A, B))
        u, v = max(0.0, one - other), max(0.0, other - one)
        assert min(u, v) == 0 and (u - v) ** 2 <= u + v and u - v == one - other
