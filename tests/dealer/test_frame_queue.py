"""umpc.dealer.server: messages of several frames, a bound, and an end with an error."""

from __future__ import annotations

import asyncio

import pytest

from umpc.dealer.server import MESSAGE_BYTES, QUEUE_BYTES, FrameQueue
from umpc.errors import StepTimeout
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.messages import Frame


def test_small_frames_of_a_node_share_messages_and_large_ones_do_not():
    sizes = [10] * 1500 + [MESSAGE_BYTES, 10, 10]
    frames = [
        Frame("material", (0, 1), number, size, 8, bytes(size)) for number, size in enumerate(sizes)
    ]

    async def scenario() -> list[list[Frame]]:
        queue = FrameQueue()
        for frame in (*frames, None):
            await queue.put(frame)
        messages = []
        while message := await queue.get():
            messages.append(message)
        return messages

    messages = asyncio.run(scenario())
    assert [frame for message in messages for frame in message] == frames
    assert [len(message) for message in messages] == [885, 615, 1, 2]
    for message in messages:
        encoded = codec.encode_frames(message)
        assert codec.decode_frames(pb.Frame.FromString(encoded.SerializeToString())) == message
        assert len(message) == 1 or encoded.ByteSize() <= MESSAGE_BYTES


def test_a_full_queue_waits_for_its_reader():
    half = Frame("material", (0, 1), 0, 1, 8, bytes(QUEUE_BYTES // 2))

    async def scenario() -> tuple[bool, list[int]]:
        queue = FrameQueue()
        await queue.put(half)
        await queue.put(half)
        third = asyncio.create_task(queue.put(half))
        for _ in range(10):
            await asyncio.sleep(0)
        waited = not third.done()
        taken = [len(await queue.get())]
        await third
        taken += [len(await queue.get()), len(await queue.get())]
        return waited, taken

    assert asyncio.run(scenario()) == (True, [1, 1, 1])


def test_an_error_comes_before_what_waits_and_the_first_one_stays():
    first, second = StepTimeout("first", step="prepare"), StepTimeout("second", step="prepare")

    async def scenario() -> None:
        queue = FrameQueue()
        await queue.put(Frame("material", (0, 1), 0, 1, 8, bytes(1)))
        queue.fail(first)
        queue.fail(second)
        for _ in range(2):
            with pytest.raises(StepTimeout, match="first"):
                await queue.get()

    asyncio.run(scenario())
