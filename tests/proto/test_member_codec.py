"""umpc.proto.codec: members, openings and signatures of a wrong size or number."""

from __future__ import annotations

import pytest

from umpc.errors import EncodingError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb

MEMBER = pb.Member(
    name="n", records=1, commitment=bytes(32), public_key=bytes(32), signature=bytes(64)
)


@pytest.mark.parametrize("size", [0, 31, 33])
@pytest.mark.parametrize("field", ["commitment", "public_key"])
def test_a_member_with_a_field_of_a_wrong_size_is_refused(field, size):
    member = pb.Member()
    member.CopyFrom(MEMBER)
    setattr(member, field, bytes(size))
    with pytest.raises(EncodingError, match=f"32 bytes, {size} came"):
        codec.decode_member(member)


@pytest.mark.parametrize("size", [0, 63, 65])
def test_a_signature_of_a_wrong_size_is_refused(size):
    member, signature = pb.Member(), bytes(size)
    member.CopyFrom(MEMBER)
    member.signature = signature
    opened = pb.Opened(opening=bytes(32), signature=signature)
    prepared = pb.Prepared(attempt=bytes(32), signature=signature)
    begin = pb.Begin(openings=[bytes(32)], signatures=[signature])
    evaluate = pb.Evaluate(signatures=[signature])
    for door in (
        lambda: codec.decode_member(member),
        lambda: codec.decode_node(pb.NodeMessage(opened=opened)),
        lambda: codec.decode_node(pb.NodeMessage(prepared=prepared)),
        lambda: codec.decode_coordinator(pb.CoordinatorMessage(begin=begin)),
        lambda: codec.decode_coordinator(pb.CoordinatorMessage(evaluate=evaluate)),
    ):
        with pytest.raises(EncodingError, match=f"a signature has 64 bytes, {size} came"):
            door()


def test_a_certificate_has_a_limited_size():
    member = pb.Member()
    member.CopyFrom(MEMBER)
    member.certificate = bytes(codec.MAX_CERTIFICATE + 1)
    with pytest.raises(EncodingError, match="a certificate has at most"):
        codec.decode_member(member)


@pytest.mark.parametrize("count", [codec.MAX_RECORDS + 1, 2**64 - 1])
def test_too_many_records_are_refused(count):
    with pytest.raises(EncodingError, match="at most"):
        codec.decode_member(pb.Member(records=count, commitment=bytes(32), public_key=bytes(32)))
    with pytest.raises(EncodingError, match="at most"):
        codec.decode_node(
            pb.NodeMessage(released=pb.Released(attempt=bytes(32), share=bytes(4), records=count))
        )


def test_too_many_members_openings_or_signatures_are_refused():
    most = codec.MAX_MEMBERS
    with pytest.raises(EncodingError, match=f"{most} nodes, {most + 1} signatures"):
        codec.decode_signatures([bytes(64)] * (most + 1))
    with pytest.raises(EncodingError, match=f"{most} nodes"):
        codec.decode_members([MEMBER] * (most + 1))
    with pytest.raises(EncodingError, match=f"{most} nodes"):
        codec.decode_openings([bytes(32)] * (most + 1))
    assert (
        len(codec.decode_members([MEMBER] * most))
        == len(codec.decode_openings([bytes(32)] * most))
        == most
    )


@pytest.mark.parametrize(("records", "first"), [(0, 1), (5, 6), (5, 2**64 - 1)])
def test_more_records_of_the_first_class_than_records_are_refused(records, first):
    doors = (
        lambda: codec.decode_member(
            pb.Member(
                records=records, first_class=first, commitment=bytes(32), public_key=bytes(32)
            )
        ),
        lambda: codec.decode_node(
            pb.NodeMessage(
                released=pb.Released(
                    attempt=bytes(32), share=bytes(4), records=records, first_class=first
                )
            )
        ),
    )
    for door in doors:
        with pytest.raises(
            EncodingError, match=f"{records} records said that {first} are of the first class"
        ):
            door()


def test_all_or_no_records_may_be_of_the_first_class():
    for first in (0, 5):
        member = pb.Member()
        member.CopyFrom(MEMBER)
        member.records, member.first_class = 5, first
        assert codec.decode_member(member).classes == (first, 5 - first)
