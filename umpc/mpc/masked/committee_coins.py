"""Noise inside MPC: a committee flips coins that none of its members, nor the dealer, knows.

    coin = [û ⊕ r < c]       û = Σ of every member's random bits and masks, public to the committee; r = Σ of the masks

û ⊕ r is uniform to the dealer, who knows r and not û, and to any members but all of them, who know û and not r: as
long as one member draws honestly and the dealer colludes with none. The threshold c is public. r is dealt as one-hot
rows of its pieces, shared among the members, so shares of [piece < piece of c] and [piece = piece of c] are sums of
rows at public places; pieces are combined FAN at a time as in `tables.py`. The weighted sum of the coins stays shared:
the noise is added to the study's sum as it is, and nobody ever sees it.

Rounds, all coins at once: û; the pieces' bits; two of combining. Time and messages depend on the number of coins only.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from umpc.crypto.ring import Ring
from umpc.mpc.masked.evaluation import Coins
from umpc.mpc.masked.lookup_comparison import PIECE, combine
from umpc.mpc.masked.plan import (
    Bit,
    CoinBit,
    CoinPlace,
    Layer,
    Linear,
    Literal,
    Logic,
    Plan,
    SharedPolynomial,
    Table,
    Term,
)
from umpc.ustat.polynomial import constant

WIDTH = 64
"""Bits of a drawn number."""
ALL_MEMBERS = 16
"""Up to so many nodes all are in the committee."""
FAILURE_BITS = 40
"""A smaller committee has no honest member with probability 2^-FAILURE_BITS at most; it counts as δ."""


def noise_plan(members: int, ring: Ring) -> Plan:
    """The plan of a committee; its "edges" are coins."""
    builder = _Builder()
    drawn = Linear(((0, 1),))
    tables = [Table(drawn, WIDTH, low, PIECE) for low in range(0, WIDTH, PIECE)][::-1]
    less = [builder.add(CoinBit(number, "less"), 2) for number in range(len(tables))]
    equal = [builder.add(CoinBit(number, "equal"), 2) for number in range(len(tables) - 1)]
    coin = builder.add_logic(combine(builder, less, equal))
    nothing = tuple(constant(0) for _ in range(members))
    return Plan(
        pattern=tuple(range(members)),
        ring=ring,
        places=(CoinPlace(WIDTH),),
        comparisons=(),
        tables=tuple(tables),
        bits=tuple(builder.layers),
        layers=(Layer((), (0,)), *builder.finished()),
        outputs=(SharedPolynomial((Term(1, (coin,)),), nothing, 0),),
    )


@dataclass(frozen=True)
class CoinToss:
    """The coins of one sum's noise: coin j is 1 with probability thresholds[j] / 2^WIDTH and counts for weights[j].

    offset: what is taken off the sum of all coins.
    """

    thresholds: tuple[int, ...]
    weights: tuple[int, ...]
    offset: int = 0

    @property
    def count(self) -> int:
        return len(self.thresholds)

    def coins(self, drawn: np.ndarray, start: int, stop: int) -> Coins:
        """A range of them, with a member's contributions (stop − start,) uint64."""
        weights = np.array(
            [weight & (2**64 - 1) for weight in self.weights[start:stop]], dtype=np.uint64
        )
        return Coins(drawn, np.array(self.thresholds[start:stop], dtype=np.uint64), weights)


def committee_size(nodes: int, colluding: int) -> int:
    """The fewest members of whom at least one is honest, whichever nodes collude, but for 2^-FAILURE_BITS.

    Members are drawn from the joint seed (Sinh & Ramon 2025, M_HF): all of them collude with probability
    C(colluding, z) / C(nodes, z). Up to ALL_MEMBERS nodes all are members, and nothing can fail.
    """
    if nodes <= ALL_MEMBERS:
        return nodes
    fits = (z for z in range(1, nodes) if comb(colluding, z) << FAILURE_BITS <= comb(nodes, z))
    return next(fits, nodes)


class _Builder:
    """Bits with the layer in which they are opened."""

    def __init__(self) -> None:
        self.layers: dict[Bit, int] = {}

    def add(self, bit: Bit, layer: int) -> int:
        self.layers[bit] = layer
        return len(self.layers) - 1

    def add_logic(self, conjunctions: list[tuple[int, ...]], *, constant: bool = False) -> int:
        layers = list(self.layers.values())
        literals = tuple(
            tuple(Literal((bit,)) for bit in conjunction) for conjunction in conjunctions
        )
        return self.add(
            Logic(literals, constant), 1 + max(layers[bit] for part in conjunctions for bit in part)
        )

    def finished(self) -> list[Layer]:
        """The layers from the second on."""
        numbered = list(enumerate(self.layers.values()))
        last = max(self.layers.values())
        return [
            Layer(tuple(bit for bit, at in numbered if at == layer), ())
            for layer in range(2, last + 1)
        ]
