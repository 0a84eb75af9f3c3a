"""umpc/transport/stream_reader.py: the messages of a call, as far as there is room for them."""

from __future__ import annotations

import asyncio

import pytest

from umpc.errors import EncodingError, PeerLost, RemoteProtocolError
from umpc.transport.stream_reader import StreamReader
from umpc.transport.tls import EOF


class ScriptedCall:
    """A call to which a test gives the messages."""

    def __init__(self) -> None:
        self._coming: asyncio.Queue = asyncio.Queue()

    @property
    def waiting(self) -> int:
        """The number of messages that nobody has read."""
        return self._coming.qsize()

    async def read(self):
        coming = await self._coming.get()
        if isinstance(coming, Exception):
            raise coming
        return coming

    async def give(self, *coming) -> None:
        for each in coming:
            self._coming.put_nowait(each)
        await settled()


async def settled() -> None:
    """Let all tasks go on as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


def reader_of(call: ScriptedCall, ahead: int | None = 0, decode=lambda message: message):
    def reason(error):
        if isinstance(error, EncodingError):
            return RemoteProtocolError("north broke the protocol", culprit="north")
        return None if error is None else PeerLost("north went away", culprit="north")

    return StreamReader(call, decode, ahead, reason, lambda: PeerLost("ended", culprit="north"))


def run(scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_it_takes_no_message_before_it_is_asked_for():
    async def scenario():
        call = ScriptedCall()
        reader = reader_of(call)
        await call.give(b"1", b"2")
        assert call.waiting == 2
        assert await reader.next() == b"1"
        await settled()
        assert call.waiting == 1 and await reader.next() == b"2"
        waiting = asyncio.create_task(reader.next())
        await call.give(b"3", b"4")
        assert await waiting == b"3" and call.waiting == 1

    run(scenario)


def test_messages_are_taken_ahead_up_to_the_limit_and_further_as_they_are_used():
    async def scenario():
        call = ScriptedCall()
        reader = reader_of(call, ahead=2)
        await call.give(b"a", b"b", b"c", b"d")
        assert call.waiting == 2
        assert await reader.next() == b"a"
        await settled()
        assert call.waiting == 1

    run(scenario)


def test_a_sink_that_is_full_is_given_more_when_it_wants_more():
    async def scenario():
        call, taken = ScriptedCall(), []
        reader = reader_of(call)
        reader.feed(taken.append, lambda: len(taken) < 2)
        await call.give(b"1", b"2", b"3", EOF)
        assert taken == [b"1", b"2"] and not reader.has_ended.is_set()
        taken.clear()
        reader.want()
        await settled()
        assert taken == [b"3"] and reader.has_ended.is_set()
        assert isinstance(reader.failure, PeerLost)
        await call.give(b"4")
        assert taken == [b"3"], "after the end nothing is taken"

    run(scenario)


@pytest.mark.parametrize("error", [EncodingError("no frame"), ValueError("anything")])
def test_a_message_that_cannot_be_read_ends_this_stream_alone(error):
    def decode(message):
        raise error

    async def scenario():
        call = ScriptedCall()
        reader = reader_of(call, ahead=None, decode=decode)
        await call.give(b"1", b"2")
        expected = RemoteProtocolError if isinstance(error, EncodingError) else PeerLost
        with pytest.raises(expected):
            await reader.next()
        assert call.waiting == 1

    run(scenario)


def test_what_came_before_a_loss_is_handed_out_and_nothing_after_a_violation():
    async def scenario():
        for failure, is_heard in ((PeerLost("x", culprit="x"), True), (EncodingError("x"), False)):
            call = ScriptedCall()
            reader = reader_of(call, ahead=None)
            await call.give(b"1", failure)
            if is_heard:
                assert await reader.next() == b"1"
            with pytest.raises(PeerLost if is_heard else RemoteProtocolError):
                await reader.next()

    run(scenario)


def test_a_reader_that_is_stopped_hears_no_more_and_ends_who_waits():
    async def scenario():
        reader = reader_of(ScriptedCall())
        waiting = asyncio.create_task(reader.next())
        await settled()
        await reader.stop()
        with pytest.raises(PeerLost, match="ended"):
            await waiting

    run(scenario)
