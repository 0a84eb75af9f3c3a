"""A node's records as it sends them to a trusted curator: 32 random bytes, then packed columns.

A column takes as many bits for each value as its field's bounds need. A value is sent as its number
of steps above the lower bound, and a column starts at a whole byte. The bytes at the front are the
node's part of the seed from which the curator draws. They are secret and fresh in every attempt,
and the node stores them with the message (umpc_papers/docs/protocol.md).

Reveals: every record, in the clear.
Cost: 32 + the sum over fields of ⌈n·bits/8⌉ bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.errors import EncodingError
from umpc.mpc.arrays import Integers
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema
from umpc_papers.exact_sampling import SEED_BYTES

__all__ = ["SEED_BYTES", "fields_of", "message_bytes", "pack_records", "unpack_records"]


def fields_of(kernel: Kernel) -> tuple[FieldSchema, ...]:
    """The fields that leave a node: those that the kernel reads, sorted by name, and no others."""
    return tuple(kernel.schema[name] for name in kernel.fields)


def message_bytes(fields: Sequence[FieldSchema], records: int) -> int:
    """Bytes of the message of a node with this many records."""
    return SEED_BYTES + sum(packed_size(records, _width(field)) for field in fields)


def pack_records(fields: Sequence[FieldSchema], columns: Columns, seed: bytes) -> bytes:
    """A node's message.

    Args:
        fields: the fields, in the order of the message.
        columns: field -> (records,) int64, in steps of the resolution and within its bounds.
        seed: 32 bytes, the node's part of the curator's seed.
    """
    parts = (pack(columns[field.name] - field.lower_units, _width(field)) for field in fields)
    return seed + b"".join(parts)


def unpack_records(
    fields: Sequence[FieldSchema], message: bytes, records: int
) -> tuple[bytes, dict[str, Integers]]:
    """The node's part of the seed, and its columns.

    Returns: 32 bytes, and field -> (records,) int64 in steps of the resolution.

    Raises:
        EncodingError: the length is wrong, padding is set, or a value lies outside its bounds. The
            message of the error names no value.
    """
    due = message_bytes(fields, records)
    if len(message) != due:
        raise EncodingError(f"{records} records take {due} bytes, {len(message)} came")
    columns: dict[str, Integers] = {}
    start = SEED_BYTES
    for field in fields:
        width = _width(field)
        stop = start + packed_size(records, width)
        steps = unpack(message[start:stop], records, width).astype(np.int64)
        if records and int(steps.max()) > field.upper_units - field.lower_units:
            raise EncodingError(
                f"a value of {field.name!r} is beyond its upper bound {field.upper}"
            )
        columns[field.name] = steps + field.lower_units
        start = stop
    return message[:SEED_BYTES], columns


def _width(field: FieldSchema) -> int:
    """Bits of a value; at least one."""
    return max(1, (field.upper_units - field.lower_units).bit_length())
