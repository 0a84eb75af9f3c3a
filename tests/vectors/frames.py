"""Vectors of frames: messages between nodes as bytes."""

from __future__ import annotations

from tests.vectors.part import Bad, Part, Values
from umpc.errors import EncodingError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.messages import Frame


def frame(inputs: Values) -> Values:
    """Encode a frame as protobuf bytes; `bytes_predicted` is known from its shape alone."""
    made = Frame(
        inputs["step"],
        tuple(inputs["owners"]),
        inputs["chunk"],
        inputs["count"],
        inputs["width"],
        bytes.fromhex(inputs["payload"]),
        inputs["round"],
    )
    encoded = codec.encode_frame(made)
    assert codec.decode_frame(encoded) == made
    return {"encoded": encoded.SerializeToString().hex(), "bytes_predicted": made.wire_bytes}


def read_frame(inputs: Values) -> object:
    return codec.decode_frame(codec.parse(pb.Frame, bytes.fromhex(inputs["encoded"])))


PARTS = {
    "frames": Part(
        "A message between nodes as the protobuf message Frame of umpc/proto/v1/umpc.proto.",
        frame,
        {
            "opened_bits": {
                "step": "open",
                "round": 2,
                "owners": [0, 2],
                "chunk": 300,
                "count": 5,
                "width": 2,
                "payload": "1f01",
            },
            "link": {
                "step": "masked_fields",
                "round": 0,
                "owners": [],
                "chunk": 0,
                "count": 1,
                "width": 8,
                "payload": "a7",
            },
        },
        {
            "frame_cut_in_the_middle": Bad({"encoded": "0804100222020002"[:-2]}, EncodingError),
            "frame_of_an_unknown_step": Bad(
                {"encoded": pb.Frame(step=99).SerializeToString().hex()}, EncodingError
            ),
            "payload_longer_than_its_count": Bad(
                {
                    "encoded": pb.Frame(step=pb.MATERIAL, count=1, width=8, payload=b"ab")
                    .SerializeToString()
                    .hex()
                },
                EncodingError,
            ),
        },
        read_frame,
    ),
}
