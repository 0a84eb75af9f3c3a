"""Coins without a dealer follow exactly from the members' numbers, and sums have the due law."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from tests.support.mpc_studies import ALPHA
from tests.support.tossing import Tossed
from umpc.crypto.ring import RINGS
from umpc.dp.calibration import DiscreteLaplace
from umpc.dp.committee import CommitteeBinomial, CommitteeLaplace
from umpc.mpc.masked.material import CoinToss
from umpc.mpc.transfers import message_shapes
from umpc.mpc.transfers.message_shapes import TossPlan, extension_bytes, levels_of
from umpc.study.messages import MAX_PAYLOAD
from umpc.testing import lying

LAW = CommitteeLaplace(Fraction(1), 1000)
LAPLACE = CoinToss(LAW.thresholds, LAW.weights, LAW.offset)


def one_each(thresholds) -> list[CoinToss]:
    """Every coin is a sum of its own."""
    return [CoinToss((int(c),), (1,)) for c in thresholds]


def tossed_with(label: str, members: int, numbers, thresholds, ring=RINGS[0]) -> list[int]:
    """The coins, where members draw these numbers: (members, n) of 64 bits."""
    tossed = Tossed(label, members, one_each(thresholds), ring)
    given = dict(zip(tossed.seeds, np.asarray(numbers, dtype=np.uint64), strict=True))
    with lying("node", drawn_numbers=lambda honest, seed, count: given[seed][:count]):
        return tossed.run().sums


@pytest.mark.parametrize(("members", "width"), [(2, 1), (2, 2), (2, 3), (3, 1), (3, 2)])
def test_every_coin_of_every_share_of_every_number(members, width):
    cases = np.array(
        list(product(range(1 << width), repeat=members + 1)), dtype=np.uint64
    ).T << np.uint64(64 - width)
    *numbers, thresholds = cases
    u = np.bitwise_xor.reduce(numbers)
    coins = tossed_with(f"every {members} {width}", members, numbers, thresholds)
    assert coins == (u < thresholds).astype(int).tolist()


@pytest.mark.parametrize("members", [2, 3])
@pytest.mark.parametrize("width", [4, 5, 6])
def test_every_number_against_every_threshold(members, width):
    u, thresholds = np.indices((1 << width, 1 << width), dtype=np.uint64).reshape(
        2, -1
    ) << np.uint64(64 - width)
    own = np.random.default_rng(width).integers(0, 2**64, (members - 1, len(u)), dtype=np.uint64)
    numbers = [*own, u ^ np.bitwise_xor.reduce(own)]
    coins = tossed_with(f"numbers {members} {width}", members, numbers, thresholds)
    assert coins == (u < thresholds).astype(int).tolist()


@pytest.mark.parametrize("ring", RINGS, ids=str)
def test_64_bits_around_the_threshold(ring):
    """The number is the threshold, one less, one more, or differs from it in one bit."""
    rng = np.random.default_rng(64)
    borders = np.array([1, 2**63, 2**64 - 2], dtype=np.uint64)
    thresholds = np.concatenate([rng.integers(1, 2**64 - 1, 3, dtype=np.uint64), borders])
    offsets = np.array([0, 1, 2**64 - 1], dtype=np.uint64)
    bits = np.uint64(1) << np.arange(64, dtype=np.uint64)
    u = np.concatenate(
        [np.add.outer(thresholds, offsets), np.bitwise_xor.outer(thresholds, bits)], axis=1
    )
    repeated = np.repeat(thresholds, u.shape[1])
    own = rng.integers(0, 2**64, repeated.shape, dtype=np.uint64)
    coins = tossed_with(f"around {ring.bits}", 2, [own, own ^ u.ravel()], repeated, ring)
    assert coins == (u.ravel() < repeated).astype(int).tolist()


@pytest.mark.parametrize("ring", RINGS, ids=str)
@pytest.mark.parametrize("members", [2, 3, 5])
def test_sums_are_those_of_the_coins_that_all_numbers_make(members, ring):
    other = CoinToss((2**63, 0, 5, 2**64 - 1), (3, 7, -2, 1 << 29))
    tossed = Tossed(f"sums {members} {ring.bits}", members, [LAPLACE, other, LAPLACE], ring).run()
    assert tossed.sums == tossed.expected and tossed.sums[0] != tossed.sums[2]
    assert all(0 <= share < 1 << ring.bits for shares in tossed.shares for share in shares)


def test_no_coin_at_all_of_one_sum():
    tossed = Tossed("none", 2, [CoinToss((), ()), LAPLACE, CoinToss((), ())]).run()
    assert tossed.sums == tossed.expected and tossed.sums[::2] == [0, 0]


def test_batches_do_not_show(limit):
    whole = Tossed("batches", 3, [LAPLACE, LAPLACE]).run()
    limit(message_shapes, MAX_PAYLOAD=8 * 89 * 13)
    parts = Tossed("batches", 3, [LAPLACE, LAPLACE])
    assert len(parts.plan.ranges) > 5 and parts.run().sums == whole.sums == whole.expected


def test_fair_coins_are_top_bits_and_take_no_and():
    law = CommitteeBinomial(Fraction(1), Fraction(1, 100), 4)
    tossed = Tossed("fair", 3, [CoinToss(law.thresholds, law.weights, law.offset)]).run()
    assert (tossed.plan.width, tossed.plan.ands, tossed.plan.rounds) == (1, 0, 7)
    assert tossed.sums == tossed.expected
    assert not any("compared" in tossed.parts(line) for line in tossed.told)


# Shape and cost


@pytest.mark.parametrize("members", [2, 3, 5])
@pytest.mark.parametrize(
    "thresholds", [(2**63,) * 9, (2**62 + 2**61,) * 3, LAW.thresholds], ids=["1", "3", "64"]
)
def test_what_is_sent_has_the_shape_that_everybody_knows(members, thresholds):
    tossed = Tossed(f"shape {members} {len(thresholds)}", members, one_each(thresholds)).run()
    for sender, receiver in permutations(range(members), 2):
        lines = [line for line in tossed.told if (line.sender, line.receiver) == (sender, receiver)]
        due = [
            (n, shape)
            for n, shape in enumerate(tossed.plan.shapes(sender, receiver), 1)
            if shape.width
        ]
        assert [(line.round, *facts(line.message)) for line in lines] == [
            (n, *facts(shape)) for n, shape in due
        ]
    assert tossed.plan.rounds == max(line.round for line in tossed.told)


def facts(message) -> tuple:
    return message.step, message.round, message.count, message.width, len(message.payload)


def test_ands_levels_and_rounds_are_as_the_docstring_says():
    assert (levels_of(64), sum(levels_of(64)), levels_of(1)) == ((32, 31, 15, 7, 3, 1), 89, ())
    assert [len(levels_of(width)) for width in (2, 3, 4, 5, 8, 9)] == [1, 2, 2, 3, 3, 4]
    for members in (2, 3, 5, 6, 16):
        rounds = TossPlan(members, RINGS[0], (LAPLACE,)).rounds
        assert rounds == max(2 + 6, members + 3) + 1


@pytest.mark.parametrize(
    "toss", [CoinToss(LAW.thresholds * 400, ()), CoinToss((2**63,) * 300_000, ())], ids=["64", "1"]
)
def test_no_message_is_larger_than_a_frame(toss):
    plan = TossPlan(2, RINGS[1], (toss,))
    sizes = [len(shape.payload) for pair in ((0, 1), (1, 0)) for shape in plan.shapes(*pair)]
    assert len(plan.ranges) > 1 and MAX_PAYLOAD * 0.9 < max(sizes) <= MAX_PAYLOAD
    assert sum(part.stop - part.start for part in plan.ranges) == toss.count


def test_bytes_of_a_coin():
    """A = 89: 2·A + 8 transfers; 2·A + 8·8 bytes of correction; 2·A + 1 bits and 7 numbers opened.

    Beside these both members tell two commitments, a challenge and a nonce.
    """
    plan, count = TossPlan(2, RINGS[1], (CoinToss((1,) * 64, (1,) * 64),)), 64
    there, back = (
        sum(len(shape.payload) for shape in plan.shapes(*pair)) for pair in ((0, 1), (1, 0))
    )
    opened = (2 * 89 + 1) * count // 8 + 7 * 8 * count + 4 * 32
    assert there == (2 * 89 + 8 * 8) * count + opened
    assert back == extension_bytes(2 * 89 * count) + extension_bytes(8 * count) + opened


# The law

SHORT = CommitteeLaplace(Fraction(1), 2, bits=16)
"""Coins of 16 bits: further off the exact law, by 2^-12, and a fifth of the ANDs."""
DRAWS = 4000


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    """DRAWS values of the whole noise, scale 2, drawn by three members."""
    thresholds = tuple(c << 48 for c in SHORT.thresholds)
    tossed = Tossed("law", 3, [CoinToss(thresholds, SHORT.weights)] * DRAWS).run()
    assert tossed.plan.width == 16
    return np.array(tossed.sums)


def chi_square(noise: np.ndarray, log_ratio: Fraction) -> float:
    """The p-value under discrete Laplace; values beyond 8 are taken together."""
    law = DiscreteLaplace(log_ratio)
    expected = np.array([law.pmf(value) for value in range(-8, 9)])
    counts = np.array([(noise == value).sum() for value in range(-8, 9)])
    observed, due = (
        np.append(counts, len(noise) - counts.sum()),
        np.append(expected, 1 - expected.sum()),
    )
    assert due.min() * len(noise) > 3
    return float(stats.chisquare(observed, due * len(noise)).pvalue)


def test_the_noise_has_the_law_of_a_dealers_committee(noise):
    assert chi_square(noise, Fraction(1, 2)) > ALPHA


@pytest.mark.parametrize("scale", [Fraction(7, 10), Fraction(13, 10)])
def test_another_scale_would_be_noticed(noise, scale):
    assert chi_square(noise, Fraction(1, 2) / scale) < ALPHA


@pytest.mark.parametrize("honest", [0, 1, 2])
def test_one_honest_member_makes_the_coins_fair(honest):
    count = 4000
    own = np.random.default_rng(honest).integers(0, 2**64, count, dtype=np.uint64)
    numbers = [own if member == honest else np.zeros_like(own) for member in range(3)]
    coins = tossed_with(f"honest {honest}", 3, numbers, np.full(count, 3 << 61, dtype=np.uint64))
    assert stats.binomtest(sum(coins), count, 3 / 8).pvalue > ALPHA
    assert stats.binomtest(sum(coins), count, 1 / 2).pvalue < ALPHA


def test_a_seat_shows_nothing_of_itself():
    assert all("redacted" in repr(seat) for seat in Tossed("seat", 2, [LAPLACE]).seats)
