"""Kendall's tau of two columns of six values: one run of each protocol, and its error in theory.

A run draws the numbers that the protocol releases. Where their law is known exactly, the run draws
from the law.

- `bell-ldp`: 36 cells, all messages and the aggregation.
- `2pc`: P pairings of all records. Each pair's value goes through randomised response over {−1, 0,
  1} with ε/P (`PairResponse` in `umpc_papers.bell_2pc.pair_mechanisms`, the study's noise =
  "randomised_response"). For m_v pairs of one value the told values are multinomial;
  tests/reproduction/figures/test_figures_001.py compares that with the circuit.
- `2pc-all`: all pairs, each with the ε0 of which n − 1 compose to (ε, δ) (`epsilon_of_pair` in the
  same module).
- `umpc`, `umpc-all`: discrete Laplace noise on the sum over 2n pairs, or over all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from reproduction.baselines.coins import sample_discrete_laplace
from reproduction.figures.draws import bits_of, stream_of
from reproduction.figures.figure import Measured, Point
from reproduction.figures.paper001.auc import generator
from reproduction.figures.paper001.errors import folded_normal, normal_and_laplace, of_runs
from reproduction.figures.paper001.ratings import Ratings, kendall_cells, load
from reproduction.figures.paper003.theory import Moments
from umpc.ustat.sampling import balanced, matchings, max_degree
from umpc_papers.bell_2pc.pair_mechanisms import PairResponse, epsilon_of_pair
from umpc_papers.local.bell_ldp import BellLdp, response_variance

DELTA = Fraction(1, 10**8)
"""The paper's δ for the protocol on all pairs."""
VALUES = (-1, 0, 1)
WIDTH = 2
"""Δf, the kernel's range."""
Facts = Mapping[str, Any]


def measure(point: Point, seed: bytes) -> Measured:
    facts = point.facts
    ratings = load(facts["data"])
    run, exact = RUNS[facts["protocol"]], moments(ratings.counts).mean
    errors = [run(ratings, facts, seed, number) - exact for number in range(facts["runs"])]
    told = of_runs(
        errors,
        predicted_mse(facts["protocol"], ratings.counts, facts["epsilon"], facts["pairings"]),
    )
    return told | {"records": [ratings.records], "exact": [exact]}


def predict(point: Point) -> float:
    facts = point.facts
    return predicted_error(
        facts["protocol"], load(facts["data"]).counts, facts["epsilon"], facts["pairings"]
    )


# --- runs ---


@lru_cache(maxsize=8)
def bell_protocol(epsilon: str) -> BellLdp:
    return BellLdp(Fraction(epsilon), kendall_cells())


def bell_ldp(ratings: Ratings, facts: Facts, seed: bytes, number: int) -> float:
    protocol = bell_protocol(facts["epsilon"])
    return protocol.aggregate(
        [protocol.randomise(ratings.columns, bits_of(seed, number))], [ratings.records]
    ).value


def noisy_pairs(ratings: Ratings, facts: Facts, seed: bytes, number: int) -> float:
    edges = matchings(ratings.records, facts["pairings"], stream_of(seed, "edges", number).words)
    law = pairings_law(ratings.records, facts["epsilon"], facts["pairings"])
    return told_mean(law, value_counts(ratings, edges), generator(seed, number))


def noisy_pairs_all(ratings: Ratings, facts: Facts, seed: bytes, number: int) -> float:
    law = all_pairs_law(ratings.records, facts["epsilon"])
    return told_mean(law, all_value_counts(ratings.counts), generator(seed, number))


def umpc(ratings: Ratings, facts: Facts, seed: bytes, number: int) -> float:
    count = 2 * ratings.records
    edges = balanced(ratings.records, count, stream_of(seed, "edges", number).words)
    return _noisy_mean(
        ratings, count, value_counts(ratings, edges), facts, bits_of(seed, "noise", number)
    )


def umpc_all(ratings: Ratings, facts: Facts, seed: bytes, number: int) -> float:
    count = ratings.records * (ratings.records - 1) // 2
    return _noisy_mean(
        ratings, count, all_value_counts(ratings.counts), facts, bits_of(seed, "noise", number)
    )


def _noisy_mean(ratings: Ratings, count: int, counts: np.ndarray, facts: Facts, bits) -> float:
    ratio = Fraction(facts["epsilon"]) / (max_degree(count, ratings.records) * WIDTH)
    return (int(counts @ VALUES) + sample_discrete_laplace(ratio, bits)) / count


def value_counts(ratings: Ratings, edges: np.ndarray) -> np.ndarray:
    """(3,) int64: the numbers of these pairs with the values −1, 0 and 1."""
    values = (
        kendall_cells()
        .matrix[ratings.cell[edges[:, 0]], ratings.cell[edges[:, 1]]]
        .astype(np.int64)
    )
    return np.bincount(values + 1, minlength=3)


def all_value_counts(counts: np.ndarray) -> np.ndarray:
    """(3,) int64: `value_counts` of all pairs of records with these counts by cell."""
    matrix = kendall_cells().matrix
    ordered = np.outer(counts, counts) - np.diag(counts)
    return np.array([int(ordered[matrix == value].sum()) // 2 for value in VALUES])


def told_mean(law: PairResponse, counts: np.ndarray, rng: np.random.Generator) -> float:
    """An estimate from told values. counts: the number of pairs with each true value."""
    return float(law.unbiased(int(told_counts(law, counts, rng) @ VALUES))) / law.pairs


def told_counts(law: PairResponse, counts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(3,) int64: the number of pairs that tell each value."""
    wrong = float(law.wrong)
    odds = np.full((3, 3), wrong) + np.eye(3) * (1 - 3 * wrong)
    return sum(rng.multinomial(count, own) for count, own in zip(counts, odds, strict=True))


def pairings_law(records: int, epsilon: str, pairings: int) -> PairResponse:
    each = epsilon_of_pair(Fraction(epsilon), Fraction(0), pairings)
    return PairResponse(each, VALUES[0], WIDTH, pairings * (records // 2), pairings)


def all_pairs_law(records: int, epsilon: str) -> PairResponse:
    each = epsilon_of_pair(Fraction(epsilon), DELTA, records - 1)
    return PairResponse(each, VALUES[0], WIDTH, records * (records - 1) // 2, records - 1)


# --- theory ---


def moments(counts: np.ndarray) -> Moments:
    """The kernel's moments over pairs of records with these counts by cell."""
    a, n = kendall_cells().matrix, int(counts.sum())
    own, squares = a @ counts - a.diagonal(), a**2 @ counts - a.diagonal() ** 2
    mean, square = float(counts @ own) / (n * (n - 1)), float(counts @ squares) / (n * (n - 1))
    return Moments(n, mean, square, float(counts @ (own**2 - squares)) / (n * (n - 1) * (n - 2)))


def variances(
    protocol: str, counts: np.ndarray, epsilon: str, pairings: int
) -> tuple[float, float]:
    """The estimate's variances: of its nearly normal part, and of its Laplace noise."""
    exact, n = moments(counts), int(counts.sum())
    if protocol == "bell-ldp":
        told = bell_protocol(epsilon)
        return response_variance(told.cells.matrix, np.eye(len(counts)), counts, told.truth), 0.0
    if protocol == "2pc":
        sampling = exact.of_graph(n // 2, 0) / pairings
        return sampling + told_variance(pairings_law(n, epsilon, pairings), counts), 0.0
    if protocol == "2pc-all":
        return told_variance(all_pairs_law(n, epsilon), counts), 0.0
    count = 2 * n if protocol == "umpc" else n * (n - 1) // 2
    noise = 2 * (max_degree(count, n) * WIDTH / float(Fraction(epsilon)) / count) ** 2
    return (exact.of_balanced(count) if protocol == "umpc" else 0.0), noise


def told_variance(law: PairResponse, counts: np.ndarray) -> float:
    """The variance of the mean of told values, on average over the choice of pairs."""
    shares = all_value_counts(counts) / (int(counts.sum()) * (int(counts.sum()) - 1) / 2)
    contrast, wrong = float(law.contrast), float(law.wrong)
    spread = [contrast * value**2 + 2 * wrong - (contrast * value) ** 2 for value in VALUES]
    return float(shares @ spread) / contrast**2 / law.pairs


def predicted_mse(protocol: str, counts: np.ndarray, epsilon: str, pairings: int) -> float:
    return sum(variances(protocol, counts, epsilon, pairings))


def predicted_error(protocol: str, counts: np.ndarray, epsilon: str, pairings: int) -> float:
    """The mean absolute error."""
    normal, laplace = variances(protocol, counts, epsilon, pairings)
    if laplace:
        return normal_and_laplace(sqrt(normal), sqrt(laplace / 2))
    return folded_normal(0.0, normal)


RUNS = {
    "bell-ldp": bell_ldp,
    "2pc": noisy_pairs,
    "2pc-all": noisy_pairs_all,
    "umpc": umpc,
    "umpc-all": umpc_all,
}
