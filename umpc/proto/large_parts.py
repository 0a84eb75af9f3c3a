"""Large parts of masked tables on the wire: the same bytes, with two copies for protobuf's four.

A part is a message whose one field is a frame, and the frame's last field is half a megabyte.
Protobuf copies it at each step: into its own object, into bytes, and at the other end into its
object and into bytes again. So the sender writes the few fields before it by protobuf and joins
them with the payload, and the receiver lets protobuf read them and looks at the payload in place.

A message of any other form is protobuf's: one that is small, that has another field, or whose
frame goes on after its payload. So a message from outside means the same as ever.

`frame_codec.encode_part` writes a part. This file is loaded by every server, and so loads little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from umpc.proto.v1 import umpc_pb2 as pb

LARGE = 1 << 14
"""Bytes of a message from which on copies take longer than this file."""
MOST_BEFORE = 64
"""The most bytes of a frame before its payload: one of a table has at most 25."""
TO_NODE = pb.CoordinatorMessage.DESCRIPTOR.fields_by_name["part"].number
FROM_NODE = pb.NodeMessage.DESCRIPTOR.fields_by_name["part"].number
OWNERS = pb.Frame.DESCRIPTOR.fields_by_name["owners"].number
PAYLOAD = pb.Frame.DESCRIPTOR.fields_by_name["payload"].number
ONE_BYTE = 1 << 7
"""The first number that takes two bytes."""
VARINT, SIZED = 0, 2
"""Kinds of fields on the wire: a number, and bytes behind their size."""


@dataclass(frozen=True)
class EncodedPart:
    """A message that is encoded, with the methods of a protobuf message that a stream uses."""

    data: bytes

    def __repr__(self) -> str:
        return f"EncodedPart({len(self.data)} bytes)"

    def SerializeToString(self) -> bytes:
        """The bytes on the wire."""
        return self.data

    def ByteSize(self) -> int:
        """Their number."""
        return len(self.data)


@dataclass(frozen=True)
class LargeFrame:
    """A frame that came, with the fields of protobuf's. payload: a part of the message's bytes."""

    step: int
    round: int
    owners: Sequence[int]
    chunk: int
    count: int
    width: int
    payload: memoryview
    more: Sequence[pb.Frame] = ()

    def __repr__(self) -> str:
        return f"LargeFrame(step {self.step}, {len(self.payload)} bytes)"


@dataclass(frozen=True)
class PartMessage:
    """A message that came, with the methods of protobuf's that its readers use."""

    part: LargeFrame
    size: int
    piece: bytes = b""
    """It is no piece of a named message."""

    def WhichOneof(self, group: str) -> str:
        """The field that it has."""
        return "part"

    def ByteSize(self) -> int:
        """The bytes on the wire."""
        return self.size


ToNode = pb.CoordinatorMessage | EncodedPart
ToCoordinator = pb.NodeMessage | EncodedPart
"""Messages of a study, encoded."""


def serialised(message: Any) -> bytes:
    """The bytes of a message of protobuf, or of an encoded part."""
    data: bytes = message.SerializeToString()
    return data


def reading(parse: Callable[[bytes], Any], field: int) -> Callable[[bytes], Any]:
    """A parser that looks at a large part in place, and leaves any other message to `parse`."""

    def read(data: bytes) -> Any:
        found = read_part(data, field) if len(data) >= LARGE else None
        return parse(data) if found is None else found

    return read


def read_part(data: bytes, field: int) -> PartMessage | None:
    """The message, if it has one frame and this one ends with its payload; else None.

    Raises: DecodeError as protobuf, for what precedes the payload.
    """
    frame_at = _behind_size(data, 0, field)
    if frame_at is None:
        return None
    payload_at, head_end = _payload(data, frame_at)
    if payload_at is None:
        return None
    head = pb.Frame.FromString(data[frame_at:head_end])
    payload = memoryview(data)[payload_at:]
    frame = LargeFrame(
        head.step, head.round, head.owners, head.chunk, head.count, head.width, payload
    )
    return PartMessage(frame, len(data))


def _payload(data: bytes, start: int) -> tuple[int | None, int]:
    """Where the payload begins, if it ends the message; and the end of the fields before it."""
    at = start
    while at < min(start + MOST_BEFORE, len(data)):
        number, kind = data[at] >> 3, data[at] & 7
        if number == PAYLOAD:
            return _behind_size(data, at, PAYLOAD), at
        if number < PAYLOAD and kind == VARINT:
            at = _varint(data, at + 1)[1]
        elif number == OWNERS and kind == SIZED:
            size, at = _varint(data, at + 1)
            at += size
        else:
            break
    return None, at


def _behind_size(data: bytes, at: int, field: int) -> int | None:
    """The first byte of a field that begins here and ends the message; None for any other."""
    if data[at] != field << 3 | SIZED:
        return None
    size, behind = _varint(data, at + 1)
    return behind if behind + size == len(data) else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and the first byte behind it; one beyond the message where it is too long."""
    number = shift = 0
    for place in range(at, min(at + 5, len(data))):
        number |= (data[place] & (ONE_BYTE - 1)) << shift
        shift += 7
        if data[place] < ONE_BYTE:
            return number, place + 1
    return len(data) + 1, len(data)


def size_field(field: int, size: int) -> bytes:
    """The bytes before a field of this size: its number and kind, and the size."""
    found = bytearray((field << 3 | SIZED,))
    while size >= ONE_BYTE:
        found.append(size & (ONE_BYTE - 1) | ONE_BYTE)
        size >>= 7
    found.append(size)
    return bytes(found)
