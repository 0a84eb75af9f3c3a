"""Pair kernels from one-bit vectors, in one round and in two: moments, odds, bad messages."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from tests.support.moments import accept_moments, gini_points, kendall_cells, part, records
from tests.support.paper_bounds import projection_variance, sinh_ramon_bytes
from tests.support.statistical import SeededBits
from umpc.errors import EncodingError, TooFewRecords
from umpc_papers.ghazi_rounds.mechanism import GhaziRounds, expected_square_of_largest, groups
from umpc_papers.local.ghazi_ldp import GhaziLdp, bound
from umpc_papers.local.quantisation import Quantiser

DATA = records(60)


def run(protocol: GhaziLdp, columns: dict[str, np.ndarray], bits: SeededBits) -> float:
    n = len(columns["x"])
    parts = part(columns, 0, 20), part(columns, 20, n)
    return protocol.aggregate(
        [protocol.randomise(mine, bits) for mine in parts], [20, n - 20]
    ).value


def run_rounds(protocol: GhaziRounds, columns: dict[str, np.ndarray], bits: SeededBits) -> float:
    n = len(columns["x"])
    parts, counts = (part(columns, 0, 20), part(columns, 20, n)), [20, n - 20]
    firsts = [protocol.first(mine, bits) for mine in parts]
    question = protocol.question(firsts, counts)
    seconds = [
        protocol.second(mine, first, question, bits)
        for mine, first in zip(parts, firsts, strict=True)
    ]
    return protocol.aggregate(firsts, question, seconds, counts).value


@pytest.mark.parametrize(
    "name, cells, dimension",
    [
        ("kendall", kendall_cells(), None),
        ("gini points", gini_points(), None),
        ("projected", kendall_cells(3, 3), 5),
    ],
)
def test_the_estimate_has_the_stated_mean_and_variance(
    name: str, cells: Quantiser, dimension: int | None
):
    protocol = GhaziLdp(Fraction(2), cells, dimension)
    mean, variance = protocol.expected(DATA), protocol.predicted_mse(DATA)
    assert dimension or mean == pytest.approx(cells.quantised(DATA))
    accept_moments(lambda bits: run(protocol, DATA, bits), mean, variance, f"ghazi {name}")


def test_a_record_is_within_epsilon_and_near_it():
    """Given its public direction, a record sends one bit: all odds, for both sides."""
    for epsilon in (Fraction(1, 10), Fraction(3)):
        gain = Fraction(GhaziLdp(epsilon, kendall_cells()).threshold, 1 << 64)
        ratio = (1 + gain) / (1 - gain)
        assert exp(epsilon) * (1 - 1e-12) < ratio < exp(epsilon) * (1 + 1e-14)


def test_what_is_sent_depends_on_the_record_through_the_side_only():
    """With equal randomness, records whose vectors lie on the same side send equal bits."""
    protocol = GhaziLdp(Fraction(1), kendall_cells())
    first, second = ({"x": np.full(200, x), "y": np.full(200, y)} for x, y in ((0, -8), (3, -7)))
    assert protocol.cells.draw(first, None)[0] == protocol.cells.draw(second, None)[0]
    assert protocol.randomise(first, SeededBits("same")) == protocol.randomise(
        second, SeededBits("same")
    )


def test_the_coordinator_estimates_its_own_error():
    protocol, columns = GhaziLdp(Fraction(2), kendall_cells()), records(5000)
    estimate = protocol.aggregate([protocol.randomise(columns, SeededBits("std"))], [5000])
    assert estimate.std == pytest.approx(protocol.predicted_mse(columns) ** 0.5, rel=0.15)


def test_a_projection_adds_the_error_that_theory_says():
    """A projection of nine dimensions saves no byte, and it is no exact factorisation either."""
    cells, columns = kendall_cells(3, 3), records(3000)
    exact = GhaziLdp(Fraction(2), cells)
    mean = np.bincount(cells.draw(columns, None), minlength=9) / 3000
    errors = [
        GhaziLdp(Fraction(2), cells, 9, seed.to_bytes(32, "little")).expected(columns)
        - exact.expected(columns)
        for seed in range(150)
    ]
    assert np.var(errors) == pytest.approx(projection_variance(exact.factors, 9, mean), rel=0.5)
    assert (
        exact.message_bytes(3000) == GhaziLdp(Fraction(2), cells, 9).message_bytes(3000) == 32 + 375
    )


def test_a_malformed_message_is_refused():
    protocol = GhaziLdp(Fraction(1), kendall_cells())
    good = protocol.randomise(part(DATA, 0, 5), SeededBits("malformed"))
    assert len(good) == protocol.message_bytes(5) and np.isfinite(
        protocol.aggregate([good], [5]).value
    )
    for bad in (b"", good[:32], good + b"\0", good[:-1] + b"\xff"):
        with pytest.raises(EncodingError):
            protocol.aggregate([bad], [5])


def test_bounds_and_costs():
    protocol, columns = GhaziLdp(Fraction(1, 4), kendall_cells()), records(400)
    gamma, rank = protocol.factors.radius**2, 2
    assert protocol.predicted_mse(columns) < bound(400, 0.25, gamma, rank)
    assert protocol.cost([300, 100]).message_bytes == 64 + 38 + 13
    assert sinh_ramon_bytes(4521, 1.0, 64, 5) > 1e5 * protocol.message_bytes(4521)


# --- two rounds --------------------------------------------------------------------------------


def test_the_interactive_estimate_is_unbiased_with_about_the_stated_variance():
    """The variance is right to some percent.

    The largest number of the question is random, and its numbers depend on each other.
    """
    protocol, columns = GhaziRounds(GhaziLdp(Fraction(3), kendall_cells())), records(400)
    mean, variance = protocol.vectors.expected(columns), protocol.predicted_mse(columns)
    accept_moments(lambda bits: run_rounds(protocol, columns, bits), mean, variance, "rounds", 300)


def test_for_many_records_the_factorisation_no_longer_matters():
    """With 16 bins a field, the error of one round follows gamma_2(A), that of two does not."""
    rows, weights = np.eye(256), np.ones(256) * 1e7
    one = GhaziLdp(Fraction(1), kendall_cells(16, 16))
    assert GhaziRounds(one).variance(rows, weights) * 256e7 < 3 * 4 * 4 / one.truth**2


def test_groups_are_even_and_public():
    seen = np.bincount(groups(bytes(32), 30_000), minlength=3)
    assert seen.sum() == 30_000 and np.abs(seen - 10_000).max() < 5 * (30_000 * 2 / 9) ** 0.5


def test_the_largest_square_is_that_of_draws():
    means, deviations = np.array([1.0, -2.0, 0.3]), np.array([0.5, 0.2, 1.5])
    drawn = means + deviations * np.random.default_rng(0).normal(size=(200_000, 3))
    assert expected_square_of_largest(means, deviations) == pytest.approx(
        np.mean(np.abs(drawn).max(axis=1) ** 2), rel=0.01
    )
    assert expected_square_of_largest(means, np.zeros(3)) == pytest.approx(4, rel=0.01)


def test_malformed_messages_of_either_round_are_refused():
    protocol, bits = (
        GhaziRounds(GhaziLdp(Fraction(1), kendall_cells())),
        SeededBits("rounds malformed"),
    )
    first = protocol.first(DATA, bits)
    question = protocol.question([first], [60])
    second = protocol.second(DATA, first, question, bits)
    assert np.isfinite(protocol.aggregate([first], question, [second], [60]).value)
    assert len(first) + len(second) <= protocol.message_bytes(60)
    with pytest.raises(EncodingError):
        protocol.question([first[:-1]], [60])
    with pytest.raises(EncodingError):
        protocol.aggregate([first], question, [second + b"\0"], [60])
    for bad in (question[:-1], b"\xff" * len(question)):
        with pytest.raises(EncodingError):
            protocol.second(DATA, first, bad, bits)


def test_an_empty_group_is_refused():
    """A seed puts all three records into the third group, so nobody can compute a question."""
    protocol = GhaziRounds(GhaziLdp(Fraction(1), kendall_cells()))
    seeds = (seed.to_bytes(32, "little") for seed in range(10_000))
    with pytest.raises(TooFewRecords):
        protocol.question([next(seed for seed in seeds if np.all(groups(seed, 3) == 2))], [3])
