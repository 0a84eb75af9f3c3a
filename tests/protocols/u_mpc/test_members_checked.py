"""Studies with members in a hash tree: their result, whom each node sees, which lies it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.protocols import assert_refused, coordinator_of, make_node
from tests.support.signed import signed
from tests.support.studies import (
    KENDALL,
    LOUD,
    Entropy,
    clear_sums,
    graph_of,
    make_study,
    random_tables,
)
from umpc.errors import LocalProtocolError, RemoteProtocolError, StudyError
from umpc.mpc.attempt import ALL_PAIRS, REACH
from umpc.protocols.registry import protocol_of
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.simulation import Simulated, simulate
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.member_tree import MOST_SHOWN
from umpc.study.statements import MembersRoot, openings_tree

DRAWN = 3


def tree_study(nodes: int, drawn: int = DRAWN, **changes) -> Study:
    facts = {
        "noise": "distributed",
        "epsilon": LOUD,
        "max_colluding": nodes - 1,
        "edges": "2n",
    }
    return make_study(KENDALL, nodes, members_checked=drawn, **(facts | changes))


def run(study: Study, records: int = 2, label: str = "tree") -> Simulated:
    tables = random_tables([records] * len(study.nodes), label)
    found = simulate(study, tables, Entropy(label))
    graph = graph_of(study, found.report)
    clear = clear_sums(study, tables, graph)
    unit = study.parsed_kernels[0].unit
    assert found.report.sums[0].mean == pytest.approx(float(clear[0] * unit) / graph.edge_count)
    return found


@pytest.mark.parametrize(
    "changes", [{}, {"noise": "in_mpc"}, {"adversary": "lying_nodes"}], ids=str
)
@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_the_sum_is_exact(nodes, changes):
    if changes.get("noise"):
        changes = changes | {"epsilon": "16"}
        simulate(tree_study(nodes, **changes), random_tables([4] * nodes, "few"), Entropy("few"))
        return
    run(tree_study(nodes, **changes), 4)


def test_the_attempt_is_the_same_at_all_nodes_and_differs_from_that_of_lists():
    found = run(tree_study(5), 4)
    assert {node.attempt.id for node in found.nodes} == {found.attempt.id}
    assert {node.attempt.seed for node in found.nodes} == {found.attempt.seed}


def test_a_node_knows_the_keys_of_those_it_meets_and_of_few_others():
    """More than ALL_PAIRS nodes stand in a circle of zero shares, and have few edges each."""
    nodes = ALL_PAIRS + 40
    found = run(tree_study(nodes), 1)
    strangers = 0
    for node in found.nodes:
        known = {place for place, member in enumerate(node.members) if member.public_key}
        met = {*node.peers, *node.attempt.zero_share_peers(node.index)}
        assert met | {node.index} <= known and len(known - met - {node.index}) <= DRAWN
        assert len(known) <= 1 + 2 * REACH + len(node.peers) + DRAWN < nodes
        assert len(node._keys) == len(known)
        strangers += len(known - met - {node.index})
    assert strangers > 0.5 * DRAWN * nodes * (1 - (2 * REACH + 5) / nodes)


def test_each_node_draws_members_of_its_own():
    found = run(tree_study(ALL_PAIRS + 40, drawn=5), 1)
    drawn = [
        frozenset(node._places) - {*node.peers, *node.attempt.zero_share_peers(node.index)}
        for node in found.nodes
    ]
    assert len(set(drawn)) > len(drawn) // 2


def test_with_fewer_who_may_collude_zero_shares_are_between_all_so_each_sees_all():
    found = run(tree_study(ALL_PAIRS + 10, max_colluding=5), 1)
    assert all(len(node._places) == ALL_PAIRS + 10 for node in found.nodes)


def test_a_found_lie_needs_one_node_that_draws_it():
    """The chance that nobody draws one of f made-up members is (1 − f/N)^(s·h), as decided.

    Power: half as many draws are more than three deviations off, and would be noticed.
    """
    nodes, drawn, runs = 40, 4, 400
    study = tree_study(nodes, drawn)
    columns = {field.name: np.zeros(1, dtype=np.int64) for field in study.fields}
    node = make_node("node-0", study, columns, 1, Entropy("draws"))
    hits = sum(7 in node._draw_places(()) for _ in range(runs))
    expected = runs * drawn / nodes
    deviation = (expected * (1 - drawn / nodes)) ** 0.5
    assert abs(hits - expected) < 4 * deviation
    assert abs(hits - runs * drawn / 2 / nodes) > 2 * deviation
    assert expected / 2 > 3 * deviation, "half the draws would be noticed"


def test_whom_a_node_asks_for_does_not_depend_on_its_values():
    """The coordinator sees the question: it follows from E and the node's own randomness."""
    asked = set()
    for label in ("agreed", "other values"):
        agreed = Agreed(tree_study(ALL_PAIRS + 20), 1, label)
        asked.add(agreed.nodes[0].look(agreed.begin().openings))
    assert len(asked) == 1 and 1 < len(next(iter(asked))) < ALL_PAIRS + 20


# --- order -------------------------------------------------------------------------------------


class Agreed:
    """A coordinator and nodes that have opened."""

    def __init__(self, study: Study, records: int = 4, label: str = "agreed"):
        self.study = study
        self.side = coordinator_of(study)
        tables = random_tables([records] * len(study.nodes), label)
        self.nodes: list[UMpcNode] = [
            make_node(node.name, study, table, records, Entropy(f"agreed {node.name}"))
            for node, table in zip(study.nodes, tables, strict=True)
        ]
        agree = self.side.agree([m.Accepted(study.hash, each.accept()) for each in self.nodes])
        assert isinstance(agree, m.AgreeInShort) and isinstance(agree.whole, m.Agree)
        self.agree = agree

    def begin(self) -> m.BeginInShort:
        opened = [
            m.Opened(node.agree(self.agree.members), node.sign_members()) for node in self.nodes
        ]
        begin = self.side.begin(opened)
        assert isinstance(begin, m.BeginInShort) and isinstance(begin.whole, m.Begin)
        return begin


def test_a_node_that_gets_the_list_takes_part_beside_those_with_the_root():
    agreed = Agreed(tree_study(3))
    one, *others = agreed.nodes
    opened = [m.Opened(one.agree(agreed.agree.whole.members), one.sign_members())]
    opened += [m.Opened(n.agree(agreed.agree.members), n.sign_members()) for n in others]
    begin = agreed.side.begin(opened)
    one.check_agreed(begin.whole.signatures)
    attempts = {one.begin(begin.whole.openings).id}
    for node in others:
        places = node.look(begin.openings)
        node.take_shown(agreed.side.show(places, "node").members)
        attempts.add(node.begin(()).id)
    assert attempts == {agreed.side.attempt.id}
    prepared = [m.Prepared(n.attempt.id, 0, signature=n.sign_attempt()) for n in agreed.nodes]
    agreed.side.check_prepared(prepared)
    evaluate = agreed.side.evaluate()
    assert isinstance(evaluate, m.EvaluateInShort) and evaluate.whole is not None
    one.check_prepared(evaluate.whole.signatures)
    for node in others:
        signed_by = agreed.side.show_signed(node._places, "node").signatures
        node.check_prepared(signed_by)
        with pytest.raises(RemoteProtocolError, match="has not signed this attempt"):
            node.check_prepared([*signed_by[:-1], bytes(64)])
        with pytest.raises(RemoteProtocolError, match="has not signed this attempt"):
            node.check_prepared(signed_by[:-1])


def test_calls_out_of_order_are_refused():
    agreed = Agreed(tree_study(3))
    node = agreed.nodes[0]
    with pytest.raises(LocalProtocolError):
        node.look(bytes(32))
    _refused_by_name(lambda: agreed.side.show([0], "node-0"))
    _refused_by_name(lambda: agreed.side.tell("node-0"))
    begin = agreed.begin()
    with pytest.raises(LocalProtocolError):
        node.take_shown(())
    places = node.look(begin.openings)
    with pytest.raises(LocalProtocolError):
        node.begin(())
    with pytest.raises(LocalProtocolError):
        node.look(begin.openings)
    _refused_by_name(lambda: agreed.side.show_signed([0], "node-0"))
    node.take_shown(agreed.side.show(places, "node-0").members)
    node.begin(())


def _refused_by_name(ask: Callable[[], object]) -> None:
    """A node that asks too early is named: the coordinator has nothing to show yet."""
    with pytest.raises(RemoteProtocolError, match="not yet") as refused:
        ask()
    assert refused.value.culprit == "node-0"


@pytest.mark.parametrize("places", [[3], [-1], list(range(3)) * (MOST_SHOWN // 3 + 1)], ids=len)
def test_a_node_that_asks_for_other_members_is_named(places):
    agreed = Agreed(tree_study(3))
    agreed.begin()
    with pytest.raises(RemoteProtocolError, match="asked for members") as refused:
        agreed.side.show(places, "node-1")
    assert refused.value.culprit == "node-1"


def test_a_study_with_lists_shows_nothing():
    side = coordinator_of(make_study(KENDALL, 3))
    for ask in (lambda: side.show([0], "node-1"), lambda: side.tell("node-1")):
        with pytest.raises(RemoteProtocolError, match="asked for members") as refused:
            ask()
        assert refused.value.culprit == "node-1"


# --- lies before anything is shown ---------------------------------------------------------------


def test_a_node_finds_its_own_records_in_the_counts():
    agreed = Agreed(tree_study(3))
    counts = agreed.agree.members.counts
    for other in ((), counts[:2], (*counts, (0, 4)), ((0, 5), *counts[1:]), ((1, 3), *counts[1:])):
        with pytest.raises(RemoteProtocolError) as refused:
            agreed.nodes[0].agree(replace(agreed.agree.members, counts=other))
        assert refused.value.culprit == agreed.study.coordinator
    agreed.nodes[0].agree(agreed.agree.members)


def test_a_node_takes_no_root_in_a_study_with_lists():
    study = make_study(KENDALL, 3)
    agreed = Agreed(tree_study(3))
    table = random_tables([4], "listed")[0]
    node = make_node("node-0", study, table, 4, Entropy("listed"))
    with pytest.raises(RemoteProtocolError):
        node.agree(agreed.agree.members)


def test_an_older_entry_of_the_node_itself_is_found():
    """A former run's entry is signed by the node, with another commitment and another key."""
    agreed = Agreed(tree_study(3))
    node = agreed.nodes[0]
    former = make_node("node-0", agreed.study, random_tables([4], "agreed")[0], 4, Entropy("old"))
    members = [former.accept(), *agreed.agree.whole.members[1:]]
    told = replace(agreed.agree.members, root=MembersRoot.of(agreed.study, members).root)
    node.agree(told)
    openings = [former._opening, *(each._opening for each in agreed.nodes[1:])]
    places = node.look(openings_tree(openings).root)
    side = agreed.side
    side._members = tuple(members)
    side._begun = m.Begin(tuple(openings), tuple(_signatures(agreed, told)))
    with pytest.raises(RemoteProtocolError) as refused:
        node.take_shown(side.show(places, "node-0").members)
    assert refused.value.culprit == agreed.study.coordinator


def _signatures(agreed: Agreed, told: MembersRoot) -> list[bytes]:
    """All nodes sign what they are told: the other ones collude."""
    found = []
    for node in agreed.nodes:
        node._root = told
        node._members = told.outlines(agreed.study)
        found.append(node.sign_members())
    return found


def test_two_stories_have_two_attempts_so_the_dealer_serves_one_at_most():
    """A second root over other openings, or over other members, has another id."""
    agreed = Agreed(tree_study(3))
    begin = agreed.begin()
    node, other = agreed.nodes[0], agreed.nodes[1]
    node.look(begin.openings)
    openings = [*begin.whole.openings[:2], bytes(32)]
    other.look(openings_tree(openings).root)
    assert node._draft.id != other._draft.id
    members = [*agreed.agree.whole.members[:2], signed(agreed.study, other.accept(), name="node-2")]
    assert MembersRoot.of(agreed.study, members).root != agreed.agree.members.root


def test_a_study_whose_nodes_share_no_edge_has_no_dealer_that_checks():
    """All records are at one node, so its members would be checked by nobody."""
    study = tree_study(3)
    side = coordinator_of(study)
    counts = [12, 0, 0]
    tables = random_tables(counts, "one holder")
    nodes = [
        make_node(node.name, study, table, count, Entropy(node.name))
        for node, table, count in zip(study.nodes, tables, counts, strict=True)
    ]
    agree = side.agree([m.Accepted(study.hash, each.accept()) for each in nodes])
    begin = side.begin([m.Opened(n.agree(agree.members), n.sign_members()) for n in nodes])
    with pytest.raises(StudyError, match="no two nodes share an edge"):
        nodes[0].look(begin.openings)


# --- studies that cannot be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"drawn": -1}, "from 0 to"),
        ({"drawn": 4097}, "from 0 to"),
        ({"backend": "garbled", "preprocessing": "none", "dealer": None}, "takes a dealer"),
        ({"noise": "in_mpc", "epsilon": "1", "coins": "dealt"}, "leave coins out"),
        ({"may_miss": 1}, "no may_miss"),
    ],
    ids=str,
)
def test_what_does_not_go_with_it_is_refused(changes, message):
    assert_refused(tree_study(3, **changes), StudyError, message)


def test_a_mean_of_single_records_has_no_dealer_that_checks():
    study = make_study("a.x", 3, degree=1, noise="distributed", members_checked=2)
    assert_refused(study, StudyError, "takes a dealer")


def test_it_is_not_prepared_ahead():
    with pytest.raises(StudyError, match="not prepared ahead"):
        protocol_of(tree_study(3)).check_ahead(tree_study(3))
    protocol_of(tree_study(3, drawn=0)).check_ahead(tree_study(3, drawn=0))


def test_people_read_who_checks_whom():
    lines = dict(protocol_of(tree_study(3)).describe(tree_study(3)))
    assert "the dealer checks all" in lines["members"] and "each node 3" in lines["members"]
    assert "members" not in dict(protocol_of(tree_study(3)).describe(tree_study(3, drawn=0)))
