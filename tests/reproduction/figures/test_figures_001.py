"""reproduction.figures.paper001: drawn laws equal those of the protocols, and errors meet theory.

Laws are compared draw by draw, with α and N as below. They also reject an ε of ×0.7 and ×1.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import integrate, stats

from bench.harness import BANK
from reproduction.figures.draws import bits_of, seed_of
from reproduction.figures.figure import Point
from reproduction.figures.paper001 import FIGURES, auc, kendall, ratings
from reproduction.figures.paper001.auc_law import draw_auc, draw_tallies
from reproduction.figures.paper001.errors import folded_normal, normal_and_laplace
from reproduction.figures.paper001.generic_auc import GenericAuc, labelled, private_classes
from reproduction.figures.paper001.scores import GRID, Scores, load, score_field
from reproduction.figures.store import Store
from reproduction.figures.sweep import sweep
from umpc_papers.bell_2pc.pair_noise import Shift
from umpc_papers.exact_sampling import ShakeStream, respond, truth_threshold
from umpc_papers.local.bell_auc import BellAuc

ALPHA = 1e-5
"""Chance that one comparison of two equal laws fails, had its seed been chosen at random."""
N = 2000
"""Draws of each law."""
SIGMAS = 4.5
"""Standard errors that a mean may be off."""
WRONG = (Fraction(7, 10), Fraction(13, 10))
BY_NAME = {figure.name: figure for figure in FIGURES}
SMALL = Scores(
    "test", np.array([0, 1, 1, 2, 3, 3, 3, 6]) << 17, np.array([1, 2, 4, 4, 5, 7, 7]) << 17
)


def p_value(one: list[Hashable], other: list[Hashable]) -> float:
    """The p-value that both have one law: chi-square over outcomes.

    Outcomes that were seen fewer than 10 times count as one.
    """
    both = [Counter(one), Counter(other)]
    names = {name for name in both[0] | both[1] if both[0][name] + both[1][name] >= 10}
    table = [[own[name] for name in sorted(names)] for own in both]
    for row, own in zip(table, both, strict=True):
        row.append(own.total() - sum(row))
    seen = np.array(table)
    assert len(names) > 3, "the test has no power: there are few outcomes"
    return float(stats.chi2_contingency(seen[:, seen.sum(axis=0) > 0]).pvalue)


Law = Callable[[Fraction, np.random.Generator], tuple]


def accept(protocol: Callable[[int], tuple], law: Law, telling: slice | None = slice(None)) -> None:
    """Assert that a protocol follows its law, and not its law with ε times a wrong factor.

    protocol: the outcome of run i. law: a draw of the law with ε times a factor.
    telling: the part of an outcome that another ε moves; None where that is shown elsewhere.
    """
    runs, rng = [protocol(i) for i in range(N)], np.random.default_rng(7)

    def both(factor: Fraction) -> float:
        drawn = [law(factor, rng) for _ in range(N)]
        part = telling or slice(None)
        return min(
            p_value(runs, drawn),
            p_value([each[part] for each in runs], [each[part] for each in drawn]),
        )

    assert both(Fraction(1)) > ALPHA
    for factor in WRONG if telling else ():
        assert both(factor) < ALPHA, f"no power: ε × {factor} passes"


# --- laws ---


@pytest.mark.parametrize("leaves, telling", [((3, 3), slice(1, None, 4)), ((0, 1, 3), None)])
def test_tallies_have_the_law_of_whole_messages(leaves, telling):
    """All counts of two levels: each record's level, its index and its sign.

    Turned signs of two records of one value show in that value's counts; each level has one.
    """
    leaf = np.array(leaves)
    column = {"score": leaf << 18}

    def at(factor: Fraction) -> BellAuc:
        return BellAuc(factor * 2, score_field(), 2)

    def told(counts: list[np.ndarray]) -> Hashable:
        unit = 2 / at(Fraction(1)).truth
        return tuple(np.rint(np.concatenate(counts[1:]) / unit).astype(int))

    def protocol(run: int) -> Hashable:
        usual = at(Fraction(1))
        message = usual.randomise(column, bits_of(bytes(32), "tallies", run))
        return told(usual.counts_from(([message], [len(leaf)])))

    def law(factor: Fraction, rng: np.random.Generator) -> Hashable:
        return told(at(Fraction(1)).counts(draw_tallies(at(factor), leaf, rng), len(leaf)))

    accept(protocol, law, telling)


def test_an_odd_record_is_asked_about_any_level():
    protocol, rng = BellAuc(Fraction(1), score_field(), 3), np.random.default_rng(8)
    asked = [
        np.argmax([np.abs(own).sum() for own in draw_tallies(protocol, np.array([5]), rng)])
        for _ in range(600)
    ]
    assert stats.chisquare(np.bincount(asked, minlength=4)[1:]).pvalue > ALPHA


def test_an_estimate_of_drawn_tallies_has_the_predicted_error():
    """A protocol that follows every node in every run.

    One class has one value, the other has several.
    """
    protocol, rng = BellAuc(Fraction(6), score_field(), 2, constant=1.01), np.random.default_rng(9)
    negatives, positives = np.full(400, GRID // 2), rng.integers(0, GRID, 300)
    columns = {"score": negatives}, {"score": positives}
    exact = Scores("test", negatives >> 18 << 18, positives >> 18 << 18).exact
    drawn = np.array([draw_auc(protocol, negatives, positives, rng) for _ in range(400)]) - exact
    is_as_predicted(drawn**2, protocol.predicted_mse(*columns))


def is_as_predicted(values: np.ndarray, predicted: float) -> None:
    """The mean is; 1.5 times, or two thirds, would be noticed."""
    error = values.std(ddof=1) / len(values) ** 0.5
    for factor in (1, 1.5, 1 / 1.5):
        off = (values.mean() - factor * predicted) / error
        assert (abs(off) < SIGMAS) == (factor == 1), (
            f"{off:.1f} standard errors from {factor:.2f} times"
        )


def test_told_histograms_have_the_law_of_responses():
    counts = np.array([3.0, 0.0, 1.0])
    values = np.repeat(np.arange(3), counts.astype(int))

    def protocol(run: int) -> Hashable:
        stream = ShakeStream(seed_of(f"responses {run}"), "test")
        return tuple(
            np.bincount(respond(values, 3, truth_threshold(Fraction(2), 3), stream), minlength=3)
        )

    def law(factor: Fraction, rng: np.random.Generator) -> Hashable:
        return tuple(GenericAuc(2 * factor, 3).draw_told(counts, rng).astype(int))

    accept(protocol, law)


def test_told_pairs_have_the_law_of_the_circuit():
    """The circuit of `bell-2pc` computes `Shift.apply`; here on 2, 3 and 4 pairs of each value."""
    counts = np.array([2, 3, 4])

    def at(factor: Fraction):
        return kendall.pairings_law(18, str(2 * factor), 1)

    def protocol(run: int) -> Hashable:
        usual = at(Fraction(1))
        noise = Shift(46, -1, 3, usual.thresholds)
        words = np.random.default_rng(run).integers(0, 1 << 46, (1, 9), dtype=np.uint64)
        return tuple(
            np.bincount(noise.apply(np.repeat([-1, 0, 1], counts), words) + 1, minlength=3)
        )

    accept(protocol, lambda factor, rng: tuple(kendall.told_counts(at(factor), counts, rng)))


# --- the generic protocol on the AUC's pairs ---


def test_mean_and_variance_of_the_generic_auc_are_those_of_all_outcomes():
    """Three bins, two and three records: every told histogram, with the paper's estimator."""
    protocol, a = GenericAuc(Fraction(3, 2), 3), np.array([[0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5]])
    negatives, positives, g = (0, 2), (1, 1, 2), protocol.truth
    odds = g * np.eye(3) + (1 - g) / 3
    pair = (np.eye(3) - (1 - g) / 3) @ a @ (np.eye(3) - (1 - g) / 3).T / g**2
    first = second = 0.0
    for told in product(range(3), repeat=5):
        low, high = told[:2], told[2:]
        value = np.mean([pair[i, j] for i in high for j in low])
        histograms = (np.bincount(own, minlength=3).astype(float) for own in (low, high))
        assert protocol.estimate(*histograms) == pytest.approx(value)
        chance = np.prod(
            [odds[true, said] for true, said in zip(negatives + positives, told, strict=True)]
        )
        first, second = first + chance * value, second + chance * value**2
    counts = [np.bincount(own, minlength=3).astype(float) for own in (negatives, positives)]
    assert protocol.expected(*counts) == pytest.approx(first) == pytest.approx(3.5 / 6)
    assert protocol.variance(*counts) == pytest.approx(second - first**2)


def test_private_classes_are_the_mean_over_all_pairs_times_a_public_factor():
    """Equation 7 of the paper, ties half."""
    columns, factor = labelled(SMALL)
    protocol = private_classes(Fraction(1), 8)
    assert protocol.cells.size == 16
    assert protocol.cells.quantised(columns) * factor == pytest.approx(SMALL.exact)


def test_the_auc_of_scores_counts_ties_half():
    difference = np.subtract.outer(SMALL.positives, SMALL.negatives)
    assert SMALL.exact == pytest.approx(np.mean((difference > 0) + 0.5 * (difference == 0)))
    assert load("auc_one", 10).exact == load("ithdigit", 10).exact == 1
    minus, plus = load("ithdigit", 10).counts(13)
    assert np.array_equal(minus, plus), "one bin of 2^-13"
    assert not np.array_equal(*load("ithdigit", 10).counts(14))


# --- theory ---


@pytest.mark.parametrize("bias, sigma", [(0.0, 2.0), (0.3, 0.5), (-1.0, 0.2), (0.25, 0.0)])
def test_the_mean_of_a_folded_normal(bias, sigma):
    expected = stats.foldnorm(abs(bias) / sigma, scale=sigma).mean() if sigma else abs(bias)
    assert folded_normal(bias, sigma**2) == pytest.approx(expected)


@pytest.mark.parametrize(
    "sigma, scale", [(0.0, 1.5), (0.1, 1.0), (1.0, 1.0), (5.0, 1.0), (20.0, 1.0)]
)
def test_the_mean_of_normal_and_laplace(sigma, scale):
    def inner(z: float) -> float:
        x = abs(sigma * z)
        return 2 * stats.norm.pdf(z) * (x + scale * np.exp(-x / scale))

    assert normal_and_laplace(sigma, scale) == pytest.approx(
        integrate.quad(inner, 0, 12, limit=200)[0], rel=2e-4
    )


def test_moments_of_kendall_are_those_of_all_pairs():
    rng = np.random.default_rng(3)
    table = ratings.Ratings("test", {"x": rng.integers(0, 6, 12), "y": rng.integers(0, 6, 12)})
    cells = ratings.kendall_cells().matrix[np.ix_(table.cell, table.cell)]
    pairs = list(combinations(range(12), 2))
    values = np.array([cells[pair] for pair in pairs])
    sharing = [cells[e] * cells[f] for e in pairs for f in pairs if len({*e, *f}) == 3]
    found = kendall.moments(table.counts)
    assert (found.mean, found.square) == (
        pytest.approx(values.mean()),
        pytest.approx(np.mean(values**2)),
    )
    assert found.sharing == pytest.approx(np.mean(sharing))
    assert kendall.all_value_counts(table.counts).tolist() == [
        int((values == v).sum()) for v in kendall.VALUES
    ]
    assert (
        kendall.value_counts(table, np.array(pairs)).tolist()
        == kendall.all_value_counts(table.counts).tolist()
    )


def test_noise_of_all_pairs_is_at_most_the_composition_s_factor_from_one_pairing_s():
    """Small ε: the ratio of variances of all pairs and P = 1 is 2 ln(1/δ), whatever n is."""
    for records in (1000, 100_000):
        laws = kendall.all_pairs_law(records, "0.01"), kendall.pairings_law(records, "0.01", 1)
        ratio = laws[0].std / laws[0].pairs / (laws[1].std / laws[1].pairs)
        assert ratio == pytest.approx((2 * np.log(1e8)) ** 0.5, rel=0.01)


# --- points ---

RUNS = {"bell-ldp": 300, "2pc": 300, "2pc-all": 300, "umpc": 300, "umpc-all": 600}
"""Enough runs for the check's power on either table: 300 absolute normal errors, 600 of Laplace."""
TABLES = ["made up", "bank"] if BANK.exists() else ["made up"]


@pytest.mark.parametrize("data", TABLES)
@pytest.mark.parametrize("protocol", RUNS)
def test_errors_of_kendall_are_those_that_are_predicted(protocol, data):
    facts = {
        "data": data,
        "protocol": protocol,
        "pairings": 2,
        "epsilon": "2",
        "runs": RUNS[protocol],
    }
    point = Point("test", 2.0, 1, facts)
    found = kendall.measure(point, seed_of(f"kendall {protocol}"))
    is_as_predicted(found["absolute_error"], kendall.predict(point))
    assert found["predicted_rmse"][0] == pytest.approx(found["rmse"][0], rel=0.35)
    assert 0 < found["std"][0] < 2 * found["rmse"][0]


@pytest.mark.parametrize(
    "protocol, levels", [("bell-auc", 2), ("generic", 3), ("generic, private classes", 2)]
)
def test_errors_of_the_auc_are_those_that_are_predicted(protocol, levels):
    (point,) = auc.points(protocol, ("ur",), (levels,), ("4",), 200, 400)
    found = auc.measure(point, seed_of(protocol))
    is_as_predicted(found["absolute_error"], auc.predict(point))
    assert (found["negatives"], found["positives"]) == ([400], [400])


def test_bias_of_few_bins_is_part_of_the_error():
    bias, variance = auc.moments("bell-auc", "ithdigit", 10_000, 3, "8")
    assert bias == pytest.approx(-0.5) and 0 < variance < 0.1
    assert auc.moments("generic", "ithdigit", 10_000, 3, "8")[0] == pytest.approx(-0.5)


@pytest.mark.parametrize(
    "name", [name for name, figure in BY_NAME.items() if figure.data in ("", "bank")]
)
def test_a_quick_run_of_each_figure_says_whether_it_agrees(name, tmp_path):
    figure = BY_NAME[name]
    rows = sweep(figure, Store(tmp_path / "lines.jsonl", "test"), quick=True, jobs=1)
    said = figure.agreement(rows)
    assert said.verdict in ("agrees", "in part", "disagrees") and "3 runs" in said.reason
    assert all(row.means["std"] >= 0 and row.predicted > 0 for row in rows)
    assert ("in place of" in rows[0].series) == name.endswith("substitute")
    assert len({(row.series, row.x) for row in rows}) == len(rows)
    assert len(figure.points(False)) > len(rows) or "figure-4" in name
