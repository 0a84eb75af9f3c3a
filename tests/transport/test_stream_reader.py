"""umpc/transport/stream_reader.py: a call that says when something came is read without a task."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

from umpc.errors import EncodingError, PeerLost, RemoteProtocolError
from umpc.transport.services import EOF, Told
from umpc.transport.stream_reader import StreamReader


class TellingCall(Told):
    """A call through a hub, to which a test gives the messages."""

    def __init__(self) -> None:
        self.coming: deque = deque()
        self.changed = None

    def tell(self, changed) -> None:
        self.changed = changed

    def poll(self):
        coming = self.coming.popleft() if self.coming else None
        if isinstance(coming, Exception):
            raise coming
        return coming

    def write_now(self, message) -> bool:
        return False

    def give(self, *coming) -> None:
        self.coming.extend(coming)
        if self.changed is not None:
            self.changed()


def reader_of(call: TellingCall, ahead: int | None = 0, decode=lambda message: message):
    def reason(error):
        if isinstance(error, EncodingError):
            return RemoteProtocolError("north broke the protocol", culprit="north")
        return None if error is None else PeerLost("north went away", culprit="north")

    return StreamReader(call, decode, ahead, reason, lambda: PeerLost("ended", culprit="north"))


def run(scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_it_has_no_task_and_takes_no_message_before_it_is_asked_for():
    async def scenario():
        before = len(asyncio.all_tasks())
        call = TellingCall()
        reader = reader_of(call)
        call.give(b"1", b"2")
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == before and len(call.coming) == 2
        assert await reader.next() == b"1" and list(call.coming) == [b"2"]
        late = asyncio.create_task(reader.next())
        await asyncio.sleep(0)
        assert await late == b"2"
        waiting = asyncio.create_task(reader.next())
        await asyncio.sleep(0)
        call.give(b"3", b"4")
        assert await waiting == b"3" and list(call.coming) == [b"4"]

    run(scenario)


def test_messages_are_taken_ahead_up_to_the_limit_and_further_as_they_are_used():
    async def scenario():
        call = TellingCall()
        reader = reader_of(call, ahead=2)
        call.give(*b"abcd")
        assert list(call.coming) == list(b"cd")
        assert await reader.next() == ord("a") and list(call.coming) == [ord("d")]

    run(scenario)


def test_a_sink_that_is_full_is_given_more_when_it_wants_more():
    async def scenario():
        call, taken = TellingCall(), []
        reader = reader_of(call)
        reader.feed(taken.append, lambda: len(taken) < 2)
        call.give(b"1", b"2", b"3", EOF)
        assert taken == [b"1", b"2"] and not reader.has_ended.is_set()
        taken.clear()
        reader.want()
        assert taken == [b"3"] and reader.has_ended.is_set()
        assert isinstance(reader.failure, PeerLost)
        call.give(b"4")
        assert taken == [b"3"], "after the end nothing is taken"

    run(scenario)


@pytest.mark.parametrize("error", [EncodingError("no frame"), ValueError("anything")])
def test_a_message_that_cannot_be_read_ends_this_stream_and_raises_nothing_to_the_line(error):
    """The line that calls the reader serves all streams of the process."""

    def decode(message):
        raise error

    async def scenario():
        call = TellingCall()
        reader = reader_of(call, ahead=None, decode=decode)
        call.give(b"1", b"2")
        expected = RemoteProtocolError if isinstance(error, EncodingError) else PeerLost
        with pytest.raises(expected):
            await reader.next()
        assert list(call.coming) == [b"2"]

    run(scenario)


def test_what_came_before_a_loss_is_handed_out_and_nothing_after_a_violation():
    async def scenario():
        for failure, is_heard in ((PeerLost("x", culprit="x"), True), (EncodingError("x"), False)):
            call = TellingCall()
            reader = reader_of(call, ahead=None)
            call.give(b"1", failure)
            if is_heard:
                assert await reader.next() == b"1"
            with pytest.raises(PeerLost if is_heard else RemoteProtocolError):
                await reader.next()

    run(scenario)


def test_a_reader_that_is_let_go_hears_no_more_and_ends_who_waits():
    async def scenario():
        call = TellingCall()
        reader = reader_of(call)
        waiting = asyncio.create_task(reader.next())
        await asyncio.sleep(0)
        assert reader.let_go() and call.changed is None
        with pytest.raises(PeerLost, match="ended"):
            await waiting

    run(scenario)
