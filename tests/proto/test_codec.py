"""umpc.proto.codec: every message comes back as it was; bad bytes raise an EncodingError only."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.errors import (
    EncodingError,
    FailedCheck,
    InsufficientBudget,
    ProvenLie,
    StudyError,
    UmpcError,
    error_classes,
)
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.messages import (
    BETWEEN_NODES,
    MAX_PAYLOAD,
    STEPS,
    TO_SHUFFLERS,
    WITH_COORDINATOR,
    Frame,
)
from umpc.study.rules import MAX_DEGREE, MAX_SUMS
from umpc.study.sizes import Member
from umpc_papers.local.settings import MOST_CELLS

b32 = st.binary(min_size=32, max_size=32)
b64 = st.binary(min_size=64, max_size=64)
some_signatures = st.lists(b64, max_size=3).map(tuple)
u32, u64, text = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.text(max_size=12)
line = text.filter(str.isprintable)
records = st.integers(0, codec.MAX_RECORDS)
members = st.tuples(records, st.floats(0, 1)).flatmap(
    lambda r: st.builds(
        Member,
        text,
        st.just(r[0]),
        b32,
        b32,
        st.just(int(r[0] * r[1])),
        st.binary(max_size=40),
        b64,
    )
)
shares = st.tuples(st.sampled_from([4, 8]), st.integers(1, MAX_SUMS)).flatmap(
    lambda s: st.binary(min_size=s[0] * s[1], max_size=s[0] * s[1])
)


def sent_in(steps: frozenset[str]) -> st.SearchStrategy:
    """Bytes by round of some of these steps."""
    return st.dictionaries(st.tuples(st.sampled_from(sorted(steps)), u32), u64, max_size=5).map(
        lambda found: tuple(
            m.StepBytes(*place, found[place])
            for place in sorted(found, key=lambda p: (STEPS[p[0]], p[1]))
        )
    )


sent = sent_in(BETWEEN_NODES | WITH_COORDINATOR)
sent_to_shufflers = sent_in(TO_SHUFFLERS)
parts = st.integers(0, 40).flatmap(
    lambda count: st.builds(
        m.Part,
        st.builds(
            Frame,
            st.sampled_from(sorted(WITH_COORDINATOR)),
            st.just(()),
            u32,
            st.just(count),
            st.just(32),
            st.binary(min_size=4 * count, max_size=4 * count),
        ),
    )
)
released = records.flatmap(
    lambda r: st.builds(m.Released, b32, shares, st.just(r), st.integers(0, r), sent_to_shufflers)
)
coordinator_messages = st.one_of(
    st.builds(m.Propose, st.binary(max_size=50), st.booleans()),
    st.builds(m.Agree, st.lists(members, max_size=3).map(tuple)),
    st.builds(m.Begin, st.lists(b32, max_size=3).map(tuple), some_signatures),
    st.builds(m.Evaluate, some_signatures),
    parts,
    st.builds(m.TotalConfirmed, some_signatures),
    st.builds(m.Park),
    st.builds(m.Release),
    st.builds(m.Ask, st.binary(max_size=64)),
    st.builds(m.Abort, line, line),
)
opened = st.builds(m.Opened, b32, b64)
prepared = st.builds(m.Prepared, b32, u64, st.booleans(), b64)
waiting = st.builds(m.WaitingAttempt, opened, prepared)
node_messages = st.one_of(
    st.builds(m.Accepted, b32, members, st.none() | waiting),
    opened,
    prepared,
    parts,
    st.builds(m.TotalSigned, b64),
    st.builds(m.Parked, u64, st.integers(0, codec.MAX_SECONDS)),
    st.builds(m.Ready, sent, u64, u32),
    released,
    st.builds(m.Answer, st.binary(max_size=50)),
    st.builds(m.Progress, line, u64, u64),
    st.builds(m.Failure, line, line, line, line),
)
owners = st.lists(u32, max_size=codec.MAX_DEGREE).map(tuple)
frames = st.tuples(st.integers(0, 40), st.integers(0, 64)).flatmap(
    lambda f: st.builds(
        Frame,
        st.sampled_from(sorted(STEPS)),
        owners,
        u32,
        st.just(f[0]),
        st.just(f[1]),
        st.binary(min_size=(f[0] * f[1] + 7) // 8, max_size=(f[0] * f[1] + 7) // 8),
        u32,
    )
)
KINDS = {
    "coordinator": (
        pb.CoordinatorMessage,
        codec.decode_coordinator,
        codec.encode_coordinator,
        coordinator_messages,
    ),
    "node": (pb.NodeMessage, codec.decode_node, codec.encode_node, node_messages),
    "frame": (pb.Frame, codec.decode_frame, codec.encode_frame, frames),
    "member": (pb.Member, codec.decode_member, codec.encoded, members),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@given(data=st.data())
def test_every_message_comes_back(kind, data):
    cls, decode, encode, strategy = KINDS[kind]
    message = data.draw(strategy)
    assert decode(codec.parse(cls, encode(message).SerializeToString())) == message


@every_kind
@settings(max_examples=300)
@given(raw=st.binary(max_size=200))
def test_random_bytes_decode_or_are_refused(kind, raw):
    decode_or_refuse(kind, raw)


@every_kind
@settings(max_examples=70)
@given(data=st.data())
def test_mutated_messages_decode_or_are_refused(kind, data):
    _, _, encode, strategy = KINDS[kind]
    raw = bytearray(encode(data.draw(strategy)).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw)))
        change = data.draw(st.sampled_from(["flip", "insert", "cut"]))
        if change == "insert":
            raw[place:place] = data.draw(st.binary(min_size=1, max_size=12))
        elif change == "cut":
            del raw[place:]
        elif place < len(raw):
            raw[place] ^= 1 << data.draw(st.integers(0, 7))
    decode_or_refuse(kind, bytes(raw))


def decode_or_refuse(kind: str, raw: bytes) -> None:
    """Nothing but EncodingError may be raised, and what decodes must encode again."""
    cls, decode, encode, _ = KINDS[kind]
    try:
        message = decode(codec.parse(cls, raw))
    except EncodingError as error:
        assert error.message
        return
    assert decode(encode(message)) == message


MEMBER = codec.encoded(Member("n", 1, bytes(32), bytes(32), 0, b"", bytes(64)))


def decode_share(size: int) -> bytes:
    share = (bytes(range(256)) * (size // 256 + 1))[:size]
    message = pb.NodeMessage(released=pb.Released(attempt=bytes(32), share=share, records=1))
    return codec.decode_node(message).share


@pytest.mark.parametrize("size", [MAX_PAYLOAD + 1, MAX_PAYLOAD + 4])
def test_a_release_of_an_impossible_size_is_refused(size):
    with pytest.raises(EncodingError, match=f"at most {MAX_PAYLOAD} bytes, {size} came"):
        decode_share(size)


@pytest.mark.parametrize("size", [1, 3, 127, MAX_PAYLOAD - 1, MAX_PAYLOAD])
def test_a_release_may_be_a_message_of_any_length(size):
    """The coordinator knows the right length, from protocol and records."""
    assert len(decode_share(size)) == size


@pytest.mark.parametrize("sums", [0, 1, 2, 3, 15, 1 << 17])
@pytest.mark.parametrize("bytes_a_sum", [4, 8])
def test_shares_of_several_sums_are_one_string_of_bytes(sums, bytes_a_sum):
    size = sums * bytes_a_sum
    assert decode_share(size) == (bytes(range(256)) * (size // 256 + 1))[:size]


def test_a_question_and_an_answer_have_a_largest_size():
    """A question has eight bytes a cell."""
    for size in (0, codec.MAX_QUESTION):
        ask = pb.CoordinatorMessage(ask=pb.Ask(question=bytes(size)))
        assert len(codec.decode_coordinator(ask).question) == size
    with pytest.raises(EncodingError, match="a question has at most 16384 bytes, 16385 came"):
        codec.decode_coordinator(
            pb.CoordinatorMessage(ask=pb.Ask(question=bytes(codec.MAX_QUESTION + 1)))
        )
    assert (
        len(codec.decode_node(pb.NodeMessage(answer=pb.Answer(answer=bytes(MAX_PAYLOAD)))).answer)
        == MAX_PAYLOAD
    )
    with pytest.raises(
        EncodingError, match=f"a node answers at most {MAX_PAYLOAD} bytes, {MAX_PAYLOAD + 1} came"
    ):
        codec.decode_node(pb.NodeMessage(answer=pb.Answer(answer=bytes(MAX_PAYLOAD + 1))))


def test_the_limits_of_the_wire_are_those_of_a_study():
    assert codec.MAX_QUESTION == 8 * MOST_CELLS
    assert codec.MAX_DEGREE == MAX_DEGREE


# --- messages of a wrong size -----------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        pb.NodeMessage(opened=pb.Opened(opening=bytes(31))),
        pb.NodeMessage(prepared=pb.Prepared(attempt=b"")),
        pb.NodeMessage(released=pb.Released(share=bytes(4))),
        pb.NodeMessage(accepted=pb.Accepted(study_hash=bytes(5), member=MEMBER)),
        pb.NodeMessage(),
    ],
)
def test_a_nodes_message_of_a_wrong_size_is_refused(message):
    with pytest.raises(EncodingError):
        codec.decode_node(message)


def test_an_empty_message_from_the_coordinator_is_refused():
    with pytest.raises(EncodingError, match="from the coordinator"):
        codec.decode_coordinator(pb.CoordinatorMessage())


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(error_classes()))
def test_a_failure_comes_back_as_its_class_and_never_with_its_detail(name):
    error = error_classes()[name](
        "what happened", culprit="node-1", step="agree", detail="row 17 holds 42.5"
    )
    raw = codec.encode_node(codec.failure_of(error)).SerializeToString()
    assert b"42.5" not in raw
    again = codec.error_of(codec.decode_node(codec.parse(pb.NodeMessage, raw)))
    # the word of another process proves no lie
    assert type(again) is (FailedCheck if isinstance(error, ProvenLie) else type(error))
    assert (again.message, again.culprit, again.step, again.detail) == (
        "what happened",
        "node-1",
        "agree",
        "",
    )


def test_a_failure_without_culprit_has_none_afterwards():
    again = codec.error_of(codec.failure_of(InsufficientBudget("too little")))
    assert (again.culprit, again.step) == (None, None)


@pytest.mark.parametrize("name", ["", "ValueError", "SystemExit", "__class__"])
def test_a_failure_of_an_unknown_class_is_a_plain_one(name):
    assert type(codec.error_of(m.Failure(name, "text", "", ""))) is UmpcError
    assert type(codec.error_of(m.Failure("StudyError", "text", "", ""))) is StudyError


@pytest.mark.parametrize("data", [b"", b"\xff", pb.Delivery(attempt=bytes(31)).SerializeToString()])
def test_what_a_ledger_keeps_for_shufflers_is_checked_when_it_is_read(data):
    with pytest.raises(EncodingError):
        codec.decode_delivery(data)
