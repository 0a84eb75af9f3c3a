"""Frames between nodes: each once, in any order, and nobody waits for a peer that is gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import product

import pytest

from umpc.crypto.prg import digest
from umpc.crypto.rounds import Message
from umpc.errors import PeerLost, RemoteProtocolError
from umpc.node.run import link as peers
from umpc.node.run.link import SHORT, Mailbox, PeerLink, peer_stream
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.messages import Frame
from umpc.transport.tls import grpc


class ScriptedCall:
    """A peer's call that gives these frames and then ends."""

    def __init__(self, frames: list[Frame]):
        self.read_so_far = 0
        self.written: list[pb.PeerMessage] = []
        self._coming = iter(frames)

    async def read(self) -> pb.PeerMessage:
        coming = next(self._coming, None)
        if coming is None:
            return grpc.aio.EOF
        self.read_so_far += 1
        return pb.PeerMessage(frame=codec.encode_frame(coming))

    async def write(self, message: pb.PeerMessage) -> None:
        self.written.append(message)

    async def done_writing(self) -> None: ...

    def cancel(self) -> bool:
        return False

    def done(self) -> bool:
        return False


async def settle() -> None:
    """Let all tasks run until they wait."""
    for _ in range(100):
        await asyncio.sleep(0)


def link_over(call: ScriptedCall) -> PeerLink:
    stream = peer_stream("north")
    stream.begin(call)
    return PeerLink(stream)


def frame(
    chunk: int = 0, payload: bytes = b"\x01", round: int = 1, owners: tuple[int, ...] = (0, 1, 4)
) -> Frame:
    return Frame("open", owners, chunk, 8 * len(payload), 1, payload, round)


def test_a_frame_is_handed_out_whether_it_came_before_or_after_it_was_asked_for():
    async def scenario() -> None:
        box = Mailbox("north")
        box.put(frame(1))
        assert await box.wanted(frame(1).key) == frame(1)
        waiting = asyncio.ensure_future(box.wanted(frame(2).key))
        await asyncio.sleep(0)
        assert box.is_awaited
        box.put(frame(2))
        assert await waiting == frame(2)
        assert not box.is_awaited

    asyncio.run(scenario())


def test_the_same_frame_twice_is_accepted_and_a_different_one_names_the_peer():
    async def scenario() -> None:
        box = Mailbox("north")
        box.put(frame())
        box.put(frame())
        with pytest.raises(
            RemoteProtocolError, match=r"open 1 of cell \(0, 1, 4\), chunk 0 from north came twice"
        ) as caught:
            box.put(frame(payload=b"\x02"))
        assert (caught.value.culprit, caught.value.step) == ("north", "open")
        assert await box.wanted(frame().key) == frame()

    asyncio.run(scenario())


def test_frames_of_other_rounds_or_owners_with_one_peer_are_kept_apart():
    """A peer may be a round ahead in one cell, and it shares several cells with this node."""
    frames = [
        frame(payload=bytes([number]), round=round, owners=owners)
        for number, (round, owners) in enumerate(
            product((1, 2, 3), [(0, 1), (0, 1, 4), (0, 1, 1), (0, 0, 1)])
        )
    ]

    async def scenario() -> None:
        box = Mailbox("north")
        for each in frames:
            box.put(each)
        for each in reversed(frames):
            assert (await box.wanted(each.key)).payload == each.payload

    asyncio.run(scenario())


@pytest.mark.parametrize("payload", [b"\x01", b"\x01" * SHORT, b"\x01" * (SHORT + 1)])
@pytest.mark.parametrize("change", [{"count": 7}, {"width": 2}, {"payload": b"\x03"}])
def test_a_copy_that_differs_in_shape_or_content_names_the_peer(change, payload):
    async def scenario() -> None:
        box = Mailbox("north")
        first = frame(payload=payload)
        box.put(first)
        box.put(replace(first))
        with pytest.raises(RemoteProtocolError, match="came twice"):
            box.put(replace(first, **change))

    asyncio.run(scenario())


def test_the_digest_of_a_long_frame_is_not_taken_for_it():
    async def scenario() -> None:
        box = Mailbox("north")
        long = frame(payload=bytes(SHORT + 1))
        box.put(long)
        with pytest.raises(RemoteProtocolError, match="came twice"):
            box.put(replace(long, payload=digest(long.payload)))

    asyncio.run(scenario())


def test_a_link_hands_out_a_frame_as_the_message_of_its_round_and_counts_what_it_sends():
    ahead = [frame(round=2), frame(round=1, payload=b"\x07")]

    async def scenario() -> None:
        call = ScriptedCall(ahead)
        link = link_over(call)
        written = call.written
        for number, each in enumerate((frame(round=1), frame(round=2), frame(1, round=2))):
            await link.send(each)
            assert len(written) == number + 1
        await link.pump()
        for each in reversed(ahead):
            assert await link.receive(each.key) == Message(
                "open", each.payload, each.count, each.width, each.round
            )
        with pytest.raises(PeerLost):
            await link.receive(frame(round=3).key)
        assert link.rounds_used == {("open", 1), ("open", 2)}
        assert link.bytes_sent == sum(len(message.frame.SerializeToString()) for message in written)

    asyncio.run(scenario())


def test_a_repeated_frame_is_not_handed_out_twice():
    async def scenario() -> None:
        box = Mailbox("north")
        box.put(frame())
        await box.wanted(frame().key)
        box.put(frame())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await box.wanted(frame().key)

    asyncio.run(scenario())


def test_a_peer_that_is_gone_ends_all_waiting_now_and_later():
    async def scenario() -> None:
        box = Mailbox("north")
        waiting = asyncio.ensure_future(box.wanted(frame(1).key))
        box.put(frame(2))
        await asyncio.sleep(0)
        box.fail(PeerLost("north went away", culprit="north"))
        box.fail(PeerLost("a later reason"))
        with pytest.raises(PeerLost, match="north went away"):
            await waiting
        with pytest.raises(PeerLost, match="north went away"):
            await box.wanted(frame(3).key)
        assert await box.wanted(frame(2).key) == frame(2), "what had come is still good"

    asyncio.run(scenario())


def test_a_peer_cannot_fill_the_memory(limit):
    limit(peers, MAX_WAITING=100)
    limit(peers, FRAME_BYTES=0)

    async def scenario() -> None:
        box = Mailbox("north")
        for chunk in range(10):
            box.put(frame(chunk, bytes(10)))
        with pytest.raises(RemoteProtocolError, match="100 bytes wait"):
            box.put(frame(10, bytes(1)))
        await box.wanted(frame(0).key)
        box.put(frame(11, bytes(10)))

    asyncio.run(scenario())


def test_a_faster_peer_waits_unless_somebody_waits_for_what_has_not_come():
    """A link is not read while a window's bytes wait, unless a missing frame is asked for."""

    async def scenario() -> None:
        frames = [frame(chunk) for chunk in range(9)]
        call = ScriptedCall(frames)
        link = link_over(call)
        link.window = 3 * peers.FRAME_BYTES
        pump = asyncio.create_task(link.pump())
        await settle()
        assert call.read_so_far == 3
        await link.receive(frames[0].key)
        await settle()
        assert call.read_so_far == 4
        await link.receive(frames[7].key)
        assert call.read_so_far == 8
        for each in (*frames[1:7], frames[8]):
            await link.receive(each.key)
        await pump

    asyncio.run(scenario())


def test_a_link_that_is_not_read_ends_when_it_is_closed():
    async def scenario() -> None:
        call = ScriptedCall([frame(chunk) for chunk in range(3)])
        link = link_over(call)
        link.window = 1
        pump = asyncio.create_task(link.pump())
        await settle()
        assert call.read_so_far == 1
        link.close()
        await asyncio.wait_for(pump, 1)
        assert call.read_so_far == 1

    asyncio.run(scenario())


def test_after_a_violation_no_frame_is_handed_out_and_the_study_hears_of_it():
    """A frame of a former study waits, the true one follows: neither of them is used."""

    async def scenario() -> None:
        call = ScriptedCall([frame(1), frame(2), frame(1, b"\x07")])
        link = link_over(call)
        link.step = "evaluate"
        heard = []
        link.on_violation(heard.append)
        await link.pump()
        for number in (1, 2, 3):
            with pytest.raises(RemoteProtocolError, match="came twice") as caught:
                await link.receive(frame(number).key)
            assert caught.value.culprit == "north"
        assert heard == [caught.value]
        late = []
        link.on_violation(late.append)
        assert late == heard

    asyncio.run(scenario())


@pytest.mark.parametrize("step", ["prepare", "evaluate"])
def test_a_link_names_the_step_in_which_its_peer_was_lost(step):
    async def scenario() -> None:
        link = link_over(ScriptedCall([frame()]))
        link.step = step
        heard = []
        link.on_violation(heard.append)
        await link.pump()
        assert await link.receive(frame().key), "what came before a loss is still good"
        with pytest.raises(PeerLost) as caught:
            await link.receive(frame(9).key)
        assert caught.value.step == step
        assert heard == [], "a loss is no violation"

    asyncio.run(scenario())
