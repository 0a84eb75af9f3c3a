"""umpc.proto.codec: bytes that are no message, and texts from outside."""

from __future__ import annotations

import pytest

from umpc.errors import EncodingError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m


def test_bytes_that_are_no_message_are_refused_by_the_messages_name():
    with pytest.raises(EncodingError, match="no NodeMessage"):
        codec.parse(pb.NodeMessage, b"\xff\xff")


def test_text_from_outside_is_one_printable_line_of_bounded_length():
    hostile = "first\nsecond\x1b[31m\r" + "x" * 100_000
    abort = codec.decode_coordinator(codec.encode_coordinator(m.Abort("north", hostile)))
    assert abort.reason.isprintable() and len(abort.reason) == codec.MAX_TEXT
    failure = codec.decode_node(
        codec.encode_node(m.Failure("StudyError", hostile, hostile, "prepare"))
    )
    assert failure.message.startswith("first second [31m x")
