"""A node's session: no chunk or share twice, nothing taken from others unchecked, and a share
that adds up.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.protocols import run_own_steps
from tests.support.sessions import Run, first_chunk
from tests.support.studies import AUC, KENDALL, SKEWNESS, SPEARMAN
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.testing import lying

PAIRS = {"kernels": KENDALL}
TRIPLES = {"kernels": SKEWNESS, "degree": 3, "counts": (2, 1, 2)}
both_degrees = pytest.mark.parametrize("shape", [PAIRS, TRIPLES], ids=["pairs", "triples"])


# --- order
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parties", [2, 3])
def test_a_chunk_is_evaluated_once(parties):
    run = Run(**TRIPLES).agree().begin().seed().fields()
    chunk = first_chunk(run, parties)
    run.protocols(chunk)
    with pytest.raises(LocalProtocolError, match="evaluated once"):
        run.protocols(chunk)


def test_a_share_that_lacks_one_chunk_or_its_inner_edges_is_not_released():
    run = Run(**TRIPLES).agree().begin().seed().fields()
    chunks = list(run.attempt.chunks())
    for chunk in chunks[:-1]:
        run.finish(chunk)
    for node in chunks[-1].parties:
        run_own_steps(run.nodes[node])
        with pytest.raises(LocalProtocolError, match="not complete"):
            run.nodes[node].release()
    run.finish(chunks[-1])
    for node, session in enumerate(run.nodes):
        if node not in chunks[-1].parties:
            with pytest.raises(LocalProtocolError, match="not complete"):
                session.release()
            run_own_steps(session)
        session.release()


@both_degrees
def test_a_share_is_released_once(shape):
    run = Run(**shape).agree().begin().seed().fields().evaluate()
    run.nodes[0].release()
    with pytest.raises(LocalProtocolError, match="released before"):
        run.nodes[0].release()


# --- what comes from others
# ---------------------------------------------------------------------------------

CHANGES = [
    {"records": 7},
    {"commitment": bytes(32)},
    {"public_key": bytes(32)},
    {"name": "x"},
    {"first_class": 1},
]


@pytest.mark.parametrize("change", CHANGES)
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


@pytest.mark.parametrize(
    "openings", [lambda o: [bytes(32), o[1]], lambda o: o[:1], lambda o: [], lambda o: o[::-1]]
)
def test_a_changed_own_opening_blames_the_coordinator(openings):
    run = Run().agree()
    with pytest.raises(RemoteProtocolError) as caught:
        run.nodes[0].begin(openings(run.openings))
    assert caught.value.culprit == "coordinator"


@pytest.mark.parametrize(
    ("shape", "bound", "covered"),
    [
        ({"edges": "2n"}, "max_degree", 3),
        ({"edges": "5", **TRIPLES}, "max_degree", 2),
        ({"kernels": AUC, "sampling": "two_sample", "edges": "5"}, "two_sample_max_degree", 1),
    ],
    ids=["pairs", "triples", "two samples"],
)
def test_a_record_with_more_edges_than_the_noise_covers_is_refused(shape, bound, covered):
    run = Run(**shape).agree()
    wrong = lying("everybody", **{bound: lambda *sizes: covered})
    with wrong, pytest.raises(LocalProtocolError, match=f"the noise covers {covered}"):
        run.begin()


@both_degrees
def test_masked_records_of_another_number_or_length_are_refused(shape):
    run = Run(**shape).agree().begin().seed()
    (message,) = run.nodes[1].fields_for(0)
    for wrong in (
        [],
        [message, message],
        [replace(message, payload=message.payload[:-1])],
        [replace(message, payload=message.payload + b"\0")],
        [replace(message, count=message.count + 1)],
    ):
        with pytest.raises(EncodingError):
            run.nodes[0].receive_fields(1, wrong)


@pytest.mark.parametrize(("shape", "due"), [(PAIRS, 4), ({**TRIPLES, "counts": (2, 4, 2)}, 4)])
def test_masked_records_of_another_study_are_refused(shape, due):
    run = Run(**{"counts": (3, 4), **shape}).agree().begin().seed()
    counts = list(len(t["x"]) for t in run.tables)
    fewer = (
        Run(**{**shape, "counts": [counts[0], 3, *counts[2:]]})
        .agree()
        .begin()
        .seed()
        .nodes[1]
        .fields_for(0)
    )
    with pytest.raises(EncodingError, match=f"3 masked records came, {due} were due"):
        run.nodes[0].receive_fields(1, fewer)


def test_a_node_with_which_no_edge_is_shared_sends_nothing_and_nothing_is_taken_from_it():
    run = Run((2, 0, 3), kernels=SPEARMAN, degree=3).agree().begin().seed()
    assert run.nodes[0].due_fields(1) == [] and run.nodes[1].fields_for(0) == []
    with pytest.raises(EncodingError):
        run.nodes[0].receive_fields(1, run.nodes[2].fields_for(0))


@pytest.mark.parametrize("parties", [2, 3])
def test_material_of_a_wrong_length_is_refused_and_the_chunk_can_still_be_evaluated(parties):
    run = Run(**TRIPLES).agree().begin().seed().fields()
    chunk = first_chunk(run, parties)
    for node in chunk.parties:
        material = run.material(chunk, node)
        for wrong in (b"short", material + b"\0"):
            with pytest.raises(EncodingError):
                run.nodes[node].protocol(chunk, wrong, run.attempt.tree_hash())
    run.evaluate()


@pytest.mark.parametrize(
    "spoil", [lambda payload: payload[:-1], lambda payload: payload + b"\0"], ids=["short", "long"]
)
@pytest.mark.parametrize("liar", [0, 1, 2])
def test_an_opening_of_a_wrong_length_names_its_sender_among_three_owners(liar, spoil):
    run = Run(**TRIPLES).agree().begin().seed().fields()
    protocols = run.protocols(first_chunk(run, parties=3))
    sent = [next(protocol) for protocol in protocols]
    sent[liar] = replace(sent[liar], payload=spoil(sent[liar].payload))
    for party in {0, 1, 2} - {liar}:
        with pytest.raises(RemoteProtocolError) as caught:
            protocols[party].send(
                [message for sender, message in enumerate(sent) if sender != party]
            )
        assert (caught.value.culprit, caught.value.step) == (f"node-{liar}", "open")


# --- what all derive
# ------------------------------------------------------------------------------------------


@both_degrees
def test_peers_are_the_nodes_with_which_it_shares_edges(shape):
    run = Run(**{**shape, "counts": (3, 0, 4)}).agree().begin()
    assert [node.peers for node in run.nodes] == [(2,), (), (0,)]


def test_it_shows_nothing_of_itself():
    node = Run().nodes[0]
    assert "redacted" in repr(node) and not np.any(
        [str(v) in repr(node) for v in node.columns.values()]
    )
