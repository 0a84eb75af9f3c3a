"""The columns of a batch of correlated transfers: made of leaves, masked, and turned into blocks.

Paper: Roy 2022, SoftSpokenOT (eprint 2022/192), section 3.1; `correlated_ot.py` has the names. A
column is a row of packed bits here, one bit for each transfer.

*Leaf streams.* The pseudorandom streams of a channel's leaf seeds, many leaves at once.

Paper: Guo, Katz, Wang & Yu 2020 (eprint 2019/074), section 7.4. Block j of the stream of leaf s is

    π(y) ⊕ y     with y = π(s) ⊕ tag ⊕ j

where π is AES-128 under a public key of the session, the tag names the channel, and s are the first
16 bytes of the leaf seed. This is their hash TMMO, H(s, tag ⊕ j). A leaf s is uniform and stands
in nothing else. So for an ideal π the streams are uniform to whoever lacks s, up to about
2^−128 · blocks · calls of π. Garbled gates take the same assumption (`garbled/garbling.py`).

One call of AES stretches all leaves of some digits. A stream of its own for each leaf, AES in
counter mode under the leaf as its key, would need a key schedule and an object for each leaf of
each channel: 512 objects, which cost more than the streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto.prg import BLOCK_BYTES, FixedKeyHash, derive
from umpc.mpc.arrays import BitArray, WordArray
from umpc.native import garbled as compiled

BLOCK_BITS = 128
AT_ONCE = 1 << 18
"""Bytes of columns that are masked together."""
_STEPS = [
    (step, np.uint64(step), np.uint64(sum(1 << bit for bit in range(64) if not bit & step)))
    for step in (32, 16, 8, 4, 2, 1)
]
"""Steps of a transposition of 64 × 64 bits: the distance, and the bits that lie below it."""


def stretched(streams: LeafStreams, fold: int, width: int) -> tuple[BitArray, BitArray]:
    """A part of a batch without its choices: the next bytes of the streams, combined.

    Returns: v of each column, (digits, fold, width) uint8; u of each digit, (digits, width).
    """
    if compiled.CHOSEN is not None:
        # compiled: streams and combination in one pass
        return streams.combined(width)
    digits = BLOCK_BITS // fold
    # spec/transfers.py, `columns`
    rows = np.empty((digits, fold, width), dtype=np.uint8)
    u = np.empty((digits, width), dtype=np.uint8)
    for some, leaves in stretched_leaves(streams, width):
        # Roy 2022, 3.1: u = ⊕ L_x and v_i = ⊕ x_i·L_x
        u[some] = combine(leaves, rows[some])
    return rows, u


def add_masked(rows: BitArray, sent: BitArray, masks: BitArray) -> None:
    """rows ^= the sent rows of digits, in those columns whose mask is 255; in place.

    rows: (digits, fold, width) uint8. sent: (digits, 1, width). masks: (digits, fold, 1).
    """
    step = max(1, AT_ONCE // max(1, rows[0].size))
    for first in range(0, len(rows), step):
        some = slice(first, first + step)
        # q_i = v_i ⊕ Δ_i·d, without a branch on Δ
        rows[some] ^= sent[some] & masks[some]


def transpose(rows: BitArray) -> WordArray:
    """128 rows of n bits as n blocks (Eklundh 1972, on 64 × 64 bits at a time).

    Args: rows: (128, 8m) uint8, bits packed with the lowest first.
    Returns: (64m, 2) uint64; bit i of block j is bit j of row i.
    """
    words = np.ascontiguousarray(rows).view("<u8").astype(np.uint64).reshape(2, 64, -1)
    for step, shift, low in _STEPS:
        pairs = words.reshape(2, 32 // step, 2, step, -1)
        upper = pairs[:, :, 0]
        lower = pairs[:, :, 1]
        # Eklundh 1972: swap the off-diagonal blocks of this size
        moved = upper >> shift
        moved ^= lower
        moved &= low
        lower ^= moved
        moved <<= shift
        upper ^= moved
    return np.ascontiguousarray(words.transpose(2, 1, 0)).reshape(-1, 2)


def transpose_into(rows: BitArray, blocks: WordArray) -> None:
    """The first n bits of 128 rows as blocks: (n, 2) uint64.

    rows: (digits, fold, width) uint8, of packed bits in whole words.
    """
    if compiled.CHOSEN is not None:
        compiled.transpose_into(rows, blocks)
        return
    blocks[:] = transpose(rows.reshape(BLOCK_BITS, -1))[: len(blocks)]


def stretched_leaves(streams: LeafStreams, width: int) -> Iterator[tuple[slice, BitArray]]:
    """Digits, and the next bytes of their leaves: (digits, leaves, width) uint8."""
    return streams.bytes(width)


def combine(leaves: BitArray, columns: BitArray) -> BitArray:
    """Write columns[…, i] = v_i = ⊕ L_x over x with bit i; return u = ⊕ L_x: (digits, width).

    The leaves are halved from the highest bit down. Args: leaves: (digits, 2^fold, width) uint8.
    columns: (digits, fold, width) uint8.
    """
    for bit in reversed(range(columns.shape[1])):
        half = 1 << bit
        # leaves whose number has this bit
        np.bitwise_xor.reduce(leaves[:, half:], axis=1, out=columns[:, bit])
        # fold: the lower bits of x remain
        leaves = leaves[:, :half] ^ leaves[:, half:]
    u: BitArray = leaves[:, 0]
    return u


# --- leaf streams ---------------------------------------------------------------------------------

BLOCKS_AT_ONCE = 1 << 13
"""Blocks of streams that are made together: 128 KiB."""


class LeafStreams:
    """The streams of a channel's leaves, from their start. Each byte is handed out once.

    permuted: π(s) of all leaves, (digits, leaves, 2) uint64; that of a missing leaf is not read.
    tag: (2,) uint64, of the channel.
    lacks_first: whether leaf 0 of each digit is missing.
    """

    def __init__(
        self, permuted: WordArray, tag: WordArray, tree_hash: FixedKeyHash, lacks_first: bool
    ):
        self.lacks_first = lacks_first
        self._start: WordArray = permuted ^ tag
        self._hash = tree_hash
        self._next = 0

    def __repr__(self) -> str:
        return f"LeafStreams({len(self._start)} digits, <redacted>)"

    def bytes(self, width: int) -> Iterator[tuple[slice, BitArray]]:
        """The next bytes of every leaf, for some digits after the other.

        The rest of a block of 16 bytes is left out. Digits come together as long as their streams
        fit a cache: so a short batch takes few calls, and a long one little memory.

        Yields: the digits, and (digits, leaves, width) uint8, zeros for a missing leaf.
        """
        blocks = -(-width // BLOCK_BYTES)
        numbers = np.arange(self._next, self._next + blocks, dtype=np.uint64)
        self._next += blocks
        digits, leaves, _ = self._start.shape
        step = max(1, BLOCKS_AT_ONCE // max(1, leaves * blocks))
        for first in range(0, digits, step):
            start = self._start[first : first + step]
            # Guo et al. 2020, TMMO: y = π(s) ⊕ tag ⊕ j
            y = np.empty((len(start), leaves, blocks, 2), dtype=np.uint64)
            np.bitwise_xor(start[:, :, None, 0], numbers, out=y[..., 0])
            y[..., 1] = start[:, :, None, 1]
            # π(y) ⊕ y (spec/transfers.py, `leaf_stream`)
            octets = self._hash(y.reshape(-1, 2)).view(np.uint8)
            octets = octets.reshape(len(start), leaves, -1)[:, :, :width]
            if self.lacks_first:
                # leaf 0 is the missing one: it counts as zeros
                octets[:, 0] = 0
            yield slice(first, first + len(start)), octets

    def combined(self, width: int) -> tuple[BitArray, BitArray]:
        """The next bytes by the compiled kernel: v of each column, and u of each digit.

        Returns: (digits, fold, width) and (digits, width) uint8, as `stretched`.
        """
        number = self._next
        self._next += -(-width // BLOCK_BYTES)
        return compiled.stretch(self._hash.key, self._start, self.lacks_first, number, width)


class ChannelLeaves:
    """The leaves of all digits of a channel, and of its forks.

    permuted: π(s) of all leaves, (digits, leaves, 2) uint64; that of a missing leaf is not read.
    root: 32 bytes from which the channel's tag follows. It is public.
    """

    def __init__(
        self, permuted: WordArray, root: bytes, tree_hash: FixedKeyHash, lacks_first: bool
    ):
        self._permuted = permuted
        self.root = root
        self._hash = tree_hash
        self._lacks_first = lacks_first

    @classmethod
    def of(
        cls, digits: Sequence[Sequence[bytes]], session: bytes, *, lacks_first: bool
    ) -> ChannelLeaves:
        """The leaves of a session's first channel.

        digits: for each digit the leaf seeds that are here, all the same number of them.
        """
        # π's key is public, and one for each session
        public = derive(bytes(2 * BLOCK_BYTES), "ot leaves", session)
        tree_hash = FixedKeyHash(public)
        missing = [bytes(BLOCK_BYTES)] if lacks_first else []
        joined = b"".join(leaf[:BLOCK_BYTES] for leaves in digits for leaf in [*missing, *leaves])
        leaves = np.frombuffer(joined, dtype="<u8").astype(np.uint64).reshape(-1, 2)
        # π(s) = hash(s) ⊕ s, once for all batches
        permuted = (tree_hash(leaves) ^ leaves).reshape(len(digits), -1, 2)
        return cls(permuted, derive(public, "ot batches"), tree_hash, lacks_first)

    def __repr__(self) -> str:
        return f"ChannelLeaves({len(self._permuted)} digits, <redacted>)"

    def __len__(self) -> int:
        """The number of digits."""
        return len(self._permuted)

    def fork(self, labels: Sequence[str | int]) -> ChannelLeaves:
        """The leaves of another channel of the same seeds. No two channels have one tag."""
        # another tag: streams that share no input of π
        root = derive(self.root, "ot fork", *labels)
        return ChannelLeaves(self._permuted, root, self._hash, self._lacks_first)

    def streams(self) -> LeafStreams:
        """The streams of all digits, from their start."""
        tag = np.frombuffer(self.root[:BLOCK_BYTES], dtype="<u8").astype(np.uint64)
        return LeafStreams(self._permuted, tag, self._hash, self._lacks_first)
