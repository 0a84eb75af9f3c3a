"""Random numbers of experiments: streams from seeds, so that every run can be repeated.

A study's noise never comes from here. Nodes draw their noise from the operating system.
"""

from __future__ import annotations

from umpc.crypto.prg import Stream, derive, digest
from umpc.dp.random_bits import RandomBits


def seed_of(key: str) -> bytes:
    """A batch's seed of 32 bytes, from the text that identifies the batch."""
    return digest(b"umpc figures 1", key.encode())


def stream_of(seed: bytes, *labels: str | int) -> Stream:
    """An AES stream for one purpose."""
    return Stream(derive(seed, *labels))


def bits_of(seed: bytes, *labels: str | int) -> RandomBits:
    """Random bits from a seed, in the form that the protocols' samplers take."""
    stream = stream_of(seed, *labels)

    def bits(count: int) -> int:
        size = -(-count // 8)
        return int.from_bytes(stream.bytes(size), "little") >> (8 * size - count)

    return bits
