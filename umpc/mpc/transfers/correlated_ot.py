"""Correlated oblivious transfers by the million: q_j, and t_j = q_j ⊕ r_j·Δ.

They are made from 128 base transfers.

Papers: Ishai, Kilian, Nissim & Petrank 2003 (IKNP) for fold 1; Roy 2022, SoftSpokenOT (eprint
2022/192), sections 3.1 and 5 with the repetition code, semi-honest, for fold 2, 4 and 8.

The *sender* holds Δ (128 bits, the lowest 1; IKNP's s) and gets a block q_j for each transfer. The
*receiver* chooses bits r_j and gets t_j. A block is 128 bits as (2,) uint64, bit i in word i // 64.
The blocks are wire labels of a garbled circuit whose garbler is the sender: q_j is the label of 0,
q_j ⊕ Δ that of 1, the lowest bit the color. t_j is the label of r_j.

Δ is cut into 128/fold digits. For each digit the receiver holds 2^fold leaf seeds. The sender holds
all but the one numbered by its digit: a punctured tree from `fold` base transfers, in which the
sender of the extension is the receiver. From leaves L_x, stretched to one bit a transfer, with x
running over all digits:

    u = ⊕ L_x      v_i = ⊕ L_x over x with bit i      t's column i is v_i      sent: d = u ⊕ r
    the sender computes v_i ⊕ Δ_i·u without L_Δ, adds Δ_i·d, and has v_i ⊕ Δ_i·r: q's column i

Reveals, and why that is safe:

- The sender sees d, one row a digit. The leaf L_Δ that it lacks is in u, so d is pseudorandom to
  it: it learns nothing of r. Assumption: the base transfers; SHAKE-256 (trees) as a pseudorandom
  function; AES-128 as an ideal permutation (`leaf_streams.py`).
- The receiver sees the points of the base transfers, which are uniform whatever Δ is, and nothing
  after. But where r_j = 1, q_j ⊕ t_j = Δ: never show it a q_j as it is. `ot_products.py` hashes
  first.
- Semi-honest security only: a receiver that sends rows for different r can test bits of Δ (KOS 2015
  and SoftSpoken add a check). A sender that deviates learns nothing of r.

Fold trades communication for computation: 128/fold bits a transfer against 2^fold/fold AES blocks
for each 128 bits of block. Fold 2 costs as much computation as fold 1. Fold 4, the default, costs
twice that for a quarter of the bytes.

Batches: each `extend` makes the next batch. The streams run on, so a batch exists once.
Message.round carries its number, and a message of another number or shape is refused before
anything is computed. `fork` gives both parties another pair of the same Δ, whose batches may come
in any order among those of others: it has streams of its own, by a label that both know and
neither uses twice. A fork costs one hash: its leaves are the same, under another tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import shake_256

import numpy as np

from umpc.crypto.prg import SEED_BYTES, Stream, derive
from umpc.crypto.rounds import Message, Protocol, check_reply
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.transfers.base_ot import (
    CHOICE,
    OFFER,
    key_message,
    receive_seeds,
    send_seeds,
    silence,
)
from umpc.mpc.transfers.leaf_streams import ChannelLeaves, DigitStreams

BLOCK_BITS = 128
FOLD = 4
FOLDS = (1, 2, 4, 8)
PART = 1 << 17
"""Transfers made together, whose rows lie together in a message."""

TREES, EXTEND = "ot_trees", "ot_extend"


@dataclass(frozen=True)
class Blocks:
    """One party's side of a batch.

    start: the number of its first transfer. blocks: (n, 2) uint64.
    """

    start: int
    blocks: WordArray

    def __repr__(self) -> str:
        return f"Blocks({self.start} + {len(self.blocks)}, <redacted>)"


def fresh_delta(seed: bytes) -> WordArray:
    """Δ: (2,) uint64, uniform but for the lowest bit, which is 1."""
    words: WordArray = Stream(derive(seed, "ot delta")).words(2)
    lowest: WordArray = np.array([1, 0], dtype=np.uint64)
    return words | lowest


def extension_bytes(count: int, fold: int = FOLD) -> int:
    """Bytes of a batch's one message, receiver to sender."""
    return BLOCK_BITS // fold * ((count + 7) // 8)


def set_up_shapes(fold: int = FOLD) -> list[tuple[bool, Message]]:
    """The set-up, round by round: whether the sender speaks, and its message.

    Each message has zero bytes in place of its content.
    """
    trees = _trees_message(bytes(_trees_bytes(fold)), fold)
    messages = [
        (False, key_message(OFFER, 2)),
        (True, key_message(CHOICE, BLOCK_BITS)),
        (False, trees),
    ]
    return [(speaks, message) for speaks, message in messages if message.width]


def extend_shape(count: int, batch: int, fold: int = FOLD) -> Message:
    """A batch's one message, with zero bytes in place of its content. batch: its number, from 1."""
    return _extend_message(bytes(extension_bytes(count, fold)), count, fold, batch)


def open_sender(
    seed: bytes, delta: WordArray, session: bytes, peer: str, fold: int = FOLD
) -> Protocol[CorrelatedSender]:
    """The sender's side of the set-up, three rounds.

    Args:
        seed: 32 uniform bytes, for this call alone.
        delta: (2,) uint64, lowest bit 1; may serve several sessions of this sender.
        session: names this run; the same for both parties, no two runs alike.
        peer: the receiver's name, for errors.

    Raises: RemoteProtocolError, EncodingError.
    """
    _check_fold(fold)
    if delta.shape != (2,) or delta.dtype != np.uint64 or not int(delta[0]) & 1:
        raise LocalProtocolError("the offset is two 64-bit words, the lowest bit 1")
    bits = np.unpackbits(delta.astype("<u8").view(np.uint8), bitorder="little")
    # IKNP, step 1: base transfers, in which the sender chooses by s = Δ, here by its complement
    keys = yield from receive_seeds(seed, [1 - bit for bit in bits.tolist()], session, peer)
    # SoftSpoken, section 5: the receiver's sums puncture the trees at Δ's digits
    (reply,) = yield silence(TREES)
    check_reply(reply, _trees_message(bytes(_trees_bytes(fold)), fold), peer)
    digits = []
    size = len(reply.payload) // (BLOCK_BITS // fold)
    for number, place in enumerate(range(0, BLOCK_BITS, fold)):
        sums = reply.payload[number * size : (number + 1) * size]
        digit = bits[place : place + fold].tolist()
        digits.append(_punctured(keys[place : place + fold], digit, sums))
    leaves = ChannelLeaves.of(digits, session, lacks_first=True)
    return CorrelatedSender(delta, bits, leaves, session, peer)


def open_receiver(
    seed: bytes, session: bytes, peer: str, fold: int = FOLD
) -> Protocol[CorrelatedReceiver]:
    """The receiver's side of the set-up; arguments and failures are those of open_sender."""
    _check_fold(fold)
    pairs = yield from send_seeds(seed, BLOCK_BITS, session, peer)
    trees = [_tree(pairs[place : place + fold]) for place in range(0, BLOCK_BITS, fold)]
    (reply,) = yield _trees_message(b"".join(sums for _, sums in trees), fold)
    check_reply(reply, silence(TREES), peer)
    leaves = ChannelLeaves.of([leaves for leaves, _ in trees], session, lacks_first=False)
    return CorrelatedReceiver(leaves, session)


class CorrelatedReceiver:
    """The receiver's end of a channel: it chooses r_j and gets t_j.

    leaves: for each digit of Δ all its leaves. session: names the channel.
    """

    def __init__(self, leaves: ChannelLeaves, session: bytes):
        self.session = session
        self.fold = BLOCK_BITS // len(leaves)
        self._leaves = leaves
        self._batch = 0
        self._done = 0

    def __repr__(self) -> str:
        return f"CorrelatedReceiver({self._done} transfers, <redacted>)"

    @cached_property
    def _streams(self) -> list[DigitStreams]:
        """The leaves' streams. A channel that is only forked needs none."""
        return self._leaves.streams()

    def fork(self, *labels: str | int) -> CorrelatedReceiver:
        """Another channel of the same Δ, by labels that both parties know and use once."""
        return CorrelatedReceiver(self._leaves.fork(labels), self.session)

    def extend(self, choices: BitArray) -> tuple[Blocks, Message]:
        """The next batch: t, and the message to the sender. choices: (n,) uint8 of 0 and 1."""
        if choices.ndim != 1 or choices.dtype != np.uint8 or (choices > 1).any():
            raise LocalProtocolError("choices are a row of bytes, 0 or 1")
        blocks = np.empty((len(choices), 2), dtype=np.uint64)
        payload = []
        for start in range(0, len(choices), PART):
            packed = np.packbits(choices[start : start + PART], bitorder="little")
            rows = np.empty((BLOCK_BITS // self.fold, self.fold, len(packed)), dtype=np.uint8)
            for streams, columns in zip(self._streams, rows, strict=True):
                # Column i of t is v_i; the message is d = u ⊕ r (IKNP: the rows t^i and r ⊕ t^i).
                u = _combine(_stretch(streams, len(packed)), columns)
                payload.append((u ^ packed).tobytes())
            _transpose_into(rows, blocks[start : start + PART])
        batch = Blocks(self._done, blocks)
        self._batch += 1
        self._done += len(choices)
        return batch, _extend_message(b"".join(payload), len(choices), self.fold, self._batch)


class CorrelatedSender:
    """The sender's end of a channel: it holds Δ and gets q_j.

    bits: (128,) uint8 of Δ. leaves: for each digit of Δ its leaves, renumbered so that the missing
    one is the first. peer: the receiver's name, for errors.
    """

    def __init__(
        self,
        delta: WordArray,
        bits: BitArray,
        leaves: ChannelLeaves,
        session: bytes,
        peer: str,
    ):
        self.delta = delta
        self.session = session
        self.peer = peer
        self.fold = BLOCK_BITS // len(leaves)
        self._bits = bits
        self._leaves = leaves
        self._masks = (np.uint8(0) - bits).reshape(-1, self.fold, 1)  # Δ_i as bytes 0 or 255
        self._batch = 0
        self._done = 0

    def __repr__(self) -> str:
        return f"CorrelatedSender({self._done} transfers, <redacted>)"

    @cached_property
    def _streams(self) -> list[DigitStreams]:
        """The leaves' streams. A channel that is only forked needs none."""
        return self._leaves.streams()

    def fork(self, *labels: str | int) -> CorrelatedSender:
        """Another channel of the same Δ, by labels that both parties know and use once."""
        leaves = self._leaves.fork(labels)
        return CorrelatedSender(self.delta, self._bits, leaves, self.session, self.peer)

    def extend(self, message: Message, count: int) -> Blocks:
        """The next batch of `count` transfers: q, from the receiver's message.

        Raises: RemoteProtocolError on a message of another batch or shape; the batch then stays
            due.
        """
        check_reply(message, extend_shape(count, self._batch + 1, self.fold), self.peer)
        received = np.frombuffer(message.payload, dtype=np.uint8)
        blocks = np.empty((count, 2), dtype=np.uint64)
        place = 0
        for start in range(0, count, PART):
            width = (min(PART, count - start) + 7) // 8
            rows = np.empty((BLOCK_BITS // self.fold, self.fold, width), dtype=np.uint8)
            for streams, masks, columns in zip(self._streams, self._masks, rows, strict=True):
                # Column i of q is v_i ⊕ Δ_i·u ⊕ Δ_i·d (IKNP: q^i = s_i·r ⊕ t^i).
                _combine(_stretch(streams, width), columns)
                columns ^= received[place : place + width] & masks
                place += width
            _transpose_into(rows, blocks[start : start + PART])
        batch = Blocks(self._done, blocks)
        self._batch += 1
        self._done += count
        return batch


def transpose(rows: BitArray) -> WordArray:
    """128 rows of n bits as n blocks (Eklundh 1972, on 64 × 64 bits at a time).

    Args: rows: (128, 8m) uint8, bits packed with the lowest first.
    Returns: (64m, 2) uint64; bit i of block j is bit j of row i.
    """
    words = np.ascontiguousarray(rows).view("<u8").astype(np.uint64).reshape(2, 64, -1)
    for step in (32, 16, 8, 4, 2, 1):
        shift = np.uint64(step)
        low = np.uint64(sum(1 << bit for bit in range(64) if not bit & step))
        pairs = words.reshape(2, 32 // step, 2, step, -1)
        upper = pairs[:, :, 0]
        lower = pairs[:, :, 1]
        moved = upper >> shift
        moved ^= lower
        moved &= low
        lower ^= moved
        moved <<= shift
        upper ^= moved
    return np.ascontiguousarray(words.transpose(2, 1, 0)).reshape(-1, 2)


def _transpose_into(rows: BitArray, blocks: WordArray) -> None:
    """Rows of packed bits as blocks; the padding of the last byte is dropped."""
    rows = rows.reshape(BLOCK_BITS, -1)
    missing = -rows.shape[1] % 8
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)))
    blocks[:] = transpose(rows)[: len(blocks)]


def _stretch(streams: DigitStreams, width: int) -> BitArray:
    """(leaves, width) uint8: the next bytes of every leaf, zeros for the one that is missing."""
    return streams.bytes(width)


def _combine(leaves: BitArray, columns: BitArray) -> BitArray:
    """Write columns[i] = v_i = ⊕ L_x over x with bit i; return u = ⊕ L_x.

    The leaves are halved from the highest bit down.
    """
    for bit in reversed(range(len(columns))):
        half = 1 << bit
        np.bitwise_xor.reduce(leaves[half:], axis=0, out=columns[bit])
        leaves = leaves[:half] ^ leaves[half:]
    u: BitArray = leaves[0]
    return u


def _tree(pairs: Sequence[tuple[bytes, bytes]]) -> tuple[list[bytes], bytes]:
    """All leaves of one digit, lowest bit first, and each lower level's two masked sums."""
    nodes = list(pairs[0])
    sums = b""
    for pair in pairs[1:]:
        children = _children(nodes)
        sums += b"".join(_xor(key, *side) for key, side in zip(pair, children, strict=True))
        nodes = children[0] + children[1]
    return nodes, sums


def _punctured(keys: Sequence[bytes], bits: Sequence[int], sums: bytes) -> list[bytes]:
    """The leaves without number Δ, renumbered: at place y − 1 the leaf y ⊕ Δ. Place 0 is missing.

    keys: at each level that of the bit that Δ does not have.
    """
    nodes = [keys[0]]  # those after the missing one
    for level, (key, bit) in enumerate(zip(keys[1:], bits[1:], strict=True)):
        known = _children(nodes)
        start = 2 * SEED_BYTES * level + SEED_BYTES * (1 - bit)
        sibling = _xor(key, sums[start : start + SEED_BYTES], *known[1 - bit])
        nodes = [*known[bit], sibling, *known[1 - bit]]
    return nodes


def _children(nodes: Sequence[bytes]) -> list[list[bytes]]:
    """The lower children of all nodes, and then the upper ones (GGM 1986)."""
    both = [_expanded(node, "ot tree", 2 * SEED_BYTES) for node in nodes]
    return [[pair[:SEED_BYTES] for pair in both], [pair[SEED_BYTES:] for pair in both]]


def _expanded(seed: bytes, purpose: str, size: int = SEED_BYTES) -> bytes:
    """SHAKE-256 of the purpose and a seed of 32 bytes. It costs a sixth of `derive`."""
    return shake_256(purpose.encode() + seed).digest(size)


def _xor(*seeds: bytes) -> bytes:
    total = 0
    for seed in seeds:
        total ^= int.from_bytes(seed, "little")
    return total.to_bytes(SEED_BYTES, "little")


def _check_fold(fold: int) -> None:
    if fold not in FOLDS:
        raise LocalProtocolError(f"the fold is one of {FOLDS}, not {fold}")


def _trees_bytes(fold: int) -> int:
    return BLOCK_BITS // fold * (fold - 1) * 2 * SEED_BYTES


def _trees_message(payload: bytes, fold: int) -> Message:
    width = 8 * _trees_bytes(fold) // BLOCK_BITS
    return Message(TREES, payload, BLOCK_BITS, width) if width else silence(TREES)


def _extend_message(payload: bytes, count: int, fold: int, batch: int) -> Message:
    """A batch's message, whose count and width are those of the padded rows.

    So the payload is count × width bits.
    """
    return Message(EXTEND, payload, (count + 7) // 8 * 8, BLOCK_BITS // fold, batch)
