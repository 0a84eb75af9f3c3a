"""A node's session: every step once and in order, nothing taken from others unchecked, and a share that adds up."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from umpc.agreement import noise_of
from umpc.dealer.session import DealerSession
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.rounds import Message, run_in_memory
from umpc.mpc.zero_shares import KeyAgreement, zero_share
from umpc.node.session import NodeSession

from ..mpc.studies import GINI, KENDALL, Entropy, exact_sum, make_study, random_tables


class Run:
    """Sessions of all nodes, taken as far as a test wants."""

    def __init__(self, counts=(3, 4), label: str = "run", **study):
        self.study = make_study(nodes=len(counts), **study)
        self.tables = random_tables(counts, label)
        self.entropy = [Entropy(f"{label} {i}") for i in range(len(counts))]
        self.nodes = [
            NodeSession(node.name, self.study, table, count, entropy)
            for node, table, count, entropy in zip(self.study.nodes, self.tables, counts, self.entropy, strict=True)
        ]
        self.members = [node.accept() for node in self.nodes]

    def agree(self) -> Run:
        self.openings = [node.agree(self.members) for node in self.nodes]
        return self

    def begin(self) -> Run:
        self.attempts = [node.begin(self.openings) for node in self.nodes]
        self.attempt = self.attempts[0]
        self.dealer = DealerSession(self.attempt, Entropy("dealer"))
        return self

    def seed(self) -> Run:
        for index, node in enumerate(self.nodes):
            node.receive_seed(self.dealer.seed_frame(index).payload)
        return self

    def fields(self) -> Run:
        for a, b in self.attempt.hypergraph.shared_cells:
            for sender, receiver in ((a, b), (b, a)):
                self.nodes[receiver].receive_fields(sender, self.nodes[sender].fields_for(receiver))
        return self

    def protocols(self, chunk):
        dealt = dict(self.dealer.deal_one(chunk))
        return [self.nodes[n].protocol(chunk, dealt[n].payload, self.attempt.tree_hash()) for n in chunk.owners]

    def evaluate(self) -> Run:
        for chunk in self.attempt.chunks():
            results, _ = run_in_memory(self.protocols(chunk))
            for node, result in zip(chunk.owners, results, strict=True):
                self.nodes[node].add(result)
        for node in self.nodes:
            node.evaluate_inner()
        return self


def first_chunk(run: Run):
    return next(run.attempt.chunks())


# --- order --------------------------------------------------------------------------------------------------

BEFORE_BEGIN = {
    "attempt": lambda node: node.attempt,
    "peers": lambda node: node.peers,
    "receive_seed": lambda node: node.receive_seed(bytes(32)),
    "fields_for": lambda node: node.fields_for(1),
    "expected_fields": lambda node: node.expected_fields(1),
    "receive_fields": lambda node: node.receive_fields(1, []),
    "evaluate_inner": lambda node: node.evaluate_inner(),
    "release": lambda node: node.release(),
}


@pytest.mark.parametrize("step", BEFORE_BEGIN)
def test_nothing_is_done_before_the_attempt_has_begun(step):
    for node in (Run().nodes[0], Run().agree().nodes[0]):
        with pytest.raises(LocalProtocolError):
            BEFORE_BEGIN[step](node)


def test_begin_comes_after_agree_and_once():
    run = Run()
    with pytest.raises(LocalProtocolError, match="after agree"):
        run.nodes[0].begin([bytes(32)] * 2)
    run.agree().begin()
    with pytest.raises(LocalProtocolError, match="once"):
        run.nodes[0].begin(run.openings)


def test_an_opening_is_given_once():
    run = Run().agree()
    with pytest.raises(LocalProtocolError, match="before"):
        run.nodes[0].agree(run.members)


@pytest.mark.parametrize("step", ["fields_for", "receive_fields", "protocol"])
def test_nothing_is_masked_or_evaluated_before_the_seed(step):
    run = Run().agree().begin()
    with pytest.raises(LocalProtocolError, match="seed has not come"):
        {
            "fields_for": lambda: run.nodes[0].fields_for(1),
            "receive_fields": lambda: run.nodes[0].receive_fields(1, []),
            "protocol": lambda: run.nodes[0].protocol(first_chunk(run), b"", run.attempt.tree_hash()),
        }[step]()


def test_a_second_seed_is_refused():
    run = Run().agree().begin().seed()
    with pytest.raises(LocalProtocolError, match="came before"):
        run.nodes[0].receive_seed(bytes(32))


def test_a_chunk_waits_for_the_peers_fields():
    run = Run().agree().begin().seed()
    with pytest.raises(LocalProtocolError, match="after its peer's"):
        run.protocols(first_chunk(run))


def test_a_chunk_is_evaluated_once():
    run = Run().agree().begin().seed().fields()
    run.protocols(first_chunk(run))
    with pytest.raises(LocalProtocolError, match="evaluated once"):
        run.protocols(first_chunk(run))


def test_the_inner_edges_are_evaluated_once():
    run = Run().agree().begin().seed().fields().evaluate()
    with pytest.raises(LocalProtocolError, match="before"):
        run.nodes[0].evaluate_inner()


def test_an_incomplete_share_is_not_released():
    run = Run().agree().begin()
    for steps in (lambda: run, run.seed, run.fields):
        steps()
        with pytest.raises(LocalProtocolError, match="not complete"):
            run.nodes[0].release()
    run.nodes[0].evaluate_inner()
    with pytest.raises(LocalProtocolError, match="0 of 1 chunks"):
        run.nodes[0].release()


def test_a_share_is_released_once():
    run = Run().agree().begin().seed().fields().evaluate()
    run.nodes[0].release()
    with pytest.raises(LocalProtocolError, match="released before"):
        run.nodes[0].release()


# --- what comes from others ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change", [{"records": 7}, {"commitment": bytes(32)}, {"public_key": bytes(32)}, {"name": "x"}]
)
def test_a_changed_own_entry_blames_the_coordinator_and_keeps_the_opening(change):
    run = Run()
    changed = [replace(run.members[0], **change), run.members[1]]
    with pytest.raises(RemoteProtocolError) as caught:
        run.nodes[0].agree(changed)
    assert (caught.value.culprit, caught.value.step) == ("coordinator", "agree")
    run.agree()


@pytest.mark.parametrize("order", [(0, 2, 1), (0, 1), (0, 1, 2, 2)])
def test_other_members_than_the_studys_blame_the_coordinator(order):
    run = Run((2, 2, 2))
    with pytest.raises(RemoteProtocolError) as caught:
        run.nodes[0].agree([run.members[i] for i in order])
    assert caught.value.culprit == "coordinator"


@pytest.mark.parametrize("openings", [lambda o: [bytes(32), o[1]], lambda o: o[:1], lambda o: [], lambda o: o[::-1]])
def test_a_changed_own_opening_blames_the_coordinator(openings):
    run = Run().agree()
    with pytest.raises(RemoteProtocolError) as caught:
        run.nodes[0].begin(openings(run.openings))
    assert caught.value.culprit == "coordinator"


def test_another_nodes_changed_opening_blames_that_node():
    run = Run().agree()
    with pytest.raises(RemoteProtocolError) as caught:
        run.nodes[0].begin([run.openings[0], bytes(32)])
    assert caught.value.culprit == "node-1"


def test_a_record_with_more_edges_than_the_noise_covers_is_refused(monkeypatch):
    run = Run(edges="2n").agree()
    monkeypatch.setattr("umpc.mpc.attempt.max_degree", lambda edges, records: 3)
    with pytest.raises(LocalProtocolError, match="the noise covers 3"):
        run.begin()


def test_masked_records_of_another_number_or_length_are_refused():
    run = Run().agree().begin().seed()
    (message,) = run.nodes[1].fields_for(0)
    for wrong in ([], [message, message], [Message(message.step, message.payload[:-1], message.count, message.width)]):
        with pytest.raises(EncodingError):
            run.nodes[0].receive_fields(1, wrong)
    fewer = Run((3, 3)).agree().begin().seed().nodes[1].fields_for(0)
    with pytest.raises(EncodingError, match="3 masked records came, 4 were due"):
        run.nodes[0].receive_fields(1, fewer)


def test_material_of_a_wrong_length_is_refused_and_the_chunk_can_still_be_evaluated():
    run = Run().agree().begin().seed().fields()
    with pytest.raises(EncodingError):
        run.nodes[0].protocol(first_chunk(run), b"short", run.attempt.tree_hash())
    run.evaluate()


# --- the share ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("counts", [(3, 4), (5,), (2, 0, 3), (1, 1)])
@pytest.mark.parametrize("kernel", [KENDALL, GINI, "a.x + b.x", "a.x * b.x"])
def test_shares_are_parts_of_the_sum_plus_noise_plus_zero_shares(counts, kernel):
    run = Run(counts, f"share {kernel}", kernel=kernel).agree().begin().seed().fields().evaluate()
    attempt, masked, plain = run.attempt, 0, 0
    ring, noise = attempt.ring, noise_of(attempt.sizes)
    for index, node in enumerate(run.nodes):
        replay = Entropy(f"share {kernel} {index}")
        replay(32)
        key = KeyAgreement(replay(32))
        drawn = noise.draw(lambda bits, r=replay: int.from_bytes(r((bits + 7) // 8), "little") >> (-bits % 8))
        names, keys = [m.name for m in run.members], [m.public_key for m in run.members]
        zero = zero_share(index, names, keys, key, attempt.id, ring)
        share = int.from_bytes(node.release(), "little")
        masked += share
        plain += share - drawn - zero
        assert 0 <= share < 2**ring.bits
    assert ring.decode(plain) == exact_sum(run.study, run.tables, attempt)
    total_noise = ring.decode(masked) - exact_sum(run.study, run.tables, attempt)
    assert abs(total_noise) <= noise.tail_bound()


def test_results_added_from_another_thread_are_all_counted():
    """`add` runs on the event loop while the worker evaluates the next chunk: no update may be lost."""
    run = Run((4, 5)).agree().begin().seed().fields()
    node, chunk = run.nodes[0], first_chunk(run)
    slow = SumsSlowly(node._local[0][:0], lambda: node.add(1000))
    node._local = [slow, slow]
    before = sum(node._parts)
    node.protocol(chunk, dict(run.dealer.deal_one(chunk))[0].payload, run.attempt.tree_hash())
    assert sum(node._parts) - before == 1000 + run.attempt.plan.constant * chunk.count + 7


class SumsSlowly:
    """A column whose sum, 7, is interrupted by another thread's work."""

    def __init__(self, column: np.ndarray, meanwhile):
        self.meanwhile = meanwhile

    def __getitem__(self, rows):
        return self

    def sum(self, dtype):
        self.meanwhile()
        return 7


def test_all_nodes_derive_the_same_attempt():
    run = Run((3, 2, 4)).agree().begin()
    assert len({attempt.id for attempt in run.attempts}) == 1
    assert all(a.plan == b.plan for a, b in itertools.pairwise(run.attempts))


def test_peers_are_the_nodes_with_which_it_shares_edges():
    run = Run((3, 0, 4)).agree().begin()
    assert run.nodes[0].peers == {2: (0, 2)} and run.nodes[1].peers == {} and run.nodes[2].peers == {0: (0, 2)}


def test_it_shows_nothing_of_itself():
    assert "redacted" in repr(Run().nodes[0])
