"""The failure that a coordinator shows: what decides first, and every site that waits."""

from __future__ import annotations

from umpc.coordinator.links import most_telling
from umpc.errors import ApprovalPending, PeerLost, PolicyRefused, StudyAborted


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
