"""A second copy of a node is noticed: both sides are warned, and nobody is refused."""

from __future__ import annotations

import logging
from fractions import Fraction
from itertools import count
from pathlib import Path

import pytest

from umpc.node.budget.ledger import Ledger
from umpc.node.starts import MOST_STARTS, Starts
from umpc.proto.v1 import umpc_pb2 as pb

NAMES = (bytes([number]) * 8 for number in count(1))
COPY = "a second copy of it may run"
OWN = "a second copy of this node may run"


class Node:
    """A node's ledger, and its starts since then."""

    def __init__(self, folder: Path, name: str):
        self.name, self.path = name, folder / f"{name}.sqlite"
        self.ledger = Ledger(self.path, name, Fraction(1), Fraction(0))
        self.start()

    def start(self, number: int | None = None) -> None:
        """Start again; as a copy from before, where a number is given."""
        if number is not None:
            self.ledger.keep_start(self.name.encode(), bytes(8) + (number - 1).to_bytes(8))
        self.starts = Starts(self.ledger, self.name, lambda size: next(NAMES))

    def meet(self, peer: Node) -> None:
        """Greet a peer, which answers."""
        asked = self.starts.greeting(peer.name, b"a" * 32, b"")
        answer = peer.starts.greeting(self.name, b"a" * 32, b"")
        peer.starts.hear(self.name, asked)
        self.starts.hear(peer.name, answer)


@pytest.fixture
def nodes(tmp_path):
    found = [Node(tmp_path, name) for name in ("north", "south")]
    yield found
    for each in found:
        each.ledger.close()


def warned(caplog) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return found


def test_nodes_that_start_again_warn_nobody(nodes, caplog):
    north, south = nodes
    for _ in range(3):
        north.meet(south)
        south.meet(north)
        north.start()
        south.meet(north)
        south.start()
    assert warned(caplog) == [] and north.starts.own.number == 4


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("copied", [3, 2, 1], ids=["the same number", "earlier", "a backup"])
def test_a_copy_warns_both_administrators_until_it_is_started_again(nodes, caplog, turned, copied):
    north, south = nodes
    north.start()
    north.start()
    north.meet(south)
    assert warned(caplog) == []
    north.start(copied)  # a copy of the folder, from before the present start
    north.meet(south) if turned else south.meet(north)
    assert [COPY in line or OWN in line for line in warned(caplog)] == [True, True]
    north.start()
    assert north.starts.own.number == 4, "it counts on from what its peer remembers"
    south.meet(north)
    assert warned(caplog) == []


def test_two_copies_that_both_run_are_noticed_by_whoever_meets_both(nodes, tmp_path, caplog):
    north, south = nodes
    (tmp_path / "other").mkdir()
    copy = Node(tmp_path / "other", "north")
    north.meet(south)
    copy.meet(south)
    first, second = sorted(warned(caplog))
    assert first.startswith("north told its start number 1") and second.startswith("south remembe")
    copy.ledger.close()


def test_a_peer_of_before_or_one_that_lies_changes_nothing(nodes, caplog):
    north, _ = nodes
    north.starts.hear("east", pb.PeerHello(attempt=b"a" * 32))
    lie = pb.NodeStart(number=MOST_STARTS, name=b"x" * 8)
    north.starts.hear("east", pb.PeerHello(known=lie))
    assert warned(caplog) == []
    # a number that is too far ahead would be told to all peers for ever
    north.starts.hear("east", pb.PeerHello(known=pb.NodeStart(number=1 << 20, name=b"x" * 8)))
    assert warned(caplog) == []
    north.start()
    assert north.starts.own.number == 2


def test_what_peers_remember_outlives_their_own_start(nodes, caplog):
    north, south = nodes
    north.start()
    north.meet(south)
    south.start()
    north.start(1)
    north.meet(south)
    assert len(warned(caplog)) == 2
