"""The pseudorandom streams of a channel's leaf seeds, all leaves of a digit at once.

Paper: Guo, Katz, Wang & Yu 2020 (eprint 2019/074), section 7.4. Block j of the stream of leaf s is

    π(y) ⊕ y     with y = π(s) ⊕ tag ⊕ j

where π is AES-128 under a public key of the session, the tag names the channel, and s are the first
16 bytes of the leaf seed. This is their hash TMMO, H(s, tag ⊕ j). A leaf s is uniform and stands
in nothing else. So for an ideal π the streams are uniform to whoever lacks s, up to about
2^−128 · blocks · calls of π. Garbled gates take the same assumption (`garbled/garbling.py`).

One call of AES stretches all leaves of a digit. A stream of its own for each leaf, AES in counter
mode under the leaf as its key, would need a key schedule and an object for each leaf of each
channel: 512 objects, which cost more than the streams
(docs/decisions/0071-pieces-and-cheap-channels.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.prg import BLOCK_BYTES, FixedKeyHash, derive
from umpc.mpc.arrays import BitArray, WordArray


class DigitStreams:
    """The streams of the leaves of one digit, from their start. Each byte is handed out once.

    permuted: π(s) of all leaves that are here, (leaves, 2) uint64.
    tag: (2,) uint64, of the channel.
    lacks_first: whether leaf 0 is missing: `permuted` then begins with leaf 1.
    """

    def __init__(
        self, permuted: WordArray, tag: WordArray, tree_hash: FixedKeyHash, lacks_first: bool
    ):
        self.lacks_first = lacks_first
        self._start = permuted ^ tag
        self._hash = tree_hash
        self._next = 0

    def __repr__(self) -> str:
        return f"DigitStreams({len(self)} leaves, <redacted>)"

    def __len__(self) -> int:
        """The number of leaves; a missing one counts."""
        return len(self._start) + self.lacks_first

    def bytes(self, width: int) -> BitArray:
        """(leaves, width) uint8: the next bytes of every leaf, zeros for a missing one.

        The rest of a block of 16 bytes is left out.
        """
        blocks = -(-width // BLOCK_BYTES)
        numbers = np.arange(self._next, self._next + blocks, dtype=np.uint64)
        self._next += blocks
        y = np.empty((len(self._start), blocks, 2), dtype=np.uint64)
        np.bitwise_xor(self._start[:, None, 0], numbers, out=y[..., 0])
        y[..., 1] = self._start[:, None, 1]
        missing = blocks if self.lacks_first else 0
        room = np.empty((missing + len(self._start) * blocks + 1, 2), dtype=np.uint64)
        room[:missing] = 0
        self._hash.into(y.reshape(-1, 2), room[missing:])
        octets: BitArray = room[:-1].view(np.uint8).reshape(len(self), -1)[:, :width]
        return octets


class ChannelLeaves:
    """The leaves of all digits of a channel, and of its forks.

    permuted: for each digit π(s) of its leaves, (leaves, 2) uint64.
    root: 32 bytes from which the channel's tag follows. It is public.
    """

    def __init__(
        self, permuted: Sequence[WordArray], root: bytes, tree_hash: FixedKeyHash, lacks_first: bool
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
        joined = b"".join(leaf[:BLOCK_BYTES] for leaves in digits for leaf in leaves)
        leaves = np.frombuffer(joined, dtype="<u8").astype(np.uint64).reshape(-1, 2)
        permuted = (tree_hash(leaves) ^ leaves).reshape(len(digits), -1, 2)
        return cls(list(permuted), derive(public, "ot batches"), tree_hash, lacks_first)

    def __repr__(self) -> str:
        return f"ChannelLeaves({len(self._permuted)} digits, <redacted>)"

    def __len__(self) -> int:
        """The number of digits."""
        return len(self._permuted)

    def fork(self, labels: Sequence[str | int]) -> ChannelLeaves:
        """The leaves of another channel of the same seeds. No two channels have one tag."""
        root = derive(self.root, "ot fork", *labels)
        return ChannelLeaves(self._permuted, root, self._hash, self._lacks_first)

    def streams(self) -> list[DigitStreams]:
        """The streams of all digits, from their start."""
        tag = np.frombuffer(self.root[:BLOCK_BYTES], dtype="<u8").astype(np.uint64)
        return [DigitStreams(each, tag, self._hash, self._lacks_first) for each in self._permuted]
