"""Correlated oblivious transfers by the million: q_j, and t_j = q_j ⊕ r_j·Δ.

They are made from 128 base transfers (`channel_set_up.py`).

Papers: Ishai, Kilian, Nissim & Petrank 2003 (IKNP) for fold 1; Roy 2022, SoftSpokenOT (eprint
2022/192), sections 3.1 and 5 with the repetition code for fold 2, 4 and 8, and its check.

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
  function; AES-128 as an ideal permutation (`batch_columns.py`).
- The receiver sees the points of the base transfers, which are uniform whatever Δ is, and nothing
  after. But where r_j = 1, q_j ⊕ t_j = Δ: never show it a q_j as it is. `ot_products.py` hashes
  first.
- A receiver that sends rows for different r would test bits of Δ. So each batch has a proof, and so
  have the trees (`channel_set_up.py`). A sender that deviates learns nothing of r.

Fold trades communication for computation: 128/fold bits a transfer against 2^fold/fold AES blocks
for each 128 bits of block. Fold 2 costs as much computation as fold 1. Fold 4, the default, costs
twice that for a quarter of the bytes.

Batches: each `extend` makes the next batch. The streams run on, so a batch exists once.
Message.round carries its number, and a message of another number or shape is refused before
anything is computed. `fork` gives both parties another pair of the same Δ, whose batches may come
in any order among those of others: it has streams of its own, by a label that both know and
neither uses twice. A fork costs one hash: its leaves are the same, under another tag.

*Correlation check.* The check that a receiver of correlated transfers chose one bit for each
transfer.

Paper: Roy 2022, SoftSpokenOT (eprint 2022/192), its consistency check by a universal hash of every
column; the idea is of Keller, Orsini & Scholl 2015 (KOS, eprint 2015/546).

A receiver that follows the protocol sends d = u ⊕ r with one r in all digits. Column i of the
sender is then q_i = t_i ⊕ Δ_i·r. A receiver that puts other choices into some digits gets columns
that differ from this by a known row wherever the digit of Δ has a certain value. It then learns
that value from the next message. So it tests bits of Δ, and whoever has Δ reads all labels.

    receiver    appends 128 uniform choices to r, sends d; h = a hash of 128 bits, drawn after d;
                sends h(r), and SHA-256 of h(t_i) for all 128 columns
    sender      computes h(q_i) ⊕ Δ_i·h(r) for all i, and requires that hash

h is linear over GF(2): GHASH as AES-GCM computes it (NIST SP 800-38D) under a public key, less its
value of zeros. The key is SHA-256 of the channel, the batch and d (Fiat & Shamir 1986), so the
check takes no round. Two different rows of m blocks collide with probability at most (m + 1)/2^128
a key. The last block of a row is multiplied by a power of GHASH's point alone. So the additional
choices hide h(r), and h(t_i) follows from h(q_i), which the sender has. Roy sends all h(t_i). The
sender only compares them with what it computed, so their SHA-256, a random oracle, says as much.

The guarantee, for a random oracle and up to 2^40 blocks a batch: a receiver that deviates passes
only if it guessed the bits of Δ that its deviation depends on. Guessing c bits ends the study with
probability 1 − 2^−c, and names the receiver. The trees of folds above 1 need a check of their own
(`channel_set_up.py`). A row of a digit goes into all its columns, so a lie in one row tests the
digit's bits together. Nothing here binds the choices to anything else: a receiver may choose any
one bit for each transfer. And nothing here binds the sender.

A sender may add bits b of its own to the choices: its columns are then t_i ⊕ Δ_i·(r ⊕ b), and h(b)
goes to h(r).

Cost: 128 transfers, up to 127 more to fill a block, and CHECK_BYTES, for each part of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from umpc.crypto.prg import BLOCK_BYTES, Stream, derive, digest
from umpc.crypto.rounds import Message, check_reply
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.transfers.batch_columns import (
    ChannelLeaves,
    LeafStreams,
    add_masked,
    stretched,
    transpose_into,
)
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    CHECK_BYTES,
    EXTEND,
    PART,
    extend_message,
    extend_shape,
    extension_bytes,
    row_bytes,
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
    # spec/transfers.py, `fresh_delta`
    words: WordArray = Stream(derive(seed, "ot delta")).words(2)
    # Zahur, Rosulek & Evans 2015: lsb 1, so that colors differ
    lowest: WordArray = np.array([1, 0], dtype=np.uint64)
    return words | lowest


class ChannelEnd:
    """An end of a channel: its leaves, and how many batches and transfers are done.

    leaves: for each digit of Δ. session: names the channel.
    """

    def __init__(self, leaves: ChannelLeaves, session: bytes):
        self.session = session
        self.fold = BLOCK_BITS // len(leaves)
        self.leaves = leaves
        self._batch = 0
        self._done = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._done} transfers, <redacted>)"

    @cached_property
    def _streams(self) -> LeafStreams:
        """The leaves' streams. A channel that is only forked needs none."""
        return self.leaves.streams()

    def _columns(self, width: int) -> tuple[BitArray, BitArray]:
        """The next columns of this width: v of each column, and u of each digit."""
        return stretched(self._streams, self.fold, width)

    def _finish(self, blocks: WordArray) -> Blocks:
        """Count a batch, whose blocks are these."""
        batch = Blocks(self._done, blocks)
        self._batch += 1
        self._done += len(blocks)
        return batch


class CorrelatedReceiver(ChannelEnd):
    """The receiver's end of a channel: it chooses r_j and gets t_j.

    leaves: for each digit of Δ all its leaves. session: names the channel.
    check_seed: 32 uniform bytes of this party's own, for the proofs.
    """

    def __init__(self, leaves: ChannelLeaves, session: bytes, check_seed: bytes):
        super().__init__(leaves, session)
        self._check_seed = check_seed

    def fork(self, *labels: str | int, session: bytes = b"") -> CorrelatedReceiver:
        """Another channel of the same Δ, by labels that both parties know and use once.

        session: names it, so that it hashes apart from others; empty for this channel's name.
        """
        # proofs of a fork have masks of their own
        seed = derive(self._check_seed, "fork", *labels)
        return CorrelatedReceiver(self.leaves.fork(labels), session or self.session, seed)

    def extend(self, choices: BitArray) -> tuple[Blocks, Message]:
        """The next batch: t, and the message to the sender. choices: (n,) uint8 of 0 and 1."""
        if choices.ndim != 1 or choices.dtype != np.uint8 or (choices > 1).any():
            raise LocalProtocolError("choices are a row of bytes, 0 or 1")
        # spec/transfers.py, `extend`, receiver
        blocks = np.empty((len(choices), 2), dtype=np.uint64)
        payload = np.empty(extension_bytes(len(choices), self.fold), dtype=np.uint8)
        place = 0
        for start in range(0, len(choices), PART):
            # Roy 2022: r, and 128 additional choices that hide h(r)
            packed = packed_row(choices[start : start + PART], self._mask(start))
            rows, u = self._columns(len(packed))
            sent = payload[place : place + u.size]
            place += len(sent)
            # Column i of t is v_i; the message is d = u ⊕ r (IKNP: the rows t^i and r ⊕ t^i).
            np.bitwise_xor(u, packed, out=sent.reshape(u.shape))
            # Fiat & Shamir: the key follows from d, which is fixed now
            row_hash = RowHash.after(self.leaves.root, self._batch + 1, start, sent.tobytes())
            proof = prove(row_hash, packed, rows.reshape(BLOCK_BITS, -1))
            payload[place : place + CHECK_BYTES] = np.frombuffer(proof, dtype=np.uint8)
            place += CHECK_BYTES
            # t_j: row j of the columns t_i = v_i
            transpose_into(rows, blocks[start : start + PART])
        batch = self._finish(blocks)
        return batch, extend_message(payload.tobytes(), self._batch)

    def _mask(self, start: int) -> bytes:
        """The additional choices of a part of the batch that is due."""
        return derive(self._check_seed, "mask", self._batch + 1, start)[:BLOCK_BYTES]


class CorrelatedSender(ChannelEnd):
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
        super().__init__(leaves, session)
        self.delta = delta
        self.peer = peer
        self._bits = bits
        self._masks = (np.uint8(0) - bits).reshape(-1, self.fold, 1)  # Δ_i as bytes 0 or 255

    def fork(self, *labels: str | int, session: bytes = b"") -> CorrelatedSender:
        """Another channel of the same Δ; arguments are those of the receiver's fork."""
        leaves = self.leaves.fork(labels)
        name = session or self.session
        return CorrelatedSender(self.delta, self._bits, leaves, name, self.peer)

    def extend(self, message: Message, count: int, turned: BitArray | None = None) -> Blocks:
        """The next batch of `count` transfers: q, from the receiver's message.

        turned: (count,) uint8 of 0 and 1, bits b_j of this party's own: the blocks are then
            q_j ⊕ b_j·Δ. In column i that is one more row under Δ_i, so it costs no pass of its own.

        Raises: RemoteProtocolError on a message of another batch or shape; the batch then stays
            due. Also where the proof does not hold; the channel is then of no more use.
        """
        # a message of another batch is refused before it is used
        check_reply(message, extend_shape(count, self._batch + 1, self.fold), self.peer)
        own = np.zeros(count, dtype=np.uint8) if turned is None else turned
        received = np.frombuffer(message.payload, dtype=np.uint8)
        blocks = np.empty((count, 2), dtype=np.uint64)
        place = 0
        for start in range(0, count, PART):
            # bits of its own: one more row under Δ_i
            added = packed_row(own[start : start + PART], bytes(BLOCK_BYTES))
            width = len(added)
            sent = received[place : place + len(self._masks) * width]
            place += len(sent)
            proof = message.payload[place : place + CHECK_BYTES]
            place += CHECK_BYTES
            rows, _ = self._columns(width)
            # Column i of q is v_i ⊕ Δ_i·u ⊕ Δ_i·d (IKNP: q^i = s_i·r ⊕ t^i).
            add_masked(rows, sent.reshape(-1, 1, width) ^ added, self._masks)
            row_hash = RowHash.after(self.leaves.root, self._batch + 1, start, sent.tobytes())
            # before any block leaves: a wrong d tests bits of Δ
            self._check(row_hash, rows.reshape(BLOCK_BITS, -1), proof, added)
            # q_j = t_j ⊕ r_j·Δ
            transpose_into(rows, blocks[start : start + PART])
        return self._finish(blocks)

    def _check(self, row_hash: RowHash, columns: BitArray, proof: bytes, added: BitArray) -> None:
        """Raises: RemoteProtocolError where a part's choices are not the same in all digits."""
        if not holds(row_hash, self._bits, columns, proof, added):
            raise RemoteProtocolError(
                f"{self.peer} sent choices of transfers that do not fit together ({EXTEND}); such "
                "a message can test secret bits, so the study ends",
                culprit=self.peer,
                step=EXTEND,
            )


# --- correlation check ----------------------------------------------------------------------------

_NONCE = bytes(12)


class RowHash:
    """h: rows of octets → 16 bytes each, linear over GF(2) on rows of one length.

    key: 16 bytes, of which nothing was known when the rows were chosen.
    """

    def __init__(self, key: bytes):
        self._gcm = AESGCM(key[:BLOCK_BYTES])

    @classmethod
    def after(cls, channel: bytes, batch: int, part: int, sent: bytes) -> RowHash:
        """The hash of a part of a batch. sent: d, which the receiver can no longer change."""
        # one key a part: rows and key are never chosen together
        place = batch.to_bytes(8, "little") + part.to_bytes(8, "little")
        return cls(digest(b"umpc correlation check 1", channel, place, sent))

    def __call__(self, rows: BitArray) -> BitArray:
        """(n, 16) uint8 of contiguous rows (n, width) uint8."""
        # GHASH of each row, under a fixed pad
        tags = b"".join(self._gcm.encrypt(_NONCE, b"", row.data) for row in rows)
        of_zeros = self._gcm.encrypt(_NONCE, b"", bytes(rows.shape[1]))
        found = np.frombuffer(tags, dtype=np.uint8).reshape(-1, BLOCK_BYTES)
        # less the value of zeros: linear over GF(2)
        linear: BitArray = found ^ np.frombuffer(of_zeros, dtype=np.uint8)
        return linear


def packed_row(bits: BitArray, mask: bytes) -> BitArray:
    """Bits (n,) of 0 and 1 as a row of packed ones: zeros up to a whole block, then the mask.

    mask: 16 bytes, the additional choices.
    """
    row = np.zeros(row_bytes(len(bits)), dtype=np.uint8)
    packed = np.packbits(bits, bitorder="little")
    row[: len(packed)] = packed
    # the last block alone carries the mask
    row[-BLOCK_BYTES:] = np.frombuffer(mask, dtype=np.uint8)
    return row


def prove(row_hash: RowHash, choices: BitArray, columns: BitArray) -> bytes:
    """h(r), and the hash of all h(t_i).

    choices: a packed row (width,) uint8. columns: (128, width) uint8.
    """
    # Roy 2022 sends all h(t_i); their hash says as much
    return row_hash(choices[None]).tobytes() + _joint(row_hash(columns))


def holds(
    row_hash: RowHash, bits: BitArray, columns: BitArray, proof: bytes, turned: BitArray
) -> bool:
    """Whether the proof fits the sender's columns q_i, to which Δ_i·turned was added.

    bits: (128,) uint8, of Δ. turned: a packed row (width,) uint8, the sender's own.
    """
    of_choices = np.frombuffer(proof, dtype=np.uint8, count=BLOCK_BYTES)
    # h(q_i) ⊕ Δ_i·h(r) = h(t_i) for honest choices
    due = row_hash(columns) ^ bits[:, None] * (of_choices ^ row_hash(turned[None]))
    return proof[BLOCK_BYTES:] == _joint(due)


def _joint(hashes: BitArray) -> bytes:
    return digest(b"umpc correlation check 2", hashes.tobytes())
