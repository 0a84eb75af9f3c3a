"""Tables from which two owners look up the bits of their numbers' pieces, masked and by chunks.

Each row of a table is for one value v of the evaluator's piece, and the garbler knows its own row
g of the piece:

    garbler → evaluator    rows f(g, v) ⊕ r ⊕ pad_v, for all v      r: the garbler's random bits
    evaluator              finds e = f(g, y) ⊕ r at the row of its own row y

The wire of a bit carries r ⊕ e, as the wire of a common coin does: the evaluator chooses its label
by e, by oblivious transfer, and the garbler turns the labels by r (`sides.py`).

**Pads.** The evaluator has one label of each bit of its records: L_i ⊕ y_i Δ. Both combine a
piece's labels over GF(2^128), with α the field's generator (x, modulo x^128 + x^7 + x^2 + x + 1):

    K_v = Σ α^i (L_i ⊕ v_i Δ) = K_0 ⊕ c_v Δ      c_v = Σ α^i v_i      pad_v: bits of H(K_v, tweak)

The evaluator can make K_y, and K_v = K_y ⊕ c Δ with c = c_y ⊕ c_v, which is 0 for v = y only. This
is a transfer of one of 2^b messages by the repetition of Δ under a linear code (Kolesnikov &
Kumaresan 2013, eprint 2013/491; Roy 2022).

**Reveals.** c Δ is as uniform as Δ, since a nonzero c is invertible, and rows are independent of Δ.
So it takes H that is correlation robust, with all nonzero multiples of Δ as offsets: here
H(x, i) = π(x ⊕ i) ⊕ x ⊕ i with a fixed-key AES-128 of its own, for an ideal π (Guo et al. 2020,
eprint 2019/074, section 7.2), where no x ⊕ i is asked for twice. Then all rows but that of y are
pseudorandom to the evaluator. That row is f ⊕ r with a fresh uniform r, which stands nowhere else
that the evaluator sees but in labels. So its view is uniform bits. The garbler gets nothing here,
and then the extension of the transfers, which is pseudorandom. Semi-honest, as all of this backend.

**Repeated inputs.** It is not enough that no (x, i) is asked for twice. Two keys with
K ⊕ K' = i ⊕ i' have one pad, because H reads only the sum of its arguments. The evaluator's labels
come from an extension that both parties do honestly. So the keys of two records are uniform and
independent. Two rows of one record differ by a nonzero multiple of Δ, or by their tweaks alone. So
two hashes have one input with probability at most 2^−127, since Δ has 127 uniform bits, and some
two of the N hashes of a link with probability at most about N²/2^128. That is birthday-like, as
the bound of the gates' hash (`garbling.py`).

**Tweaks.** i is (the number of the chunk's first edge, the piece and the block). Edges of one
record share a block: each takes two bits of it, and the next LANES edges take those of the next
block. So no (x, i) is asked for twice, and no part of a pad is used twice.

Cost an edge: 2^(b+1) bits for a piece of b bits, and a transfer for each bit that is looked up.
An AES block for each row and record of a chunk.

Where umpc has its compiled kernel (`umpc/native/garbled.py`), it masks and reads the rows. The code
here is the reference, with the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.arrays import BitArray, IndexArray, IntArray, WordArray
from umpc.mpc.garbled.pieces import LookedUp, NumberPiece, rows_of_piece
from umpc.native import garbled as compiled

ROW_BITS = 2
LANES = 64
"""Edges of a record that share a block, which has two bits for each."""
_EVERY_ROW = np.uint8(0b01010101)
"""Two bits times this stand in all four rows of a packed octet."""
_ONE = np.uint64(1)
_REDUCTION = np.uint64(0x87)
"""x^128 = x^7 + x^2 + x + 1, modulo the field's polynomial."""


def table_bits(pieces: Sequence[LookedUp]) -> int:
    """Bits of an edge's tables."""
    return sum(ROW_BITS * each.piece.rows for each in pieces)


@dataclass(frozen=True)
class Places:
    """The pads' places of a chunk's edges: each edge has two bits of a block of its record.

    Blocks with as many edges follow each other, so that they are worked on together.

    records: (m,) the chunk's records of the evaluator, each once.
    record: (blocks,) the place of each block's record among them.
    number: (blocks,) uint64, the number of the block among those of its record.
    order: (n,) the edges, block after block. Tables are sent in this order.
    ends: (blocks + 1,) where each block's edges begin in `order`, and the end.
    """

    records: IndexArray
    record: IndexArray
    number: WordArray
    order: IndexArray
    ends: IndexArray

    @classmethod
    def of(cls, index: IndexArray) -> Places:
        """The places of edges, whose records of the evaluator are given: (n,)."""
        records, which = np.unique(index, return_inverse=True)
        order = np.argsort(which, kind="stable")
        ordered = which[order]
        at = np.arange(len(ordered))
        is_first = np.ones(len(ordered), dtype=bool)
        is_first[1:] = ordered[1:] != ordered[:-1]
        # an edge's number among those of its record
        rank = at - np.maximum.accumulate(np.where(is_first, at, 0))
        starts = np.flatnonzero(rank % LANES == 0)
        counts = np.diff(starts, append=len(ordered))
        by_count = np.argsort(counts, kind="stable")
        ends = np.concatenate([[0], np.cumsum(counts[by_count])])
        # the edges of each block, in the blocks' new order
        moved = np.repeat(starts[by_count] - ends[:-1], counts[by_count]) + at
        starts = starts[by_count]
        numbers = (rank[starts] // LANES).astype(np.uint64)
        return cls(records, ordered[starts], numbers, order[moved], ends)


def combined(labels: WordArray) -> WordArray:
    """Σ α^i L_i of at most 8 labels: K_0 from labels of 0, K_y from active ones.

    Args: labels: (bits, n, 2) uint64. Returns: (n, 2) uint64.
    """
    total: WordArray = labels[-1].copy()
    for each in labels[-2::-1]:
        # Horner's rule: Σ α^i·L_i in GF(2^128)
        total = times_alpha(total)
        total ^= each
    return total


def multiples(delta: WordArray, size: int) -> WordArray:
    """c_v Δ for all v of `size` bits: (2^size, 2) uint64."""
    found = np.zeros((1, 2), dtype=np.uint64)
    power = delta[None]
    for _ in range(size):
        # c_v·Δ with c_v = Σ v_i·α^i
        found = np.concatenate([found, found ^ power])
        power = times_alpha(power)
    return found


def make_tables(
    pieces: Sequence[LookedUp],
    keys: Sequence[WordArray],
    values: Sequence[IntArray],
    masks: BitArray,
    places: Places,
    delta: WordArray,
    row_hash: FixedKeyHash,
    first_edge: int,
    *,
    is_first: bool,
) -> bytes:
    """The garbler's message for a chunk of n edges.

    Args:
        keys: for each piece K_0 of the evaluator's records: (records, 2) uint64.
        values: for each piece the garbler's own row: (n,) int64.
        masks: (pieces · 2, n) uint8, r of each piece's bits, LESS before EQUAL.
        is_first: whether the garbler has record 0.
    """
    message: list[bytes | memoryview] = []
    for number, (each, own) in enumerate(zip(pieces, values, strict=True)):
        piece = each.piece
        kinds = tuple(kind for kind, _ in each.wires)
        # public: the comparison of all pairs of values
        table = _packed_rows(piece, kinds, not is_first)
        mask = (masks[2 * number] | masks[2 * number + 1] << 1) * _EVERY_ROW
        # K_0 ⊕ c_v·Δ is the key of row v
        offsets = multiples(delta, piece.size)
        place = first_edge, number
        if compiled.CHOSEN is not None:
            # compiled: the same bytes
            blocks = _blocks(keys[number], offsets, places, place, piece)
            message.append(compiled.make_rows(row_hash.key, blocks, table, own, mask).data)
            continue
        pads = _pads(keys[number], offsets, places, row_hash, place)
        # row v under its pad, with r in every row
        rows = table[own[places.order]] ^ mask[places.order, None] ^ _four_to_a_byte(pads)
        message.append(rows.tobytes())
    return b"".join(message)


def read_tables(
    payload: bytes,
    pieces: Sequence[LookedUp],
    keys: Sequence[WordArray],
    values: Sequence[IntArray],
    places: Places,
    row_hash: FixedKeyHash,
    first_edge: int,
) -> BitArray:
    """The evaluator's bits e: (pieces · 2, n) uint8, in the order of `make_tables`' masks.

    Args: keys: K_y of its own records. values: its own row of each piece.
    """
    count = len(places.order)
    found = np.empty((2 * len(pieces), count), dtype=np.uint8)
    no_offset = np.zeros((1, 2), dtype=np.uint64)
    start = 0
    for number, (each, own) in enumerate(zip(pieces, values, strict=True)):
        size = count * each.piece.rows * ROW_BITS // 8
        table = np.frombuffer(payload, np.uint8, size, start).reshape(count, -1)
        start += size
        place = first_edge, number
        if compiled.CHOSEN is not None:
            blocks = _blocks(keys[number], no_offset, places, place, each.piece)
            found[2 * number : 2 * number + 2] = compiled.read_rows(
                row_hash.key, blocks, table, own
            )
            continue
        own = own[places.order]
        # Kolesnikov & Kumaresan 2013: one row of many opens
        octets = table[np.arange(count), own >> 2]
        pads = _pads(keys[number], no_offset, places, row_hash, place)[:, 0]
        # its pad takes K_y: no other row's key is known
        row = octets >> (2 * (own & 3)).astype(np.uint8) ^ pads
        found[2 * number, places.order] = row & 1
        found[2 * number + 1, places.order] = row >> 1 & 1
    return found


def _blocks(
    keys: WordArray,
    offsets: WordArray,
    places: Places,
    place: tuple[int, int],
    piece: NumberPiece,
) -> compiled.RowBlocks:
    """The pads of a piece's rows, for the compiled kernel. Args: as in `_pads`."""
    arrays = places.record, places.order, places.ends, places.number
    return compiled.RowBlocks(keys, offsets, *arrays, *place, piece.rows)


def bits_of_wires(pieces: Sequence[LookedUp], found: BitArray) -> BitArray:
    """The bits that the circuit needs, wire after wire: (pieces · 2, n) → (wires · n,) uint8."""
    rows = [2 * number + kind for number, each in enumerate(pieces) for kind, _ in each.wires]
    return found[rows].reshape(-1)


def _pads(
    keys: WordArray,
    offsets: WordArray,
    places: Places,
    row_hash: FixedKeyHash,
    place: tuple[int, int],
) -> BitArray:
    """Two bits for each row of each edge, in the places' order: (n, offsets) uint8 below 4.

    keys: (records, 2), K of each record. place: the chunk's first edge, and the piece.
    """
    first_edge, piece = place
    tweaks = np.empty((len(places.record), 2), dtype=np.uint64)
    # edge, piece and block: no input comes twice
    tweaks[:, 0] = first_edge
    tweaks[:, 1] = (places.number << np.uint64(16)) + np.uint64(piece)
    # Guo et al. 2020, section 4: correlation-robust hash
    inputs = (keys[places.record] ^ tweaks)[:, None] ^ offsets
    octets = row_hash(inputs.reshape(-1, 2)).view(np.uint8).reshape(*inputs.shape[:2], -1)
    counts = np.diff(places.ends)
    block = np.repeat(np.arange(len(counts)), counts)
    lane = np.arange(len(block)) - places.ends[block]
    shift = 2 * (lane % 4).astype(np.uint8)
    pads: BitArray = octets[block, :, lane // 4] >> shift[:, None] & np.uint8(3)
    return pads


def _four_to_a_byte(rows: BitArray) -> BitArray:
    """Rows of two bits each, (…, rows) uint8, as (…, rows / 4) uint8."""
    four = rows.reshape(*rows.shape[:-1], -1, 4) << np.array([0, 2, 4, 6], dtype=np.uint8)
    packed: BitArray = np.bitwise_or.reduce(four, axis=-1)
    return packed


@lru_cache(maxsize=64)
def _packed_rows(piece: NumberPiece, kinds: tuple[int, ...], first_is_row: bool) -> BitArray:
    """The table of `rows_of_piece`, four rows to a byte: (rows, rows / 4) uint8, not to be changed.

    Chunks and studies share it, as it follows from the public circuit.
    """
    packed = _four_to_a_byte(rows_of_piece(piece, kinds, first_is_row))
    packed.flags.writeable = False
    return packed


def times_alpha(blocks: WordArray) -> WordArray:
    """α times each block: (n, 2) uint64."""
    shifted = blocks << _ONE
    high = blocks >> np.uint64(63)
    shifted[:, 1] |= high[:, 0]
    # reduce modulo x^128 + x^7 + x^2 + x + 1
    shifted[:, 0] ^= high[:, 1] * _REDUCTION
    return shifted
