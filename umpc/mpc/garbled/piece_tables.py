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

**Reveals.** c Δ is as uniform as Δ, since a nonzero c is invertible. So for H as in `garbling.py`
(TCCR, here with all nonzero multiples of Δ, which an ideal π gives by the same proof) all rows but
that of y are pseudorandom to the evaluator. That row is f ⊕ r with a fresh uniform r, which stands
nowhere else that the evaluator sees but in labels. So its view is uniform bits. The garbler gets
nothing here, and then the extension of the transfers, which is pseudorandom.

**Tweaks.** H has a key of its own here. A tweak is (the number of the chunk's first edge, the piece
and the block). Edges of one record share a block: each takes a byte of it, the next 16 the next
block. So no pad is used twice.

Cost an edge: 2^(b+1) bits for a piece of b bits, and a transfer for each bit that is looked up.
AES blocks: 2 for each row and record of a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from umpc.crypto.prg import BLOCK_BYTES
from umpc.mpc.arrays import BitArray, IndexArray, IntArray, WordArray
from umpc.mpc.garbled.gates import GateHash
from umpc.mpc.garbled.pieces import LookedUp, rows_of_piece

ROWS_AT_ONCE = 1 << 13
"""Rows that are hashed together."""
ROW_BITS = 2
_ONE = np.uint64(1)
_REDUCTION = np.uint64(0x87)


def table_bits(pieces: Sequence[LookedUp]) -> int:
    """Bits of an edge's tables."""
    return sum(ROW_BITS * each.piece.rows for each in pieces)


@dataclass(frozen=True)
class Places:
    """The pads' places of a chunk's edges: each edge has a byte of a block of its record.

    record: (blocks,) the place of each block's record among the chunk's records.
    number: (blocks,) uint64, the number of the block among those of its record.
    block, lane: (n,) of each edge.
    records: (m,) the chunk's records of the evaluator, each once.
    """

    records: IndexArray
    record: IndexArray
    number: WordArray
    block: IndexArray
    lane: IndexArray

    @classmethod
    def of(cls, index: IndexArray) -> Places:
        """The places of edges, whose records of the evaluator are given: (n,)."""
        records, which = np.unique(index, return_inverse=True)
        order = np.argsort(which, kind="stable")
        ordered = which[order]
        at = np.arange(len(ordered))
        is_first = np.ones(len(ordered), dtype=bool)
        is_first[1:] = ordered[1:] != ordered[:-1]
        rank = at - np.maximum.accumulate(np.where(is_first, at, 0))
        begins = rank % BLOCK_BYTES == 0
        block = np.empty_like(at)
        lane = np.empty_like(at)
        block[order] = np.cumsum(begins) - 1
        lane[order] = rank % BLOCK_BYTES
        numbers = (rank[begins] // BLOCK_BYTES).astype(np.uint64)
        return cls(records, ordered[begins], numbers, block, lane)


def combined(labels: WordArray) -> WordArray:
    """Σ α^i L_i: (bits, n, 2) uint64 → (n, 2) uint64."""
    total: WordArray = labels[-1].copy()
    for label in labels[-2::-1]:
        total = _times_alpha(total) ^ label
    return total


def multiples(delta: WordArray, size: int) -> WordArray:
    """c_v Δ for all v of `size` bits: (2^size, 2) uint64."""
    found = np.zeros((1, 2), dtype=np.uint64)
    power = delta[None]
    for _ in range(size):
        found = np.concatenate([found, found ^ power])
        power = _times_alpha(power)
    return found


def make_tables(
    pieces: Sequence[LookedUp],
    labels: Sequence[WordArray],
    values: Sequence[IntArray],
    masks: BitArray,
    places: Places,
    delta: WordArray,
    row_hash: GateHash,
    first_edge: int,
    *,
    is_first: bool,
) -> bytes:
    """The garbler's message for a chunk of n edges.

    Args:
        labels: for each piece the labels of 0 of the evaluator's bits: (bits, records, 2) uint64.
        values: for each piece the garbler's own row: (n,) int64.
        masks: (pieces · 2, n) uint8, r of each piece's bits, LESS before EQUAL.
        is_first: whether the garbler has record 0.
    """
    message = []
    for number, (each, own) in enumerate(zip(pieces, values, strict=True)):
        piece = each.piece
        kinds = [kind for kind, _ in each.wires]
        rows = rows_of_piece(piece, kinds, not is_first).take(own, axis=0)
        rows ^= (masks[2 * number] | masks[2 * number + 1] << 1)[:, None]
        offsets = multiples(delta, piece.size)
        keys = combined(labels[number])
        _add_pads(rows, keys, offsets, places, row_hash, (first_edge, number))
        rows &= 3
        message.append(_packed(rows))
    return b"".join(message)


def read_tables(
    payload: bytes,
    pieces: Sequence[LookedUp],
    labels: Sequence[WordArray],
    values: Sequence[IntArray],
    places: Places,
    row_hash: GateHash,
    first_edge: int,
) -> BitArray:
    """The evaluator's bits e: (pieces · 2, n) uint8, in the order of `make_tables`' masks.

    Args: labels: the active labels of its own bits. values: its own row of each piece.
    """
    count = len(places.block)
    found = np.empty((2 * len(pieces), count), dtype=np.uint8)
    start = 0
    for number, (each, own) in enumerate(zip(pieces, values, strict=True)):
        size = count * each.piece.rows * ROW_BITS // 8
        table = np.frombuffer(payload, np.uint8, size, start).reshape(count, -1)
        start += size
        octets = table[np.arange(count), own >> 2]
        row = (octets >> (2 * (own & 3)).astype(np.uint8)).reshape(-1, 1)
        keys = combined(labels[number])
        none = np.zeros((1, 2), dtype=np.uint64)
        _add_pads(row, keys, none, places, row_hash, (first_edge, number))
        found[2 * number] = row[:, 0] & 1
        found[2 * number + 1] = row[:, 0] >> 1 & 1
    return found


def bits_of_wires(pieces: Sequence[LookedUp], found: BitArray) -> BitArray:
    """The bits that the circuit needs, wire after wire: (pieces · 2, n) → (wires · n,) uint8."""
    rows = [2 * number + kind for number, each in enumerate(pieces) for kind, _ in each.wires]
    return found[rows].reshape(-1)


def _add_pads(
    rows: BitArray,
    keys: WordArray,
    offsets: WordArray,
    places: Places,
    row_hash: GateHash,
    place: tuple[int, int],
) -> None:
    """rows ^= pads, in place: (n, len(offsets)) uint8.

    keys: (records, 2), K of each record. place: the chunk's first edge, and the piece.
    """
    first_edge, piece = place
    order = np.argsort(places.block, kind="stable")
    ends = np.searchsorted(places.block[order], np.arange(len(places.record) + 1))
    for part in _parts(len(places.record), len(offsets)):
        tweaks = np.empty((part.stop - part.start, 1, 2), dtype=np.uint64)
        tweaks[..., 0] = first_edge
        tweaks[..., 1] = (places.number[part, None] << np.uint64(16)) + np.uint64(piece)
        inputs = keys[places.record[part], None] ^ offsets
        tweaks = np.broadcast_to(tweaks, inputs.shape).reshape(-1, 2)
        hashed = row_hash(inputs.reshape(-1, 2), tweaks)
        pads = hashed.view(np.uint8).reshape(*inputs.shape[:2], BLOCK_BYTES)
        edges = order[ends[part.start] : ends[part.stop]]
        lanes = places.lane[edges]
        for lane in range(int(lanes.max()) + 1):
            mine = edges[lanes == lane]
            rows[mine] ^= pads[places.block[mine] - part.start, :, lane]


def _parts(blocks: int, rows: int) -> Iterator[slice]:
    """Ranges of blocks whose rows are hashed together."""
    step = max(1, ROWS_AT_ONCE // rows)
    for start in range(0, blocks, step):
        yield slice(start, min(start + step, blocks))


def _packed(rows: BitArray) -> bytes:
    """Rows of two bits, four to a byte."""
    four = rows.reshape(len(rows), -1, 4)
    packed = four[..., 0] | four[..., 1] << 2 | four[..., 2] << 4 | four[..., 3] << 6
    return packed.tobytes()


def _times_alpha(blocks: WordArray) -> WordArray:
    """α times each block: (n, 2) uint64."""
    shifted = blocks << _ONE
    high = blocks >> np.uint64(63)
    shifted[:, 1] |= high[:, 0]
    shifted[:, 0] ^= high[:, 1] * _REDUCTION
    return shifted
