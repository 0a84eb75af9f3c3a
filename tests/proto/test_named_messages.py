"""Large messages of a coordinator: named, wanted, and checked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from umpc.errors import EncodingError
from umpc.proto import codec, named_messages
from umpc.proto.member_codec import LARGE_BYTES, PIECE_BYTES
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m

LARGE = m.Evaluate(tuple(bytes([number % 251]) * 64 for number in range(4000)))
"""Signatures of 4,000 nodes."""


def wire(message: m.CoordinatorMessage) -> tuple[pb.Named, list[pb.CoordinatorMessage]]:
    encoded = named_messages.encode(message)
    return encoded.first.named, list(encoded.pieces())


class Stream:
    """A coordinator's end: it answers a Want with pieces."""

    def __init__(self, pieces: list[pb.CoordinatorMessage]):
        self._pieces: Iterator[pb.CoordinatorMessage] = iter(pieces)
        self.wanted = 0

    async def read(self) -> pb.CoordinatorMessage | None:
        await asyncio.sleep(0)
        return next(self._pieces, None)

    async def write(self, message: pb.NodeMessage) -> None:
        assert isinstance(codec.decode_node(message), m.Want)
        self.wanted += 1


def test_a_small_message_goes_as_it_is_and_a_large_one_by_its_name():
    assert named_messages.encode(m.Release()).first == codec.encode_coordinator(m.Release())
    named, pieces = wire(LARGE)
    assert named.size > LARGE_BYTES and len(pieces) == -(-named.size // PIECE_BYTES)
    assert named_messages.encode(LARGE) is named_messages.encode(LARGE)
    part = codec.decode_coordinator(named_messages.encode(m.Drop()).first)
    assert part == m.Drop()


def received(named: pb.Named, stream: Stream) -> m.CoordinatorMessage:
    came = pb.CoordinatorMessage(named=named)
    return asyncio.run(named_messages.received(came, stream.read, stream.write))


def test_a_node_wants_a_named_message_and_takes_others_as_they_came():
    named, pieces = wire(LARGE)
    stream = Stream(pieces)
    assert received(named, stream) == LARGE and stream.wanted == 1
    small = codec.encode_coordinator(m.Drop())
    found = asyncio.run(named_messages.received(small, stream.read, stream.write))
    assert found == m.Drop() and stream.wanted == 1


def test_a_stream_that_ends_within_a_message_is_an_error():
    named, pieces = wire(LARGE)
    with pytest.raises(EncodingError, match="ended before all pieces"):
        received(named, Stream(pieces[:-1]))


@pytest.mark.parametrize("lie", ["digest", "size", "bytes", "more", "kind", "too large"])
def test_a_coordinator_that_sends_something_else_is_refused(lie):
    message = LARGE
    if lie == "kind":
        message = m.Abort("node-1", "a" * (LARGE_BYTES + 1))
    body = codec.encode_coordinator(message).SerializeToString()
    digest = named_messages.sha256(body).digest()
    named = pb.Named(digest=digest, size=len(body))
    if lie == "digest":
        named.digest = digest[:31]
    if lie == "size":
        named.size = LARGE_BYTES
    if lie == "too large":
        named.size = named_messages.MOST_BYTES + 1
    if lie == "bytes":
        body = body[:-1] + bytes([body[-1] ^ 1])
    if lie == "more":
        body += b"0"
    expected = {"size": "a named message has", "digest": "a digest has 32", "kind": "goes to one"}
    expected |= {"too large": "a named message has", "bytes": "not those of its digest"}
    pieces = [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)]
    stream = Stream([pb.CoordinatorMessage(piece=piece) for piece in pieces])
    with pytest.raises(EncodingError, match=expected.get(lie, "a piece of 1 to")):
        received(named, stream)
