"""umpc.proto.codec: a large message comes back from its pieces, and nothing else does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from umpc.errors import EncodingError, RangeError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.messages import MAX_PAYLOAD, Frame
from umpc.study.sizes import MAX_MEMBERS

BYTES = codec.PIECE_BYTES
LARGE = m.Begin(
    tuple(bytes([number % 251]) * 32 for number in range(24_000)),
    tuple(bytes([number % 249]) * 64 for number in range(24_000)),
)
"""Openings and signatures of more nodes than a study may have."""


def read(messages: Sequence[pb.CoordinatorMessage]) -> pb.CoordinatorMessage | None:
    """The next message of a stream that then ends."""
    left = iter(messages)

    async def come() -> pb.CoordinatorMessage | None:
        return next(left, None)

    return asyncio.run(codec.joined(come))


def test_a_small_message_goes_as_it_is_and_a_large_one_in_pieces():
    small = codec.encode_coordinator(m.Drop())
    assert list(codec.cut(small)) == [small] and read([small]) == small
    sent = list(codec.cut(codec.encode_coordinator(LARGE)))
    assert len(sent) == 3 and all(each.ByteSize() <= BYTES + 32 for each in sent)
    assert read(sent) == codec.encode_coordinator(LARGE) and read([]) is None


def test_the_largest_frame_goes_as_it_is():
    frame = Frame("total", (), 2**32 - 1, MAX_PAYLOAD, 8, bytes(MAX_PAYLOAD), 2**32 - 1)
    assert len(list(codec.cut(codec.encode_coordinator(m.Part(frame))))) == 1


def test_a_request_to_the_dealer_goes_by_the_same_means():
    signatures = (bytes(64),) * 20_000
    whole = codec.deal_request(b"{}", (), (), signatures)
    first, *others = sent = list(codec.cut(whole))
    assert len(others) == 1 and first.HasField("piece") and not first.signatures
    left = iter(sent)

    async def come() -> pb.DealRequest | None:
        return next(left, None)

    assert asyncio.run(codec.joined(come)) == whole


def piece(data: bytes, left: int) -> pb.CoordinatorMessage:
    return pb.CoordinatorMessage(piece=pb.Piece(data=data, left=left))


@pytest.mark.parametrize(
    ("came", "text"),
    [
        ([piece(b"a", 2)], "1 bytes of a message of 3 came, and then no piece"),
        ([piece(b"a", 2), codec.encode_coordinator(m.Drop())], "and then no piece"),
        ([piece(b"", 2)], "0 bytes with 2 left came"),
        ([piece(b"a", 2), piece(b"b", 2)], "1 bytes with 2 left came"),
        ([piece(b"a", 2), piece(b"bcd", 0)], "3 bytes with 0 left came"),
        ([piece(b"a", codec.MOST_BYTES)], "at most 8388608 bytes"),
        ([piece(b"abc", 0)], "no CoordinatorMessage"),
    ],
)
def test_pieces_that_do_not_fit_together_are_refused(came, text):
    with pytest.raises(EncodingError, match=text):
        read(came)


def test_a_message_inside_pieces_is_no_piece_again():
    inner = piece(b"a", 0).SerializeToString()
    joined = read([piece(inner, 0)])
    assert joined is not None
    with pytest.raises(EncodingError, match="empty or unknown"):
        codec.decode_coordinator(joined)


def test_a_message_that_is_too_large_is_not_sent():
    """Its sender says so: a node that got it would name an honest coordinator."""
    text = "x" * codec.MOST_BYTES
    with pytest.raises(RangeError, match="take fewer nodes"):
        list(codec.cut(codec.encode_coordinator(m.Abort("", text))))


def test_the_members_of_the_largest_study_fit_whatever_their_certificates_are():
    member = pb.Member(
        name="n" * 63,
        records=2**40,
        commitment=bytes(32),
        public_key=bytes(32),
        first_class=2**40,
        certificate=bytes(codec.MAX_CERTIFICATE),
        signature=bytes(64),
    )
    request = pb.DealRequest(
        study=bytes(2**20),
        members=[member] * MAX_MEMBERS,
        openings=[bytes(32)] * MAX_MEMBERS,
        signatures=[bytes(64)] * MAX_MEMBERS,
    )
    assert request.ByteSize() <= codec.MOST_BYTES
