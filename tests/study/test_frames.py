"""Frames: their size on the wire is known from their shape alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from umpc.crypto.rounds import Message
from umpc.proto.codec import encode_frame
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.messages import STEPS, Frame, frame_bytes, frame_of

u32 = st.one_of(
    st.integers(0, 300), st.integers(0, 2**32 - 1), st.sampled_from([0, 127, 128, 16383, 16384])
)
frames = st.builds(
    Frame,
    step=st.sampled_from(sorted(STEPS)),
    owners=st.lists(u32, max_size=4).map(tuple),
    chunk=u32,
    count=u32,
    width=u32,
    payload=st.one_of(st.binary(max_size=300), st.integers(0, 20_000).map(bytes)),
    round=st.integers(0, 300),
)


@given(frames)
def test_wire_bytes_are_the_encoded_protobufs_length(frame):
    assert frame.wire_bytes == len(encode_frame(frame).SerializeToString())


def test_step_numbers_are_the_schemas():
    assert {name.upper(): number for name, number in STEPS.items()} | {
        "STEP_UNSPECIFIED": 0
    } == dict(pb.Step.items())


def test_a_frame_names_its_place_and_hides_its_payload():
    frame = Frame("open", (1, 2), 3, 4, 5, b"secret", 6)
    assert repr(frame) == "Frame(step='open', owners=(1, 2), chunk=3, count=4, width=5, round=6)"
    assert frame.label == "open 6 of cell (1, 2), chunk 3"
    assert Frame("material", (1, 2, 2), 3, 4, 5, b"").label == "material of cell (1, 2, 2), chunk 3"
    assert frame.key == ("open", 6, (1, 2), 3)


@given(frames, frames)
def test_two_frames_with_one_key_belong_in_one_place(first, second):
    """Rounds of one step, cells that share nodes, and chunks are told apart."""
    same = (first.step, first.round, first.owners, first.chunk) == (
        second.step,
        second.round,
        second.owners,
        second.chunk,
    )
    assert (first.key == second.key) == same


def test_a_message_becomes_the_frame_of_its_round():
    frame = frame_of(Message("open", b"abc", 24, 1, 7), (0, 0, 2), 5)
    assert frame == Frame("open", (0, 0, 2), 5, 24, 1, b"abc", 7)
    assert frame.wire_bytes == frame_bytes("open", (0, 0, 2), 5, 24, 1, 3, 7)
