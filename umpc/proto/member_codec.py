"""Conversion of a study's members, with their openings and signatures.

Every `decode_…` raises EncodingError, which says what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.errors import EncodingError
from umpc.proto.checks import at_most, sized
from umpc.proto.frame_codec import encoded
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.sizes import MAX_MEMBERS, Member

MAX_RECORDS = 1 << 40
MAX_CERTIFICATE = 4096
"""The largest number of bytes of a member's certificate. Those of our authority have about 600."""
SIGNATURE_BYTES = 64


def decode_member(member: pb.Member) -> Member:
    check_records(member.records, member.first_class)
    return Member(
        member.name,
        member.records,
        sized(member.commitment, 32, "commitment"),
        sized(member.public_key, 32, "key"),
        member.first_class,
        at_most(member.certificate, MAX_CERTIFICATE, "a certificate has"),
        sized(member.signature, SIGNATURE_BYTES, "signature"),
    )


def check_records(records: int, first_class: int) -> None:
    """Check a node's numbers of records. Raises: EncodingError."""
    if records > MAX_RECORDS:
        raise EncodingError(f"a node has at most {MAX_RECORDS} records, {records} came")
    if first_class > records:
        raise EncodingError(
            f"a node with {records} records said that {first_class} are of the first class"
        )


def decode_members(members: Sequence[pb.Member]) -> tuple[Member, ...]:
    if len(members) > MAX_MEMBERS:
        raise EncodingError(f"a study has at most {MAX_MEMBERS} nodes, {len(members)} came")
    return tuple(decode_member(member) for member in members)


def decode_openings(openings: Sequence[bytes]) -> tuple[bytes, ...]:
    if len(openings) > MAX_MEMBERS:
        raise EncodingError(
            f"a study has at most {MAX_MEMBERS} nodes, {len(openings)} openings came"
        )
    return tuple(sized(opening, 32, "opening") for opening in openings)


def decode_signatures(signatures: Sequence[bytes]) -> tuple[bytes, ...]:
    if len(signatures) > MAX_MEMBERS:
        raise EncodingError(
            f"a study has at most {MAX_MEMBERS} nodes, {len(signatures)} signatures came"
        )
    return tuple(sized(each, SIGNATURE_BYTES, "signature") for each in signatures)


def deal_request(
    study: bytes, members: Sequence[Member], openings: Sequence[bytes], signatures: Sequence[bytes]
) -> pb.DealRequest:
    """Return the facts from which a dealer or a shuffler derives an attempt that all agreed to.

    Args: signatures: every node's, of all members.
    """
    return pb.DealRequest(
        study=study,
        members=[encoded(member) for member in members],
        openings=list(openings),
        signatures=list(signatures),
    )
