"""umpc/transport/stream.py: messages leave in the order in which they were written."""

from __future__ import annotations

import asyncio

from umpc.transport.stream import RpcStream, as_received


class SlowCall:
    """A call that takes messages only when the test opens the line."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.opened = asyncio.Event()

    async def write(self, message: bytes) -> None:
        await self.opened.wait()
        self.written.append(message)

    async def read(self) -> bytes:
        return await asyncio.Future()

    def cancel(self) -> bool:
        return True


def test_a_short_message_overtakes_no_other_that_waits():
    long, second, third = b"a" * 20, b"second", b"third"

    async def scenario():
        call = SlowCall()
        stream: RpcStream[bytes, bytes] = RpcStream("north", "talk", as_received)
        stream.begin(call)

        async def twice():
            await stream.send(long, "talk")
            await stream.send(third, "talk")

        tasks = [asyncio.create_task(each) for each in (twice(), stream.send(second, "talk"))]
        await asyncio.sleep(0)
        call.opened.set()
        await asyncio.gather(*tasks)
        assert call.written == [long, second, third]
        await stream.send(b"fourth", "talk")
        assert call.written[-1] == b"fourth"
        await stream.close()

    asyncio.run(asyncio.wait_for(scenario(), 10))
