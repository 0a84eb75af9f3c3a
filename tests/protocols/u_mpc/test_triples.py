"""Whole studies by triples equal the clear ones, without a dealer and at the predicted cost."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import comb

import pytest

from tests.protocols.u_mpc.test_library import columns_of, fields_of, tables_of
from tests.support.ideal_transfers import ideal_transfers
from tests.support.sessions import Run, first_chunk
from tests.support.studies import (
    KENDALL,
    LOUD,
    SKEWNESS,
    SPEARMAN,
    TRIPLE,
    Entropy,
    clear_sums,
    graph_of,
    library_study,
    make_study,
    random_tables,
)
from tests.support.triples import BY_TRIPLES, triples_study
from umpc.crypto.rounds import Message
from umpc.errors import EncodingError, LocalProtocolError, StudyError
from umpc.mpc.chunks import AFTER, AHEAD
from umpc.mpc.triples import plan as plans
from umpc.protocols.base.promise import NOBODY
from umpc.protocols.registry import checked, protocol_of
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study
from umpc.study.parts import exact
from umpc.testing import lying
from umpc.ustat.statistics import LIBRARY

LARGE = [name for name, statistic in LIBRARY.items() if statistic.degree > 2]


@pytest.fixture(autouse=True, scope="module")
def ideal():
    with ideal_transfers():
        yield


def check(study, tables, label: str, **changes) -> Simulated:
    """The exact sum over the published E, at the predicted cost, and nobody deals."""
    run = simulate(study, tables, Entropy(label), **changes)
    report = run.report
    expected = clear_sums(study, tables, graph_of(study, report))
    assert noisy_sums(run.transcript.shares, len(study.kernels)) == expected
    assert report.rounds == report.rounds_predicted
    assert report.bytes_online == report.bytes_online_predicted
    assert report.bytes_online_by_step == report.bytes_online_by_step_predicted
    assert report.bytes_offline == report.bytes_offline_predicted
    assert protocol_of(study).trust(study) == NOBODY
    assert not run.attempt.needs_dealer
    names = {node.name for node in study.nodes}
    assert {end for line in run.transcript.online for end in line[:2]} <= names
    return run


@cache
def study_of(name: str) -> Study:
    nodes = LIBRARY[name].degree
    changes = {"edges": "all", "max_colluding": nodes - 1, **BY_TRIPLES}
    return checked(library_study(name, fields_of(name), nodes, columns_of(name), **changes))


@pytest.mark.parametrize("kind", ["random", "ties", "bounds"])
@pytest.mark.parametrize("name", LARGE)
def test_every_statistic_of_three_and_four_records_equals_the_clear_one(name, kind):
    study = study_of(name)
    counts = [2, 1, 2, 1][: len(study.nodes)]
    check(study, tables_of(study, kind, counts, f"{name} {kind}"), f"{name} {kind}")


@pytest.mark.parametrize("counts", [(3, 3, 2), (1, 0, 2, 1), (1,) * 5], ids=str)
@pytest.mark.parametrize("kernel", [SKEWNESS, SPEARMAN, TRIPLE, "a.x + b.x + c.x", "5"])
def test_edges_of_up_to_three_owners_are_exact_in_every_pattern(kernel, counts):
    study = triples_study(kernel, len(counts), degree=3, epsilon=LOUD)
    run = check(study, random_tables(counts, "patterns"), f"patterns {kernel} {counts}")
    assert run.report.edges == comb(sum(counts), 3)


def test_pairs_and_pairs_of_two_classes_are_exact_too():
    for changes in ({}, {"sampling": "two_sample"}):
        study = triples_study(KENDALL if not changes else "(a.x < b.x)", 3, epsilon=LOUD, **changes)
        check(study, random_tables((3, 2, 3), "pairs", classes=bool(changes)), f"pairs {changes}")


@pytest.mark.parametrize("noise", ["in_mpc", "distributed"])
def test_noise_is_drawn_beside_edges_by_triples_at_the_predicted_cost(noise):
    study = triples_study(SKEWNESS, 3, degree=3, noise=noise, max_colluding=2, edges="2n")
    run = simulate(study, random_tables((3, 2, 3), "noisy"), Entropy(f"noisy {noise}"))
    report = run.report
    assert report.bytes_offline == report.bytes_offline_predicted
    assert report.bytes_online == report.bytes_online_predicted
    assert report.noise_std > 0


def test_many_chunks_of_a_cell_are_exact_and_have_transfers_of_their_own(limit):
    limit(plans, MAX_CHUNK=8)
    study = triples_study(SKEWNESS, 3, degree=3, epsilon=LOUD)
    run = check(study, random_tables((4, 4, 4), "chunks"), "chunks")
    chunks = [chunk for chunk in run.attempt.chunks() if len(chunk.parties) == 3]
    assert [chunk.count for chunk in chunks] == [8] * 8
    firsts = {
        frame.payload
        for *_, frame in run.transcript.online
        if frame.round == 2 and frame.owners == (0, 1, 2)
    }
    assert len(firsts) == len(chunks) * 3, "two chunks had the same corrections"


@pytest.mark.parametrize("kernel", [SKEWNESS, SPEARMAN, "a.x + b.x + c.x"])
def test_triples_made_ahead_leave_the_gates_to_the_run(kernel):
    study = triples_study(kernel, 3, degree=3, epsilon=LOUD)
    tables = random_tables((3, 3, 2), "ahead")
    whole = check(study, tables, f"ahead {kernel}")
    split = check(study, tables, f"ahead {kernel}", prepared=True)
    assert split.report.estimate == whole.report.estimate and split.report.prepared
    program = split.attempt.program
    ahead, after = program.rounds_of(AHEAD), program.rounds_of(AFTER)
    assert (ahead, whole.report.rounds) == (2 * (kernel[0] != "a"), ahead + after + 1)
    assert split.report.rounds == after + 1
    made = [frame for *_, frame in split.transcript.offline if frame.step == "triples"]
    both = (run.report.bytes_online + run.report.bytes_offline for run in (whole, split))
    assert bool(made) == bool(ahead) and abs(next(both) - next(both)) < 4 * len(made) + 1


def test_both_parts_of_a_chunk_have_channels_of_their_own():
    """Two parts over one fork would ask for the same hashes twice."""
    asked: list[tuple[object, ...]] = []

    def noted(honest, links, places, *labels):
        asked.append((links, *labels))
        return honest(links, places, *labels)

    study = triples_study(SPEARMAN, 3, degree=3, epsilon=LOUD)
    with lying("node", forked=noted):
        run = check(study, random_tables((2, 2, 2), "forks"), "forks", prepared=True)
    chunks = sum(len(chunk.parties) for chunk in run.attempt.chunks())
    assert len(asked) == len(set(asked)) == 2 * chunks


def test_triples_made_ahead_serve_one_chunk_once_and_have_its_size():
    run = begun().set_up()
    (node, *_), tree_hash = run.nodes, run.attempt.tree_hash()
    chunk = first_chunk(run, 3)
    ahead, after = (replace(chunk, part=part) for part in (AHEAD, AFTER))
    with pytest.raises(EncodingError, match="bytes of triples were due, 1 bytes came"):
        node.protocol(after, b"x", tree_hash)
    with pytest.raises(EncodingError, match="take no material"):
        node.protocol(ahead, b"x", tree_hash)
    due = run.attempt.plan(after).triples_bytes(chunk.parties.index(0), chunk.count)
    node.protocol(ahead, b"", tree_hash)
    node.protocol(after, bytes(due), tree_hash)
    for again, material in ((ahead, b""), (after, bytes(due)), (chunk, b"")):
        with pytest.raises(LocalProtocolError, match="once"):
            node.protocol(again, material, tree_hash)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"backend": "garbled", "degree": 3}, 'take backend = "triples"'),
        ({"preprocessing": "dealer"}, "go together"),
        ({"backend": "shared", "degree": 3}, "go together"),
        ({"adversary": "lying_nodes", "noise": "distributed"}, "sends other numbers in transfers"),
        ({"coins": "dealt", "noise": "in_mpc", "max_colluding": 2}, "takes a dealer"),
    ],
    ids=str,
)
def test_what_triples_cannot_do_is_refused(changes, reason):
    kernel = SKEWNESS if changes.get("degree") == 3 else KENDALL
    with pytest.raises(StudyError, match=reason):
        checked(make_study(kernel, 3, **(BY_TRIPLES | changes)))


def test_the_usual_number_of_edges_costs_about_the_budget():
    study = make_study(SKEWNESS, 3, degree=3, edges="", **BY_TRIPLES)
    complete = protocol_of(study).complete(study)
    assert complete.edges.startswith("up to ") and exact(complete.edges[6:], "edges") > 1000


def begun() -> Run:
    """Three nodes up to their seeds, which they draw themselves."""
    changes = {"kernels": SKEWNESS, "degree": 3, "epsilon": LOUD, **BY_TRIPLES}
    run = Run((2, 2, 2), "node by triples", **changes).agree().begin()
    for number, node in enumerate(run.nodes):
        node.receive_seed(Entropy(f"seed {number}")(32))
    return run


def test_a_node_refuses_material_records_and_a_second_evaluation_of_a_chunk():
    run = begun().set_up()
    (node, *_), tree_hash = run.nodes, run.attempt.tree_hash()
    chunk = first_chunk(run, 3)
    with pytest.raises(EncodingError, match="take no material, 1 bytes came"):
        node.protocol(chunk, b"x", tree_hash)
    assert node.due_fields(1) == node.fields_for(1) == []
    with pytest.raises(EncodingError, match="take no records"):
        node.receive_fields(1, [Message("masked_fields", b"x", 1, 8)])
    node.protocol(chunk, b"", tree_hash)
    with pytest.raises(LocalProtocolError, match="once"):
        node.protocol(chunk, b"", tree_hash)


def test_nodes_without_a_common_gate_set_up_no_transfers():
    study = triples_study("a.x + b.x + c.x", 3, degree=3, epsilon=LOUD)
    run = check(study, random_tables((2, 2, 2), "sum"), "sum")
    assert run.transcript.offline == run.transcript.online == []
    assert all(run.attempt.transfer_peers(node) == () for node in range(3))


def test_the_cells_show_no_secret():
    node = begun().nodes[0]
    assert repr(node.cells) == "TriplesCells(node-0, <redacted>)"
