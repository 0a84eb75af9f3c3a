"""A node's records as it sends them to a trusted curator: 32 random bytes, then column after column, packed.

Each value takes as many bits as its field's bounds need, as the number of steps above the lower bound; a column starts
at a whole byte. The bytes at the front are the node's part of the seed from which the curator draws: fresh in every
attempt, secret, and stored with the message (docs/decisions/0016).

*Reveals*: every record, in the clear. Cost: 32 + the sum over fields of ⌈n·bits/8⌉ bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.packing import pack, packed_bytes, unpack
from umpc.dp.exact_sampling import SEED_BYTES
from umpc.errors import EncodingError
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema

__all__ = ["SEED_BYTES", "fields_of", "message_bytes", "pack_records", "unpack_records"]


def fields_of(kernel: Kernel) -> tuple[FieldSchema, ...]:
    """What leaves: the fields that the kernel reads, sorted by name, and no others."""
    return tuple(kernel.schema[name] for name in kernel.fields)


def message_bytes(fields: Sequence[FieldSchema], records: int) -> int:
    return SEED_BYTES + sum(packed_bytes(records, _width(field)) for field in fields)


def pack_records(fields: Sequence[FieldSchema], columns: Columns, seed: bytes) -> bytes:
    """The message. Args: columns: field → (records,) int64 in steps of the resolution, within its bounds."""
    parts = (pack(columns[field.name] - field.lower_units, _width(field)) for field in fields)
    return seed + b"".join(parts)


def unpack_records(
    fields: Sequence[FieldSchema], message: bytes, records: int
) -> tuple[bytes, dict[str, np.ndarray]]:
    """The part of the seed, and field → (records,) int64. Raises: EncodingError; it names no value."""
    if len(message) != (due := message_bytes(fields, records)):
        raise EncodingError(f"{records} records take {due} bytes, {len(message)} came")
    columns, start = {}, SEED_BYTES
    for field in fields:
        stop = start + packed_bytes(records, _width(field))
        steps = unpack(message[start:stop], records, _width(field)).astype(np.int64)
        if records and int(steps.max()) > field.upper_units - field.lower_units:
            raise EncodingError(
                f"a value of {field.name!r} is beyond its upper bound {field.upper}"
            )
        columns[field.name], start = steps + field.lower_units, stop
    return message[:SEED_BYTES], columns


def _width(field: FieldSchema) -> int:
    return max(1, (field.upper_units - field.lower_units).bit_length())
