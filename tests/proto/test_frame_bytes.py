"""A frame on the wire: its size follows from its shape."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpc.proto import codec
from umpc.study.messages import MAX_PAYLOAD, STEPS, Frame, frame_bytes

u32 = st.integers(0, 300) | st.integers(0, 2**32 - 1)
frames = st.builds(
    Frame,
    step=st.sampled_from(sorted(STEPS)),
    owners=st.lists(u32, max_size=codec.MAX_DEGREE).map(tuple),
    chunk=u32,
    count=u32,
    width=u32,
    payload=st.binary(max_size=300) | st.integers(0, 20_000).map(bytes),
    round=u32,
)
BYTES_OF_VARINT = [0, 1, 127, 128, 16383, 16384, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**32 - 1]


@given(frames)
def test_a_frames_size_is_known_from_its_shape_alone(frame):
    predicted = frame_bytes(
        frame.step,
        frame.owners,
        frame.chunk,
        frame.count,
        frame.width,
        len(frame.payload),
        frame.round,
    )
    assert predicted == frame.wire_bytes == len(codec.encode_frame(frame).SerializeToString())


@pytest.mark.parametrize("round", [0, 1, 127, 128, 300])
@pytest.mark.parametrize("owner", [0, 127, 128, 2**32 - 1])
@pytest.mark.parametrize("degree", range(codec.MAX_DEGREE + 1))
def test_owners_and_rounds_of_any_size_are_counted(degree, owner, round):
    frame = Frame("open", (owner,) * degree, 1, 8, 1, b"x", round)
    assert frame.wire_bytes == len(codec.encode_frame(frame).SerializeToString())
    assert codec.decode_frame(codec.encode_frame(frame)) == frame


@pytest.mark.parametrize("number", BYTES_OF_VARINT)
@pytest.mark.parametrize("field", ["chunk", "count", "width", "round"])
def test_numbers_of_any_size_are_counted(field, number):
    numbers = {"chunk": 1, "count": 1, "width": 1, "round": 1} | {field: number}
    frame = Frame("material", (0, 1, 2), payload=b"", **numbers)
    assert frame.wire_bytes == len(codec.encode_frame(frame).SerializeToString())


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16383, 16384, MAX_PAYLOAD])
@pytest.mark.parametrize("step", sorted(STEPS))
def test_payloads_of_any_size_are_counted(step, size):
    frame = Frame(step, (1, 200), 0, size, 8, bytes(size))
    assert frame.wire_bytes == len(codec.encode_frame(frame).SerializeToString())


@pytest.mark.parametrize(
    "change", [{"owners": (0, 1, 3)}, {"owners": (0, 1)}, {"owners": (0, 2, 1)}, {"round": 2}]
)
def test_frames_of_other_owners_or_rounds_are_other_frames(change):
    frame = Frame("open", (0, 1, 2), 0, 8, 1, b"x", 1)
    other = codec.decode_frame(codec.encode_frame(replace(frame, **change)))
    assert other != frame and other.key != frame.key
