"""umpc.transport.stream_reader: the peer's status counts, whenever gRPC sets one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.transport.talk import Bytes, run
from umpc.errors import DataError, PeerLost
from umpc.transport import stream_reader as reader_module
from umpc.transport.status import CULPRIT, blame_of, error_of, status_of
from umpc.transport.stream_reader import OF_CORE, CallEnd
from umpc.transport.tls import grpc

CORE = (grpc.StatusCode.INTERNAL, OF_CORE)
WELL = (grpc.StatusCode.OK, "")
LOST = (grpc.StatusCode.UNAVAILABLE, "the socket was closed")
ERROR = DataError("the table is empty", culprit="east")
SAID = status_of(ERROR)


class EndedCall:
    """A call whose statuses are set one after the other. It tells its callbacks the first one."""

    def __init__(self, *messages: bytes) -> None:
        self.status: tuple[grpc.StatusCode, str] = CORE
        self.messages = messages
        self.callbacks: list[Any] = []
        self.failed = asyncio.Event()

    def add_done_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def set(self, status: tuple[grpc.StatusCode, str]) -> None:
        self.status = status
        while self.callbacks:
            self.callbacks.pop()(self)

    async def code(self) -> grpc.StatusCode:
        return self.status[0]

    async def details(self) -> str:
        return self.status[1]

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata(*blame_of(ERROR))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for message in self.messages:
            yield message
        self.failed.set()
        raise grpc.aio.AioRpcError(
            self.status[0], grpc.aio.Metadata(), grpc.aio.Metadata(), self.status[1], None
        )


async def read_failing(*statuses: tuple[grpc.StatusCode, str]) -> Any:
    """Read from a call whose statuses are set one after the other. Returns: the outcome."""
    call = EndedCall(b"last")
    end = CallEnd(call)
    for status in statuses:
        call.set(status)
    assert await end.read() == b"last"
    try:
        return await end.read()
    except grpc.aio.AioRpcError as failure:
        return error_of(failure, "north", "talk", believed=True)


@pytest.mark.parametrize("statuses", [[SAID], [SAID, CORE], [CORE, SAID]])
def test_the_peers_own_status_counts_in_any_order(statuses):
    assert isinstance(asyncio.run(read_failing(*statuses)), DataError)


def test_whom_a_dealer_blames_is_kept_with_its_status():
    assert asyncio.run(read_failing(SAID, CORE)).culprit == "east" == dict(blame_of(ERROR))[CULPRIT]


def test_a_read_waits_for_a_status_that_comes_after_that_of_grpc():
    async def main() -> None:
        call = EndedCall()
        end = CallEnd(call)
        call.set(CORE)
        reading = asyncio.create_task(end.read())
        await call.failed.wait()
        await asyncio.sleep(0)
        call.set(SAID)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await reading
        assert (caught.value.code(), caught.value.details()) == SAID

    asyncio.run(main())


def test_a_peer_that_ended_the_call_well_has_no_failure():
    assert asyncio.run(read_failing(WELL, CORE)) is grpc.aio.EOF


def test_without_a_status_of_the_peer_grpcs_own_counts(limit):
    limit(reader_module, REASON_SECONDS=0.02)
    assert isinstance(asyncio.run(read_failing(CORE)), PeerLost)


@pytest.mark.parametrize("status", [SAID, LOST, (grpc.StatusCode.INTERNAL, "another")], ids=str)
def test_a_status_that_grpc_did_not_make_waits_for_nothing(monkeypatch, status):
    def wait(seconds: float) -> None:
        raise AssertionError("it waits")

    monkeypatch.setattr(asyncio, "sleep", wait)
    assert not isinstance(asyncio.run(read_failing(status)), AssertionError)


@pytest.mark.parametrize("messages", [0, 1, 3])
def test_messages_and_the_reason_arrive_while_many_writes_fail(identity, messages):
    """Six tasks write until the peer ends the call: gRPC's own status comes first most often."""

    async def fail(context) -> None:
        await context.read()
        for _ in range(messages):
            await context.write(b"m")
        await context.abort(*SAID)

    async def flood(stream: Bytes) -> None:
        while stream.is_open:
            await stream.write(bytes(20_000))
            await asyncio.sleep(0)

    async def scenario(stream: Bytes, server) -> None:
        writers = [asyncio.create_task(flood(stream)) for _ in range(6)]
        for _ in range(messages):
            assert await stream.next("talk", 60) == b"m"
        with pytest.raises(DataError, match="north: the table is empty"):
            await stream.next("talk", 60)
        await asyncio.gather(*writers)

    for _ in range(4):
        run(identity, fail, scenario)


@pytest.mark.parametrize("ends_well", [False, True])
def test_a_write_that_fails_says_why_the_peer_ended_the_call(identity, ends_well):
    async def end(context) -> None:
        await context.read()
        await context.write(b"m")
        if not ends_well:
            await context.abort(*SAID)

    async def scenario(stream: Bytes, server) -> None:
        async def flood() -> None:
            while True:
                await stream.send(bytes(20_000), "talk")

        for ended in await asyncio.gather(*(flood() for _ in range(6)), return_exceptions=True):
            assert isinstance(ended, PeerLost if ends_well else DataError)

    for _ in range(3):
        run(identity, end, scenario)
