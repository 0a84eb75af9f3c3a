"""Conversion of the messages about members in a hash tree.

Every `decode_…` raises EncodingError, which says what was expected and what came.
"""

from __future__ import annotations

from umpc.crypto.hash_tree import HASH_BYTES
from umpc.errors import EncodingError
from umpc.proto.checks import at_most, sized
from umpc.proto.member_codec import (
    MAX_MEMBERS,
    PIECE_BYTES,
    SIGNATURE_BYTES,
    check_records,
    decode_member,
    decode_signatures,
    encode_member,
)
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.member_tree import MOST_SHOWN, ShownMember
from umpc.study.statements import MembersRoot

MOST_PATH = HASH_BYTES * MAX_MEMBERS.bit_length()

OF_A_TREE = (
    m.AgreeInShort,
    m.BeginInShort,
    m.EvaluateInShort,
    m.Shown,
    m.Signed,
    m.AttemptPiece,
)
"""The coordinator's messages that only studies with members in a hash tree have."""
BODIES_OF_A_TREE = (
    "agree_in_short",
    "begin_in_short",
    "evaluate_in_short",
    "shown",
    "signed",
    "piece",
)


def encode_of_a_tree(message: m.OfATree) -> pb.CoordinatorMessage:
    """A message in short has its whole one yet to be named."""
    match message:
        case m.AgreeInShort(members):
            firsts, others = zip(*members.counts, strict=True)
            short = pb.AgreeInShort(root=members.root, first_class=firsts, others=others)
            return pb.CoordinatorMessage(agree_in_short=short)
        case m.BeginInShort(openings):
            return pb.CoordinatorMessage(begin_in_short=pb.BeginInShort(root=openings))
        case m.EvaluateInShort():
            return pb.CoordinatorMessage(evaluate_in_short=pb.EvaluateInShort())
        case m.Shown(shown):
            found = [_encode_shown(each) for each in shown]
            return pb.CoordinatorMessage(shown=pb.Shown(members=found))
        case m.Signed(signatures):
            return pb.CoordinatorMessage(signed=pb.Signed(signatures=signatures))
        case m.AttemptPiece(part):
            return pb.CoordinatorMessage(piece=part)


def name_whole(message: pb.CoordinatorMessage, named: pb.Named) -> None:
    """Name the whole message in a short form."""
    whole_of(message).CopyFrom(named)


def whole_of(message: pb.CoordinatorMessage) -> pb.Named:
    """The name of the whole message in a short form. Raises: EncodingError for other messages."""
    match message.WhichOneof("body"):
        case "agree_in_short":
            return message.agree_in_short.whole
        case "begin_in_short":
            return message.begin_in_short.whole
        case "evaluate_in_short":
            return message.evaluate_in_short.whole
    raise EncodingError("a message in short was expected, another one came")


def decode_of_a_tree(message: pb.CoordinatorMessage) -> m.OfATree:
    match message.WhichOneof("body"):
        case "agree_in_short":
            return m.AgreeInShort(_decode_members_root(message.agree_in_short))
        case "begin_in_short":
            return m.BeginInShort(sized(message.begin_in_short.root, HASH_BYTES, "root"))
        case "evaluate_in_short":
            return m.EvaluateInShort()
        case "shown":
            members = message.shown.members
            if len(members) > MOST_SHOWN:
                raise EncodingError(f"at most {MOST_SHOWN} members are shown, {len(members)} came")
            return m.Shown(tuple(_decode_shown(each) for each in members))
        case "signed":
            return m.Signed(decode_signatures(message.signed.signatures))
        case _:
            return m.AttemptPiece(at_most(message.piece, PIECE_BYTES, "a piece has"))


def _decode_members_root(body: pb.AgreeInShort) -> MembersRoot:
    firsts, others = body.first_class, body.others
    if len(firsts) != len(others) or not 0 < len(firsts) <= MAX_MEMBERS:
        raise EncodingError(
            f"a study has 1 to {MAX_MEMBERS} nodes, {len(firsts)} and {len(others)} counts came"
        )
    for first, other in zip(firsts, others, strict=True):
        check_records(first + other, first)
    return MembersRoot(
        sized(body.root, HASH_BYTES, "root"), tuple(zip(firsts, others, strict=True))
    )


def encode_question(message: m.Look | m.WantAttempt) -> pb.NodeMessage:
    """A node's question within a step."""
    if isinstance(message, m.WantAttempt):
        return pb.NodeMessage(want_attempt=pb.WantAttempt())
    return pb.NodeMessage(look=pb.Look(places=message.places, signed=message.signed))


def decode_look(body: pb.Look) -> m.Look:
    if len(body.places) > MOST_SHOWN:
        raise EncodingError(
            f"a node asks for at most {MOST_SHOWN} members, {len(body.places)} came"
        )
    return m.Look(tuple(body.places), body.signed)


def _encode_shown(shown: ShownMember) -> pb.ShownMember:
    return pb.ShownMember(
        member=encode_member(shown.member),
        path=shown.path,
        opening=shown.opening,
        opening_path=shown.opening_path,
        signature=shown.signature,
    )


def _decode_shown(body: pb.ShownMember) -> ShownMember:
    return ShownMember(
        decode_member(body.member),
        at_most(body.path, MOST_PATH, "a path has"),
        sized(body.opening, 32, "opening"),
        at_most(body.opening_path, MOST_PATH, "a path has"),
        sized(body.signature, SIGNATURE_BYTES, "signature"),
    )
