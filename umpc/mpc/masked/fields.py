"""Round 1: every owner sends its masked records to each node with which it shares an edge.

Each record is sent once. Reveals: values under masks that only their owner and the dealer know,
which are uniform to everybody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto.ring import pack, packed_size, unpack
from umpc.crypto.rounds import Message
from umpc.errors import EncodingError
from umpc.mpc.arrays import IndexArray, WordArray
from umpc.mpc.masked.masks import WireValues
from umpc.mpc.masked.plan import Program

FIELDS_BYTES = 1_000_000
"""The most bytes of masked fields that go into one message."""


def fields_frames(program: Program, records: int) -> Iterator[tuple[int, int, int]]:
    """The cut of round 1 into messages: (number, records, bytes) of each.

    There is no message where no wire is sent masked.
    """
    if not program.wires:
        return
    step = _most_records(program)
    for number, start in enumerate(range(0, records, step)):
        count = min(step, records - start)
        yield number, count, sum(packed_size(count, wire.width) for wire in program.wires)


def _most_records(program: Program) -> int:
    """The records of a full message, so many that it ends with a whole byte."""
    return FIELDS_BYTES * 8 // program.wire_bits // 8 * 8


def fields_messages(program: Program, masked: WireValues, records: IndexArray) -> list[Message]:
    """The masked wires of these records, wire after wire, in as few messages as fit."""
    start = 0
    messages = []
    for _, count, _ in fields_frames(program, len(records)):
        part = records[start : start + count]
        wires = (
            pack(values[part], wire.width)
            for wire, values in zip(program.wires, masked, strict=True)
        )
        messages.append(Message("masked_fields", b"".join(wires), count, program.wire_bits))
        start += count
    return messages


def read_fields(program: Program, messages: Sequence[Message]) -> list[WordArray]:
    """Another owner's masked wires: for each wire (records sent,) uint64. Raises: EncodingError."""
    values: list[list[WordArray]] = [[] for _ in program.wires]
    for message in messages:
        start = 0
        for wire, parts in zip(program.wires, values, strict=True):
            stop = start + packed_size(message.count, wire.width)
            parts.append(unpack(message.payload[start:stop], message.count, wire.width))
            start = stop
        if start != len(message.payload):
            raise EncodingError(
                f"{message!r} must take {start} bytes, and it has {len(message.payload)}"
            )
    return [np.concatenate(parts) if parts else np.empty(0, np.uint64) for parts in values]
