"""umpc.transport.stream over loopback with TLS: each way a stream can end, and who is named."""

from __future__ import annotations

import asyncio

import pytest

from tests.transport.talk import TALK, Bytes, decode_small, echo, run, silence
from umpc.errors import (
    DataError,
    LocalProtocolError,
    PeerLost,
    PeerUnavailable,
    RemoteProtocolError,
    StepTimeout,
)
from umpc.transport.status import status_of
from umpc.transport.stream import RpcStream, as_received


def test_a_stream_writes_and_reads_messages_in_order(identity):
    async def scenario(stream: Bytes, server) -> None:
        assert stream.is_open
        for message in (b"one", b"two"):
            await stream.write(message)
        assert [await stream.next("talk", 60), await stream.next("talk")] == [b"one", b"two"]

    run(identity, echo, scenario)


def test_messages_are_decoded_before_they_are_handed_out(identity):
    async def scenario(stream: RpcStream[bytes, int], server) -> None:
        await stream.write(b"\x07")
        assert await stream.next("talk", 60) == 7

    run(identity, echo, scenario, decode=decode_small)


def test_a_limit_of_time_names_peer_and_step_and_leaves_the_stream_usable(identity):
    async def scenario(stream: Bytes, server) -> None:
        with pytest.raises(
            StepTimeout, match="north did not finish step talk within 0 s"
        ) as caught:
            await stream.next("talk", 0.2)
        assert (caught.value.culprit, caught.value.step) == ("north", "talk")
        await stream.write(b"later")
        assert await stream.next("talk", 60) == b"later"

    run(identity, echo, scenario)


def test_a_limit_of_time_holds_for_all_messages_of_a_step_together(identity):
    async def chatter(context) -> None:
        while True:
            await context.write(b"progress")
            await asyncio.sleep(0.05)

    async def scenario(stream: Bytes, server) -> None:
        with pytest.raises(StepTimeout):
            async with stream.deadline("talk", 0.4):
                while True:
                    assert await stream.next("talk") == b"progress"

    run(identity, chatter, scenario)


def test_a_peer_whose_server_stops_is_lost_now_and_later(identity):
    async def scenario(stream: Bytes, server) -> None:
        waiting = asyncio.create_task(stream.next("talk", 10))
        await asyncio.sleep(0.1)
        await server.stop(0)
        with pytest.raises(PeerLost, match="north went away in step talk") as caught:
            await waiting
        assert (caught.value.culprit, caught.value.step) == ("north", "talk")
        with pytest.raises(PeerLost):
            await stream.next("later", 10)
        with pytest.raises(PeerLost):
            stream.early()
        with pytest.raises(PeerLost):
            await stream.send(b"more", "later")
        await stream.write(b"its failure is left to the reader")
        assert not stream.is_open

    run(identity, silence, scenario)


def test_a_peer_that_ends_the_stream_is_lost_after_its_last_message(identity):
    async def one(context) -> None:
        await context.write(b"last")

    async def scenario(stream: Bytes, server) -> None:
        assert await stream.next("talk", 60) == b"last"
        with pytest.raises(PeerLost, match="step talk"):
            await stream.next("talk", 60)

    run(identity, one, scenario)


def test_a_peer_that_must_not_end_the_stream_breaks_the_protocol(identity):
    async def nothing(context) -> None: ...

    async def scenario(stream: Bytes, server) -> None:
        with pytest.raises(RemoteProtocolError, match="north broke the protocol: ended too soon"):
            await stream.next("talk", 60)

    run(identity, nothing, scenario, early_end="ended too soon")


def test_messages_before_an_early_end_are_heard_however_late_this_side_asks(identity):
    """The last message that is due may wait while the peer, which is right, ends its stream."""

    async def two(context) -> None:
        await context.write(b"one")
        await context.write(b"last")

    async def scenario(stream: Bytes, server) -> None:
        await stream.finish(60)
        assert [await stream.next("talk", 60) for _ in range(2)] == [b"one", b"last"]
        with pytest.raises(RemoteProtocolError, match="ended too soon"):
            await stream.next("talk", 60)

    run(identity, two, scenario, early_end="ended too soon")


def test_a_failure_of_the_peer_arrives_as_its_own_class(identity):
    """The reason arrives too where a write fails first: `write` raises nothing."""

    async def fail(context) -> None:
        await context.read()
        error = DataError("the table is empty")
        await context.abort(*status_of(error))

    async def scenario(stream: Bytes, server) -> None:
        for _ in range(20):
            await stream.write(bytes(1000))
            await asyncio.sleep(0.01)
        with pytest.raises(DataError, match="north: the table is empty") as caught:
            await stream.next("talk", 60)
        assert caught.value.culprit == "north"
        with pytest.raises((DataError, PeerLost)):
            await stream.send(b"more", "talk")

    run(identity, fail, scenario)


def test_a_message_that_does_not_decode_is_a_violation_after_those_before_it(identity):
    async def scenario(stream: RpcStream[bytes, int], server) -> None:
        for message in (b"\x01", b"too long", b"\x02"):
            await stream.write(message)
        assert await stream.next("talk", 60) == 1
        with pytest.raises(
            RemoteProtocolError, match="north broke the protocol: 8 bytes came where one was due"
        ) as caught:
            await stream.next("talk", 60)
        assert (caught.value.culprit, caught.value.step) == ("north", "talk")

    run(identity, echo, scenario, decode=decode_small)


def test_a_violation_names_the_step_that_is_running(identity):
    async def scenario(stream: Bytes, server) -> None:
        await stream.write(b"odd")
        await stream.next("talk", 60)
        error = stream.violation("sent an odd word")
        assert (error.message, error.culprit, error.step) == (
            "north broke the protocol: sent an odd word",
            "north",
            "talk",
        )

    run(identity, echo, scenario)


def test_a_message_that_nobody_asked_for_can_be_seen_without_waiting(identity):
    async def scenario(stream: Bytes, server) -> None:
        assert stream.early() is None
        await stream.write(b"early")
        while (message := stream.early()) is None:
            await asyncio.sleep(0.01)
        assert message == b"early"

    run(identity, echo, scenario)


def test_the_called_side_has_the_same_stream(identity):
    heard: list[bytes] = []
    failures: list[Exception] = []

    async def listen(context) -> None:
        stream: Bytes = RpcStream("south", "listen", as_received, ahead=0)
        stream.accept(context)
        try:
            while True:
                heard.append(await stream.next("listen", 60))
                await stream.send(b"heard", "listen")
        except PeerLost as error:
            failures.append(error)
        finally:
            await stream.close()

    async def scenario(stream: Bytes, server) -> None:
        for _ in range(2):
            await stream.write(b"word")
            assert await stream.next("talk", 60) == b"heard"
        await stream.finish(5)

    run(identity, listen, scenario)
    assert heard == [b"word"] * 2
    assert [error.culprit for error in failures] == ["south"]


class Untold:
    """A call of gRPC, and whether the peer was told that this side writes no more."""

    def __init__(self, call):
        self.call = call
        self.is_told = False

    def __getattr__(self, name):
        return getattr(self.call, name)

    async def done_writing(self):
        self.is_told = True
        await self.call.done_writing()


def test_a_stream_that_its_peer_has_ended_is_not_told_to_end(identity):
    async def handler(context):
        await context.write(b"last")

    async def scenario(stream, server):
        call = Untold(stream.channel.stream_stream(TALK)())
        again = RpcStream("north", "talk", as_received)
        again.begin(call)
        assert await again.next("talk") == b"last"
        with pytest.raises(PeerLost):
            await again.next("talk", 20)
        await again.finish(5)
        await again.close()
        assert not call.is_told

    run(identity, handler, scenario)


def test_a_stream_that_was_not_opened_says_so(identity):
    async def scenario() -> None:
        stream: Bytes = RpcStream("north", "connect", as_received)
        with pytest.raises(LocalProtocolError, match="north was used before it was connected"):
            _ = stream.channel
        with pytest.raises(LocalProtocolError, match="north was used before it began"):
            await stream.write(b"word")
        with pytest.raises(PeerUnavailable, match="north"):
            await stream.connect(identity, "node", "127.0.0.1:1", 0.3)
        assert not stream.is_open
        await stream.finish(1)
        await stream.close()

    asyncio.run(scenario())
