"""The check that a receiver of correlated transfers chose one bit for each transfer.

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
(`seed_trees.py`). A row of a digit goes into all its columns, so a lie in one row tests the digit's
bits together. Nothing here binds the choices to anything else: a receiver may choose any one bit
for each transfer. And nothing here binds the sender.

A sender may add bits b of its own to the choices: its columns are then t_i ⊕ Δ_i·(r ⊕ b), and h(b)
goes to h(r).

Cost: 128 transfers, up to 127 more to fill a block, and CHECK_BYTES, for each part of a batch.
"""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from umpc.crypto.prg import BLOCK_BYTES, digest
from umpc.mpc.arrays import BitArray
from umpc.mpc.transfers.message_shapes import row_bytes

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
        place = batch.to_bytes(8, "little") + part.to_bytes(8, "little")
        return cls(digest(b"umpc correlation check 1", channel, place, sent))

    def __call__(self, rows: BitArray) -> BitArray:
        """(n, 16) uint8 of contiguous rows (n, width) uint8."""
        tags = b"".join(self._gcm.encrypt(_NONCE, b"", row.data) for row in rows)
        of_zeros = self._gcm.encrypt(_NONCE, b"", bytes(rows.shape[1]))
        found = np.frombuffer(tags, dtype=np.uint8).reshape(-1, BLOCK_BYTES)
        linear: BitArray = found ^ np.frombuffer(of_zeros, dtype=np.uint8)
        return linear


def packed_row(bits: BitArray, mask: bytes) -> BitArray:
    """Bits (n,) of 0 and 1 as a row of packed ones: zeros up to a whole block, then the mask.

    mask: 16 bytes, the additional choices.
    """
    row = np.zeros(row_bytes(len(bits)), dtype=np.uint8)
    packed = np.packbits(bits, bitorder="little")
    row[: len(packed)] = packed
    row[-BLOCK_BYTES:] = np.frombuffer(mask, dtype=np.uint8)
    return row


def prove(row_hash: RowHash, choices: BitArray, columns: BitArray) -> bytes:
    """h(r), and the hash of all h(t_i).

    choices: a packed row (width,) uint8. columns: (128, width) uint8.
    """
    return row_hash(choices[None]).tobytes() + _joint(row_hash(columns))


def holds(
    row_hash: RowHash, bits: BitArray, columns: BitArray, proof: bytes, turned: BitArray
) -> bool:
    """Whether the proof fits the sender's columns q_i, to which Δ_i·turned was added.

    bits: (128,) uint8, of Δ. turned: a packed row (width,) uint8, the sender's own.
    """
    of_choices = np.frombuffer(proof, dtype=np.uint8, count=BLOCK_BYTES)
    due = row_hash(columns) ^ bits[:, None] * (of_choices ^ row_hash(turned[None]))
    return proof[BLOCK_BYTES:] == _joint(due)


def _joint(hashes: BitArray) -> bytes:
    return digest(b"umpc correlation check 2", hashes.tobytes())
