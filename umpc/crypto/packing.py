"""Messages of the local protocols: integers of a few bits, end to end, with nothing else around them.

The study says the width, the coordinator knows how many records each node has; a message of another length, with set
padding or with a value outside its range is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.dp.exact_sampling import SEED_BYTES
from umpc.errors import EncodingError, LocalProtocolError


def packed_bytes(count: int, width: int) -> int:
    """Bytes of `count` values of `width` bits."""
    return (count * width + 7) // 8


def pack(values: np.ndarray, width: int) -> bytes:
    """(n,) integers in 0 .. 2^width-1, lowest bit first, one after the other; width 1 .. 64."""
    raw = np.ascontiguousarray(values, dtype="<u8").view(np.uint8).reshape(len(values), 8)
    bits = np.unpackbits(raw[:, : (width + 7) // 8], axis=1, count=width, bitorder="little")
    return np.packbits(bits, bitorder="little").tobytes()


def unpack(data: bytes, count: int, width: int) -> np.ndarray:
    """The inverse of `pack`: (count,) uint64. Raises: EncodingError on a wrong length or set padding."""
    if len(data) != packed_bytes(count, width):
        raise EncodingError(
            f"{count} values of {width} bits take {packed_bytes(count, width)} bytes, got {len(data)}"
        )
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    if bits[count * width :].any():
        raise EncodingError(f"the padding after {count} values of {width} bits is not zero")
    rows = np.packbits(bits[: count * width].reshape(count, width), axis=1, bitorder="little")
    wide = np.zeros((count, 8), dtype=np.uint8)
    wide[:, : rows.shape[1]] = rows
    return wide.view("<u8").reshape(count).astype(np.uint64, copy=False)


def split_seed(message: bytes) -> tuple[bytes, bytes]:
    """The public seed that a message starts with, and what follows. Raises: EncodingError if it is shorter."""
    if len(message) < SEED_BYTES:
        raise EncodingError(
            f"a message starts with a seed of {SEED_BYTES} bytes, got {len(message)} bytes in all"
        )
    return message[:SEED_BYTES], message[SEED_BYTES:]


def check_counts(messages: Sequence[bytes], counts: Sequence[int], least: int = 2) -> int:
    """How many records all nodes have together.

    Raises: LocalProtocolError where there is no message for each count, a count is negative, or too few records.
    """
    if len(messages) != len(counts) or any(count < 0 for count in counts):
        raise LocalProtocolError(
            f"expected a message and a number of records for each node, got {len(messages)}"
        )
    total = sum(counts)
    if total < least:
        raise LocalProtocolError(f"expected at least {least} records in all, got {total}")
    return total
