"""Randomised response on cells: exact odds, mean, stated variance, and the paper's bounds."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest

from tests.support.moments import (
    SCHEMA,
    Scripted,
    accept_moments,
    gini_points,
    kendall_cells,
    make_cells,
    part,
    records,
)
from tests.support.paper_bounds import (
    theorem_1,
    theorem_1_small_epsilon,
    theorem_2_lipschitz,
    theorem_2_smooth,
)
from tests.support.statistical import SeededBits
from umpc.errors import EncodingError, InvalidEpsilon
from umpc.ustat.kernel import Kernel
from umpc_papers.exact_sampling import respond
from umpc_papers.local.bell_ldp import BellLdp, response_variance
from umpc_papers.local.quantisation import Bins, Quantiser

DATA = records(60)


def run(
    protocol: BellLdp, columns: dict[str, np.ndarray], bits: SeededBits, cut: int = 20
) -> float:
    """The estimate of two nodes: one has `cut` records, the other one has the rest."""
    n = len(columns["x"])
    parts = part(columns, 0, cut), part(columns, cut, n)
    return protocol.aggregate(
        [protocol.randomise(mine, bits) for mine in parts], [cut, n - cut]
    ).value


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_every_pair_of_records_is_within_epsilon_and_some_is_near_it(epsilon):
    """All odds, from the code that sends: rows are true cells, columns are sent cells."""
    protocol = BellLdp(epsilon, kendall_cells())
    t, threshold = protocol.cells.size, protocol.threshold
    odds = [[Fraction(0)] * t for _ in range(t)]
    for truth, fair, coin in product(range(t), range(t), (threshold - 1, threshold)):
        told = int(respond(np.array([truth]), t, threshold, Scripted(coin, t + fair))[0])
        odds[truth][told] += Fraction(
            threshold if coin < threshold else (1 << 64) - threshold, t << 64
        )
    assert all(sum(row) == 1 for row in odds)
    largest = max(odds[x][y] / odds[z][y] for x in range(t) for y in range(t) for z in range(t))
    assert exp(epsilon) * (1 - 1e-12) < largest < exp(epsilon) * (1 + 1e-15)


@pytest.mark.parametrize(
    "name, cells", [("kendall", kendall_cells()), ("gini, randomised rounding", gini_points())]
)
def test_the_estimate_has_the_stated_mean_and_variance(name, cells):
    protocol = BellLdp(Fraction(2), cells)
    accept_moments(
        lambda bits: run(protocol, DATA, bits),
        cells.quantised(DATA),
        protocol.predicted_mse(DATA),
        f"bell {name}",
    )


def test_a_node_may_have_one_record_or_none():
    protocol = BellLdp(Fraction(2), kendall_cells())
    for cut in (0, 1, 60):
        assert np.isfinite(run(protocol, DATA, SeededBits("cut"), cut))


def test_a_constant_kernel_is_estimated_exactly():
    """Pairs of a record with itself would give (n+1)/(n-1), as in the authors' public code."""
    protocol = BellLdp(Fraction(1), make_cells("1 + 0*(a.x + b.x)", Bins.equal(SCHEMA["x"], 4)))
    assert run(protocol, DATA, SeededBits("constant")) == pytest.approx(1, rel=1e-9)


def test_with_a_huge_epsilon_it_is_the_statistic():
    protocol = BellLdp(Fraction(60), kendall_cells())
    assert run(protocol, DATA, SeededBits("huge")) == pytest.approx(
        protocol.cells.quantised(DATA), abs=1e-9
    )
    assert protocol.predicted_mse(DATA) == pytest.approx(0, abs=1e-12)
    assert protocol.predicted_mse(
        DATA, exact=protocol.cells.quantised(DATA) - 0.1
    ) == pytest.approx(0.01)


def test_the_coordinator_estimates_its_own_error():
    protocol, columns = BellLdp(Fraction(2), kendall_cells()), records(5000)
    estimate = protocol.aggregate([protocol.randomise(columns, SeededBits("std"))], [5000])
    assert (
        estimate.std == pytest.approx(protocol.predicted_mse(columns) ** 0.5, rel=0.1)
        and estimate.records == 5000
    )


def test_the_variance_is_that_of_all_outcomes():
    """Three records and cells: all sent combinations with their odds, against the closed form."""
    cells, columns = make_cells("abs(a.x - b.x)", Bins.equal(SCHEMA["x"], 3)), part(DATA, 0, 3)
    protocol = BellLdp(Fraction(1), cells)
    rows, weights = cells.laws(columns)
    truth = [cell for cell, weight in enumerate(weights) for _ in range(weight)]
    first = second = 0.0
    for told in np.ndindex(3, 3, 3):
        odds = np.prod(
            [
                protocol.truth * (a == b) + (1 - protocol.truth) / 3
                for a, b in zip(told, truth, strict=True)
            ]
        )
        value = protocol.value(np.bincount(told, minlength=3).astype(float), 3)
        first, second = first + odds * value, second + odds * value**2
    assert first == pytest.approx(cells.quantised(columns))
    assert second - first**2 == pytest.approx(
        response_variance(cells.matrix, rows, weights, protocol.truth)
    )


def test_the_answers_say_how_far_the_bins_can_be_off():
    """Remark 4: Δ is a U-statistic of the cells, so its estimate takes no further ε."""
    kernel = Kernel.from_text("abs(a.x - b.x)", SCHEMA)
    for chosen in ("midpoint", "average"):
        cells = Quantiser(kernel, (Bins.equal(SCHEMA["x"], 4),), chosen)
        protocol, columns = BellLdp(Fraction(60), cells), records(200)
        message = protocol.randomise(columns, SeededBits("remark 4"))
        most = protocol.error_of_bins([message], [200])
        assert 3 < most <= 7 * (1 + (chosen == "average"))
        pairs = np.abs(np.subtract.outer(columns["x"], columns["x"]))
        exact = float(pairs.sum() / (200 * 199))
        assert abs(cells.quantised(columns) - exact) < most
        noisy = BellLdp(Fraction(3), cells)
        drawn = [
            noisy.error_of_bins([noisy.randomise(columns, SeededBits(f"4 {k}"))], [200])
            for k in range(20)
        ]
        assert np.mean(np.square(drawn)) == pytest.approx(most**2, rel=0.3)


@pytest.mark.parametrize(
    "message, broken",
    [
        (bytes(2), "got 2"),
        (bytes(4), "got 4"),
        (b"\xff\x01\x00", "not below 6"),
        (b"\x00\x00\xf0", "padding"),
    ],
)
def test_a_malformed_message_is_refused(message, broken):
    """Seven records of three bits take 21 of 24 bits; the cells are 0 to 5."""
    with pytest.raises(EncodingError, match=broken):
        BellLdp(Fraction(1), kendall_cells()).aggregate([message], [7])


def test_an_epsilon_that_is_no_fraction_is_refused():
    with pytest.raises(InvalidEpsilon):
        BellLdp(0.5, kendall_cells())


def test_costs_are_measured_ones():
    protocol = BellLdp(Fraction(1), kendall_cells())
    assert len(protocol.randomise(DATA, SeededBits("cost"))) == protocol.message_bytes(60) == 23
    assert protocol.cost([60, 20]).message_bytes == 23 + 8 and protocol.cost([60]).rounds == 1


def test_theorem_1_holds_and_its_form_for_small_epsilon_is_near_it():
    """The width is that of the kernel's range, which is 2 for Kendall's.

    The variance over responses alone is below the bound.
    """
    for epsilon in (Fraction(1, 2), Fraction(2)):
        protocol = BellLdp(epsilon, kendall_cells(4, 4))
        assert protocol.predicted_mse(records(500)) < theorem_1(500, protocol.truth, width=2)
    protocol = BellLdp(Fraction(1, 100), kendall_cells(8, 8))
    small = theorem_1_small_epsilon(4521, 64, 0.01)
    assert theorem_1(4521, protocol.truth) == pytest.approx(small, rel=0.05)
    gain = 1 + 64 / 0.01
    assert theorem_1(4521, protocol.truth) > 3 * (gain**2 / 4521 + gain**4 / (2 * 4521**2)), (
        "the paper's is too small"
    )


def test_theorem_2_has_the_terms_that_its_proofs_give():
    """f = (x + y)/2 in k bins, with all records at 1.

    The error 1/(2k) is L/k, more than the paper's L/(k √2).
    """
    k, lipschitz = 5, 0.5
    squared = (1.0 - (2 * k - 1) / (2 * k)) ** 2
    assert (
        lipschitz**2 / (2 * k * k)
        < squared
        <= theorem_2_lipschitz(10**9, 1.0, k, lipschitz) + 1e-12
    )
    d = 2.0 / k
    assert theorem_2_smooth(10**12, 1.0, k, 2.0) == pytest.approx(
        4 * d**2 + 8 * d**3 + 4 * d**4, rel=1e-9
    )


def test_the_variance_of_many_records_is_not_too_large_for_whole_numbers():
    """From 55,109 records on, n^4 does not fit 64 bits.

    The variance falls at least as 1/n, and here hardly faster.
    """
    protocol = BellLdp(Fraction(4), kendall_cells())
    rows, weights = protocol.cells.laws(DATA)
    few, many = (
        response_variance(protocol.cells.matrix, rows, weights * n, protocol.truth)
        for n in (900, 9000)
    )
    assert 9.5 < few / many < 10.5, "54,000 and 540,000 records"
