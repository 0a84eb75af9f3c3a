"""Split and mix, and noisy sums over it: exact sums, noise, moments, guarantee, bad messages."""

from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from flint import arb
from scipy import stats

from tests.support.moments import (
    ALPHA,
    SCHEMA,
    SUM,
    Scripted,
    accept_moments,
    kendall_cells,
    make_cells,
    part,
    records,
)
from tests.support.statistical import SeededBits
from umpc.errors import EncodingError, RangeError, StudyError, TooFewRecords
from umpc_papers.exact_sampling import ShakeStream
from umpc_papers.ghazi_shuffle.mechanism import GhaziShuffle
from umpc_papers.ghazi_shuffle.mixing import delta_of_mixing
from umpc_papers.ghazi_shuffle.split_mix import add_up, mix, shares_needed, split
from umpc_papers.local.quantisation import Bins

DATA = records(60)
SMALL = make_cells("abs(a.x - b.x)", Bins.equal(SCHEMA["x"], 3))


def run(
    protocol: GhaziShuffle, columns: dict[str, np.ndarray], bits: SeededBits, *cuts: int
) -> float:
    """The estimate of several nodes, whose records begin at 0 and at each cut."""
    ends = [0, *cuts, len(columns["x"])]
    parts = [part(columns, *ends[number : number + 2]) for number in range(len(cuts) + 1)]
    messages = [protocol.randomise(mine, bits) for mine in parts]
    return protocol.aggregate(protocol.shuffle(messages, np.diff(ends).tolist(), bits)).value


def test_shares_add_up_and_all_but_one_are_uniform():
    values = np.array([[5, 2**13 - 1, 0], [7, 1, 2]], dtype=np.uint64)
    heap = split(values, 4, 13, ShakeStream(bytes(32), "split"))
    assert heap.shape == (2, 12) and np.all(heap < 2**13)
    assert np.array_equal(heap.reshape(2, 3, 4).sum(axis=2) % 2**13, values)
    assert add_up(mix(heap, ShakeStream(bytes(32), "mix")), 13).tolist() == [4, 10]
    shares = split(
        np.zeros((1, 4000), dtype=np.uint64), 4, 4, ShakeStream(bytes(32), "uniform")
    ).reshape(-1, 4)
    for column in shares.T:
        assert stats.chisquare(np.bincount(column.astype(int), minlength=16)).pvalue > ALPHA


def test_sums_are_signed_at_every_width():
    for width in (2, 13, 64):
        heap = np.array([[2**width - 1], [1]], dtype=np.uint64)
        assert add_up(heap, width).tolist() == [-1, 1]


def test_mixing_is_a_permutation_of_each_row_of_its_own():
    heap = np.tile(np.arange(200, dtype=np.uint64), (2, 1))
    first, second = mix(heap, ShakeStream(bytes(32), "mix"))
    assert sorted(first) == sorted(second) == list(range(200)) and not np.array_equal(first, second)
    streams = [ShakeStream(seed.to_bytes(32, "little"), "places") for seed in range(2000)]
    places = [
        int(np.argmin(mix(np.arange(5, dtype=np.uint64)[None], stream)[0])) for stream in streams
    ]
    assert stats.chisquare(np.bincount(places, minlength=5)).pvalue > ALPHA


def test_a_row_whose_words_tie_gets_new_ones():
    """Without new words, records with equal words would keep their order."""
    words = Scripted(5, 1, 5, 2, 9, 0, 7, 7, 3, 8, 4, 6)
    mixed = mix(np.array([[10, 11, 12], [20, 21, 22]], dtype=np.uint64), words)
    assert mixed.tolist() == [[12, 10, 11], [21, 22, 20]]


def test_the_number_of_shares_is_the_papers():
    """10^4 numbers of 32 bits at 2^-40 need 12 messages.

    More records need fewer messages. Below 19 records there is no theorem.
    """
    assert shares_needed(10**4, 32, 40) == 12
    assert shares_needed(10**6, 32, 40) < 12 < shares_needed(100, 32, 40)
    assert shares_needed(10**12, 2, 1) == 4
    with pytest.raises(TooFewRecords):
        shares_needed(18, 32, 40)


def test_factors_of_a_kernel_with_a_constant_diagonal_need_no_coordinate_for_it():
    protocol = GhaziShuffle(Fraction(4000), SMALL, 60, 40, kappa=8, vectors="factors")
    assert protocol.dimension == 3
    assert run(protocol, DATA, SeededBits("constant diagonal")) == pytest.approx(
        SMALL.quantised(DATA), abs=0.05
    )


@pytest.mark.parametrize(
    "name, cells, vectors, honest, cuts",
    [
        ("histogram", SMALL, "histogram", 40, (20,)),
        ("own coordinate", make_cells(SUM, Bins.equal(SCHEMA["x"], 2)), "factors", 60, ()),
        ("linear term", make_cells(SUM, Bins.equal(SCHEMA["x"], 2)), "histogram", 40, ()),
    ],
)
def test_the_estimate_has_the_stated_mean_and_variance(name, cells, vectors, honest, cuts):
    protocol = GhaziShuffle(Fraction(2), cells, 60, honest, kappa=8, vectors=vectors)
    mean, variance = cells.quantised(DATA), protocol.predicted_mse(DATA)
    accept_moments(
        lambda bits: run(protocol, DATA, bits, *cuts), mean, variance, f"shuffling {name}"
    )


def test_the_noise_of_honest_records_alone_is_discrete_laplace():
    """40 of 60 records, in two nodes: the sum of their noise has the law that epsilon needs."""
    protocol, bits = GhaziShuffle(Fraction(1), SMALL, 60, 40, kappa=8), SeededBits("noise")
    drawn = np.concatenate(
        [protocol.draw_noise(25, bits) + protocol.draw_noise(15, bits) for _ in range(500)]
    )
    edges = np.array([-6, -4, -2, -1, 0, 1, 3, 5])
    for scale in (1.0, 0.7, 1.3):
        cdf = np.concatenate([[0], stats.dlaplace(0.5 / scale).cdf(edges), [1]])
        seen = np.bincount(np.searchsorted(edges, drawn), minlength=9)
        p = stats.chisquare(seen, np.diff(cdf) * len(drawn)).pvalue
        assert (p > ALPHA) == (scale == 1.0), (
            f"scale {scale}: p = {p:.2e}, N = {len(drawn)}, alpha {ALPHA}, {bits!r}"
        )


def test_replacing_a_record_is_within_epsilon_and_some_replacement_is_at_it():
    """The odds of each noisy sum change by at most exp(log_ratio · difference).

    The largest difference is L.
    """
    for vectors in ("histogram", "factors"):
        protocol = GhaziShuffle(Fraction(1), kendall_cells(), 60, 40, vectors=vectors)
        table = protocol.embedding.vectors
        differences = [int(np.abs(one - two).sum()) for one in table for two in table]
        assert max(differences) * protocol.noise.log_ratio == 1


def test_delta_is_the_statistical_distance_rounded_up():
    delta = GhaziShuffle(Fraction(1), SMALL, 60, 40).delta
    assert (1 + exp(1)) / 2**40 <= float(delta) < (1 + exp(1)) / 2**40 * 1.001
    assert arb(delta.numerator) / delta.denominator >= (1 + arb(1).exp()) / 2**40
    more = GhaziShuffle(Fraction(1), kendall_cells(8, 8), 600, 500, kappa=40)
    assert more.shares >= shares_needed(500, more.width, 46), "64 coordinates cost six bits"


def test_sums_fit():
    protocol = GhaziShuffle(Fraction(1), SMALL, 60, 40)
    assert 1 << (protocol.width - 1) > 60 + protocol.noise.tail_bound(64)
    with pytest.raises(RangeError, match="fewer records"):
        GhaziShuffle(Fraction(1, 10**18), SMALL, 60, 40)


def test_parameters_and_messages_are_checked():
    for bad in ({"vectors": "sums"}, {"kappa": 0}, {"honest": 61}):
        with pytest.raises(StudyError):
            GhaziShuffle(
                **{"epsilon": Fraction(1), "cells": SMALL, "records": 60, "honest": 40, **bad}
            )
    protocol, bits = GhaziShuffle(Fraction(1), SMALL, 60, 40, kappa=8), SeededBits("malformed")
    message = protocol.randomise(DATA, bits)
    assert len(message) == protocol.message_bytes(60) == protocol.cost([60]).message_bytes // 2
    mixed = protocol.shuffle([message], [60], bits)
    for bad in (mixed[:-1], mixed + b"\0"):
        with pytest.raises(EncodingError):
            protocol.aggregate(bad)
        with pytest.raises(EncodingError):
            protocol.shuffle([bad], [60], bits)
    nothing = protocol.randomise(part(DATA, 0, 0), bits)
    assert nothing == b"" and np.isfinite(
        protocol.aggregate(protocol.shuffle([message, nothing], [60, 0], bits)).value
    )


@pytest.mark.parametrize("epsilon", [27, 39, 40, 10**18])
def test_the_delta_of_a_large_epsilon_is_cut_to_1_at_once(epsilon):
    exact = (1 + exp(min(epsilon, 100))) / 2**40
    assert float(delta_of_mixing(Fraction(epsilon))) == pytest.approx(min(1.0, exact))
