"""Round 1: every owner sends its masked records to each node with which it shares an edge.

Each record is sent once. Reveals: values under masks that only their owner and the dealer know,
which are uniform to everybody else.

A node with many peers has a few records for each. `short_messages` packs them for all peers in one
pass, and `read_short` reads those of all peers in one. The bytes are the same.
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
SHORT_RECORDS = 1 << 10
"""The most records of a message that is packed together with others."""


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


def is_short(program: Program, records: int) -> bool:
    """Whether so many records take one message, and a short one."""
    return bool(program.wires) and 0 < records <= min(SHORT_RECORDS, _most_records(program))


def short_messages(
    program: Program, masked: WireValues, records: Sequence[IndexArray]
) -> list[Message]:
    """One message for each of these lists, which are short: the bytes of `fields_messages`."""
    if not records:
        return []
    counts = [len(each) for each in records]
    places, starts = _octets(counts)
    packed = []
    for wire, values in zip(program.wires, masked, strict=True):
        padded = np.zeros(8 * starts[-1], dtype=np.uint64)
        padded[places] = values[np.concatenate(records)]
        packed.append((pack(padded, wire.width), wire.width))
    return [
        Message(
            "masked_fields",
            b"".join(
                data[start * width : start * width + packed_size(count, width)]
                for data, width in packed
            ),
            count,
            program.wire_bits,
        )
        for start, count in zip(starts, counts, strict=False)
    ]


def check_short(program: Program, message: Message) -> None:
    """Check a message of few records for `read_short`. Raises: EncodingError, as `read_fields`."""
    stop = 0
    for wire in program.wires:
        stop += packed_size(message.count, wire.width)
        padding = -message.count * wire.width % 8
        if padding and stop <= len(message.payload) and message.payload[stop - 1] >> (8 - padding):
            raise EncodingError(f"the padding after {message.count} values is not zero")
    if stop != len(message.payload):
        raise EncodingError(
            f"{message!r} must take {stop} bytes, and it has {len(message.payload)}"
        )


def read_short(program: Program, messages: Sequence[Message]) -> list[WordArray]:
    """The masked wires in messages that `check_short` accepted, behind each other."""
    places, _ = _octets([message.count for message in messages])
    values = []
    start = [0] * len(messages)
    for wire in program.wires:
        parts = []
        for number, message in enumerate(messages):
            stop = start[number] + packed_size(message.count, wire.width)
            part = message.payload[start[number] : stop]
            parts.append(part.ljust(-(-message.count // 8) * wire.width, b"\0"))
            start[number] = stop
        data = b"".join(parts)
        values.append(unpack(data, len(data) * 8 // wire.width, wire.width)[places])
    return values


def _octets(counts: Sequence[int]) -> tuple[IndexArray, list[int]]:
    """Lists behind each other, each of which begins with a new eight of places: a whole byte.

    Returns: the place of each item, and the eight with which each list begins, and the last ends.
    """
    eights = np.cumsum([0, *(-(-count // 8) for count in counts)])
    ends = np.cumsum(counts)
    places = np.arange(sum(counts)) + np.repeat(8 * eights[:-1] - (ends - counts), counts)
    return places, eights.tolist()
