"""umpc/transport/stream.py: messages leave in the order in which they were written."""

from __future__ import annotations

import asyncio

from umpc.transport.stream import StreamWriter


class SlowCall:
    """A call that takes messages only when the test opens the line."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.opened = asyncio.Event()

    async def write(self, message: bytes) -> None:
        await self.opened.wait()
        self.written.append(message)


def test_a_short_message_overtakes_no_other_that_waits():
    long, second, third = b"a" * 20, b"second", b"third"

    async def scenario():
        call = SlowCall()
        writer = StreamWriter(call, None, None)

        async def twice():
            await writer.write(long)
            await writer.write(third)

        tasks = [asyncio.create_task(each) for each in (twice(), writer.write(second))]
        await asyncio.sleep(0)
        call.opened.set()
        await asyncio.gather(*tasks)
        assert call.written == [long, second, third]
        await writer.write(b"fourth")
        assert call.written[-1] == b"fourth"

    asyncio.run(asyncio.wait_for(scenario(), 10))
