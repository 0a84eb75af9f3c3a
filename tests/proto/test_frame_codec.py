"""umpc.proto.codec: frames and bytes by step of a wrong shape are refused."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress

import pytest

from umpc.errors import EncodingError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.messages import MAX_PAYLOAD, STEPS

LARGEST = 4 << 20
"""Bytes that decoding a small message may take, at most."""


@pytest.mark.parametrize("step", sorted(STEPS))
def test_a_frame_that_announces_much_and_carries_little_takes_no_memory(step):
    frame = pb.Frame(step=STEPS[step], count=2**32 - 1, width=2**32 - 1, payload=b"x")
    raw = frame.SerializeToString()
    tracemalloc.start()
    try:
        with suppress(EncodingError):  # the readers of packed steps check the size
            decoded = codec.decode_frame(codec.parse(pb.Frame, raw))
            assert codec.decode_frame(codec.encode_frame(decoded)) == decoded
        assert tracemalloc.get_traced_memory()[1] < LARGEST
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pb.Frame(), "unknown step 0"),
        (pb.Frame(step=99), "unknown step 99"),
        (pb.Frame(step=1, count=9, width=1, payload=b"x"), "9 values of 1 bits"),
        (pb.Frame(step=2, owners=range(9)), "at most 8 records, 9 owners came"),
        (pb.Frame(step=3, owners=[0] * 1000), "at most 8 records, 1000 owners came"),
        (pb.Frame(step=2, count=1, width=8, payload=b"xy"), "do not take 2 bytes"),
        (
            pb.Frame(step=4, count=8 * MAX_PAYLOAD + 8, width=1, payload=bytes(MAX_PAYLOAD + 1)),
            "at most",
        ),
        (pb.Frame(step=3, count=1, width=1, payload=bytes(MAX_PAYLOAD + 1)), "at most"),
    ],
)
def test_a_frame_of_a_wrong_shape_is_refused(frame, reason):
    with pytest.raises(EncodingError, match=reason):
        codec.decode_frame(frame)


def test_the_largest_frame_is_taken():
    assert (
        len(
            codec.decode_frame(
                pb.Frame(step=2, count=1, width=8 << 20, payload=bytes(MAX_PAYLOAD))
            ).payload
        )
        == 1 << 20
    )


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (
            [(STEPS["open"], number) for number in range(codec.MAX_SENT + 1)],
            "at most 256 rounds, bytes of 257 came",
        ),
        ([(STEPS["open"], 2), (STEPS["open"], 1)], "out of order"),
        ([(STEPS["open"], 1), (STEPS["open"], 1)], "a round twice"),
        ([(STEPS["open"], 1), (STEPS["masked_fields"], 0)], "out of order"),
        ([(0, 0)], "bytes of step 0 came"),
        ([(STEPS["material"], 0)], "bytes of step 2 came, which is no step between nodes"),
        ([(STEPS["shares"], 0)], "bytes of step 12 came, which is no step between nodes"),
        ([(99, 0)], "bytes of step 99 came"),
    ],
)
def test_bytes_by_round_are_of_known_steps_in_order_and_few(sent, reason):
    rounds = [pb.Sent(step=step, round=number, bytes=1) for step, number in sent]
    with pytest.raises(EncodingError, match=reason):
        codec.decode_node(pb.NodeMessage(ready=pb.Ready(sent=rounds)))


def test_bytes_to_shufflers_are_of_their_two_steps():
    rounds = [pb.Sent(step=STEPS["open"], round=1, bytes=1)]
    with pytest.raises(EncodingError, match="bytes of step 4 came, which is no step to shufflers"):
        codec.decode_node(pb.NodeMessage(released=pb.Released(attempt=bytes(32), sent=rounds)))


FRAME = pb.Frame(step=2, count=1, width=8, payload=b"x")


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (pb.Frame(step=2, more=[pb.Frame(step=2, more=[FRAME])]), "1 more came with it"),
        (pb.Frame(step=2, more=[FRAME] * codec.MAX_TOGETHER), "at most 1024 frames"),
        (pb.Frame(step=2, more=[pb.Frame()]), "unknown step 0"),
    ],
)
def test_several_frames_of_a_wrong_shape_are_refused(frame, reason):
    with pytest.raises(EncodingError, match=reason):
        codec.decode_frames(frame)


def test_where_one_frame_is_due_no_more_may_come_with_it():
    with pytest.raises(EncodingError, match="1 more came with it"):
        codec.decode_frame(pb.Frame(step=2, count=1, width=8, payload=b"x", more=[FRAME]))
