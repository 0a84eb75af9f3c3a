"""Both ends of a session that two nodes make by themselves: on a line, or over a hub's links."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from two_ends import NORTH, SOUTH, Here

from umpc.errors import RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import routes
from umpc.transport.hub.agreed import AgreedSession
from umpc.transport.hub.sealing import agree

MEETING, SECRET = b"m" * 32, b"s" * 32


class User:
    """The user of a session. takes_some: it has room."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.greetings: list[bytes] = []
        self.failures: list[Exception] = []
        self.takes_some = True
        self.news = asyncio.Event()

    def takes(self) -> bool:
        return self.takes_some

    def came(self, message: bytes) -> None:
        if message == b"not a frame":
            raise RemoteProtocolError("it sent no frame", culprit="north")
        self.got.append(message)
        self.news.set()

    def greeted(self, word: bytes) -> None:
        self.greetings.append(word)

    def failed(self, error: Exception) -> None:
        self.failures.append(error)
        self.news.set()

    async def until(self, count: int) -> list[bytes]:
        """Wait for so many messages, or a failure."""
        while len(self.got) < count and not self.failures:
            self.news.clear()
            await self.news.wait()
        return self.got


class Line(Here):
    """A connection on which refusals are noted."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[pb.HubEnvelope] = []

    def refuse(self, envelope: pb.HubEnvelope) -> None:
        self.refused.append(envelope)


def made_at(at: int, meeting: bytes = MEETING, secret: bytes = SECRET):
    """The session as north, or south, makes it."""
    return agree(secret, meeting, (NORTH, SOUTH), "relay", initiates=not at)


class Pair:
    """Both ends of a session, on a line that loses what it is told to."""

    def __init__(self, meeting: bytes = MEETING, secret: bytes = SECRET):
        self.users = User(), User()
        self.lines = Line(), Line()
        self.north, self.south = (
            AgreedSession(self.lines[at], made_at(at, meeting, secret), self.users[at])
            for at in range(2)
        )
        self.envelopes: list[pb.HubEnvelope] = []

    def exchange(self, *, loses=lambda envelope: False) -> int:
        """Deliver all that is due. Returns: the number of envelopes that left."""
        before = len(self.envelopes)
        is_moving = True
        while is_moving:
            is_moving = False
            for source, target in ((self.north, self.south), (self.south, self.north)):
                while (envelope := source.pull()) is not None:
                    is_moving = True
                    envelope.source.role, envelope.source.name = target.other
                    envelope.source.instance = b"i" * 16
                    self.envelopes.append(envelope)
                    if not loses(envelope):
                        target.take(envelope)
        return len(self.envelopes) - before

    def pass_time(self, seconds: float) -> int:
        """Let time pass. Returns: the number of envelopes that left in it."""
        sent = 0
        for _ in range(int(seconds)):
            self.north.tick(1.0)
            self.south.tick(1.0)
            sent += self.exchange()
        return sent


def link_of(name: str):
    return next(link for link in routes._here().values() if link.identity.name == name)


def ends_of(one: str, two: str, meeting: bytes = MEETING):
    """Make both ends of a session over the links of two members. Returns: them and their users."""
    users = User(), User()
    ends = [
        link_of(name).agree(one, two, meeting, SECRET, user)
        for name, user in zip((one, two), users, strict=True)
    ]
    return ends, users
