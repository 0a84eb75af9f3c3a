"""umpc.proto.large_parts: the bytes of protobuf, and the same messages from whatever comes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from umpc.errors import EncodingError
from umpc.proto import codec, named_messages
from umpc.proto.frame_codec import encode_part
from umpc.proto.large_parts import (
    FROM_NODE,
    LARGE,
    TO_NODE,
    EncodedPart,
    PartMessage,
    read_part,
    reading,
)
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.frames import Frame
from umpc.transport import services
from umpc.transport.services import add_node, node_stub

BOTH = [(FROM_NODE, pb.NodeMessage), (TO_NODE, pb.CoordinatorMessage)]
CELLS = 5000
FRAME = Frame("histogram", (), 3, CELLS, 32, bytes(range(250)) * (CELLS * 4 // 250))

numbers = st.integers(0, 2**32 - 1)
frames = st.builds(
    Frame,
    step=st.sampled_from(["histogram", "total"]),
    owners=st.lists(numbers, max_size=8).map(tuple),
    chunk=numbers,
    count=numbers,
    width=numbers,
    payload=st.binary(min_size=1, max_size=300),
    round=numbers,
)


@pytest.mark.parametrize(("field", "kind"), BOTH)
@given(frame=frames)
def test_a_part_has_the_bytes_of_protobuf(field, kind, frame):
    encoded = encode_part(field, frame)
    assert kind.FromString(encoded.data).SerializeToString() == encoded.data
    assert encoded.ByteSize() == len(encoded.SerializeToString()) == len(encoded.data)
    read = read_part(encoded.data, field)
    assert read is not None and read.ByteSize() == len(encoded.data)
    shown = kind.FromString(encoded.data).part
    for name in ("step", "round", "owners", "chunk", "count", "width", "payload"):
        assert getattr(read.part, name) == getattr(shown, name), name


def test_a_large_part_is_looked_at_where_it_came():
    sent = codec.encode_node(m.Part(FRAME))
    assert isinstance(sent, EncodedPart) and len(sent.data) >= LARGE
    came = reading(pb.NodeMessage.FromString, FROM_NODE)(sent.data)
    found = codec.decode_node(came)
    assert found == m.Part(FRAME)
    assert np.shares_memory(
        np.frombuffer(found.frame.payload, np.uint8), np.frombuffer(sent.data, np.uint8)
    )
    to_node = codec.encode_coordinator(m.Part(replace(FRAME, step="total")))
    came = reading(pb.CoordinatorMessage.FromString, TO_NODE)(to_node.SerializeToString())
    assert isinstance(came, PartMessage) and came.WhichOneof("body") == "part"
    assert codec.decode_coordinator(came).frame.step == "total"


def test_a_small_part_and_other_messages_are_those_of_protobuf():
    small = replace(FRAME, count=1, payload=bytes(4))
    sent = codec.encode_node(m.Part(small))
    assert isinstance(sent, pb.NodeMessage)
    came = reading(pb.NodeMessage.FromString, FROM_NODE)(sent.SerializeToString())
    assert isinstance(came, pb.NodeMessage) and codec.decode_node(came) == m.Part(small)
    named = pb.CoordinatorMessage(piece=bytes(2 * LARGE)).SerializeToString()
    assert isinstance(
        reading(pb.CoordinatorMessage.FromString, TO_NODE)(named), type(pb.CoordinatorMessage())
    )


def sized(field: int, body: bytes) -> bytes:
    """A field of bytes on the wire, for bodies of 2^14 bytes and more."""
    size = len(body)
    return bytes([field << 3 | 2, size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + body


BODY = pb.Frame(step=17, count=CELLS, width=32).SerializeToString()
PAYLOAD = sized(7, FRAME.payload)
FORMS = {
    "a payload before the fields": sized(FROM_NODE, PAYLOAD + BODY),
    "two payloads": sized(FROM_NODE, BODY + PAYLOAD + PAYLOAD),
    "a frame behind the payload": sized(FROM_NODE, BODY + PAYLOAD + b"\x42\x00"),
    "another part behind it": sized(FROM_NODE, BODY + PAYLOAD) + b"\x5a\x02\x20\x07",
    "a want behind it": sized(FROM_NODE, BODY + PAYLOAD) + b"\xa2\x01\x00",
    "an unknown field": sized(FROM_NODE, BODY + b"\xf8\x07\x01" + PAYLOAD),
    "owners one by one": sized(FROM_NODE, b"\x18\x01\x18\x02" + BODY + PAYLOAD),
    "a field twice": sized(FROM_NODE, b"\x20\x01" + BODY + b"\x20\x02" + PAYLOAD),
    "a long number": sized(FROM_NODE, b"\x20\xff\xff\xff\xff\xff\xff\x01" + BODY + PAYLOAD),
    "many fields": sized(FROM_NODE, b"\x20\x01" * 40 + BODY + PAYLOAD),
    "an end too early": sized(FROM_NODE, BODY + PAYLOAD)[:-1],
    "a number without an end": sized(FROM_NODE, b"\x20" + b"\xff" * LARGE),
    "owners beyond the end": sized(FROM_NODE, b"\x1a\xff\x7f" + bytes(LARGE)),
    "a field of number 0": sized(FROM_NODE, b"\x00\x01" + BODY + PAYLOAD),
}


def meaning(read, data: bytes) -> object:
    """The meaning of a message to a coordinator, or how it is refused."""
    try:
        return codec.decode_node(read(data))
    except (DecodeError, EncodingError) as error:
        return type(error)


def assert_means_the_same(data: bytes) -> None:
    ours = reading(pb.NodeMessage.FromString, FROM_NODE)
    assert meaning(ours, data) == meaning(pb.NodeMessage.FromString, data)


@pytest.mark.parametrize("form", FORMS)
def test_a_message_of_any_other_form_means_what_protobuf_says(form):
    assert_means_the_same(FORMS[form])


@given(
    changes=st.lists(st.tuples(st.integers(0, 24), st.integers(0, 255)), max_size=3),
    end=st.integers(-3, 0),
)
def test_a_message_that_was_changed_means_what_protobuf_says(changes, end):
    """The changed bytes are those before the payload, and sizes among them."""
    data = bytearray(encode_part(FROM_NODE, FRAME).data)
    for place, value in changes:
        data[place] = value
    assert_means_the_same(bytes(data[: len(data) + end]))


def test_a_large_part_where_a_piece_is_due_is_refused():
    part = encode_part(TO_NODE, FRAME).data
    came = reading(pb.CoordinatorMessage.FromString, TO_NODE)(part)

    async def read():
        return came

    async def write(message):
        assert message.HasField("want")

    named = pb.Named(digest=bytes(32), size=1 << 20)
    with pytest.raises(EncodingError, match="a piece of 1 to"):
        first = pb.CoordinatorMessage(named=named)
        asyncio.run(named_messages.received(first, read, write))


def test_nothing_of_a_payload_is_shown():
    shown = [repr(encode_part(FROM_NODE, FRAME))]
    shown.append(repr(read_part(encode_part(FROM_NODE, FRAME).data, FROM_NODE)))
    assert all("payload" not in each and "bytes" in each for each in shown)


# --- both ends of a study's call ------------------------------------------------------------------


class Calls:
    """A channel, or a server, that notes how a study's messages are read and written."""

    def __init__(self) -> None:
        self.given: list[tuple] = []

    def unary_unary(self, *given, **named):
        """A call of another method."""

    def stream_stream(self, method, *given, **named):
        if method == services.STUDY and given:
            self.given.append(given)

    def add_generic_rpc_handlers(self, handlers):
        """The first of them that has a method answers it at a hub's server."""

    def add_registered_method_handlers(self, service, handlers):
        if "Study" in handlers:
            study = handlers["Study"]
            self.given.append((study.response_serializer, study.request_deserializer))


def test_both_ends_of_a_studys_call_read_and_write_large_parts():
    sent = encode_part(FROM_NODE, FRAME)
    here, there = Calls(), Calls()
    node_stub(here)
    add_node(services.rpc.NodeServicer(), there)
    write, _ = there.given[-1]
    _, read = here.given[-1]
    assert read(write(sent)).part.payload == FRAME.payload
    told = encode_part(TO_NODE, FRAME)
    write, _ = here.given[-1]
    _, read = there.given[-1]
    assert read(write(told)).part.payload == FRAME.payload
    assert read(write(pb.CoordinatorMessage(drop=pb.Drop()))).HasField("drop")
