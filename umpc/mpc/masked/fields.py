"""Round 1: every owner sends its masked records to those with whom it shares an edge, once per record.

Sees: values under masks that only their owner and the dealer know: uniform.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.crypto.rounds import Message
from umpc.errors import EncodingError
from umpc.mpc.masked.masks import Wires
from umpc.mpc.masked.plan import Program

FIELDS_BYTES = 1_000_000
"""Masked fields of so many bytes at most go into one message."""


def fields_frames(program: Program, records: int) -> Iterator[tuple[int, int, int]]:
    """How round 1 is cut into messages: (number, records, bytes) of each. None where nothing is sent masked."""
    if not program.wires:
        return
    step = FIELDS_BYTES * 8 // program.wire_bits // 8 * 8
    for number, start in enumerate(range(0, records, step)):
        count = min(step, records - start)
        yield number, count, sum(packed_size(count, wire.width) for wire in program.wires)


def fields_messages(program: Program, masked: Wires, records: np.ndarray) -> list[Message]:
    """The masked wires of these records, wire after wire, in as few messages as fit."""
    start, messages = 0, []
    for _, count, _ in fields_frames(program, len(records)):
        part = records[start : start + count]
        wires = (
            pack(values[part], wire.width)
            for wire, values in zip(program.wires, masked, strict=True)
        )
        messages.append(Message("masked_fields", b"".join(wires), count, program.wire_bits))
        start += count
    return messages


def read_fields(program: Program, messages: Sequence[Message]) -> list[np.ndarray]:
    """Another owner's masked wires: per wire (records sent,) uint64. Raises: EncodingError."""
    values: list[list[np.ndarray]] = [[] for _ in program.wires]
    for message in messages:
        start = 0
        for wire, parts in zip(program.wires, values, strict=True):
            size = packed_size(message.count, wire.width)
            parts.append(unpack(message.payload[start : start + size], message.count, wire.width))
            start += size
        if start != len(message.payload):
            raise EncodingError(f"{message!r} takes {start} bytes, got {len(message.payload)}")
    return [np.concatenate(parts) if parts else np.empty(0, np.uint64) for parts in values]
