"""The failure that a coordinator shows: what decides first, and every site that waits."""

from __future__ import annotations

import asyncio

import pytest

from umpc.coordinator.links import ABORT_SECONDS, END_SECONDS, NodeLink, most_telling
from umpc.errors import ApprovalPending, PeerLost, PolicyRefused, StudyAborted
from umpc.study.parts import Participant


def pending(name: str) -> ApprovalPending:
    return ApprovalPending(f"{name}: it waits for approval; ask again later", culprit=name)


def test_all_sites_that_wait_are_named_at_once():
    failures = {name: pending(name) for name in ("south", "east", "north")}
    told = most_telling(failures, "propose")
    assert told.waiting == ("east", "north", "south")
    assert told.message == (
        "south: it waits for approval; ask again later. It waits at east, north, too. Nothing was "
        "released and no epsilon was charged in this run."
    )
    assert most_telling({"north": pending("north")}, "propose").waiting == ("north",)


def test_a_refusal_decides_before_an_approval_that_is_missing():
    refused = PolicyRefused("east: never", culprit="east")
    lost = PeerLost("west is gone", culprit="west")
    aborted = StudyAborted("the study was ended", culprit="north")
    failures = {"north": pending("north"), "west": lost, "south": aborted}
    told = most_telling(failures, "propose")
    assert isinstance(told, ApprovalPending) and told.waiting == ("north",)
    assert most_telling({**failures, "east": refused}, "propose") is refused


def test_a_shuffler_that_names_a_lost_node_is_not_the_one_that_is_missed():
    """gRPC may lose the reason of an ended call, so another node sees only that the call ended."""
    missed = PeerLost("shuffler-1 went away", culprit="shuffler-1")
    lost = PeerLost("shuffler-1: node-2 went away", culprit="node-2")
    failures = {"node-1": missed, "shuffler-1": lost}
    assert most_telling(failures, "release") is lost


class StreamThatNotes:
    """The calls that end a stream."""

    def __init__(self, is_through_hub: bool):
        self.is_through_hub = is_through_hub
        self.calls: list[tuple[str, float]] = []

    async def ended_within(self, seconds: float) -> None:
        self.calls.append(("ended_within", seconds))

    async def finish(self, seconds: float) -> None:
        self.calls.append(("finish", seconds))

    async def close(self, *, keep: bool) -> None:
        self.calls.append(("close", float(keep)))


@pytest.mark.parametrize("is_over", [True, False])
@pytest.mark.parametrize("is_through_hub", [True, False])
def test_a_node_that_sent_its_last_message_is_not_told_to_end_its_stream(is_over, is_through_hub):
    """It gets a moment to do so. A session through a hub is told at once, since it then rests."""
    link = NodeLink(Participant("north", "here:1"), lambda *_: None)
    link._stream = stream = StreamThatNotes(is_through_hub)

    async def scenario():
        await link.hang_up(is_over=is_over)
        before = list(stream.calls)
        await link.close()
        return before, stream.calls[len(before) :]

    before, after = asyncio.run(scenario())
    end = [("finish", ABORT_SECONDS), ("close", 1.0)]
    if is_over and not is_through_hub:
        assert before == [] and after == [("ended_within", END_SECONDS), *end]
    else:
        assert before == [("finish", 0)] and after == end
