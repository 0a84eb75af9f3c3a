"""Links between two nodes of one process, which note every frame that goes over them."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple


class Sent(NamedTuple):
    """A frame as a counter of bytes sees it, with the names of its place."""

    sender: str
    step: str
    round: int
    chunk: int
    size: int


class MemoryLink:
    """One end of a link.

    failure: what a receiver gets in place of a frame. channel: from after an earlier study.
    """

    def __init__(self, peer: str, failure: Exception | None = None, channel: Any = None):
        self.peer = peer
        self.step = "prepare"
        self.channel = channel
        self.failure = failure
        self.sent: list[Sent] = []
        self.rounds_used: set = set()
        self.other: MemoryLink = self
        self._came: dict = {}
        self._wanted: dict = {}

    async def send(self, frame) -> None:
        size = frame.wire_bytes
        self.sent.append(Sent(self.other.peer, frame.step, frame.round, frame.chunk, size))
        self.other.put(frame)

    def put(self, frame) -> None:
        wanted = self._wanted.pop(frame.key, None)
        if wanted is None:
            assert frame.key not in self._came
            self._came[frame.key] = frame
        else:
            wanted.set_result(frame)

    def wanted(self, key):
        if self.failure is not None:
            raise self.failure
        wanted = asyncio.get_running_loop().create_future()
        if key in self._came:
            wanted.set_result(self._came.pop(key))
        else:
            self._wanted[key] = wanted
        return wanted

    async def receive(self, key):
        return (await self.wanted(key)).message


def linked(*names: str, failure: Exception | None = None) -> list[MemoryLink]:
    """Both ends of a link: that of the first node, and that of the second one."""
    pair = [MemoryLink(names[1], failure), MemoryLink(names[0])]
    pair[0].other, pair[1].other = pair[1], pair[0]
    return pair


async def in_place(function, *arguments):
    """Compute without a thread."""
    return function(*arguments)
