"""Frames of many links that one caller waits for together: the event loop is told once.

A future for each frame, and a wait for all of them, cost three calls of the event loop a frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from umpc.errors import UmpcError
from umpc.node.attempts.peers import PeerLink
from umpc.study.frames import Frame, Key


class Gathering:
    """The frames of several places. Args: count: how many are awaited."""

    def __init__(self, count: int):
        self._frames: list[Frame | None] = [None] * count
        self._left = count
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def has_ended(self) -> bool:
        """Whether nothing is awaited any more: all is there, something failed, or nobody waits."""
        return self._ended.done()

    def came(self, place: int, frame: Frame) -> None:
        """Take the frame of a place, which comes once."""
        self._frames[place] = frame
        self._left -= 1
        if not self._left and not self._ended.done():
            self._ended.set_result(None)

    def failed(self, error: BaseException) -> None:
        """End the wait with the first failure."""
        if not self._ended.done():
            self._ended.set_exception(error)

    async def all(self) -> list[Frame]:
        """Wait for all frames. Raises: the first failure, as soon as it is there."""
        if self._left or self._ended.done():
            await self._ended
        return [frame for frame in self._frames if frame is not None]

    def end(self) -> None:
        """Wait for nothing more. A failure after that, or that nobody heard, is none."""
        if not self._ended.cancel() and not self._ended.cancelled():
            self._ended.exception()


class Awaited:
    """One frame of a gathering, for which a mailbox holds this in place of a future."""

    __slots__ = ("_came", "_gathering", "_number")

    def __init__(self, gathering: Gathering, number: int):
        self._gathering = gathering
        self._number = number
        self._came = False

    def done(self) -> bool:
        return self._came or self._gathering.has_ended

    def set_result(self, frame: Frame, /) -> None:
        self._came = True
        self._gathering.came(self._number, frame)

    def set_exception(self, error: UmpcError, /) -> None:
        self._came = True
        self._gathering.failed(error)


async def all_of(asked: Sequence[tuple[PeerLink, Key]]) -> list[Frame]:
    """The frames of these places of links. Raises: the first failure, as soon as it is there."""
    gathering = Gathering(len(asked))
    try:
        for number, (link, key) in enumerate(asked):
            frame = link.tell(key, Awaited(gathering, number))
            if frame is not None:
                gathering.came(number, frame)
        return await gathering.all()
    finally:
        gathering.end()
