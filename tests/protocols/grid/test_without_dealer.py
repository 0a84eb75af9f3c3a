"""Whole grids without a dealer in memory: the clear sums, the predicted bytes, and their limits."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocols.grid.test_grid_run import TAKEN, study_of
from tests.protocols.u_mpc.test_library import TABLES, counts_of, tables_of
from tests.support.garbled import without_points
from tests.support.grid import grid_study, silent
from tests.support.held import held
from tests.support.mpc_studies import ALPHA, homogeneity, uniformity
from tests.support.protocols import assert_refused, coordinator_of
from tests.support.studies import (
    KENDALL,
    Entropy,
    clear_sums,
    graph_of,
    random_tables,
    table,
)
from umpc.errors import EncodingError, ImpossibleResult, LocalProtocolError, RangeError, StudyError
from umpc.mpc.chunks import Chunk
from umpc.mpc.transfers.channels import Channels
from umpc.mpc.transfers.message_shapes import CHECK_ROOM
from umpc.proto.codec import encode_frame
from umpc.protocols.grid import cross_terms
from umpc.protocols.grid.binding import grid_of
from umpc.protocols.grid.cross_terms import (
    CrossPair,
    CrossPlan,
    DealerlessAttempt,
    EntryRange,
    check_transfers,
    cross_pairs,
    entry_ranges,
)
from umpc.protocols.grid.node_without_dealer import OwnTable
from umpc.protocols.grid.operators import compile_dyadic
from umpc.protocols.registry import checked, find_protocol, protocol_of
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.study.document import Study
from umpc.study.messages import MAX_PAYLOAD
from umpc.study.sizes import Member
from umpc.testing import lying
from umpc.ustat.statistics import LIBRARY

PAIRS = [name for name in TAKEN if LIBRARY[name].degree == 2]

ALONE = {"preprocessing": "none", "dealer": None}
COUNTS = {2: (5, 1), 3: (4, 0, 3)}
"""The records of two nodes, of which one has a single record, and of three, of which one has none.
"""


@pytest.fixture(scope="module", autouse=True)
def _quick():
    with without_points():
        yield


def alone(kernels=KENDALL, nodes: int = 3, **changes) -> Study:
    """A study by the grid without a dealer, with hardly any noise."""
    return checked(silent(grid_study(kernels, nodes, **{**ALONE, **changes})))


def run_and_check(study: Study, tables, label: str) -> Simulated:
    """All sums are the clear ones over all pairs, and the cost is the predicted one."""
    run = simulate(study, tables, Entropy(label))
    doubled = noisy_sums(run.transcript.shares, len(study.kernels))
    expected = clear_sums(study, tables, graph_of(study, run.report))
    assert [each // 2 for each in doubled] == expected, label
    check_cost(run)
    return run


def check_cost(run: Simulated) -> None:
    report, sent = run.report, run.transcript
    cost = protocol_of(run.attempt.study).cost(run.attempt)
    assert report.rounds == report.rounds_predicted == cost.rounds
    assert cost.rounds == (3 if sent.online else 1)
    assert report.bytes_online == report.bytes_online_predicted == cost.bytes_online
    assert report.bytes_offline == report.bytes_offline_predicted == cost.bytes_offline
    assert report.bytes_online_by_step == report.bytes_online_by_step_predicted
    online, offline = (
        sum(len(encode_frame(frame).SerializeToString()) for *_, frame in frames)
        for frames in (sent.online, sent.offline)
    )
    assert online + sum(map(len, sent.shares)) == cost.bytes_online
    assert offline == cost.bytes_offline and not cost.bytes_dealt and not sent.told


# --- sums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("name", PAIRS)
def test_every_statistic_is_the_clear_one(name, nodes, kind):
    study = checked(study_of(name, nodes).replaced(**ALONE))
    label = f"alone {name} {nodes} {kind}"
    run_and_check(study, tables_of(study, kind, counts_of(name, nodes), label), label)


DOMAIN = list(product(range(3), range(3)))
SMALL = {
    "signs": KENDALL,
    "products": "(a.x - b.x) * (a.y - b.y)",
    "bands": "abs(a.x - b.x) < 2",
    "equal": "(a.x == b.x) * (a.y < b.y) + (a.x == b.x) * (b.y < a.y)",
}


@pytest.mark.parametrize("name", SMALL)
def test_two_records_of_a_small_domain_at_two_nodes(name):
    """Every value against some; the second node has one record more, so it sends."""
    study = alone(SMALL[name], 2, x=("0", "2"), y=("0", "2"))
    third = {"x": 1, "y": 2}
    for (x, y), (u, v) in product(DOMAIN, DOMAIN[:: 2 if name == "signs" else 4]):
        tables = [table([x], [y]), table([u, third["x"]], [v, third["y"]])]
        run = simulate(study, tables, Entropy(name))
        (doubled,) = noisy_sums(run.transcript.shares, 1)
        assert [doubled // 2] == clear_sums(study, tables, graph_of(study, run.report))


@settings(max_examples=12, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_tables_at_any_nodes(data):
    name = data.draw(st.sampled_from(PAIRS))
    counts = data.draw(st.lists(st.integers(0, 9), min_size=2, max_size=4))
    counts[0] += max(0, 2 - sum(counts))
    study = checked(study_of(name, len(counts)).replaced(**ALONE))
    kind = data.draw(st.sampled_from(sorted(TABLES)))
    label = f"any alone {name} {counts} {kind} {data.draw(st.integers(0, 9))}"
    run_and_check(study, tables_of(study, kind, counts, label), label)


@pytest.mark.parametrize("nodes", COUNTS)
@pytest.mark.parametrize("noise", ["in_mpc", "binomial", "skellam"])
def test_noise_is_doubled_and_costs_what_was_predicted(noise, nodes):
    """Also where a member of the committee has no record, and so no cross term."""
    delta = "" if noise == "in_mpc" else "1e-9"
    noisy = {"noise": noise, "delta": delta, "epsilon": "4", "max_colluding": nodes - 1}
    study = checked(grid_study(KENDALL, nodes, **ALONE, **noisy))
    run = simulate(study, random_tables(COUNTS[nodes], noise), Entropy(noise))
    (total,) = noisy_sums(run.transcript.shares, 1)
    assert total % 2 == 0
    check_cost(run)


def test_sums_in_the_wide_ring_with_entries_below_zero_do_not_wrap():
    study = alone("a.x * b.x", 2, x=("-60000", "1000")).replaced(epsilon="1e18")
    tables = [{"x": np.full(40, -60_000)}, {"x": np.array([-60_000, 1000])}]
    run = run_and_check(study, tables, "wide")
    assert run.attempt.ring.bits == 64


def test_nodes_without_a_common_term_have_no_link():
    run = run_and_check(alone(), random_tables((4, 0, 3), "links"), "links")
    assert [node.peers for node in run.nodes] == [(2,), (), (0,)]
    lonely = run_and_check(alone(), random_tables((4, 0, 0), "lonely"), "lonely")
    assert all(node.peers == () for node in lonely.nodes)


def test_power_a_forgotten_diagonal_is_found():
    study, tables = alone("a.x == b.x"), random_tables((4, 2, 3), "diagonal")
    run_and_check(study, tables, "diagonal")

    def forgotten(honest, node):
        own = honest(node)
        products = [int((own.table * image).sum()) for image in own.images]
        return OwnTable(own.table, own.images, products)

    with lying("node", counted=forgotten), pytest.raises((AssertionError, ImpossibleResult)):
        run_and_check(study, tables, "diagonal")


# --- public facts ---------------------------------------------------------------------------------


def members(*records: int) -> list[Member]:
    return [Member(f"node-{i}", count, b"", b"") for i, count in enumerate(records)]


def test_the_node_with_fewer_records_chooses():
    assert list(cross_pairs(members(5, 4))) == [CrossPair(0, 1, 4)]
    assert list(cross_pairs(members(4, 5))) == [CrossPair(1, 0, 4)]
    assert list(cross_pairs(members(4, 4))) == [CrossPair(0, 1, 4)]
    assert list(cross_pairs(members(4, 0, 1))) == [CrossPair(0, 2, 1)]


def test_entries_have_the_bits_that_records_can_fill():
    (counts,) = entry_ranges(grid_of(alone(x=("0", "3"), y=("0", "3"))))
    assert counts == EntryRange(0, 16, 0, 1)
    assert [counts.bits(n, 31) for n in (0, 1, 3, 4, 1 << 40)] == [0, 1, 2, 3, 31]
    # 1, x, and x·x with the range of any product
    ranges = entry_ranges(grid_of(alone("(a.x - b.x) * (a.x - b.x)", x=("-5", "7"))))
    assert sorted((each.low, each.high) for each in ranges) == [(-35, 49), (-5, 7), (0, 1)]


def test_tables_of_levels_count_records(limit):
    study = alone(x=("0", "255"), y=("0", "255"))
    levels = compile_dyadic(study.parsed_kernels, 8)
    assert entry_ranges(levels) == [EntryRange(0, levels.cells, 0, 1)]
    limit(cross_terms, MAX_TRANSFERS=100)
    with pytest.raises(RangeError, match=r"8 levels have .* take fewer levels, or name a dealer"):
        check_transfers(study, members(3, 4), levels, 31)


@pytest.mark.parametrize("sums", [1, 3, 9])
@pytest.mark.parametrize("bits", [1, 13, 31, 63])
def test_a_full_chunk_fits_a_frame_and_one_cell_more_does_not(bits, sums):
    plan = CrossPlan(0, bits, 63, sums)
    largest, more = (
        max(len(plan.shape(round, party, count).payload) for round in (1, 2) for party in (0, 1))
        for count in (plan.chunk_edges, plan.chunk_edges + 8)
    )
    assert largest <= MAX_PAYLOAD and more > MAX_PAYLOAD - CHECK_ROOM


def test_every_cell_of_every_pair_is_in_one_chunk(limit):
    limit(cross_terms, MAX_PAYLOAD=512 + CHECK_ROOM)
    study = alone("(a.x - b.x) * (a.x - b.x) + abs(a.y - b.y)", x=("-5", "7"), y=("0", "40"))
    run = run_and_check(study, random_tables((6, 2, 3), "chunks"), "chunks")
    attempt = run.attempt
    assert isinstance(attempt, DealerlessAttempt)
    chunks = list(attempt.chunks())
    for nodes in attempt.pairs:
        own = [chunk for chunk in chunks if chunk.owners == nodes]
        assert [chunk.number for chunk in own] == list(range(len(own))) and len(own) > 2
        cells = [cell for chunk in own for cell in range(chunk.start, chunk.stop)]
        assert cells == list(range(attempt.grid.cells))


# --- refusals -------------------------------------------------------------------------------------


REFUSED = [
    ({"dealer": grid_study().dealer}, "preprocessing = \"none\" has no dealer; leave 'dealer' out"),
    (
        {"kernels": "(a.x < b.x) * (a.y < c.y)", "degree": 3},
        r"without a dealer the grid is of pairs.*name a dealer",
    ),
]


@pytest.mark.parametrize(("changes", "message"), REFUSED)
def test_what_takes_a_dealer_is_refused(changes, message):
    study = grid_study(**{**ALONE, **changes})
    with pytest.raises(StudyError, match=f"(?s){message}"):
        protocol_of(study).check(study)


def test_a_table_with_too_many_transfers_is_refused_before_the_members_agree(limit):
    """With the numbers, what to coarsen, and what to take instead; the remedy is tried."""
    study, tables = alone(x=("0", "99"), y=("0", "9")), random_tables((6, 3, 2), "many")
    limit(cross_terms, MAX_TRANSFERS=1000 * 4)
    run_and_check(study, tables, "many")
    limit(cross_terms, MAX_TRANSFERS=2000)
    message = (
        r"1000 cells.*at most 500 are possible.*4,000 for node-0, and at most 2,000.*"
        r"coarsen x to at most 50 values.*preprocessing = \"dealer\""
    )
    with pytest.raises(RangeError, match=message):
        simulate(study, tables, Entropy("many"))
    run_and_check(alone(x=("0", "49"), y=("0", "9")), tables, "coarser")


def test_a_chunk_is_evaluated_once_and_takes_no_material():
    run = simulate(alone(), random_tables((2, 2, 2), "once"), Entropy("once"))
    (chunk,) = [each for each in run.attempt.chunks() if each.owners == (0, 1)]
    node = run.nodes[0]
    with pytest.raises(LocalProtocolError, match="once"):
        node.protocol(chunk, b"", run.attempt.tree_hash())
    other = Chunk((0, 1), 7, chunk.start, chunk.stop)
    with pytest.raises(EncodingError, match="no material, 3 bytes came"):
        node.protocol(other, b"abc", run.attempt.tree_hash())
    with pytest.raises(LocalProtocolError, match="counted before"):
        next(node.own_steps())


def test_a_share_of_another_attempt_or_an_odd_sum_is_impossible():
    run = simulate(alone(), random_tables((2, 2, 2), "odd"), Entropy("odd"))
    first, *others = run.transcript.shares
    lie = bytes([first[0] ^ 1]) + first[1:]
    answers = [m.Released(run.attempt.id, share, 2) for share in (lie, *others)]
    with pytest.raises(ImpossibleResult, match="a multiple of 2"):
        coordinator_of(run.attempt.study).replay(answers, Measured())


def test_people_see_that_there_is_no_dealer():
    study = alone()
    lines = dict(find_protocol("grid").describe(study))
    assert lines["cross terms"].endswith("there is no dealer")
    assert find_protocol("grid").has_links(study)
    run = simulate(study, random_tables((6, 3, 2), "lines"), Entropy("lines"))
    rounds = dict(find_protocol("grid").describe_run(run.attempt))["rounds"]
    assert rounds.startswith("3: extensions and corrections of at most 64 transfers a node")


def test_a_lying_node_is_refused():
    refused = grid_study(**ALONE, adversary="lying_nodes", noise="distributed")
    assert_refused(refused, StudyError, "needs a dealer")


# --- views ----------------------------------------------------------------------------------------

STUDY = grid_study(KENDALL, 2, x=("0", "1"), y=("0", "1"), **ALONE)
DATA = (table([0, 0], [0, 1]), table([1, 1], [1, 1]))
"""Node-0's records in either data set. Node-1 has fewer, so it chooses."""
OTHERS = (table([1], [0]),)
RUNS = 60
KINDS = 8


def observe(run: Simulated) -> dict[str, int]:
    """The others' view of node-0: its corrections and its share."""
    seen = {"share, low": run.transcript.shares[0][0] & 7}
    for sender, receiver, frame in run.transcript.online:
        if sender == "node-0":
            word = frame.payload[0]
            seen[f"{frame.step} to {receiver}"] = word & 7
            seen[f"share and {frame.step}"] = (run.transcript.shares[0][0] & 3) << 1 | word & 1
    return seen


def views(label: str, count: int = RUNS) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    samples = []
    for number, mine in enumerate(DATA):
        entropy = Entropy(f"{label} {number}")
        runs = (simulate(STUDY, [mine, *OTHERS], entropy) for _ in range(count))
        samples.append([observe(run) for run in runs])
    return {
        name: tuple(np.array([seen[name] for seen in sample]) for sample in samples)
        for name in samples[0][0]
    }


def test_what_others_see_does_not_depend_on_a_nodes_records():
    found = views("alone views")
    assert {"ot_multiples to node-1", "share, low"} < set(found)
    for name, pair in found.items():
        assert homogeneity(*pair) > ALPHA, name
        assert min(uniformity(sample, KINDS) for sample in pair) > ALPHA, name


def test_power_a_share_without_a_zero_share_is_found():
    """Without it, a node's share of twice a sum is even."""
    with lying("node", zero_shares=lambda honest, *given: [0] * given[-1]):
        found = np.concatenate(views("alone power", 30)["share, low"])
    assert uniformity(found, KINDS) < ALPHA


def test_no_secret_is_shown():
    run = simulate(STUDY, [DATA[0], *OTHERS], Entropy("shown"))
    node = run.nodes[0]
    shown = [node, node.counted, *held(node, Channels)]
    assert len(shown) == len(run.nodes) + 1
    assert all("redacted" in repr(each) for each in shown)


def test_the_table_is_forgotten_when_the_share_is_made():
    run = simulate(STUDY, [DATA[0], *OTHERS], Entropy("forgotten"))
    node = run.nodes[0]
    assert not held(node, OwnTable)
    counted = node.counted
    assert held(node, OwnTable) == [counted], "a table that is there would be found"


def test_replaced_shapes_are_those_of_the_wire():
    """A study that tosses coins sets two channels up on one link, under different numbers."""
    study = checked(grid_study(KENDALL, 2, **ALONE, noise="in_mpc", epsilon="1"))
    run = simulate(study, random_tables((2, 2), "two"), Entropy("two"))
    keys = [frame.key for *_, frame in run.transcript.offline if frame.owners == (0, 1)]
    assert len(keys) == len(set(keys)) == 6
