"""Inner products of two private vectors from correlated transfers, several with one vector at once.

The *chooser* has x, n small numbers of b bits. The *sender* has S vectors y_s of n numbers. They
get additive shares of Σ_c x[c]·y_s[c] mod 2^w for every s.

Paper: Gilboa, CRYPTO '99, section 4.1: x·y = Σ_j 2^j·(x_j·y), with one transfer for each bit x_j.
Departures: only the b bits that x can have are chosen by; of y only the w − j low bits count for
bit j, and the correction has no more (in bytes); all S vectors share the transfers; shares are
added up at once, because only sums are wanted.

| round | what | bytes |
|---|---|---|
| 1 | chooser → sender: the extension for n·b bits (`correlated_ot.py`) | 4·n·b, and a proof |
| 2 | sender → chooser: for each s, j and c the correction p₀ − p₁ + y_s[c] | S·n·Σ_j ⌈(w − j)/8⌉ |

p₀ and p₁ are hashes of the transfer's block (`ot_products.py`). One hash has 128 bits and makes the
pads of two vectors; every two further vectors have a hash under another key.

Reveals, and why that is safe: the sender sees the extension, which is pseudorandom whatever x is.
The chooser sees corrections, each under a pad of another choice than its own, which is pseudorandom
to it. The shares are uniform to their holders: the sender's is minus the sum of its pads p₀, and
the chooser's is what is missing. A chooser that tests bits of Δ is named (`correlated_ot.py`).
Otherwise semi-honest: a sender that deviates takes another y.

A channel serves one call. `channel_for` makes one for each part of a long vector, so that parts may
run in any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from umpc.crypto.prg import digest
from umpc.crypto.rounds import Message, Protocol, check_reply, silence
from umpc.errors import LocalProtocolError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.transfers.correlated_ot import Blocks, CorrelatedReceiver, CorrelatedSender
from umpc.mpc.transfers.message_shapes import EXTEND, MULTIPLES, extend_shape, number_bytes
from umpc.mpc.transfers.ot_products import from_bytes, hash_blocks, low, low_bytes

CORRECT = 2
"""The round of corrections. The extension is that of a channel's first batch, round 1."""
WORDS = 2
"""Words of a hash: the number of vectors for which it makes pads."""

End = TypeVar("End", CorrelatedSender, CorrelatedReceiver)


def extension_shape(count: int, bits: int) -> Message:
    """The chooser's message for `count` numbers of so many bits, with zero bytes as content."""
    return extend_shape(count * bits, 1)


def correction_shape(count: int, bits: int, width: int, sums: int) -> Message:
    """The sender's message, with zero bytes as content."""
    return _corrections(
        bytes(count * correction_bytes(bits, width, sums)), count, bits, width, sums
    )


def correction_bytes(bits: int, width: int, sums: int) -> int:
    """Bytes of corrections for one number of the chooser."""
    return sums * sum(number_bytes(width - bit) for bit in range(bits))


def channel_for(channel: End, *labels: str | int) -> End:
    """A channel for one call: a fork, whose hash has a key of its own.

    Args: labels: known at both ends, and used once.
    """
    fork = channel.fork("inner products", *labels)
    fork.session = digest(b"umpc inner products 1", channel.session, *map(_label, labels))
    return fork


def send_inner_products(
    channel: CorrelatedSender, vectors: Sequence[WordArray], bits: int, width: int
) -> Protocol[list[int]]:
    """The sender's share of each inner product, mod 2^width.

    Args: vectors: (n,) uint64 each, of which the low `width` bits count. bits: of the chooser's
    numbers, at most `width`.

    Raises: RemoteProtocolError on a message of another shape.
    """
    count = len(vectors[0])
    _check(bits, width)
    (reply,) = yield silence(EXTEND, 1)
    # spec/grid.py, `inner_products`
    blocks = channel.extend(reply, count * bits)
    # pads of both choices: only the sender knows both
    other = Blocks(blocks.start, blocks.blocks ^ channel.delta)
    shares = []
    payload = []
    pads = zip(
        inner_pads(channel.session, blocks), inner_pads(channel.session, other), strict=False
    )
    for vector, (chosen_0, chosen_1) in zip(vectors, pads, strict=False):
        share = 0
        for bit in range(bits):
            # Gilboa: one transfer for bit j of x, between −s_j and y − s_j
            part = slice(bit * count, (bit + 1) * count)
            payload.append(_low_bytes(chosen_0[part] - chosen_1[part] + vector, width - bit))
            share -= int(chosen_0[part].sum(dtype=np.uint64)) << bit
        shares.append(share % (1 << width))
    # all vectors in one message
    message = _corrections(b"".join(payload), count, bits, width, len(vectors))
    (reply,) = yield message
    check_reply(reply, silence(MULTIPLES, CORRECT), channel.peer)
    return shares


def receive_inner_products(
    channel: CorrelatedReceiver, numbers: WordArray, bits: int, width: int, sums: int, peer: str
) -> Protocol[list[int]]:
    """The chooser's share of each inner product, mod 2^width.

    Args: numbers: (n,) uint64 below 2^bits. sums: S. peer: the sender's name, for errors.

    Raises: RemoteProtocolError on a message of another shape.
    """
    count = len(numbers)
    _check(bits, width)
    # Gilboa 1999, 4.1: x = Σ 2^j·x_j, a transfer for each x_j
    choices = _bits_of(numbers, bits)
    blocks, message = channel.extend(choices.reshape(-1))
    (reply,) = yield message
    check_reply(reply, silence(EXTEND, 1), peer)
    (reply,) = yield silence(MULTIPLES, CORRECT)
    check_reply(reply, correction_shape(count, bits, width, sums), peer)
    # corrections count where the bit is 1
    masks = np.uint64(0) - choices.astype(np.uint64)
    payload = reply.payload
    shares = []
    place = 0
    for _, pads in zip(range(sums), inner_pads(channel.session, blocks), strict=False):
        share = 0
        for bit in range(bits):
            size = count * number_bytes(width - bit)
            correction = from_bytes(payload[place : place + size], width - bit)
            # the pad of the choice, and where the bit is 1 the correction
            part = pads[bit * count : (bit + 1) * count]
            share += int((part + (correction & masks[bit])).sum(dtype=np.uint64)) << bit
            place += size
        shares.append(share % (1 << width))
    return shares


def inner_pads(session: bytes, blocks: Blocks) -> Iterator[WordArray]:
    """For each vector in turn the words that pad it, one for each block: (n·b,) uint64.

    Words are wider than corrections; what lies above a correction's width is cut off there.
    """
    number = 0
    while True:
        # a hash under another key for every two vectors
        hashed = hash_blocks(blocks, digest(b"umpc inner pads 1", session, _label(number)))
        for word in range(WORDS):
            yield np.ascontiguousarray(hashed[:, word])
        number += 1


def _corrections(payload: bytes, count: int, bits: int, width: int, sums: int) -> Message:
    size = 8 * correction_bytes(bits, width, sums)
    return Message(MULTIPLES, payload, count, size, CORRECT)


def _bits_of(numbers: WordArray, bits: int) -> BitArray:
    """(bits, n) uint8, the lowest bit first. Raises: LocalProtocolError for a larger number."""
    # a longer number would wrap silently
    if bits < 64 and len(numbers) and int(numbers.max()) >> bits:
        raise LocalProtocolError(f"a number of an inner product has more than {bits} bits")
    places = np.arange(bits, dtype=np.uint64)[:, None]
    return ((numbers >> places) & np.uint64(1)).astype(np.uint8)


def _check(bits: int, width: int) -> None:
    if not 1 <= bits <= width <= 64:
        raise LocalProtocolError(f"numbers of 1 to {width} bits, of 64 at most, not of {bits}")


def _label(label: str | int) -> bytes:
    return str(label).encode()


def _low_bytes(values: WordArray, width: int) -> bytes:
    """The low `width` bits of each value, in whole bytes, little-endian."""
    return low_bytes(low(values, width), width)
