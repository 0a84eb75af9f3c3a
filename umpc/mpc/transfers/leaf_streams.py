"""The pseudorandom streams of a channel's leaf seeds, many leaves at once.

Paper: Guo, Katz, Wang & Yu 2020 (eprint 2019/074), section 7.4. Block j of the stream of leaf s is

    π(y) ⊕ y     with y = π(s) ⊕ tag ⊕ j

where π is AES-128 under a public key of the session, the tag names the channel, and s are the first
16 bytes of the leaf seed. This is their hash TMMO, H(s, tag ⊕ j). A leaf s is uniform and stands
in nothing else. So for an ideal π the streams are uniform to whoever lacks s, up to about
2^−128 · blocks · calls of π. Garbled gates take the same assumption (`garbled/garbling.py`).

One call of AES stretches all leaves of some digits. A stream of its own for each leaf, AES in
counter mode under the leaf as its key, would need a key schedule and an object for each leaf of
each channel: 512 objects, which cost more than the streams
(docs/decisions/0071-pieces-and-cheap-channels.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto.prg import BLOCK_BYTES, FixedKeyHash, derive
from umpc.mpc.arrays import BitArray, WordArray
from umpc.native import garbled as compiled

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
            y = np.empty((len(start), leaves, blocks, 2), dtype=np.uint64)
            np.bitwise_xor(start[:, :, None, 0], numbers, out=y[..., 0])
            y[..., 1] = start[:, :, None, 1]
            octets = self._hash(y.reshape(-1, 2)).view(np.uint8)
            octets = octets.reshape(len(start), leaves, -1)[:, :, :width]
            if self.lacks_first:
                octets[:, 0] = 0
            yield slice(first, first + len(start)), octets

    def combined(self, width: int) -> tuple[BitArray, BitArray]:
        """The next bytes by the compiled kernel: v of each column, and u of each digit.

        Returns: (digits, fold, width) and (digits, width) uint8, as `batch_columns.Columns`.
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
        public = derive(bytes(2 * BLOCK_BYTES), "ot leaves", session)
        tree_hash = FixedKeyHash(public)
        missing = [bytes(BLOCK_BYTES)] if lacks_first else []
        joined = b"".join(leaf[:BLOCK_BYTES] for leaves in digits for leaf in [*missing, *leaves])
        leaves = np.frombuffer(joined, dtype="<u8").astype(np.uint64).reshape(-1, 2)
        permuted = (tree_hash(leaves) ^ leaves).reshape(len(digits), -1, 2)
        return cls(permuted, derive(public, "ot batches"), tree_hash, lacks_first)

    def __repr__(self) -> str:
        return f"ChannelLeaves({len(self._permuted)} digits, <redacted>)"

    def __len__(self) -> int:
        """The number of digits."""
        return len(self._permuted)

    def fork(self, labels: Sequence[str | int]) -> ChannelLeaves:
        """The leaves of another channel of the same seeds. No two channels have one tag."""
        root = derive(self.root, "ot fork", *labels)
        return ChannelLeaves(self._permuted, root, self._hash, self._lacks_first)

    def streams(self) -> LeafStreams:
        """The streams of all digits, from their start."""
        tag = np.frombuffer(self.root[:BLOCK_BYTES], dtype="<u8").astype(np.uint64)
        return LeafStreams(self._permuted, tag, self._hash, self._lacks_first)
