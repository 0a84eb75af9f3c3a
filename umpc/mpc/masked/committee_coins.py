"""Noise inside MPC: a committee flips coins that nobody knows, neither its members nor the dealer.

    coin = [û ⊕ r < c]

û = Σ of every member's random bits and masks, public to the committee; r = Σ of the masks.

û ⊕ r is uniform to the dealer, who knows r and not û. It is uniform to any members but all of them,
who know û and not r. So it is uniform as long as one member draws honestly and the dealer colludes
with no member. The dealer must also deal as it should: with rows of zeros no coin falls, and nobody
notices. `transfers/coins_from_transfers.py` needs no dealer. The threshold c is public. r is dealt
as one-hot rows of its pieces, shared among the members, so shares of [piece < piece of c] and
[piece = piece of c] are sums of rows at public places. Pieces are combined FAN at a time as in
`lookup_comparison.py`. The weighted sum of the coins stays shared: the noise is added to the
study's sum as it is, and nobody ever sees it.

Rounds, all coins at once: û; the pieces' bits; two of combining. Time and messages depend on the
number of coins only.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from umpc.crypto.ring import Ring
from umpc.mpc.arrays import WordArray
from umpc.mpc.masked.chunk_inputs import Coins
from umpc.mpc.masked.lookup_comparison import PlanBuilder, combine
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    CoinBit,
    CoinPlace,
    Linear,
    LookupTable,
    SharedPolynomial,
    Term,
)
from umpc.ustat.polynomial import constant

WIDTH = 64
"""Bits of a coin's random number."""
PIECE = 4
"""Bits of the number in one table."""
ALL_MEMBERS = 16
"""Up to this number of nodes, all nodes are in the committee."""
FAILURE_BITS = 40
"""A smaller committee has no honest member with probability 2^-FAILURE_BITS at most.

This probability counts as δ."""


def noise_plan(members: int, ring: Ring) -> Plan:
    """The plan of a committee; its "edges" are coins."""
    builder = PlanBuilder()
    # Layer 1 opens û.
    number = Linear(((builder.add_place(CoinPlace(WIDTH), 1), 1),))
    pieces = [LookupTable(number, WIDTH, low, PIECE) for low in range(0, WIDTH, PIECE)][::-1]
    tables = [builder.add_table(piece) for piece in pieces]
    # Layer 2 opens the pieces' bits; the lowest piece's equality decides nothing.
    less = [builder.add_bit(CoinBit(table, "less"), 2) for table in tables]
    equal = [builder.add_bit(CoinBit(table, "equal"), 2) for table in tables[:-1]]
    coin = builder.add_logic(combine(builder, less, equal))
    nothing = tuple(constant(0) for _ in range(members))
    return Plan(
        pattern=tuple(range(members)),
        ring=ring,
        places=tuple(builder.places),
        comparisons=(),
        tables=tuple(builder.tables),
        bits=tuple(builder.bits),
        layers=builder.layers(),
        outputs=(SharedPolynomial((Term(1, (coin,)),), nothing, 0),),
    )


@dataclass(frozen=True)
class CoinToss:
    """The coins of one sum's noise.

    Coin j is 1 with probability thresholds[j] / 2^WIDTH, and counts for weights[j] units. offset is
    subtracted from the sum of all coins.
    """

    thresholds: tuple[int, ...]
    weights: tuple[int, ...]
    offset: int = 0

    @property
    def count(self) -> int:
        """The number of coins."""
        return len(self.thresholds)

    def coins(self, contributions: WordArray, start: int, stop: int) -> Coins:
        """A range of the coins, with a member's contributions (stop − start,) uint64."""
        thresholds = np.array(self.thresholds[start:stop], dtype=np.uint64)
        weights = [weight & (2**64 - 1) for weight in self.weights[start:stop]]
        return Coins(contributions, thresholds, np.array(weights, dtype=np.uint64))


@lru_cache(maxsize=16)
def committee_size(nodes: int, colluding: int) -> int:
    """The size of the smallest committee with an honest member, except with 2^-FAILURE_BITS.

    Paper: Sinh & Ramon 2025, M_HF. Members are drawn from the joint seed, whichever nodes collude:
    all z members collude with probability C(colluding, z) / C(nodes, z). Up to ALL_MEMBERS nodes,
    all nodes are members, and nothing can fail.
    """
    if nodes <= ALL_MEMBERS:
        return nodes

    def fits(size: int) -> bool:
        return comb(colluding, size) << FAILURE_BITS <= comb(nodes, size)

    # The probability only falls with z: its factors (colluding - i) / (nodes - i) are below 1.
    return 1 + bisect_left(range(1, nodes), True, key=fits)
