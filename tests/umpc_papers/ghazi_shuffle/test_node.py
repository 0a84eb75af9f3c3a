"""umpc_papers.ghazi_shuffle.node: each step once, and the ledger keeps exactly what leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.local import local_tables
from tests.support.protocols import make_node, run_own_steps
from tests.support.shuffled import shuffled_study
from tests.support.studies import Entropy
from umpc.errors import EncodingError, LocalProtocolError
from umpc.proto import codec
from umpc_papers.ghazi_shuffle.node import ShuffleNode, frames_to

STUDY = shuffled_study(2)


def sessions(counts=(20, 30)) -> list[ShuffleNode]:
    tables = local_tables(STUDY, counts)
    return [
        make_node(node.name, STUDY, table, count, Entropy(node.name))
        for node, table, count in zip(STUDY.nodes, tables, counts, strict=True)
    ]


def begun(counts=(20, 30)) -> ShuffleNode:
    nodes = sessions(counts)
    members = [node.accept() for node in nodes]
    openings = [node.agree(members) for node in nodes]
    assert nodes[0].begin(openings).id == nodes[1].begin(openings).id
    return nodes[0]


def test_every_step_comes_once_and_in_order():
    node = sessions()[0]
    for step in (lambda: node.begin([]), lambda: run_own_steps(node), node.release):
        with pytest.raises(LocalProtocolError):
            step()
    node = begun()
    with pytest.raises(LocalProtocolError, match="released once, after"):
        node.release()
    run_own_steps(node)
    with pytest.raises(LocalProtocolError, match="randomised once"):
        run_own_steps(node)
    assert node.release()
    for step in (node.release, lambda: run_own_steps(node)):
        with pytest.raises(LocalProtocolError):
            step()


def test_what_the_ledger_keeps_gives_the_same_frames_again():
    node = begun()
    run_own_steps(node)
    delivery = node.release()
    again = codec.decode_delivery(codec.encode_delivery(delivery))
    assert again == delivery
    assert all(name not in repr(delivery) for name in ("masked", "seed=", "openings"))
    for place, step in enumerate(("shares", "pad")):
        frames = list(frames_to(place, 0, STUDY, delivery))
        assert [frame.step for frame in frames] == [step] and frames == list(
            frames_to(place, 0, STUDY, again)
        )
    with pytest.raises(EncodingError, match="a seed has 32 bytes, 31 came"):
        codec.decode_delivery(codec.encode_delivery(replace(delivery, seed=bytes(31))))


def test_it_shows_nothing_of_itself():
    shown = repr(begun())
    assert shown.startswith("ShuffleNode(node-0, study ") and shown.endswith("<redacted>)")
