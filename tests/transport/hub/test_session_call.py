"""One call of a session at its two ends: long messages stay whole, and each call ends once."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from two_ends import Pair, begun

from umpc.errors import RemoteProtocolError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import numbering as n

LONG = bytes(4 * n.PART_BYTES)


def run(scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20))


async def stopped_within_a_message(pair: Pair) -> asyncio.Task[None]:
    """Fill north's window, so that a part of a message waits. Returns: the task that writes."""
    for _ in range(n.WINDOW // len(LONG) - 1):
        await pair.north.write(LONG)
    writing = asyncio.create_task(pair.north.write(LONG))
    await asyncio.sleep(0)
    assert not writing.done()
    return writing


def taken(pair: Pair) -> list[bytes]:
    """Deliver all that is due, and return south's messages."""
    found: list[bytes] = []
    pair.exchange()
    while (message := pair.south.poll()) is not None:
        found.append(message)
        pair.exchange()
    return found


def test_no_other_message_comes_between_the_parts_of_a_long_one():
    async def scenario():
        pair = begun()
        writing = await stopped_within_a_message(pair)
        other = asyncio.create_task(pair.north.write(b"short"))
        await asyncio.sleep(0)
        found = []
        while not (writing.done() and other.done()):
            found += taken(pair)
            await asyncio.sleep(0)
        *long, short = found + taken(pair)
        assert set(long) == {LONG} and short == b"short"

    run(scenario)


def test_a_message_that_was_cut_is_not_continued_by_the_next_one():
    async def scenario():
        pair = begun()
        writing = await stopped_within_a_message(pair)
        writing.cancel()
        await asyncio.wait({writing})
        found = taken(pair)
        assert set(found) == {LONG}
        with pytest.raises(EOFError):
            await pair.north.write(b"next")
        assert taken(pair) == []

    run(scenario)


def test_a_handler_is_cancelled_once_however_often_the_caller_ends_its_call():
    """A second time would end what the handler does to clean up."""

    async def scenario():
        pair, cancelled = begun(), []
        pair.south.cancelled = lambda: cancelled.append(1)
        for kind in (n.CANCEL, n.CANCEL):
            pair.north.send(kind)
            pair.exchange()
        assert cancelled == [1]

    run(scenario)


@pytest.mark.parametrize("lost", [1, 4, 10])
def test_an_answer_leaves_after_a_break_although_its_call_is_over(lost):
    """The handler may end while the called side still asks to resume. Args: lost: questions."""

    async def scenario():
        pair, questions = Pair(), 0

        def loses(sender: str) -> bool:
            nonlocal questions
            questions += sender == "south"
            return sender == "south" and questions <= lost

        pair.south.connection_lost()
        pair.north.accepted(pair.accepts)
        pair.north.begin_call("method")
        pair.exchange(loses=loses)
        pair.south.send(n.MESSAGE, b"material")
        pair.south.send(n.END, pb.HubEnd(code=0).SerializeToString())
        pair.south.close()
        pair.pass_time(8 * lost, loses=loses)
        assert pair.north.poll() == b"material" and pair.north.has_ended
        pair.north.close()
        pair.exchange()
        assert pair.is_forgotten

    run(scenario)


def test_whoever_takes_what_it_does_not_acknowledge_breaks_the_protocol():
    """The window would stay open, and the sender would keep every record for ever."""
    end = n.Numbering("south", lambda: 1, lambda: RemoteProtocolError("dropped"))
    sizes = 100 + n.RECORD_BYTES
    for _ in range(2):
        end.append(n.MESSAGE, bytes(100))
        end.pull()
    end.take(n.HEADER.pack(n.ACK, 0, 1, sizes))
    with pytest.raises(RemoteProtocolError, match="took what it has not received"):
        end.take(n.HEADER.pack(n.ACK, 0, 1, 2 * sizes))
