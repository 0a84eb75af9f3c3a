"""Frames for one node of an attempt, which wait until its stream takes them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from umpc.errors import UmpcError
from umpc.study.frames import Frame

QUEUE_BYTES = 8 << 20
"""Largest amount of material that waits for one node."""
MESSAGE_BYTES = 64 << 10
"""Largest message of several frames; a large frame is alone in its message."""
FRAME_BYTES = 64
"""The most bytes of a frame beside its payload."""


class FrameQueue:
    """Frames for one node, bounded in bytes, from one producer to one consumer.

    It ends with None, or with an error.
    """

    def __init__(self) -> None:
        self._frames: deque[Frame | None] = deque()
        self._bytes = 0
        self._error: UmpcError | None = None
        self._changed = asyncio.Event()

    async def put(self, frame: Frame | None) -> None:
        """Append a frame when there is room. None ends the queue."""
        await self._until(lambda: self._bytes < QUEUE_BYTES)
        self._frames.append(frame)
        self._bytes += len(frame.payload) if frame else 0
        self._changed.set()

    async def get(self) -> list[Frame]:
        """Return the next frames, which fit one message; none at the end.

        Raises: the error that `fail` was given.
        """
        await self._until(lambda: self._frames or self._error)
        if self._error:
            raise self._error
        frames: list[Frame] = []
        size = 0
        while self._frames and (frame := self._frames[0]) is not None:
            size += FRAME_BYTES + len(frame.payload)
            if frames and size > MESSAGE_BYTES:
                break
            frames.append(frame)
            self._bytes -= len(frame.payload)
            self._frames.popleft()
        self._changed.set()
        return frames

    def fail(self, error: UmpcError) -> None:
        """End the queue with this error, unless another came first."""
        self._error = self._error or error
        self._changed.set()

    async def _until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()
