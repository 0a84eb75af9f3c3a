"""The committee's coins have exactly the odds that they should have, and nobody knows them."""

from __future__ import annotations

import sys
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy import stats

from tests.support.mpc_studies import deal_chunk
from tests.support.one_chunk import dealt_part, encoded_part, seeded_part
from umpc.crypto.prg import FixedKeyHash, Stream
from umpc.crypto.ring import RINGS, unpack
from umpc.crypto.rounds import run_in_memory
from umpc.dp.calibration import DiscreteLaplace
from umpc.dp.committee import CommitteeLaplace
from umpc.mpc.masked.edge_layout import EdgeLayout
from umpc.mpc.masked.evaluation import PartyChunk, evaluate_edges, only
from umpc.mpc.masked.material import (
    ALL_MEMBERS,
    FAILURE_BITS,
    ChunkInputs,
    Coins,
    committee_size,
    noise_plan,
)

ALPHA = 1e-6
DRAWS = 100_000


class Toss:
    """Coins of these thresholds, tossed by some members whose own contributions may be given."""

    def __init__(
        self, label: str, members: int, thresholds: np.ndarray, contributions: list | None = None
    ):
        stream = Stream(label.encode().ljust(32, b"."))
        self.count, self.plan = len(thresholds), noise_plan(members, RINGS[1])
        seeds = [stream.bytes(32) for _ in range(members)]
        self.contributions = contributions or [stream.words(self.count) for _ in range(members)]
        self.seeded = [
            seeded_part(self.plan, seed, party, self.count) for party, seed in enumerate(seeds)
        ]
        tree_hash = FixedKeyHash(bytes(16))
        dealt = deal_chunk(self.plan, {}, seeds, self.count, tree_hash)
        weights = np.ones(self.count, dtype=np.uint64)
        parties = []
        for party, part in enumerate(dealt):
            coins = Coins(self.contributions[party], thresholds, weights)
            inputs = ChunkInputs({}, {}, {}, self.count, [str(p) for p in range(members)], coins)
            again = dealt_part(self.plan, encoded_part(part), party, self.count)
            chunk = PartyChunk(party, self.plan, inputs, again, self.seeded[party], tree_hash)
            rounds = evaluate_edges(chunk, [inputs.names], EdgeLayout([self.count]))
            parties.append(only(rounds))
        self.shares, self.sent = run_in_memory(parties)

    @property
    def coins(self) -> np.ndarray:
        return np.add.reduce(self.shares).view(np.int64)

    @property
    def public(self) -> np.ndarray:
        """û: what the members opened first."""
        words = [
            unpack(line.message.payload, self.count, 64) for line in self.sent if line.round == 1
        ]
        return np.add.reduce(words)

    @property
    def mask(self) -> np.ndarray:
        """r, which the dealer knows."""
        return np.add.reduce([part.place_masks[0] for part in self.seeded])


def thresholds_of(label: str, count: int) -> np.ndarray:
    """Uniform thresholds, and the borders."""
    values = Stream(label.encode().ljust(32, b"!")).words(count).copy()
    values[:6] = [0, 1, 2**64 - 1, 2**63, 2**60 - 1, 2**60]
    return values


@pytest.mark.parametrize("members", [2, 3, 5])
def test_a_coin_is_whether_the_number_that_nobody_knows_is_below_its_threshold(members):
    thresholds = thresholds_of("definition", 4001)
    toss = Toss("definition", members, thresholds)
    assert (toss.coins == ((toss.public ^ toss.mask) < thresholds)).all()
    assert 0.4 < toss.coins.mean() < 0.6


def test_pieces_that_are_equal_all_the_way_are_compared_to_the_end():
    """The coin's number is the threshold itself, one less, and one more, in every piece."""
    count = 3 * 64
    first = Toss("equal", 2, np.zeros(count, dtype=np.uint64))
    unknown = first.public ^ first.mask
    offsets = np.tile(np.array([0, 1, 2**64 - 1], dtype=np.uint64), 64)
    again = Toss("equal", 2, unknown + offsets)
    assert (again.coins == (unknown < unknown + offsets)).all()


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """p-value, cells that expect fewer than 10 taken together."""
    small = expected < 10
    observed = np.append(counts[~small], counts[small].sum())
    wanted = np.append(expected[~small], expected[small].sum())
    return float(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)


@pytest.fixture(scope="module")
def noise() -> np.ndarray:
    """DRAWS values of the whole noise, scale 2, drawn by two members."""
    law = CommitteeLaplace(Fraction(1), 2)
    total = np.zeros(DRAWS, dtype=np.int64)
    for number, (threshold, weight) in enumerate(zip(law.thresholds, law.weights, strict=True)):
        toss = Toss(f"whole noise, coin {number}", 2, np.full(DRAWS, threshold, dtype=np.uint64))
        total += toss.coins * weight
    return total


def fits(noise: np.ndarray, log_ratio: Fraction) -> tuple[float, float]:
    """p-values of chi-square and Kolmogorov–Smirnov tests against the discrete Laplace law."""
    law, values = DiscreteLaplace(log_ratio), np.arange(-60, 61)
    counts = np.array([(noise == value).sum() for value in values])
    expected = np.array([law.pmf(int(value)) for value in values]) * len(noise)
    distribution = np.array([law.cdf(int(value)) for value in values])
    gap = np.abs(np.cumsum(counts) / len(noise) - distribution).max()
    return chi_square(counts, expected), float(stats.kstwobign.sf(gap * np.sqrt(len(noise))))


def test_the_whole_noise_has_the_exact_law(noise):
    assert min(fits(noise, Fraction(1, 2))) > ALPHA


@pytest.mark.parametrize("scale", [Fraction(7, 10), Fraction(13, 10)])
def test_another_scale_would_be_noticed(noise, scale):
    assert max(fits(noise, Fraction(1, 2) / scale)) < ALPHA


@pytest.mark.parametrize("honest", [0, 1, 2])
def test_one_honest_member_makes_the_coins_fair(honest):
    """The others contribute zeros; all they see, own masks included, tells no coin."""
    count = 40_000
    thresholds = np.full(count, 2**62, dtype=np.uint64)
    own = Stream(b"honest".ljust(32, b"?")).words(count)
    contributions = [
        own if party == honest else np.zeros(count, dtype=np.uint64) for party in range(3)
    ]
    toss = Toss(f"honest {honest}", 3, thresholds, contributions)
    assert stats.binomtest(int(toss.coins.sum()), count, 0.25).pvalue > ALPHA
    for seen in (toss.public, toss.mask):
        for bit in (0, 61, 62, 63):
            table = np.array(
                [
                    np.bincount((seen >> np.uint64(bit))[toss.coins == c] & np.uint64(1))
                    for c in (0, 1)
                ]
            )
            assert stats.chi2_contingency(table).pvalue > ALPHA


def test_a_number_that_is_known_would_be_noticed():
    """Without the dealer's masks the coin is what everybody sees: the test above would fail."""
    count = 2000
    toss = Toss("known", 3, np.full(count, 2**62, dtype=np.uint64))
    coins = toss.public < 2**62
    table = np.array(
        [
            np.bincount((toss.public >> np.uint64(63))[coins == c].astype(int), minlength=2)
            for c in (0, 1)
        ]
    )
    assert stats.chi2_contingency(table).pvalue < ALPHA


def test_a_committee_has_an_honest_member_but_for_the_stated_chance():
    assert all(committee_size(nodes, nodes - 1) == nodes for nodes in (1, 5, ALL_MEMBERS, 17, 100))
    assert committee_size(ALL_MEMBERS, 3) == ALL_MEMBERS
    for nodes, colluding in ((64, 32), (100, 20), (1000, 500), (17, 0)):
        size = committee_size(nodes, colluding)
        assert comb(colluding, size) * 2**FAILURE_BITS <= comb(nodes, size)
        assert size == 1 or comb(colluding, size - 1) * 2**FAILURE_BITS > comb(nodes, size - 1)
        assert size < nodes


def test_the_size_of_a_large_committee_takes_few_looks():
    looks = []

    def note(frame, event, called):
        if event == "c_call" and called is comb:
            looks.append(called)

    committee_size.cache_clear()
    for _ in range(2):  # the second time it is known
        sys.setprofile(note)
        try:
            size = committee_size(4096, 4095)
        finally:
            sys.setprofile(None)
        assert size == 4096
        assert 0 < len(looks) <= 2 * 13  # a binary search looks at two numbers each time


def test_all_coins_take_four_rounds_and_the_same_bytes():
    low, high = (Toss("rounds", 3, np.full(64, c, dtype=np.uint64)) for c in (0, 2**64 - 1))
    shapes = [
        [(line.round, line.party, len(line.message.payload)) for line in toss.sent]
        for toss in (low, high)
    ]
    assert shapes[0] == shapes[1]
    assert {line.round for line in low.sent} == {1, 2, 3, 4}
