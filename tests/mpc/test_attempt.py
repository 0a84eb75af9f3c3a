"""umpc.mpc.attempt: commit and reveal, and the facts that follow from the joint seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.limits import small_chunks
from tests.support.mpc_studies import LEANING
from tests.support.studies import GINI, KENDALL, make_attempt, make_members, make_study
from umpc.crypto.prg import digest
from umpc.errors import LocalProtocolError, RangeError, RemoteProtocolError, TooFewRecords
from umpc.mpc.masked.material import dealt_bytes
from umpc.protocols.registry import attempt_of
from umpc.study.attempt import commit
from umpc.study.sizes import Sizes

STUDY = make_study(nodes=3, edges="2n")
COUNTS = [4, 5, 6]


@pytest.mark.parametrize("culprit", range(3))
@pytest.mark.parametrize(
    "change",
    [lambda o: bytes([o[0] ^ 1]) + o[1:], lambda o: o + b"\0", lambda o: o[:-1], lambda o: b""],
)
def test_a_wrong_opening_names_its_node(culprit, change):
    members, openings = make_members(STUDY, COUNTS)
    openings[culprit] = change(openings[culprit])
    with pytest.raises(RemoteProtocolError, match="does not fit its commitment") as caught:
        attempt_of(STUDY, members, openings)
    assert (caught.value.culprit, caught.value.step) == (f"node-{culprit}", "agree")


def test_a_short_opening_is_refused_even_under_its_own_commitment():
    members, openings = make_members(STUDY, COUNTS)
    openings[1] = b"short"
    members[1] = replace(members[1], commitment=commit(STUDY.hash, "node-1", b"short"))
    with pytest.raises(RemoteProtocolError):
        attempt_of(STUDY, members, openings)


def test_a_commitment_binds_node_and_study():
    opening = bytes(32)
    other = make_study(nodes=3, name="other")
    made = {
        commit(study.hash, node, opening)
        for study in (STUDY, other)
        for node in ("node-0", "node-1")
    }
    assert len(made) == 4


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 1), (0, 1, 2, 2)])
def test_members_out_of_order_missing_or_doubled_are_refused(order):
    members, openings = make_members(STUDY, COUNTS)
    with pytest.raises(LocalProtocolError, match="the study"):
        attempt_of(STUDY, [members[i] for i in order], [openings[i] for i in order])


def test_too_few_openings_are_refused():
    members, openings = make_members(STUDY, COUNTS)
    with pytest.raises(LocalProtocolError):
        attempt_of(STUDY, members, openings[:2])


def test_all_processes_derive_the_same():
    first, second = make_attempt(STUDY, COUNTS), make_attempt(STUDY, COUNTS)
    assert (first.id, first.seed, first.program, first.ring) == (
        second.id,
        second.seed,
        second.program,
        second.ring,
    )
    assert list(first.chunks()) == list(second.chunks())
    assert tree_sample(first) == tree_sample(second)
    for owners, cell in first.hypergraph.cells.items():
        same = second.hypergraph.cells[owners]
        assert all(
            np.array_equal(a, b) for a, b in zip(cell.edges(0, 99), same.edges(0, 99), strict=True)
        )


def test_the_joint_seed_is_the_hash_of_all_openings():
    members, openings = make_members(STUDY, COUNTS)
    assert attempt_of(STUDY, members, openings).seed == digest(b"umpc joint seed 1", *openings)


def test_the_identity_changes_with_every_part():
    members, openings = make_members(STUDY, COUNTS)
    other_members, other_openings = make_members(STUDY, COUNTS, "others")
    variants = [
        (STUDY, members, openings),
        (make_study(nodes=3, edges="2n", epsilon="2"), *rebound(members, openings)),
    ]
    for node in range(3):
        for change in ({"records": 99}, {"first_class": 1}, {"public_key": bytes(31) + b"\1"}):
            variants.append((STUDY, put(members, node, replace(members[node], **change)), openings))
        variants.append(
            (
                STUDY,
                put(members, node, other_members[node]),
                put(openings, node, other_openings[node]),
            )
        )
    identities = [attempt_of(*variant).id for variant in variants]
    assert len(set(identities)) == len(identities) == 14


def rebound(members, openings):
    study = make_study(nodes=3, edges="2n", epsilon="2")
    return [
        replace(m, commitment=commit(study.hash, m.name, o))
        for m, o in zip(members, openings, strict=True)
    ], openings


def put(items, index, item):
    return [*items[:index], item, *items[index + 1 :]]


def test_two_attempts_share_neither_seed_nor_permutation_nor_edges():
    first, second = make_attempt(STUDY, COUNTS, "one"), make_attempt(STUDY, COUNTS, "two")
    assert first.id != second.id and first.seed != second.seed
    assert tree_sample(first) != tree_sample(second)


def tree_sample(attempt) -> bytes:
    return attempt.tree_hash()(np.zeros((1, 2), np.uint64)).tobytes()


@pytest.mark.parametrize(
    "study", [make_study(nodes=3), make_study(LEANING, 3, degree=3)], ids=["pairs", "triples"]
)
def test_chunks_cover_every_shared_edge_once_in_turns(monkeypatch, limit, study):
    small_chunks(limit)
    attempt = make_attempt(study, [3, 7, 4])
    chunks = list(attempt.chunks())
    for owners, cell in attempt.hypergraph.shared_cells.items():
        ranges = [(c.start, c.stop) for c in chunks if c.owners == owners]
        assert [edge for start, stop in ranges for edge in range(start, stop)] == list(
            range(cell.count)
        )
    assert [c.number for c in chunks] == sorted(c.number for c in chunks)
    assert all(0 < c.count <= 8 for c in chunks)
    for node in range(3):
        assert list(attempt.chunks_of(node)) == [c for c in chunks if node in c.owners]


@pytest.mark.parametrize(
    ("counts", "patterns"),
    [
        ([3, 3], {(0, 0, 1), (0, 1, 1)}),
        ([1, 1, 1], {(0, 1, 2)}),
        ([2, 0, 1], {(0, 0, 1)}),
        ([3, 2, 2], {(0, 0, 1), (0, 1, 1), (0, 1, 2)}),
        ([5], set()),
    ],
)
def test_a_program_has_a_plan_for_every_pattern_of_owners_that_occurs(counts, patterns):
    attempt = make_attempt(make_study(LEANING, len(counts), degree=3), counts)
    assert set(attempt.program.plans) == patterns
    for chunk in attempt.chunks():
        assert chunk.parties == tuple(sorted(set(chunk.owners)))
        assert attempt.plan(chunk).pattern in patterns and attempt.plan(chunk).parties == len(
            chunk.parties
        )


def test_a_number_that_is_opened_under_shares_must_fit_the_ring():
    """The sum fits 32 bits, the product that is compared does not: the large ring."""
    for upper, bits in (("1000", 32), ("60000", 64)):
        attempt = make_attempt(make_study("a.x * b.x < a.y + b.y", 2, x=("0", upper)), [3, 3])
        assert attempt.ring.bits == bits == attempt.program.ring.bits >= attempt.program.word_bits
        assert attempt.program.word_bits > (32 if bits == 64 else 2)


def test_sums_beyond_the_ring_and_too_few_records_are_refused():
    with pytest.raises(RangeError):
        make_attempt(make_study("a.x * b.x", x=("0", "4000000000")), [50, 50])
    with pytest.raises(TooFewRecords):
        make_attempt(make_study(), [1, 0])


def test_sensitivity_is_the_largest_degree_times_the_range():
    sizes = Sizes(STUDY, 15)
    assert (sizes.edges, sizes.max_degree, sizes.sensitivities) == (30, 4, (8,))
    assert Sizes(make_study([KENDALL, GINI], edges="2n", estimator="ratio"), 15).sensitivities == (
        8,
        4 * 3,
    )
    triples = Sizes(make_study(LEANING, 3, edges="2n", degree=3), 15)
    assert (triples.sets, triples.edges, triples.max_degree, triples.sensitivities) == (
        455,
        30,
        6,
        (6 * triples.study.parsed_kernels[0].sensitivity_units,),
    )


def test_two_sample_sizes_follow_from_the_classes():
    study = make_study("a.x < b.x", 2, sampling="two_sample")
    sizes = Sizes.of(study, make_members(study, [4, 5], first=[1, 2])[0])
    assert (sizes.records, sizes.first_class, sizes.sets, sizes.edges, sizes.max_degree) == (
        9,
        3,
        18,
        18,
        6,
    )


@pytest.mark.parametrize("counts", [(3000, 60, 60), (60, 3000, 60), (900, 900), (2000, 10)])
@pytest.mark.parametrize("kernel", ["sign(a.x - b.x) * sign(a.y - b.y)", "a.x * b.x"])
def test_the_windows_that_nodes_wait_for_fit_into_all_nodes_memory(counts, kernel):
    """A node with little material must not wait for chunks that another, full node cannot take."""
    window = 2 << 20
    attempt = make_attempt(make_study(kernel, len(counts)), counts)
    ahead = attempt.chunks_ahead(window)
    dealt = [0] * len(counts)
    taken = [0] * len(counts)
    for chunk in attempt.chunks():
        if all(taken[node] < ahead[node] for node in chunk.parties):
            for party, node in enumerate(chunk.parties):
                dealt[node] += dealt_bytes(attempt.plan(chunk), party, chunk.count)
                taken[node] += 1
                assert dealt[node] <= window
        elif taken == ahead:
            break
        else:
            pytest.fail("a node waits for a chunk behind one that no node may take yet")
    assert taken == ahead and max(ahead) > 0


@pytest.mark.parametrize("noise", ["distributed", "in_mpc"])
@pytest.mark.parametrize("counts", [(300, 60, 60), (3,) * 30, (1, 2)])
def test_no_node_is_dealt_more_than_the_bound(counts, noise):
    more = {"coins": "dealt"} if noise == "in_mpc" else {}
    study = make_study(KENDALL, len(counts), noise=noise, **more)
    attempt = make_attempt(study, counts)
    dealt = [0] * len(counts)
    for chunk in attempt.chunks():
        for party, node in enumerate(chunk.parties):
            dealt[node] += dealt_bytes(attempt.plan(chunk), party, chunk.count)
    assert 0 < max(dealt) <= attempt.dealt_at_most
    assert bool(attempt.noise_chunks) == (noise == "in_mpc")
