"""umpc.proto.shown_codec: messages about members in a hash tree, there and back, and refused."""

from __future__ import annotations

import pytest

from tests.support.signed import signed_members
from tests.support.studies import KENDALL, make_members, make_study
from umpc.errors import EncodingError
from umpc.proto import codec, named_messages, shown_codec
from umpc.proto.member_codec import MAX_CERTIFICATE, MAX_MEMBERS, MAX_RECORDS, PIECE_BYTES
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.member_tree import MOST_SHOWN, show
from umpc.study.statements import MembersRoot
from umpc.transport.channels import MAX_MESSAGE

STUDY = make_study(KENDALL, 5, noise="distributed", members_checked=2)
MEMBERS, OPENINGS = make_members(STUDY, [4, 5, 6, 7, 8], "codec", [1, 0, 6, 2, 8])
SIGNATURES = signed_members(STUDY, MEMBERS)
ROOT = MembersRoot.of(STUDY, MEMBERS)
AGREE = m.AgreeInShort(ROOT, m.Agree(tuple(MEMBERS)))
IN_SHORT = [
    AGREE,
    m.BeginInShort(b"o" * 32, m.Begin(tuple(OPENINGS), tuple(SIGNATURES))),
    m.EvaluateInShort(m.Evaluate(tuple(SIGNATURES))),
]
ASKED = [
    m.Shown(show(STUDY, MEMBERS, OPENINGS, SIGNATURES, [0, 3, 4])),
    m.Signed(tuple(SIGNATURES[:2])),
    m.AttemptPiece(b"part"),
    m.AttemptPiece(b""),
]
FROM_NODE = [m.Look((0, 3, 4)), m.Look((1,), signed=True), m.WantAttempt()]


@pytest.mark.parametrize("message", [*IN_SHORT, *ASKED], ids=lambda each: type(each).__name__)
def test_a_coordinators_message_comes_as_it_was_sent(message):
    wire = codec.encode_coordinator(message).SerializeToString()
    assert codec.decode_coordinator(pb.CoordinatorMessage.FromString(wire)) == message


@pytest.mark.parametrize("message", FROM_NODE, ids=repr)
def test_a_nodes_question_comes_as_it_was_sent(message):
    wire = codec.encode_node(message).SerializeToString()
    assert codec.decode_node(pb.NodeMessage.FromString(wire)) == message


@pytest.mark.parametrize("message", IN_SHORT, ids=lambda each: type(each).__name__)
def test_a_message_in_short_names_the_whole_one(message):
    encoded = named_messages.encode(message)
    named = shown_codec.whole_of(encoded.first)
    pieces = named_messages.Assembly(named, least=1)
    assert [pieces.add(piece) for piece in encoded.pieces()][-1]
    assert pieces.message() == message.whole
    assert named_messages.encode(message) is encoded, "all nodes get the same bytes"


def test_other_messages_name_no_whole_one():
    with pytest.raises(EncodingError, match="in short"):
        shown_codec.whole_of(codec.encode_coordinator(m.Release()))


def in_short(**changes) -> pb.CoordinatorMessage:
    body = codec.encode_coordinator(AGREE).agree_in_short
    for key, value in changes.items():
        body.ClearField(key)
        if isinstance(value, bytes):
            setattr(body, key, value)
        else:
            getattr(body, key).extend(value)
    return pb.CoordinatorMessage(agree_in_short=body)


@pytest.mark.parametrize(
    "changes",
    [
        {"root": b"r" * 31},
        {"first_class": [1]},
        {"first_class": [], "others": []},
        {"others": [MAX_RECORDS] * 5},
        {"first_class": [0] * (MAX_MEMBERS + 1), "others": [1] * (MAX_MEMBERS + 1)},
    ],
    ids=lambda each: ", ".join(each),
)
def test_a_root_of_a_wrong_form_is_refused(changes):
    with pytest.raises(EncodingError):
        codec.decode_coordinator(in_short(**changes))
    begin = pb.CoordinatorMessage(begin_in_short=pb.BeginInShort(root=b"r" * 31))
    with pytest.raises(EncodingError):
        codec.decode_coordinator(begin)


@pytest.mark.parametrize(
    "changes",
    [
        {"path": bytes(shown_codec.MOST_PATH + 1)},
        {"opening_path": bytes(shown_codec.MOST_PATH + 1)},
        {"opening": bytes(31)},
        {"signature": bytes(63)},
    ],
    ids=lambda each: ", ".join(each),
)
def test_a_shown_member_of_a_wrong_form_is_refused(changes):
    shown = codec.encode_coordinator(ASKED[0]).shown
    for key, value in changes.items():
        setattr(shown.members[0], key, value)
    with pytest.raises(EncodingError):
        codec.decode_coordinator(pb.CoordinatorMessage(shown=shown))


def test_as_many_members_as_may_be_shown_fit_one_message_with_any_certificates():
    """A message of gRPC that is too large would end the study of an honest coordinator."""
    largest = codec.encode_coordinator(ASKED[0]).shown.members[0]
    largest.member.certificate = bytes(MAX_CERTIFICATE)
    largest.member.name = "n" * 128
    largest.path = largest.opening_path = bytes(shown_codec.MOST_PATH)
    shown = pb.Shown(members=[largest] * MOST_SHOWN)
    assert pb.CoordinatorMessage(shown=shown).ByteSize() <= MAX_MESSAGE


def test_too_many_members_are_neither_asked_for_nor_shown():
    one = codec.encode_coordinator(ASKED[0]).shown.members[0]
    shown = pb.Shown(members=[one] * (MOST_SHOWN + 1))
    with pytest.raises(EncodingError, match="at most"):
        codec.decode_coordinator(pb.CoordinatorMessage(shown=shown))
    look = pb.Look(places=range(MOST_SHOWN + 1))
    with pytest.raises(EncodingError, match="at most"):
        codec.decode_node(pb.NodeMessage(look=look))
    with pytest.raises(EncodingError, match="at most"):
        codec.decode_coordinator(pb.CoordinatorMessage(piece=bytes(PIECE_BYTES + 1)))
