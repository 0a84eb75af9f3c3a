"""Secure products of two parties from correlated transfers, without a dealer.

| sender's call | receiver's call | they get |
|---|---|---|
| send_multiples(x) | receive_multiples(b) | additive shares of x·b, number × bit |
| and_bits | and_bits | XOR shares of x ∧ y, for shared bits x, y and a triple |

All are generators over the two ends of a channel of `correlated_ot.py`, and take a row of n at
once. Multiples take two rounds: the receiver's `ot_extend`, then the sender's corrections. and_bits
has one round in which both open. Bits that a correction carries beyond its width are ignored.

Papers: products as in Gilboa, CRYPTO '99, section 4.1; and_bits as in Beaver 1991. The hash that
breaks the correlation is TMMO, π(π(x) ⊕ i) ⊕ π(x), with π fixed-key AES-128 (Guo et al. 2020,
eprint 2019/074, section 7.4: tweakable circular correlation robust if π is an ideal permutation). i
is the transfer's number. The key comes from the session and changes every 2^20 transfers, so no
permutation is used for long.

Reveals, and why that is safe: the sender sees `ot_extend`, pseudorandom (`correlated_ot.py`). The
receiver sees corrections. Each is masked by H(i, q_i ⊕ (1 − r_i)·Δ), uniform to it because Δ has
127 unknown bits. All results are shares that are uniform to their holder; and_bits opens x ⊕ a and
y ⊕ b, uniform because the triple is. A receiver that tests bits of Δ is named
(`correlated_ot.py`). Otherwise semi-honest: a party that deviates can make results wrong, and a
deviating sender takes any number, which nothing here checks (`coins_from_transfers.py` does).

More than two parties (Goldreich, Micali & Wigderson 1987). Let party k have shares x_k, y_k; then
Σx_k·Σy_k = Σ x_k·y_k + Σ_{i<j} (x_i·y_j + x_j·y_i). Each pair i < j has one channel, from i to j,
and does both of its terms in one call, i with the row [x_i, y_i] and j with [y_j, x_j]. Everyone
adds its own product and its shares of the terms. Triples go alike (`coins_from_transfers.py`):
everyone draws a_k, b_k, and pairs get shares of a_i·b_j and a_j·b_i by send_multiples of width 1.
To convert b₀ ⊕ … ⊕ b_k, begin with s = b₀. Share s and next bit b make
s + b − 2·s·b, with one send_multiples(s_i) to b's owner from each party before. A number
x = x₀ + x₁ times a bit b = b₀ ⊕ b₁: x₀·b = x₀·b₀ + (1 − 2·b₀)·x₀·b₁, a number of party 0 times a
bit of party 1, and x₁·b alike over a channel in the other direction.

Cost of one: extension_bytes, plus the bytes of `*_bits`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from umpc.crypto.prg import BLOCK_BYTES, SEED_BYTES, derive
from umpc.crypto.rounds import Message, Protocol, check_reply, silence
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.transfers.correlated_ot import Blocks, CorrelatedReceiver, CorrelatedSender
from umpc.mpc.transfers.message_shapes import (
    EXTEND,
    MULTIPLES,
    multiple_bits,
    multiples,
    number_bytes,
    open_message,
)

PART = 1 << 16
"""Blocks hashed together."""
KEY_BLOCKS = 1 << 20
"""Transfers under one permutation; a multiple of PART."""


@dataclass(frozen=True)
class BitTriples:
    """One party's XOR shares of Beaver triples: three (n,) uint8 of 0 and 1 with c = a ∧ b."""

    a: BitArray
    b: BitArray
    c: BitArray

    def __repr__(self) -> str:
        return f"BitTriples({len(self.a)}, <redacted>)"


def send_multiples(
    channel: CorrelatedSender, numbers: WordArray, width: int
) -> Protocol[WordArray]:
    """This party's share mod 2^width of number × the receiver's bit: (n,) uint64.

    numbers: (n,) uint64.
    """
    pads = yield from sender_pads(channel, len(numbers), width)
    return (yield from correct(pads, numbers, width, channel.peer))


def receive_multiples(
    channel: CorrelatedReceiver, choices: BitArray, width: int, peer: str
) -> Protocol[WordArray]:
    """This party's share mod 2^width of the sender's number × bit: (n,) uint64.

    choices: (n,) uint8.
    """
    # Gilboa 1999, 4.1: choose by the bit b
    pads = yield from receiver_pads(channel, choices, width, peer)
    return (yield from receive_corrected(pads, choices, width, peer))


def correct(pads: WordArray, numbers: WordArray, width: int, peer: str) -> Protocol[WordArray]:
    """The second round of send_multiples, whose numbers may not be known before.

    pads: those of sender_pads.
    """
    # Gilboa 1999, 4.1: p_0 − p_1 + x opens x under choice 1 only
    correction = low(pads[0] - pads[1] + _row(numbers, width), width)
    reply = yield from _say(multiples(low_bytes(correction, width), len(numbers), width))
    check_reply(reply, silence(MULTIPLES), peer)
    # sender's share: −p_0
    return low(np.uint64(0) - pads[0], width)


def receive_corrected(
    pads: WordArray, choices: BitArray, width: int, peer: str
) -> Protocol[WordArray]:
    """The second round of receive_multiples. pads: those of receiver_pads."""
    # the correction counts where b = 1
    payload = yield from _hear(MULTIPLES, len(choices), multiple_bits(width), peer)
    # receiver's share: p_b + b·correction = p_0 + x·b
    return low(pads + (from_bytes(payload, width) & _spread(choices)), width)


def and_bits(
    leads: bool, x: BitArray, y: BitArray, triples: BitTriples, *peers: str
) -> Protocol[BitArray]:
    """XOR share of x ∧ y: (n,) uint8 (Beaver 1991).

    x, y: (n,) uint8 shares. leads: true for exactly one of all parties.
    """
    if not len(x) == len(y) == len(triples.a):
        raise LocalProtocolError(f"{len(x)} and {len(y)} bits with {len(triples.a)} triples")
    # Beaver 1991: open d = x ⊕ a and e = y ⊕ b
    opened = yield from open_bits(np.concatenate([x ^ triples.a, y ^ triples.b]), *peers)
    d, e = opened.reshape(2, -1)
    # Beaver 1991: x·y = c ⊕ d·b ⊕ e·a ⊕ d·e
    product: BitArray = triples.c ^ (d & triples.b) ^ (e & triples.a) ^ (d & e & np.uint8(leads))
    return product


def open_bits(shares: BitArray, *peers: str) -> Protocol[BitArray]:
    """The bits of which all parties have XOR shares: (n,) uint8, after one round."""
    # one bit to all parties; XOR of all is public
    mine = open_message(np.packbits(shares, bitorder="little").tobytes(), len(shares))
    opened = shares.copy()
    replies = yield mine
    for peer, reply in zip(peers, replies, strict=True):
        check_reply(reply, mine, peer)
        theirs = np.frombuffer(reply.payload, dtype=np.uint8)
        opened ^= np.unpackbits(theirs, count=len(opened), bitorder="little")
    return opened


def hash_blocks(blocks: Blocks, session: bytes) -> WordArray:
    """TMMO of every block with its transfer's number: (n, 2) uint64."""
    hashed = np.empty_like(blocks.blocks)
    place = 0
    while place < len(hashed):
        # i: no two transfers of a session have one number
        number = blocks.start + place
        part = slice(place, min(len(hashed), place + PART - number % PART))
        # fresh permutation after 2^20 transfers
        key = derive(_key(session), number // KEY_BLOCKS)
        _hash_part(blocks.blocks[part], number, key, hashed[part])
        place = part.stop
    return hashed


def _hash_part(blocks: WordArray, number: int, key: bytes, out: WordArray) -> None:
    """π(π(x) ⊕ i) ⊕ π(x) of blocks whose transfers are numbered from `number`."""
    encryptor = Cipher(algorithms.AES(key[:BLOCK_BYTES]), modes.ECB()).encryptor()
    contiguous = np.ascontiguousarray(blocks)
    # Guo et al. 2020, 7.4: π(x)
    once = np.frombuffer(encryptor.update(contiguous.data.cast("B")), dtype=np.uint64)
    tweaked = once.reshape(-1, 2).copy()
    # π(x) ⊕ i
    tweaked[:, 0] ^= np.arange(number, number + len(tweaked), dtype=np.uint64)
    twice = np.frombuffer(encryptor.update(tweaked.data.cast("B")), dtype=np.uint64)
    # π(π(x) ⊕ i) ⊕ π(x)
    np.bitwise_xor(once.reshape(-1, 2), twice.reshape(-1, 2), out=out)


def _key(session: bytes) -> bytes:
    """The seed of a session's hash keys, which are public."""
    return derive(bytes(SEED_BYTES), "ot hash", session)


def pads_of(blocks: Blocks, session: bytes, width: int) -> WordArray:
    """`width` bits of every block's hash: (n,) uint64."""
    return low(hash_blocks(blocks, session)[:, 0], width)


def both_pads(channel: CorrelatedSender, blocks: Blocks, width: int) -> WordArray:
    """The pads of choice 0 and of choice 1: (2, n) uint64."""
    # t if r = 0, t ⊕ Δ if r = 1
    other = Blocks(blocks.start, blocks.blocks ^ channel.delta)
    return np.stack([pads_of(both, channel.session, width) for both in (blocks, other)])


def sender_pads(channel: CorrelatedSender, count: int, width: int) -> Protocol[WordArray]:
    """The pads of either choice, after one round: (2, n) uint64."""
    _check_width(width)
    # spec/transfers.py, `pads`
    return both_pads(channel, (yield from _extended(channel, count)), width)


def receiver_pads(
    channel: CorrelatedReceiver, choices: BitArray, width: int, peer: str
) -> Protocol[WordArray]:
    """The pads of its choices, after one round: (n,) uint64."""
    _check_width(width)
    blocks, message = channel.extend(choices)
    check_reply((yield from _say(message)), silence(EXTEND), peer)
    return pads_of(blocks, channel.session, width)


def _extended(channel: CorrelatedSender, count: int) -> Protocol[Blocks]:
    return channel.extend((yield from _say(silence(EXTEND))), count)


def _say(message: Message) -> Protocol[Message]:
    """One round with one peer: its reply."""
    (reply,) = yield message
    return reply


def _hear(step: str, count: int, width: int, peer: str) -> Protocol[bytes]:
    """One round in which only the peer speaks: its payload."""
    reply = yield from _say(silence(step))
    check_reply(reply, Message(step, bytes(count * width // 8), count, width), peer)
    return reply.payload


def _spread(bits: BitArray) -> WordArray:
    """0 or 1 as 64 times that bit."""
    # −b: all ones for 1, without a branch
    return np.uint64(0) - bits.astype(np.uint64)


def low(values: WordArray, width: int) -> WordArray:
    """The low bits of each value."""
    return values & np.uint64((1 << width) - 1)


def _row(values: WordArray, width: int) -> WordArray:
    _check_width(width)
    return low(values.astype(np.uint64, copy=False), width)


def _check_width(width: int) -> None:
    if not 1 <= width <= 64:
        raise LocalProtocolError(f"numbers of 1 to 64 bits, not of {width}")


def low_bytes(values: WordArray, width: int) -> bytes:
    """The low `width` bits of each value below 2^width, in whole bytes, little-endian."""
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : number_bytes(width)].tobytes()


def from_bytes(payload: bytes, width: int) -> WordArray:
    """The inverse of low_bytes: (n,) uint64."""
    narrow = np.frombuffer(payload, dtype=np.uint8).reshape(-1, number_bytes(width))
    wide = np.zeros((len(narrow), 8), dtype=np.uint8)
    wide[:, : number_bytes(width)] = narrow
    return wide.view("<u8").reshape(-1).astype(np.uint64, copy=False)
