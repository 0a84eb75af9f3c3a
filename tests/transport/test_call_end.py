"""umpc.transport.call_end: the peer's status counts, whenever gRPC sets one of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.transport.talk import Bytes, run
from umpc.errors import DataError, PeerLost
from umpc.transport import call_end
from umpc.transport.call_end import OF_CORE, CallEnd
from umpc.transport.status import error_of, status_of
from umpc.transport.tls import grpc

CORE = (grpc.StatusCode.INTERNAL, OF_CORE)
SAID = status_of(DataError("the table is empty"))


class EndedCall:
    """A call of gRPC whose status is set, maybe again and again."""

    def __init__(self) -> None:
        self.status: tuple[grpc.StatusCode, str] = CORE
        self.callbacks: list[Any] = []
        self.failed = asyncio.Event()

    def add_done_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def set(self, status: tuple[grpc.StatusCode, str]) -> None:
        self.status = status
        for callback in self.callbacks:
            callback(self)

    async def code(self) -> grpc.StatusCode:
        return self.status[0]

    async def details(self) -> str:
        return self.status[1]

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return grpc.aio.Metadata()

    async def read(self) -> bytes:
        self.failed.set()
        raise grpc.aio.AioRpcError(
            self.status[0], grpc.aio.Metadata(), grpc.aio.Metadata(), self.status[1], None
        )


async def read_failing(*statuses: tuple[grpc.StatusCode, str]) -> Any:
    """Read from a call whose statuses are set one after the other. Returns: the outcome."""
    call = EndedCall()
    end = CallEnd(call)
    for status in statuses:
        call.set(status)
    try:
        return await end.read()
    except grpc.aio.AioRpcError as failure:
        return error_of(failure, "north", "talk")


@pytest.mark.parametrize("statuses", [[SAID], [SAID, CORE], [CORE, SAID], [CORE, SAID, CORE]])
def test_the_peers_own_status_counts_in_any_order(statuses):
    assert isinstance(asyncio.run(read_failing(*statuses)), DataError)


def test_a_read_waits_for_a_status_that_comes_after_that_of_grpc():
    async def main() -> None:
        call = EndedCall()
        end = CallEnd(call)
        call.set(CORE)
        reading = asyncio.create_task(end.read())
        await call.failed.wait()
        call.set(SAID)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await reading
        assert (caught.value.code(), caught.value.details()) == SAID

    asyncio.run(main())


def test_a_peer_that_ended_the_call_well_has_no_failure():
    found = asyncio.run(read_failing((grpc.StatusCode.OK, ""), CORE))
    assert found is grpc.aio.EOF


def test_without_a_status_of_the_peer_grpcs_own_counts(monkeypatch):
    monkeypatch.setattr(call_end, "REASON_SECONDS", 0.01)
    assert isinstance(asyncio.run(read_failing(CORE)), PeerLost)


def test_a_status_of_another_kind_is_left_as_it_is():
    lost = grpc.StatusCode.UNAVAILABLE, "the socket was closed"
    assert isinstance(asyncio.run(read_failing(lost)), PeerLost)


def test_the_reason_arrives_while_many_writes_fail(identity):
    """Each write that fails sets gRPC's own status, most often after the peer's has come."""

    async def fail(context) -> None:
        await context.read()
        await context.abort(*SAID)

    async def flood(stream: Bytes) -> None:
        while stream.is_open:
            await stream.write(bytes(20_000))
            await asyncio.sleep(0)

    async def scenario(stream: Bytes, server) -> None:
        writers = [asyncio.create_task(flood(stream)) for _ in range(6)]
        with pytest.raises(DataError, match="north: the table is empty"):
            await stream.next("talk", 60)
        await asyncio.gather(*writers)

    for _ in range(6):
        run(identity, fail, scenario)
