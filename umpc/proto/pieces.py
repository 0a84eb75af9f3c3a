"""Messages with the facts of all nodes: cut into pieces by their sender, joined by their receiver.

Members, openings and signatures of a thousand nodes take a megabyte. A message of coordinator or
node that may hold them goes through here. A small one goes as it is. A larger one goes in pieces,
each of which says how many bytes are left, so that the receiver knows the size from the first one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from umpc.errors import EncodingError, RangeError
from umpc.proto.checks import parse
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.frames import MAX_PAYLOAD

PIECE_BYTES = MAX_PAYLOAD
"""The bytes of a piece, and of the largest frame."""
WHOLE_BYTES = MAX_PAYLOAD + 1024
"""The largest message that goes as it is: any frame, with the fields before its payload."""
MOST_BYTES = 1 << 23
"""The largest message. Members of 1,024 nodes with the largest certificates take 5 MB."""

Whole = TypeVar("Whole", pb.CoordinatorMessage, pb.DealRequest)


def cut(message: Whole) -> Iterator[Whole]:
    """The messages that carry this one, in order. Raises: RangeError where it is too large."""
    size = message.ByteSize()
    if size <= WHOLE_BYTES:
        yield message
        return
    if size > MOST_BYTES:
        raise RangeError(
            f"the facts of all nodes take a message of {size:,} bytes, at most {MOST_BYTES:,} are "
            f"possible; take fewer nodes, or shorter names"
        )
    body = message.SerializeToString()
    for start in range(0, size, PIECE_BYTES):
        data = body[start : start + PIECE_BYTES]
        piece = pb.Piece(data=data, left=size - start - len(data))
        yield type(message)(piece=piece)


async def joined(read: Callable[[], Awaitable[Whole | None]]) -> Whole | None:
    """The next message of a stream, read whole; None at the end of the stream.

    Raises: EncodingError where pieces do not fit together, and what `read` raises.
    """
    message = await read()
    if message is None or not message.HasField("piece"):
        return message
    kind = type(message)
    size = len(message.piece.data) + message.piece.left
    if size > MOST_BYTES:
        raise EncodingError(f"a message has at most {MOST_BYTES} bytes, one of {size} was begun")
    body = bytearray()
    while message is not None and message.HasField("piece"):
        piece = message.piece
        if not piece.data or len(body) + len(piece.data) + piece.left != size:
            raise EncodingError(
                f"a piece of a message of {size} bytes was due after {len(body)} of them, and "
                f"{len(piece.data)} bytes with {piece.left} left came"
            )
        body += piece.data
        if not piece.left:
            return parse(kind, bytes(body))
        message = await read()
    raise EncodingError(f"{len(body)} bytes of a message of {size} came, and then no piece")
