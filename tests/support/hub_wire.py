"""Two processes at a hub in memory, and the links that their nodes make to each other."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from umpc.node.attempts.agreed_links import AgreedLinks
from umpc.node.attempts.session_link import SessionLink
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.frames import Frame
from umpc.transport.hub import routes
from umpc.transport.hub.address import HubAddress
from umpc.transport.hub.link import HubLink

HUB = HubAddress("relay", "127.0.0.1:7000")
MEETING, SECRET = b"m" * 32, b"s" * 32
NAMES = ("north", "south")


class Line(HubLink):
    """A process at a hub without a connection: `Wire` takes what it sends to the other one."""

    def __init__(self, name: str):
        identity: Any = SimpleNamespace(role="node", name=name)
        listener: Any = object()
        super().__init__(identity, HUB, listener)
        for task in self.connection._tasks:
            task.cancel()
        self.controls: list[pb.HubFrame] = []
        connection: Any = SimpleNamespace(
            want=lambda: None, control=self.controls.append, is_up=True, grace=30
        )
        self.connection = connection


class Wire:
    """Two processes, and the links of both nodes to each other. sent: all envelopes."""

    def __init__(self) -> None:
        self.lines = [Line(name) for name in NAMES]
        for line in self.lines:
            routes.register(line)
        self.sent: list[pb.HubEnvelope] = []

    def link(self, at: int, meeting: bytes = MEETING) -> SessionLink:
        own = AgreedLinks(self.lines[at].identity)
        hub = self.lines[at]
        return own.link(hub, NAMES[1 - at], meeting, SECRET, is_later=not at)

    def links(self) -> tuple[SessionLink, SessionLink]:
        return self.link(0), self.link(1)

    def exchange(self) -> None:
        is_moving = True
        while is_moving:
            is_moving = False
            for at, line in enumerate(self.lines):
                waiting = [*line.controls]
                line.controls.clear()
                while (frame := line.next_frame()) is not None:
                    waiting.append(frame)
                for frame in waiting:
                    is_moving = True
                    envelope = frame.envelope
                    envelope.source.role, envelope.source.name = "node", NAMES[at]
                    envelope.source.instance = b"i" * 16
                    self.sent.append(envelope)
                    self.lines[1 - at].take(frame)


def frame(chunk: int = 0, payload: bytes = b"\x01", round: int = 1) -> Frame:
    return Frame("open", (0, 1), chunk, 8 * len(payload), 1, payload, round)


def run(scenario) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            await scenario(Wire())

    asyncio.run(main())
