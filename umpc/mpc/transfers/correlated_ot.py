"""Correlated oblivious transfers by the million: q_j, and t_j = q_j ⊕ r_j·Δ.

They are made from 128 base transfers (`channel_set_up.py`).

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
- A receiver that sends rows for different r can test bits of Δ, unless the channel is checked
  (`correlation_check.py`, `seed_trees.py`). A sender that deviates learns nothing of r.

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

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from umpc.crypto.prg import BLOCK_BYTES, Stream, derive
from umpc.crypto.rounds import Message, check_reply
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.transfers.batch_columns import Columns, add_masked, transpose_into
from umpc.mpc.transfers.correlation_check import RowHash, holds, prove, with_mask
from umpc.mpc.transfers.leaf_streams import ChannelLeaves, LeafStreams
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    CHECK_BYTES,
    EXTEND,
    PART,
    checked_width,
    extend_message,
    extend_shape,
    extension_bytes,
)


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


class CorrelatedReceiver:
    """The receiver's end of a channel: it chooses r_j and gets t_j.

    leaves: for each digit of Δ all its leaves. session: names the channel.
    check_seed: 32 uniform bytes of this party's own, if its batches are checked; else empty.
    """

    def __init__(self, leaves: ChannelLeaves, session: bytes, check_seed: bytes = b""):
        self.session = session
        self.fold = BLOCK_BITS // len(leaves)
        self._leaves = leaves
        self._check_seed = check_seed
        self._ahead: Columns | None = None
        self._batch = 0
        self._done = 0

    def __repr__(self) -> str:
        return f"CorrelatedReceiver({self._done} transfers, <redacted>)"

    @cached_property
    def _streams(self) -> LeafStreams:
        """The leaves' streams. A channel that is only forked needs none."""
        return self._leaves.streams()

    @property
    def checked(self) -> bool:
        """Whether this party proves its batches."""
        return bool(self._check_seed)

    def fork(self, *labels: str | int, session: bytes = b"") -> CorrelatedReceiver:
        """Another channel of the same Δ, by labels that both parties know and use once.

        session: names it, so that it hashes apart from others; empty for this channel's name.
        """
        seed = derive(self._check_seed, "fork", *labels) if self._check_seed else b""
        return CorrelatedReceiver(self._leaves.fork(labels), session or self.session, seed)

    def extend(self, choices: BitArray) -> tuple[Blocks, Message]:
        """The next batch: t, and the message to the sender. choices: (n,) uint8 of 0 and 1."""
        if choices.ndim != 1 or choices.dtype != np.uint8 or (choices > 1).any():
            raise LocalProtocolError("choices are a row of bytes, 0 or 1")
        is_checked = self.checked
        blocks = np.empty((len(choices), 2), dtype=np.uint64)
        size = extension_bytes(len(choices), self.fold, checked=is_checked)
        payload = np.empty(size, dtype=np.uint8)
        place = 0
        for start in range(0, len(choices), PART):
            packed = np.packbits(choices[start : start + PART], bitorder="little")
            if is_checked:
                packed = with_mask(packed, self._mask(start))
            columns = self._ahead or Columns.of(self._streams, self.fold, len(packed))
            self._ahead = None
            rows, u = columns.of_width(len(packed))
            sent = payload[place : place + u.size]
            place += len(sent)
            # Column i of t is v_i; the message is d = u ⊕ r (IKNP: the rows t^i and r ⊕ t^i).
            np.bitwise_xor(u, packed, out=sent.reshape(u.shape))
            if is_checked:
                row_hash = RowHash.after(self._leaves.root, self._batch + 1, start, sent.tobytes())
                proof = prove(row_hash, packed, rows.reshape(BLOCK_BITS, -1))
                payload[place : place + CHECK_BYTES] = np.frombuffer(proof, dtype=np.uint8)
                place += CHECK_BYTES
            columns.blocks_into(blocks[start : start + PART])
        batch = Blocks(self._done, blocks)
        self._batch += 1
        self._done += len(choices)
        due_message = payload.tobytes(), len(choices), self.fold, self._batch
        return batch, extend_message(*due_message, checked=is_checked)

    def stretch_ahead(self, count: int) -> None:
        """Do the part of the next batch, of so many transfers, that its choices do not change.

        That is all but one XOR and the proof: t does not depend on the choices.
        """
        if self._ahead is None and count <= PART:
            width = _width(count, checked=self.checked)
            self._ahead = Columns.of(self._streams, self.fold, width).transposed(count)

    def _mask(self, start: int) -> bytes:
        """The additional choices of a part of the batch that is due."""
        return derive(self._check_seed, "mask", self._batch + 1, start)[:BLOCK_BYTES]


class CorrelatedSender:
    """The sender's end of a channel: it holds Δ and gets q_j.

    bits: (128,) uint8 of Δ. leaves: for each digit of Δ its leaves, renumbered so that the missing
    one is the first. peer: the receiver's name, for errors. checked: whether its batches are.
    """

    def __init__(
        self,
        delta: WordArray,
        bits: BitArray,
        leaves: ChannelLeaves,
        session: bytes,
        peer: str,
        *,
        checked: bool = False,
    ):
        self.delta = delta
        self.session = session
        self.peer = peer
        self.checked = checked
        self.fold = BLOCK_BITS // len(leaves)
        self._bits = bits
        self._leaves = leaves
        self._masks = (np.uint8(0) - bits).reshape(-1, self.fold, 1)  # Δ_i as bytes 0 or 255
        self._ahead: Columns | None = None
        self._batch = 0
        self._done = 0

    def __repr__(self) -> str:
        return f"CorrelatedSender({self._done} transfers, <redacted>)"

    @cached_property
    def _streams(self) -> LeafStreams:
        """The leaves' streams. A channel that is only forked needs none."""
        return self._leaves.streams()

    def fork(self, *labels: str | int, session: bytes = b"") -> CorrelatedSender:
        """Another channel of the same Δ; arguments are those of the receiver's fork."""
        leaves = self._leaves.fork(labels)
        name = session or self.session
        return CorrelatedSender(
            self.delta, self._bits, leaves, name, self.peer, checked=self.checked
        )

    def extend(self, message: Message, count: int, turned: BitArray | None = None) -> Blocks:
        """The next batch of `count` transfers: q, from the receiver's message.

        turned: (count,) uint8 of 0 and 1, bits b_j of this party's own: the blocks are then
            q_j ⊕ b_j·Δ. In column i that is one more row under Δ_i, so it costs no pass of its own.

        Raises: RemoteProtocolError on a message of another batch or shape; the batch then stays
            due. Also where a checked batch does not hold; the channel is then of no more use.
        """
        due = extend_shape(count, self._batch + 1, self.fold, checked=self.checked)
        check_reply(message, due, self.peer)
        received = np.frombuffer(message.payload, dtype=np.uint8)
        blocks = np.empty((count, 2), dtype=np.uint64)
        place = 0
        for start in range(0, count, PART):
            width = _width(min(PART, count - start), checked=self.checked)
            sent = received[place : place + len(self._masks) * width]
            place += len(sent)
            columns = self._ahead or Columns.of(self._streams, self.fold, width)
            self._ahead = None
            rows, _ = columns.of_width(width)
            # Column i of q is v_i ⊕ Δ_i·u ⊕ Δ_i·d (IKNP: q^i = s_i·r ⊕ t^i).
            added = sent.reshape(-1, 1, width)
            part = blocks[start : start + PART]
            own = None if turned is None else _packed(turned[start : start + PART], width)
            if not self.checked:
                added = added if own is None else added ^ own
                transpose_into(rows, part, added, self._masks)
                continue
            add_masked(rows, added, self._masks)
            proof = message.payload[place : place + CHECK_BYTES]
            self._check(rows, start, sent.tobytes(), proof)
            place += CHECK_BYTES
            if own is not None:
                add_masked(rows, np.broadcast_to(own, added.shape), self._masks)
            transpose_into(rows, part)
        batch = Blocks(self._done, blocks)
        self._batch += 1
        self._done += count
        return batch

    def stretch_ahead(self, count: int) -> None:
        """Do the part of the next batch, of so many transfers, that its message does not change."""
        if self._ahead is None and count <= PART:
            self._ahead = Columns.of(self._streams, self.fold, _width(count, checked=self.checked))

    def _check(self, rows: BitArray, start: int, sent: bytes, proof: bytes) -> None:
        """Raises: RemoteProtocolError where a part's choices are not the same in all digits."""
        row_hash = RowHash.after(self._leaves.root, self._batch + 1, start, sent)
        if not holds(row_hash, self._bits, rows.reshape(BLOCK_BITS, -1), proof):
            raise RemoteProtocolError(
                f"{self.peer} sent choices of transfers that do not fit together ({EXTEND}); such "
                "a message can test secret bits, so the study ends",
                culprit=self.peer,
                step=EXTEND,
            )


def _width(count: int, *, checked: bool) -> int:
    """Bytes of a row of so many transfers."""
    width = (count + 7) // 8
    return checked_width(width) if checked else width


def _packed(bits: BitArray, width: int) -> BitArray:
    """Bits as a row of `width` bytes, with zeros behind them."""
    row = np.zeros(width, dtype=np.uint8)
    packed = np.packbits(bits, bitorder="little")
    row[: len(packed)] = packed
    return row
