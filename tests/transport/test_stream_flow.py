"""umpc.transport.stream: its closing, back-pressure, and several readers and writers."""

from __future__ import annotations

import asyncio

import pytest

from tests.transport.talk import Bytes, echo, run, silence
from umpc.errors import PeerLost
from umpc.transport.tls import grpc


@pytest.mark.parametrize("ahead", [None, 0, 2])
def test_closing_ends_those_who_wait(identity, ahead):
    async def scenario(stream: Bytes, server) -> None:
        waiting = [asyncio.create_task(stream.next("talk")) for _ in range(2)]
        await asyncio.sleep(0.05)
        await stream.close()
        for task in waiting:
            with pytest.raises(PeerLost, match="step talk"):
                await task
        await stream.close()

    run(identity, silence, scenario, ahead=ahead)


def test_cancelling_from_ordinary_code_ends_those_who_wait_and_the_call_at_the_peer(identity):
    ended = asyncio.Event()

    async def notice(context) -> None:
        try:
            await context.read()
        finally:
            ended.set()

    async def scenario(stream: Bytes, server) -> None:
        waiting = asyncio.create_task(stream.next("talk"))
        await asyncio.sleep(0.05)
        stream.cancel()
        with pytest.raises(PeerLost):
            await waiting
        async with asyncio.timeout(60):
            await ended.wait()

    run(identity, notice, scenario)


def test_closing_does_not_wait_for_a_full_inbox(identity):
    async def flood(context) -> None:
        while True:
            await context.write(bytes(1000))

    async def scenario(stream: Bytes, server) -> None:
        await asyncio.sleep(0.2)
        async with asyncio.timeout(30):
            await stream.close()

    run(identity, flood, scenario, ahead=1)


def test_a_peer_gets_a_moment_to_end_the_stream_itself(identity):
    async def last_words(context) -> None:
        assert await context.read() is grpc.aio.EOF
        await context.write(b"bye")

    async def scenario(stream: Bytes, server) -> None:
        await stream.finish(5)
        assert await stream.next("talk") == b"bye"
        with pytest.raises(PeerLost):
            await stream.next("talk")

    run(identity, last_words, scenario)


@pytest.mark.parametrize("ahead", [0, 3, None])
def test_a_peer_that_sends_faster_is_held_back(identity, ahead):
    """Without a limit everything is read. With one, gRPC's own window and the limit fill up."""
    size, count = 100_000, 600  # gRPC widens its window to 8 MB and more where a machine is busy
    written = 0

    async def flood(context) -> None:
        nonlocal written
        for _ in range(count):
            await context.write(bytes(size))
            written += 1
        await context.read()

    async def scenario(stream: Bytes, server) -> None:
        async with asyncio.timeout(60):
            while written < (count if ahead is None else 1):
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        if ahead is not None:
            assert written < count
        for _ in range(count):
            assert len(await stream.next("talk", 60)) == size
        assert written == count

    run(identity, flood, scenario, ahead=ahead)


def test_without_anything_ahead_a_message_is_read_only_when_it_is_asked_for(identity):
    decoded = 0

    def count(message: bytes) -> bytes:
        nonlocal decoded
        decoded += 1
        return message

    async def scenario(stream: Bytes, server) -> None:
        for _ in range(3):
            await stream.write(b"word")
        await asyncio.sleep(0.1)
        assert decoded == 0
        for number in range(1, 4):
            await stream.next("talk", 60)
            await asyncio.sleep(0.02)
            assert decoded == number

    run(identity, echo, scenario, ahead=0, decode=count)


def test_one_who_stops_waiting_takes_no_message_along(identity):
    async def scenario(stream: Bytes, server) -> None:
        waiting = asyncio.create_task(stream.next("talk"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await stream.write(b"kept")
        assert await stream.next("talk", 60) == b"kept"

    run(identity, echo, scenario, ahead=0)


def test_several_writers_take_turns(identity):
    async def scenario(stream: Bytes, server) -> None:
        words = [bytes([number]) * 50_000 for number in range(10)]
        await asyncio.gather(*(stream.send(word, "talk") for word in words))
        assert sorted([await stream.next("talk", 60) for _ in words]) == words

    run(identity, echo, scenario)
