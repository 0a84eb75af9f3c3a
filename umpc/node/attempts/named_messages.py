"""The coordinators' messages at this process, each fetched and decoded once for all its nodes.

Members, openings and signatures are the same for all nodes of a study. Nodes of one process get the
very same objects, so they also share the work that follows from them (`umpc/study/remembered.py`).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import sha256

from umpc.errors import EncodingError
from umpc.node.hosted import HOSTED, HostedNodes
from umpc.proto import codec
from umpc.proto.member_codec import LARGE_BYTES
from umpc.proto.named_messages import Assembly
from umpc.proto.shown_codec import whole_of
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import messages as m

MOST_KEPT = 4
"""Messages that stay for the other nodes of the process."""

SHARED = ("agree", "begin", "evaluate")
"""The messages that hold a part of every node."""
IN_SHORT = ("agree_in_short", "begin_in_short", "evaluate_in_short")
"""Those in whose place they come where members are in a hash tree."""
NAMED_LEAST = LARGE_BYTES + 1

Read = Callable[[], Awaitable[pb.CoordinatorMessage | None]]
Write = Callable[[pb.NodeMessage], Awaitable[None]]

Name = tuple[str, bytes]
"""A coordinator and the digest of its message. No other coordinator finds it."""


class NamedMessages:
    """The last messages, by their coordinator and digest.

    Args: hosted: many nodes fetch a message in short whole, since they share it.
    """

    def __init__(self, hosted: HostedNodes = HOSTED) -> None:
        self._hosted = hosted
        self._kept: OrderedDict[Name, m.CoordinatorMessage] = OrderedDict()
        self._coming: dict[Name, asyncio.Event] = {}

    async def received(
        self, coordinator: str, message: pb.CoordinatorMessage, read: Read, write: Write
    ) -> m.CoordinatorMessage:
        """Return the message that came, or the one that it names.

        Args: read, write: the stream to the coordinator, at this node.

        Raises: EncodingError, and what the stream raises.
        """
        body = message.WhichOneof("body")
        if body == "named":
            return await self.take(coordinator, message.named, read, write)
        if body in IN_SHORT and self._hosted.many:
            return await self.take(coordinator, whole_of(message), read, write, least=1)
        return self.decode(coordinator, message)

    async def take(
        self, coordinator: str, named: pb.Named, read: Read, write: Write, least: int = NAMED_LEAST
    ) -> m.CoordinatorMessage:
        """Return a named message, and fetch it if no node of this process has done so.

        Args: read, write: as of `received`. least: the fewest bytes that are named.

        Raises: EncodingError, and what the stream raises.
        """
        pieces = Assembly(named, least)
        name = coordinator, pieces.digest
        while name in self._coming:
            await self._coming[name].wait()  # if that node fails, this one fetches
        if name not in self._kept:
            self._coming[name] = asyncio.Event()
            try:
                await write(pb.NodeMessage(want=pb.Want(digest=pieces.digest)))
                await _fill(pieces, read)
                self._kept[name] = pieces.message()
            finally:
                self._coming.pop(name).set()
        return self._found(name)

    def decode(self, coordinator: str, message: pb.CoordinatorMessage) -> m.CoordinatorMessage:
        """Return a message that came whole. One that goes to all nodes is decoded once.

        Raises: EncodingError.
        """
        if message.WhichOneof("body") not in SHARED:
            return codec.decode_coordinator(message)
        name = coordinator, sha256(message.SerializeToString(deterministic=True)).digest()
        if name not in self._kept:
            self._kept[name] = codec.decode_coordinator(message)
        return self._found(name)

    def _found(self, name: Name) -> m.CoordinatorMessage:
        self._kept.move_to_end(name)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return self._kept[name]


async def _fill(pieces: Assembly, read: Read) -> None:
    is_complete = False
    while not is_complete:
        message = await read()
        if message is None:
            raise EncodingError("the stream ended before all pieces of a named message had come")
        is_complete = pieces.add(message)


NAMED_MESSAGES = NamedMessages()
"""Those of this process."""
