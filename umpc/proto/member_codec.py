"""Conversion of a study's members, with their openings and signatures.

Every `decode_…` raises EncodingError, which says what was expected and what came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from umpc.errors import EncodingError, RangeError
from umpc.proto.checks import at_most, sized
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.remembered import Remembered
from umpc.study.sizes import Member

LARGE_BYTES = 1 << 16
"""Size above which a message that is the same at all nodes is named by its digest.

The members of some 80 nodes have as many bytes.
"""
PIECE_BYTES = 1 << 19
"""Bytes of a named message that go in one message of gRPC."""
MOST_BYTES = 1 << 25
"""Largest message that goes in pieces. The lists of 16,384 nodes take some 14 MB together."""
MAX_MEMBERS = 1 << 14
MAX_RECORDS = 1 << 40
MAX_CERTIFICATE = 4096
"""The largest number of bytes of a member's certificate. Those of our authority have about 600."""
SIGNATURE_BYTES = 64


def encode_member(member: Member) -> pb.Member:
    return pb.Member(
        name=member.name,
        records=member.records,
        commitment=member.commitment,
        public_key=member.public_key,
        first_class=member.first_class,
        certificate=member.certificate,
        signature=member.signature,
    )


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


@dataclass(frozen=True)
class LargeRequest:
    """A request as a node sends it. body: its bytes, where `first` has only their digest."""

    first: pb.DealRequest
    body: bytes = b""

    def pieces(self) -> Iterator[pb.DealPiece]:
        """The messages that carry the body."""
        for start in range(0, len(self.body), PIECE_BYTES):
            piece = self.body[start : start + PIECE_BYTES]
            first = self.first
            yield pb.DealPiece(digest=first.digest, attempt=first.attempt, piece=piece)


_requests: Remembered[LargeRequest] = Remembered(1)


def large_request(
    study: bytes,
    members: tuple[Member, ...],
    openings: tuple[bytes, ...],
    signatures: tuple[bytes, ...],
    attempt: bytes = b"",
) -> LargeRequest:
    """Return the facts of an attempt, named by their digest where they are many.

    The nodes of one process make it once. Args: as of `deal_request`; attempt: its id, by which
    they are named where members are in a hash tree.
    """

    def make() -> LargeRequest:
        whole = deal_request(study, members, openings, signatures)
        if not attempt and whole.ByteSize() <= LARGE_BYTES:
            return LargeRequest(whole)
        body = whole.SerializeToString(deterministic=True)
        check_room(body)
        if attempt:
            return LargeRequest(named_by(attempt), body)
        return LargeRequest(pb.DealRequest(digest=sha256(body).digest()), body)

    return _requests.of((members, openings, signatures), make, study)


def check_room(body: bytes) -> None:
    """Check that a message is small enough to go in pieces. Raises: RangeError."""
    if len(body) > MOST_BYTES:
        raise RangeError(
            f"the nodes' members and openings take a message of {len(body):,} bytes, at most "
            f"{MOST_BYTES:,} are possible; take fewer nodes, or shorter names"
        )


def named_by(attempt: bytes) -> pb.DealRequest:
    """A request that names its attempt by the id."""
    return pb.DealRequest(attempt=attempt)


def deal_request(
    study: bytes, members: Sequence[Member], openings: Sequence[bytes], signatures: Sequence[bytes]
) -> pb.DealRequest:
    """Return the facts from which a dealer or a shuffler derives an attempt that all agreed to.

    Args: signatures: every node's, of all members.
    """
    return pb.DealRequest(
        study=study,
        members=[encode_member(member) for member in members],
        openings=list(openings),
        signatures=list(signatures),
    )
