"""Large messages of a coordinator that go to all nodes alike: named first, sent where wanted.

Members, openings and signatures of N nodes go to N nodes, in pieces that a stream takes. The
coordinator sends the message's SHA-256 and its size first, and a node refuses other bytes.

    coordinator                          node
    Named(digest, size)         -->
                                <--      Want(digest)
    piece, piece, ...           -->
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from umpc.errors import EncodingError
from umpc.proto import codec
from umpc.proto.checks import parse, sized
from umpc.proto.large_parts import ToNode
from umpc.proto.member_codec import LARGE_BYTES, MOST_BYTES, PIECE_BYTES, check_room
from umpc.proto.shown_codec import encode_of_a_tree, name_whole
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m
from umpc.study.remembered import Remembered

COMMON = (m.Propose, m.Agree, m.Begin, m.Evaluate, m.TotalConfirmed)
"""The messages that are the same for all nodes."""
IN_SHORT = (m.AgreeInShort, m.BeginInShort, m.EvaluateInShort)
"""Those that come in short, and name the whole message."""


@dataclass(frozen=True)
class Encoded:
    """A coordinator's message on the wire. body: its bytes, where it is named first."""

    first: ToNode
    body: bytes = b""

    def pieces(self) -> Iterator[pb.CoordinatorMessage]:
        """The messages that carry the body."""
        for start in range(0, len(self.body), PIECE_BYTES):
            yield pb.CoordinatorMessage(piece=self.body[start : start + PIECE_BYTES])


_encoded: Remembered[Encoded] = Remembered(1)


def encode(message: m.CoordinatorMessage) -> Encoded:
    """Return a message for the wire. One that goes to all nodes is encoded once."""
    if isinstance(message, COMMON + IN_SHORT):
        return _encoded.of((message,), lambda: _encode(message))
    return Encoded(codec.encode_coordinator(message))


def _encode(message: m.CoordinatorMessage) -> Encoded:
    if isinstance(message, IN_SHORT) and message.whole is not None:
        body = codec.encode_coordinator(message.whole).SerializeToString()
        short = encode_of_a_tree(message)
        name_whole(short, _name_of(body))
        return Encoded(short, body)
    whole = codec.encode_coordinator(message)
    if whole.ByteSize() <= LARGE_BYTES:
        return Encoded(whole)
    body = whole.SerializeToString()
    return Encoded(pb.CoordinatorMessage(named=_name_of(body)), body)


def _name_of(body: bytes) -> pb.Named:
    check_room(body)
    return pb.Named(digest=sha256(body).digest(), size=len(body))


class Assembly:
    """The pieces of one named message. Raises: EncodingError for a name that cannot be.

    Args: least: the fewest bytes that are named.
    """

    def __init__(self, named: pb.Named, least: int = LARGE_BYTES + 1):
        self.digest = sized(named.digest, 32, "digest")
        self._left = named.size
        self._pieces: list[bytes] = []
        if not least <= named.size <= MOST_BYTES:
            raise EncodingError(
                f"a named message has {least} to {MOST_BYTES} bytes, {named.size} came"
            )

    def add(self, message: pb.CoordinatorMessage) -> bool:
        """Take the next piece. Returns: whether it was the last. Raises: EncodingError."""
        piece = message.piece
        if not piece or len(piece) > self._left:
            raise EncodingError(
                f"a piece of 1 to {self._left} bytes was expected, {len(piece)} bytes came"
            )
        self._pieces.append(piece)
        self._left -= len(piece)
        return not self._left

    def message(self) -> m.CoordinatorMessage:
        """Return the message that all pieces make. Raises: EncodingError."""
        body = b"".join(self._pieces)
        if sha256(body).digest() != self.digest:
            raise EncodingError("the pieces of a named message are not those of its digest")
        message = codec.decode_coordinator(parse(pb.CoordinatorMessage, body))
        if not isinstance(message, COMMON):
            raise EncodingError(f"a {type(message).__name__} was named, which goes to one node")
        return message


async def received(
    message: pb.CoordinatorMessage,
    read: Callable[[], Awaitable[pb.CoordinatorMessage | None]],
    write: Callable[[pb.NodeMessage], Awaitable[None]],
) -> m.CoordinatorMessage:
    """Return the message that came, or the one that it names.

    Args: read, write: the stream to the coordinator, at this node.

    Raises: EncodingError, and what the stream raises.
    """
    if message.WhichOneof("body") != "named":
        return codec.decode_coordinator(message)
    pieces = Assembly(message.named)
    await write(pb.NodeMessage(want=pb.Want(digest=pieces.digest)))
    is_complete = False
    while not is_complete:
        piece = await read()
        if piece is None:
            raise EncodingError("the stream ended before all pieces of a named message had come")
        is_complete = pieces.add(piece)
    return pieces.message()
