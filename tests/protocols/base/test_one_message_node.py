"""umpc.protocols.base.one_message: steps once and in order, no message too large."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.local import local_study, local_tables
from tests.support.protocols import ONE_MESSAGE, make_node, run_own_steps
from tests.support.studies import Entropy
from umpc.errors import LocalProtocolError, RangeError
from umpc.protocols.base.one_message import OneMessageNode
from umpc.study.messages import MAX_PAYLOAD

by_protocol = pytest.mark.parametrize("protocol", ONE_MESSAGE)


def sessions(protocol: str) -> list[OneMessageNode]:
    study, counts = local_study(protocol), (20, 30)
    tables = local_tables(study, counts)
    return [
        make_node(node.name, study, table, count, Entropy(node.name))
        for node, table, count in zip(study.nodes, tables, counts, strict=True)
    ]


def begun(protocol: str) -> OneMessageNode:
    nodes = sessions(protocol)
    members = [node.accept() for node in nodes]
    openings = [node.agree(members) for node in nodes]
    assert nodes[0].begin(openings).id == nodes[1].begin(openings).id
    return nodes[0]


@by_protocol
def test_every_step_comes_once_and_in_order(protocol):
    node = sessions(protocol)[0]
    for step in (lambda: node.begin([]), lambda: run_own_steps(node), node.release):
        with pytest.raises(LocalProtocolError):
            step()
    node = begun(protocol)
    with pytest.raises(LocalProtocolError, match="released once, after"):
        node.release()
    run_own_steps(node)
    with pytest.raises(LocalProtocolError, match="randomised once"):
        run_own_steps(node)
    assert node.release().share
    for step in (node.release, lambda: run_own_steps(node)):
        with pytest.raises(LocalProtocolError):
            step()


def test_a_table_too_large_is_refused_when_the_study_is_proposed():
    """A record takes four bits, and 1 MiB is the most."""
    study = local_study("bell-ldp")
    most = 2 * MAX_PAYLOAD
    table = {name: np.zeros(most, dtype=np.int64) for name in "xy"}
    make_node("node-0", study, table, most, Entropy("node"))
    message = "message of node-0 would have 1,048,577 bytes for its 2,097,153 records"
    with pytest.raises(RangeError, match=message):
        make_node("node-0", study, table, most + 1, Entropy("node"))


def test_it_shows_nothing_of_itself():
    shown = repr(begun("bell-ldp"))
    assert shown.startswith("OneMessageNode(node-0, study ") and shown.endswith("<redacted>)")
