"""Messages of the local protocols: integers of a few bits, end to end, and nothing else.

The study fixes the width, and the coordinator knows how many records each node has. A message of
another length or with set padding is refused here. The protocols refuse values out of range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import SEED_BYTES
from umpc.errors import EncodingError, LocalProtocolError


def packed_bytes(count: int, width: int) -> int:
    """Bytes of `count` values of `width` bits."""
    return (count * width + 7) // 8


def pack(values: NDArray[np.integer[Any] | np.bool_], width: int) -> bytes:
    """Pack integers one after the other, lowest bit first.

    Args: values: (n,) integers in 0 .. 2^width − 1. width: 1 .. 64.
    """
    words = np.ascontiguousarray(values, dtype="<u8")
    raw = words.view(np.uint8).reshape(len(values), 8)
    bits = np.unpackbits(raw[:, : (width + 7) // 8], axis=1, count=width, bitorder="little")
    return np.packbits(bits, bitorder="little").tobytes()


def unpack(data: bytes | memoryview, count: int, width: int) -> NDArray[np.uint64]:
    """The inverse of `pack`.

    Returns: (count,) uint64.
    Raises: EncodingError on a wrong length or on set padding bits.
    """
    expected = packed_bytes(count, width)
    if len(data) != expected:
        raise EncodingError(
            f"{count} values of {width} bits take {expected} bytes, got {len(data)}"
        )
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    if bits[count * width :].any():
        raise EncodingError(f"the padding after {count} values of {width} bits is not zero")
    rows = np.packbits(bits[: count * width].reshape(count, width), axis=1, bitorder="little")
    wide = np.zeros((count, 8), dtype=np.uint8)
    wide[:, : rows.shape[1]] = rows
    return wide.view("<u8").reshape(count).astype(np.uint64, copy=False)


def split_seed(message: bytes) -> tuple[bytes, bytes]:
    """Split a message into the public seed at its start and the rest.

    Raises: EncodingError if the message is shorter than a seed.
    """
    if len(message) < SEED_BYTES:
        raise EncodingError(
            f"a message starts with a seed of {SEED_BYTES} bytes, got {len(message)} bytes in all"
        )
    return message[:SEED_BYTES], message[SEED_BYTES:]


def check_counts(messages: Sequence[bytes], counts: Sequence[int], least: int = 2) -> int:
    """The number of records of all nodes together.

    Args: counts: each node's records, in the order of the messages. least: the fewest in all.
    Raises: LocalProtocolError where messages and counts differ in number, a count is negative, or
    there are too few records.
    """
    if len(messages) != len(counts) or any(count < 0 for count in counts):
        raise LocalProtocolError(
            f"expected one message and one number of records, at least 0, for each node; "
            f"got {len(messages)} messages and {len(counts)} numbers, "
            f"of which the least is {min(counts, default=0)}"
        )
    total = sum(counts)
    if total < least:
        raise LocalProtocolError(f"expected at least {least} records in all, got {total}")
    return total
