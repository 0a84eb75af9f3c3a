"""The parties of a grid, step by step: each step once, and one clear error for everything else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.support.doors import Limit
from tests.support.grid import COUNTS, GridRun, cells_of, grid_study
from tests.support.held import held
from tests.support.studies import KENDALL, SPEARMAN, Entropy, random_tables
from umpc.crypto.ring import RINGS, Ring
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.node.run.context import SMALL_STUDY, is_small
from umpc.protocols.grid import masked_form as masks
from umpc.protocols.grid.attempt import GridDealing, total_statement
from umpc.protocols.grid.cross_terms import DealerlessAttempt
from umpc.protocols.grid.masked_form import MaskLayout, masked_forms
from umpc.simulation import AUTHORITY

STUDY = grid_study(x=("0", "6"), y=("0", "4"))


def a_run() -> GridRun:
    return GridRun(STUDY, random_tables(COUNTS, "parties", high=4))


def assert_blamed(refusal: pytest.ExceptionInfo, culprit: str) -> None:
    assert (refusal.value.culprit, refusal.value.step) == (culprit, "evaluate")


def test_a_total_is_the_sum_of_all_masked_tables():
    run = a_run().prepare().count().send().tell()
    bits = run.attempt.ring.bits
    total = sum(cells_of(frames, bits).astype(np.uint64) for frames in run.masked)
    assert (cells_of(run.total, bits) == total % (1 << bits)).all()


# --- each step once -------------------------------------------------------------------------------


def test_a_table_is_masked_once():
    run = a_run().prepare().count().send()
    with pytest.raises(LocalProtocolError, match="masked once"):
        list(run.nodes[0].aggregation.masked())
    with pytest.raises(LocalProtocolError, match="counted before"):
        list(run.nodes[0].own_steps())
    with pytest.raises(LocalProtocolError, match="serves one table"):
        run.nodes[0].table.put(np.zeros(35, dtype=np.uint64), [0])


def test_a_dealer_deals_once():
    run = a_run().prepare()
    with pytest.raises(LocalProtocolError, match="serve one table"):
        list(run.dealing.deal_one(next(run.attempt.chunks())))


def test_a_seed_comes_once():
    run = a_run().prepare()
    with pytest.raises(LocalProtocolError, match="the node's seed came before"):
        run.nodes[0].receive_seed(bytes(32))


def test_shares_are_made_once_and_the_seed_is_forgotten():
    run = a_run().prepare().count().send().tell()
    table, seed = run.nodes[0].table, run.dealing.seed_frame(0).payload
    total = cells_of(run.total, run.attempt.ring.bits)

    def has_seed_and_total() -> tuple[bool, bool]:
        arrays = held(table, np.ndarray)
        return seed in held(table, bytes), any(np.array_equal(each, total) for each in arrays)

    assert has_seed_and_total() == (True, True)
    run.confirm()
    assert has_seed_and_total() == (False, False)
    signatures = [node.aggregation.sign() for node in run.nodes]
    with pytest.raises(LocalProtocolError, match="made once"):
        run.nodes[0].aggregation.confirm(signatures)


@pytest.mark.parametrize(
    ("kernel", "has_own"),
    [(KENDALL, False), ("a.x * b.x", True), ("1 - sign(a.x - b.x) * sign(a.x - b.x)", True)],
)
def test_own_parts_are_left_out_where_no_record_has_a_value_with_itself(kernel, has_own):
    run = GridRun(
        grid_study(kernel, x=("0", "6"), y=("0", "4")), random_tables(COUNTS, "own", high=4)
    )
    grid = run.prepare().attempt.grid
    (form,) = grid.forms
    (pair_sum,) = masked_forms(grid, RINGS[-1])
    table = np.arange(1, grid.cells + 1, dtype=np.uint64)
    assert form.diagonal().any() == has_own
    assert pair_sum.own(table) == -RINGS[-1].inner(form.diagonal(), table)


def test_the_size_of_an_attempt_counts_cells_and_not_sets():
    run = GridRun(grid_study(x=("0", "127"), y=("0", "1023")), random_tables((900, 100, 10), "s"))
    attempt = run.prepare().attempt
    assert attempt.sizes.edges > SMALL_STUDY and is_small(attempt)
    wide = grid_study(x=("0", "1023"), y=("0", "1023"))
    assert not is_small(GridRun(wide, random_tables(COUNTS, "wide")).prepare().attempt)


@pytest.mark.parametrize(("kernels", "degree"), [(KENDALL, 2), (SPEARMAN, 3)])
def test_the_dealer_deals_to_one_node_what_the_attempt_says_at_most(kernels, degree):
    study = grid_study(kernels, degree=degree, x=("0", "6"), y=("0", "4"))
    attempt = GridRun(study, random_tables(COUNTS, "most", high=4)).prepare().attempt
    dealing = GridDealing(attempt, Entropy("at most"))
    dealt = Counter[int]()
    for chunk in attempt.chunks():
        for node, frame in dealing.deal_one(chunk):
            dealt[node] += len(frame.payload)
    assert max(dealt.values()) == attempt.dealt_at_most


def test_transfers_are_not_brief_however_few_cells_there_are():
    run = GridRun(STUDY, random_tables((900, 100, 10), "s", high=4)).prepare()
    dealt = run.attempt
    facts = (dealt.study, dealt.members, dealt.openings, dealt.ring, dealt.grid)
    assert is_small(dealt) and not is_small(DealerlessAttempt(*facts))


def test_the_dealt_numbers_come_once_and_have_their_size():
    run = a_run().prepare()
    payload = run.material[0].payload
    with pytest.raises(LocalProtocolError, match="each chunk once"):
        run.give(0, payload)
    again = GridRun(STUDY, random_tables(COUNTS, "parties", high=4))
    again.give = lambda *given: None
    again.prepare()
    for wrong in (payload[:-1], payload + b"\0", b""):
        with pytest.raises(EncodingError, match="4 bytes of shares were due"):
            GridRun.give(again, 0, wrong)


def test_no_share_leaves_before_the_total_is_confirmed():
    run = a_run().prepare().count().send().tell()
    with pytest.raises(LocalProtocolError, match="not confirmed"):
        run.nodes[0].release()


# --- frames ---------------------------------------------------------------------------------------


@pytest.fixture
def small_frames(limit: Limit) -> None:
    """Frames of four cells, so that there are several, and the last one is shorter."""
    limit(masks, FRAME_BYTES=16)


def wrong_frames(frame):
    """Frames that are not the one that is due."""
    yield replace(frame, chunk=frame.chunk + 1), "frame 0"
    yield replace(frame, step="total" if frame.step == "histogram" else "histogram"), "came where"
    yield replace(frame, owners=(1,)), "came where"
    yield replace(frame, round=1), "came where"
    yield replace(frame, count=frame.count - 1), "cells of 32 bits"
    yield replace(frame, width=64), "of 64 bits came"
    yield replace(frame, payload=frame.payload[:-1]), "bytes"
    yield replace(frame, payload=frame.payload + b"\0"), "bytes"


@pytest.mark.usefixtures("small_frames")
def test_a_frame_of_another_place_or_size_names_the_node():
    run = a_run().prepare().count()
    frame, *_ = run.nodes[1].aggregation.masked()
    for wrong, message in wrong_frames(frame):
        with pytest.raises(RemoteProtocolError, match=message) as refusal:
            run.coordinator.aggregation.add(1, wrong)
        assert_blamed(refusal, "node-1")
    assert run.coordinator.aggregation.add(1, frame) is False


@pytest.mark.usefixtures("small_frames")
def test_a_frame_of_another_place_or_size_names_the_coordinator():
    run = a_run().prepare().count().send()
    frame, *_ = run.coordinator.aggregation.total()
    for wrong, message in wrong_frames(frame):
        with pytest.raises(RemoteProtocolError, match=message) as refusal:
            run.nodes[1].aggregation.take(wrong)
        assert_blamed(refusal, "coordinator")


@pytest.mark.usefixtures("small_frames")
def test_a_node_that_sends_twice_is_named():
    run = a_run().prepare().count().send()
    assert len(run.masked[0]) == 9 and run.masked[0][-1].count == 3
    for frame in (run.masked[0][0], run.masked[0][-1]):
        with pytest.raises(RemoteProtocolError, match="came where no frame was due") as refusal:
            run.coordinator.aggregation.add(0, frame)
        assert_blamed(refusal, "node-0")


@pytest.mark.usefixtures("small_frames")
def test_frames_make_no_difference():
    small = a_run().up_to_release()
    assert small.finish().edges == 36


# --- two totals -----------------------------------------------------------------------------------


def told_apart(run: GridRun) -> list[bytes]:
    """The coordinator adds 1 to a cell of the total that node-2 is told. Returns: signatures."""
    (frame,) = run.coordinator.aggregation.total()
    other = replace(frame, payload=bytes([frame.payload[0] ^ 1]) + frame.payload[1:])
    for node, told in zip(run.nodes, (frame, frame, other), strict=True):
        assert node.aggregation.take(told)
    return [node.aggregation.sign() for node in run.nodes]


def test_a_coordinator_that_tells_two_totals_is_named_by_every_node():
    run = a_run().prepare().count().send()
    signatures = told_apart(run)
    for node in run.nodes:
        with pytest.raises(RemoteProtocolError, match="has not signed the same total") as refusal:
            node.aggregation.confirm(signatures)
        assert_blamed(refusal, "coordinator")
        with pytest.raises(LocalProtocolError, match="not confirmed"):
            node.release()


def test_an_honest_coordinator_names_the_node_that_signs_something_else():
    run = a_run().prepare().count().send()
    signatures = told_apart(run)
    with pytest.raises(RemoteProtocolError, match="it signed something else") as refusal:
        run.coordinator.aggregation.check_signed(signatures)
    assert_blamed(refusal, "node-2")


def test_signatures_that_are_missing_or_of_another_attempt_do_not_count():
    run = a_run().prepare().count().send().tell()
    others = [
        AUTHORITY.credentials(node.name).sign(total_statement(bytes(32), bytes(32)))
        for node in STUDY.nodes
    ]
    right = [node.aggregation.sign() for node in run.nodes]
    for signatures in ([], right[:2], others, [right[1], right[0], right[2]]):
        with pytest.raises(RemoteProtocolError):
            run.nodes[0].aggregation.confirm(signatures)
    run.nodes[0].aggregation.confirm(right)


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("cells", [1, 3, 4, 5, 9])
def test_a_layout_reads_what_it_writes(limit, bits, cells):
    ring = Ring(bits)
    limit(masks, FRAME_BYTES=4 * ring.bytes)
    layout = MaskLayout(ring, cells)
    values = masks.mask_stream(bytes(32), b"layout").words(cells, ring.dtype)
    frames = [layout.frame("total", start, values[start:stop]) for start, stop in layout.ranges]
    assert len(frames) == layout.frames
    assert sum(frame.wire_bytes for frame in frames) == layout.wire_bytes("total")
    for number, frame in enumerate(frames):
        start, found = layout.read("total", number, frame)
        assert (found == values[start : start + len(found)]).all()


def test_an_inner_product_is_exact_modulo_the_ring():
    words = masks.mask_stream(bytes(32), b"inner").words(70_000)
    exact = sum(int(word) ** 2 for word in words) % (1 << 64)
    assert RINGS[-1].inner(words, words) == exact
    short = words.astype(np.uint32)
    exact = sum(int(word) ** 2 for word in short) % (1 << 32)
    assert RINGS[0].inner(short, short) == exact


def test_masks_of_two_nodes_and_of_two_attempts_differ():
    found = {
        masks.mask_stream(seed, attempt).bytes(16)
        for seed in (bytes(32), bytes([1] * 32))
        for attempt in (b"one", b"two")
    }
    assert len(found) == 4


@pytest.mark.usefixtures("small_frames")
def test_shares_of_a_vector_add_up_to_what_follows_from_all_masks():
    """The last node's share is dealt in pieces; the other nodes' are streams of their seeds."""
    study = grid_study(SPEARMAN, degree=3, x=("0", "3"), y=("0", "2"), epsilon="1e9")
    run = GridRun(study, random_tables(COUNTS, "triples", high=2)).prepare()
    ring, cells = run.attempt.ring, run.attempt.grid.cells
    masks_of_all, shares = np.zeros(cells, ring.dtype), np.zeros(cells, ring.dtype)
    seeds = [run.dealing.seed_frame(place).payload for place in range(len(run.nodes))]
    for seed in seeds:
        masks_of_all += masks.mask_stream(seed, run.attempt.id).words(cells, ring.dtype)
    for node, seed in zip(run.nodes[:-1], seeds, strict=False):
        stream = masks.vector_stream(seed, run.attempt.id, 0)
        shares += stream.words(cells, ring.dtype)
        assert not node.table.vectors
    dealt = run.nodes[-1].table.vectors[0]
    vector, _ = next(masked_forms(run.attempt.grid, run.attempt.ring)).dealt(
        masks.widened(masks_of_all)
    )
    assert (shares + dealt == vector.astype(ring.dtype)).all() and shares.all()
    report = run.count().send().tell().confirm().finish()
    assert report.sets == report.edges == 84


def test_shares_of_the_products_add_up_and_each_is_fresh():
    run = a_run().prepare()
    again = GridRun(STUDY, random_tables(COUNTS, "parties", high=4), Entropy("other")).prepare()
    first, second = ([frame.payload for frame in each.material.values()] for each in (run, again))
    assert len({*first, *second}) == 6
