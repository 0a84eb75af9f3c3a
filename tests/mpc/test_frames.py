"""Frames: their size on the wire is known from their shape alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from umpc.mpc.frames import STEPS, Frame
from umpc.proto.codec import encode_frame
from umpc.proto.v1 import umpc_pb2 as pb

u32 = st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1), st.sampled_from([0, 127, 128, 16383, 16384]))
frames = st.builds(
    Frame,
    step=st.sampled_from(sorted(STEPS)),
    owners=st.tuples(u32, u32),
    chunk=u32,
    count=u32,
    width=u32,
    payload=st.one_of(st.binary(max_size=300), st.integers(0, 20_000).map(bytes)),
)


@settings(deadline=None)
@given(frames)
def test_wire_bytes_are_the_encoded_protobufs_length(frame):
    assert frame.wire_bytes == len(encode_frame(frame).SerializeToString())


def test_step_numbers_are_the_schemas():
    assert {name.upper(): number for name, number in STEPS.items()} | {"STEP_UNSPECIFIED": 0} == dict(pb.Step.items())


def test_a_frame_names_its_place_and_hides_its_payload():
    frame = Frame("open_bits", (1, 2), 3, 4, 5, b"secret")
    assert repr(frame) == "Frame(open_bits of cell (1, 2), chunk 3, 4 × 5 bits)"
    assert frame.key == ("open_bits", (1, 2), 3)
