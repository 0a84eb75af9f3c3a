"""umpc_papers.gopa.node: noise before the records, each step once, and unusable keys."""

from __future__ import annotations

import pytest

from tests.support.gopa import gopa_study, ring_of_sessions, tables_of
from tests.support.protocols import make_node, run_own_steps
from tests.support.signed import signed
from tests.support.studies import Entropy
from umpc.crypto.prg import Stream
from umpc.errors import LocalProtocolError, RangeError, RemoteProtocolError
from umpc_papers.gopa.node import GopaNode, random_bits

STUDY = gopa_study(3)


class Drawing(Entropy):
    """Entropy that a test can close."""

    is_closed = False

    def __call__(self, count: int) -> bytes:
        assert not self.is_closed, "more was drawn"
        return super().__call__(count)


class Untouched(dict):
    """Columns that nobody may look at yet."""

    def __getitem__(self, name):
        raise AssertionError("the records were looked at")


def test_its_node_is_of_its_own_kind():
    assert type(make_node("node-0", STUDY, tables_of((5,))[0], 5, Entropy("kind"))) is GopaNode


def test_all_noise_is_drawn_before_the_records_are_looked_at():
    tables = [Untouched(table) for table in tables_of((5, 6, 7))]
    entropy, names = Drawing("before"), [node.name for node in STUDY.nodes]
    facts = zip(names, tables, (5, 6, 7), strict=True)
    nodes = [make_node(name, STUDY, table, count, entropy) for name, table, count in facts]
    members = [node.accept() for node in nodes]
    openings = [node.agree(members) for node in nodes]
    node = nodes[0]
    node.begin(openings)
    noise = node.noise
    assert noise
    entropy.is_closed = True
    with pytest.raises(AssertionError, match="looked at"):
        run_own_steps(node)
    node.columns = dict(tables[0])
    run_own_steps(node)
    assert node.noise == noise


def test_noise_that_does_not_fit_is_refused_and_nothing_is_released():
    node = ring_of_sessions(STUDY, tables_of((5, 6, 7)), Entropy("large"))[0]
    node.noise = 1 << 200
    with pytest.raises(RangeError, match="run the study again"):
        run_own_steps(node)
    with pytest.raises(LocalProtocolError):
        node.release()


def test_a_key_that_is_none_names_its_node():
    nodes = [make_node(n.name, STUDY, tables_of((5,))[0], 5, Entropy(n.name)) for n in STUDY.nodes]
    members = [node.accept() for node in nodes]
    members[2] = signed(STUDY, members[2], public_key=bytes(32))
    openings = [nodes[0].agree(members), *(node.opening for node in nodes[1:])]
    with pytest.raises(RemoteProtocolError, match="node-2 sent an unusable X25519 key") as caught:
        nodes[0].begin(openings)
    assert caught.value.culprit == "node-2"


def test_a_streams_bits_are_uniform_words_and_the_same_for_the_same_seed():
    first, second = (random_bits(Stream(bytes(32))) for _ in range(2))
    drawn = [first(count) for count in (1, 7, 64, 3) * 500]
    assert drawn == [second(count) for count in (1, 7, 64, 3) * 500]
    assert {value for value in drawn[::4]} == {0, 1} and max(drawn[3::4]) == 7
    assert 0.45 < sum(drawn[::4]) / 500 < 0.55


def test_a_node_that_copies_a_key_does_not_cancel_the_noise_of_its_owner():
    """Node 2 repeats node 0's key. Node 1 lies between both and adds two independent numbers."""
    entropy, facts = Entropy("copied"), zip(STUDY.nodes, tables_of((5, 6, 7)), strict=True)
    nodes = [
        make_node(node.name, STUDY, table, 5 + i, entropy) for i, (node, table) in enumerate(facts)
    ]
    members = [node.accept() for node in nodes]
    copied = signed(STUDY, members[2], public_key=members[0].public_key)
    openings = [node.agree([*members[:2], copied]) for node in nodes[:2]]
    attempt = nodes[1].begin([*openings, nodes[2].agree(members)])
    assert nodes[1].shared_noise(attempt, 0) + nodes[1].shared_noise(attempt, 2) != 0
