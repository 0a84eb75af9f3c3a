"""The dealer's material for chunks of cells, and the part that owners expand from seeds.

| | every owner | all but the last | the last |
|---|---|---|---|
| from its seed | roots of its keys, masks of what it opens | shares of the products of masks | |
| dealt | its keys | | corrected shares of the products of masks |

The products of masks are the plan's elements, its bit elements and the rows of its tables. The mask
σ under which a bit is opened is the exclusive or of its contributors' masks, and of msb(r) if the
bit is the sign of a difference. The mask of a word is the sum of its contributors' masks. The seeds
fix these masks, so no mask is sent. Every piece is bound to (attempt, cell, chunk) through the
labels that its seed is derived with, and is used once.

*Chunk inputs.* A party's inputs to a chunk of edges or of noise.

*Committee coins.* Noise inside MPC: a committee flips coins that nobody knows, neither its members
nor the dealer.

    coin = [û ⊕ r < c]

û = Σ of every member's random bits and masks, public to the committee; r = Σ of the masks.

û ⊕ r is uniform to the dealer, who knows r and not û. It is uniform to any members but all of them,
who know û and not r. So it is uniform as long as one member draws honestly and the dealer colludes
with no member. The dealer must also deal as it should: with rows of zeros no coin falls, and nobody
notices. `transfers/coins_from_transfers.py` needs no dealer. The threshold c is public. r is dealt
as one-hot rows of its pieces, shared among the members, so shares of [piece < piece of c] and
[piece = piece of c] are sums of rows at public places. Pieces are combined FAN at a time as in
`plan_items.py`. The weighted sum of the coins stays shared: the noise is added to the
study's sum as it is, and nobody ever sees it.

Rounds, all coins at once: û; the pieces' bits; two of combining. Time and messages depend on the
number of coins only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np

from umpc.crypto.prg import Stream, derive_each
from umpc.crypto.ring import Ring, packed_size
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.arrays import BitArray, RingArray, WordArray
from umpc.mpc.chunks import ChunkPlan
from umpc.mpc.masked.dcf import LEAF_BYTES, ComparisonKeys, Rows, levels, row_type, row_words
from umpc.mpc.masked.edge_layout import Buffer, EdgeLayout, PlaceValues, modulus
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    CoinBit,
    CoinPlace,
    Linear,
    LookupTable,
    PlanBuilder,
    SharedPolynomial,
    Term,
    combine,
)
from umpc.ustat.clear import Columns
from umpc.ustat.polynomial import constant


@dataclass(frozen=True)
class Shares:
    """A party's shares of products of masks.

    elements: (elements, n) of the ring. tables: for each table (words, n) words (`dcf.py`).
    bits: (bit elements, ⌈n/8⌉) uint8, eight edges to a byte.
    """

    elements: RingArray
    tables: tuple[Rows, ...]
    bits: BitArray

    def __repr__(self) -> str:
        return "Shares(<redacted>)"

    @classmethod
    def expand_all(cls, plan: Plan, seeds: Sequence[bytes], layout: EdgeLayout) -> Shares:
        """The shares of several chunks, each from its own seed."""
        # spec/masked_dealing.py, `expand`: shares of all parties but the last
        rows = len(plan.elements)
        # uniform ring elements: additive shares of products of masks
        streams = _streams(seeds, "elements", rows * plan.ring.bits, layout)
        elements = layout.join(streams, rows, plan.ring.dtype)
        # uniform rows: XOR shares of the one-hot rows
        (of_tables,) = _streams(seeds, "tables", _table_bits(plan), layout)
        tables = _Reader(layout.apart(of_tables, _table_bits(plan)), layout)
        # uniform bits: XOR shares of conjunctions of masks
        bits = _expanded_bits(plan, seeds, layout)
        return cls(elements, _read_tables(plan, tables, layout), bits)

    def encode_all(self, layout: EdgeLayout) -> list[Sequence[Buffer]]:
        """The bytes on the wire: elements, tables, then bits packed; for each part, every chunk's.

        The rows of bits follow each other without padding.
        """
        # spec/masked_dealing.py, `write_tables`, after the elements
        arrays = (self.elements, *self.tables)
        return [*(layout.cut(array) for array in arrays), layout.cut_packed([*self.bits])]

    @classmethod
    def read(cls, plan: Plan, reader: _Reader, layout: EdgeLayout) -> Shares:
        """The inverse of encode_all, of as many bytes as are due. Raises: EncodingError."""
        rows = len(plan.elements)
        # spec/masked_dealing.py, `read`
        elements = layout.join(reader.next(rows * plan.ring.bytes), rows, plan.ring.dtype)
        tables = _read_tables(plan, reader, layout)
        bits = layout.join_packed(reader.rest(), len(plan.bit_elements))
        return cls(elements, tables, bits)


def _table_bits(plan: Plan) -> int:
    """The bits of all tables of an edge."""
    return sum(table.bits for table in plan.tables)


def _read_tables(plan: Plan, reader: _Reader, layout: EdgeLayout) -> tuple[Rows, ...]:
    """The tables of several chunks, one table after the other."""
    return tuple(
        layout.join(reader.next(table.bits // 8), row_words(table), row_type(table))
        for table in plan.tables
    )


def _expanded_bits(plan: Plan, seeds: Sequence[bytes], layout: EdgeLayout) -> BitArray:
    """Every chunk's shares of bit elements: (bit elements, ⌈n/8⌉) uint8, eight edges to a byte.

    In a chunk's stream each row begins with a byte.
    """
    rows = len(plan.bit_elements)
    if not rows:
        return np.empty((0, packed_size(layout.total, 1)), dtype=np.uint8)
    sizes = [rows * packed_size(count, 1) for count in layout.counts]
    return layout.join_rows(_first_bytes(seeds, "bits", sizes), rows)


@dataclass(frozen=True)
class SeededPart:
    """Everything that a party expands from its chunk seed.

    roots: for each comparison of which it holds a key, (n, 2) uint64.
    bit_masks: for each bit that it opens, (⌈n/8⌉,) uint8, eight edges to a byte.
    place_masks: for each place that it opens, (n,) uint64 below 2^width.
    shares: None for the last party, which gets its shares from the dealer.
    """

    roots: dict[int, WordArray]
    bit_masks: dict[int, BitArray]
    place_masks: dict[int, WordArray]
    shares: Shares | None

    def __repr__(self) -> str:
        return "SeededPart(<redacted>)"

    @classmethod
    def expand_all(
        cls, plan: Plan, seeds: Sequence[bytes], party: int, layout: EdgeLayout
    ) -> SeededPart:
        """The part of one party in several chunks, each from its own seed."""
        # spec/masked_dealing.py, `expand`: one stream for each purpose
        gates = plan.holds_keys(party)
        layers = range(len(plan.layers))
        bits = opened_bits(plan, party)
        places = [place for layer in layers for place in plan.opened_places(layer, party)]
        # Boyle et al. 2021, Gen<: s_b^(0) of each key
        roots = _streams(seeds, "roots", 128 * len(gates), layout)
        # this party's part of σ, for each bit that it opens
        sigma = _streams(seeds, "sigma", len(bits), layout)
        # this party's part of the mask of each opened number
        words = _streams(seeds, "places", 64 * len(places), layout)
        root_rows = layout.join(roots, len(gates), "u8", (2,))
        bit_rows = layout.join_packed(sigma, len(bits), padded=False)
        place_rows = layout.join(words, len(places), "u8")
        # the dealer corrects the last party's shares, so it has no seed for them
        is_last = party == plan.parties - 1
        return cls(
            roots=dict(zip(gates, root_rows, strict=True)),
            bit_masks=dict(zip(bits, bit_rows, strict=True)),
            place_masks={
                place: row & modulus(plan.place_width(place))
                for place, row in zip(places, place_rows, strict=True)
            },
            shares=None if is_last else Shares.expand_all(plan, seeds, layout),
        )


def opened_bits(plan: Plan, party: int) -> list[int]:
    """The bits of which a party sends a share, in the order of their masks."""
    layers = range(len(plan.layers))
    return [bit for layer in layers for bit in plan.opened_bits(layer, party)]


def _streams(seeds: Sequence[bytes], purpose: str, each: int, layout: EdgeLayout) -> list[Buffer]:
    """The first bytes of every chunk's stream for a purpose, in one piece for `EdgeLayout.join`.

    Args: each: bits of an edge.
    """
    return [_first_bytes(seeds, purpose, layout.sizes_of(each))] if each else [b""]


def _first_bytes(seeds: Sequence[bytes], purpose: str, sizes: Sequence[int]) -> Buffer:
    """The first bytes of every chunk's stream for a purpose, one chunk behind the other."""
    # a purpose of its own keeps streams independent (spec/prg.py, `derive`)
    keys = derive_each(seeds, purpose)
    parts = [Stream(key).octets(size).data for key, size in zip(keys, sizes, strict=True)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


@dataclass(frozen=True)
class DealtPart:
    """The dealer's message to a party: its keys by comparison, and to the last party its shares."""

    keys: dict[int, ComparisonKeys]
    shares: Shares | None

    def __repr__(self) -> str:
        return "DealtPart(<redacted>)"

    def encode_all(self, layout: EdgeLayout) -> list[bytes]:
        """The bytes on the wire of each of several chunks."""
        parts: list[Sequence[Buffer]] = []
        # CW^(1) … CW^(n), then CW^(n+1), of each key
        for keys in self.keys.values():
            parts.append(layout.cut(keys.corrections))
            parts.append(layout.cut(keys.leaves[None]))
        if self.shares is not None:
            parts += self.shares.encode_all(layout)
        if not parts:
            return [b""] * len(layout.counts)
        return [b"".join(pieces) for pieces in zip(*parts, strict=True)]

    @classmethod
    def decode_all(
        cls, plan: Plan, data: Sequence[bytes], party: int, layout: EdgeLayout
    ) -> DealtPart:
        """The inverse of encode_all. Raises: EncodingError on a wrong length of any chunk."""
        for count, chunk in zip(layout.counts, data, strict=True):
            expected = dealt_bytes(plan, party, count)
            # the length is public; another one is refused before it is read
            if len(chunk) != expected:
                raise EncodingError(
                    f"material of {count} edges takes {expected} bytes, and {len(chunk)} came"
                )
        reader = _Reader(data, layout)
        keys = {}
        for number in plan.holds_keys(party):
            width = plan.comparisons[number].width
            corrections = reader.next(16 * levels(width))
            leaves = reader.next(LEAF_BYTES)
            keys[number] = ComparisonKeys(
                width,
                layout.join(corrections, levels(width), "u8", (2,)),
                layout.join(leaves, 1, "u4", (3,))[0],
            )
        # all but the last have keys only
        if party < plan.parties - 1:
            return cls(keys, None)
        return cls(keys, Shares.read(plan, reader, layout))


class _Reader:
    """The bytes of several chunks, read part by part."""

    def __init__(self, data: Sequence[Buffer], layout: EdgeLayout):
        self._views = [memoryview(chunk) for chunk in data]
        self._counts = layout.counts
        self._read = 0

    def next(self, size: int) -> list[Buffer]:
        """The next part of each chunk. Args: size: its bytes for each edge."""
        start = self._read
        self._read += size
        return [
            view[start * count : self._read * count]
            for view, count in zip(self._views, self._counts, strict=True)
        ]

    def rest(self) -> list[Buffer]:
        """All that is left of each chunk."""
        chunks = zip(self._views, self._counts, strict=True)
        return [view[self._read * count :] for view, count in chunks]


def dealt_bytes(plan: ChunkPlan, party: int, count: int) -> int:
    """Bytes that the dealer sends to a party for a chunk of `count` edges."""
    return packed_size(plan.dealt_bits(party) * count, 1)


# --- chunk inputs ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coins:
    """A party's inputs to a chunk of noise, (count,) uint64 each.

    contributions: this party's random numbers. thresholds: of the coins. weights: the units that
    each coin counts for in the sum.
    """

    contributions: WordArray
    thresholds: WordArray
    weights: WordArray

    def __repr__(self) -> str:
        return "Coins(<redacted>)"


@dataclass(frozen=True)
class ChunkInputs:
    """Everything that a party knows about a chunk, or several, before their first round.

    places: the masked values of each place of a record, (count,) uint64.
    masks: the masks of each place of its own records, (count,) uint64; none unless the plan
        `reads_masks`.
    records: the columns of its own records, for each record of the edge that it reads in the clear.
    names: the owners' names, in party order; none where several chunks are computed together.
    coins: only for noise, where an "edge" is a coin.
    """

    places: PlaceValues
    masks: PlaceValues
    records: Mapping[int, Columns]
    count: int
    names: Sequence[str]
    coins: Coins | None = None

    def coins_of_noise(self) -> Coins:
        """The inputs of a chunk of noise. Raises: LocalProtocolError for a chunk of edges."""
        if self.coins is None:
            raise LocalProtocolError("a plan for noise needs coins, and this chunk has edges")
        return self.coins

    def __repr__(self) -> str:
        return f"ChunkInputs({self.count} edges, <redacted>)"


# --- committee coins ------------------------------------------------------------------------------

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
    # û = Σ of the members' words and masks
    number = Linear(((builder.add_place(CoinPlace(WIDTH), 1), 1),))
    pieces = [LookupTable(number, WIDTH, low, PIECE) for low in range(0, WIDTH, PIECE)][::-1]
    tables = [builder.add_table(piece) for piece in pieces]
    # Layer 2 opens the pieces' bits; the lowest piece's equality decides nothing.
    less = [builder.add_bit(CoinBit(table, "less"), 2) for table in tables]
    equal = [builder.add_bit(CoinBit(table, "equal"), 2) for table in tables[:-1]]
    # coin = borrow of û ⊕ r − c, from the pieces' bits
    coin = builder.add_logic(combine(builder, less, equal))
    # no member knows a summand in the clear
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
        # Dwork et al. 2006, section 4: coin j falls with odds c_j / 2^64
        thresholds = np.array(self.thresholds[start:stop], dtype=np.uint64)
        # negative weights wrap around mod 2^64
        weights = [weight & (2**64 - 1) for weight in self.weights[start:stop]]
        return Coins(contributions, thresholds, np.array(weights, dtype=np.uint64))


@lru_cache(maxsize=16)
def committee_size(nodes: int, colluding: int) -> int:
    """The size of the smallest committee with an honest member, except with 2^-FAILURE_BITS.

    Paper: Sinh & Ramon 2025, M_HF. Members are drawn from the joint seed, whichever nodes collude:
    all z members collude with probability C(colluding, z) / C(nodes, z). Up to ALL_MEMBERS nodes,
    all nodes are members, and nothing can fail.
    """
    # all nodes: some member is honest for certain
    if nodes <= ALL_MEMBERS:
        return nodes

    # Sinh & Ramon 2025, M_HF: C(t, z)/C(N, z) ≤ 2^-40
    def fits(size: int) -> bool:
        return comb(colluding, size) << FAILURE_BITS <= comb(nodes, size)

    # The probability only falls with z: its factors (colluding - i) / (nodes - i) are below 1.
    return 1 + bisect_left(range(1, nodes), True, key=fits)
