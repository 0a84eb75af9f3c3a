"""umpc.transport.stream without a network: the first beat goes before all data."""

from __future__ import annotations

import asyncio

from umpc.transport.stream import StreamHeart


class Channel:
    """A channel over which beats leave when they may."""

    def __init__(self) -> None:
        self.may_leave = asyncio.Event()

    def stream_stream(self, method: str) -> object:
        return lambda: self

    async def read(self) -> bytes:
        await asyncio.Event().wait()
        return b""

    async def write(self, message: bytes) -> None:
        await self.may_leave.wait()

    def cancel(self) -> None:
        """The call ends."""


def test_nothing_is_written_before_the_first_beat_has_left():
    async def scenario() -> None:
        async def stopped(reason: str) -> None:
            raise AssertionError(reason)

        channel = Channel()
        heart = StreamHeart(channel, "127.0.0.1:1", stopped)
        writing = asyncio.create_task(heart.begun())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not writing.done()
        channel.may_leave.set()
        await writing
        await heart.begun()
        await heart.stop()

    asyncio.run(scenario())
