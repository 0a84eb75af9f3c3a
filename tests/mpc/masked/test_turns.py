"""Full chunks of a turn together: each message, share and byte is that of a chunk alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.sessions import Run
from tests.support.spread import evaluated, small_chunks
from tests.support.studies import SKEWNESS
from umpc.compute.executor import CoreThreads, InlineExecutor
from umpc.dealer import in_order
from umpc.dealer.session import dealt
from umpc.mpc.chunks import Chunk, pattern_of
from umpc.mpc.masked import plan, tasks, turns
from umpc.mpc.masked.compiled import rows
from umpc.mpc.masked.native import KERNEL
from umpc.mpc.masked.turns import chunks_together

TURN = 3


class OneByOne(InlineExecutor):
    """A place that computes chunk by chunk, as an earlier release does."""

    takes_turns = False


@pytest.fixture(autouse=True)
def short_turns(monkeypatch) -> Iterator[None]:
    """Small chunks, turns of three, and plans that are served wherever there is a kernel."""
    monkeypatch.setattr(turns, "TURN", TURN)
    monkeypatch.setattr(turns, "FEWEST", TURN)
    monkeypatch.setattr(plan.Program, "small_cell", 0)
    if KERNEL is None:  # numpy computes the same batches
        monkeypatch.setattr(turns, "serves", rows.is_served)
    with small_chunks():
        yield


def run_of(counts=(30, 40), **changes) -> Run:
    return Run(counts, "turns", **{"edges": "700", **changes}).agree().begin().seed()


def batches_of(run: Run, node: int | None) -> list[tuple[Chunk, ...]]:
    return [*run.attempt.batches(node, chunks_together(run.attempt))]


@pytest.mark.parametrize("counts", [(30, 40), (20, 20, 20, 20)])
def test_a_batch_is_part_of_one_turn_and_every_chunk_is_in_one_batch(counts):
    run = run_of(counts)
    chunks = [*run.attempt.chunks()]
    for node in (None, *range(len(counts))):
        batches = batches_of(run, node)
        due = [chunk for chunk in chunks if node is None or node in chunk.owners]
        assert sorted(chunks.index(chunk) for batch in batches for chunk in batch) == sorted(
            map(chunks.index, due)
        )
        together = [batch for batch in batches if len(batch) > 1]
        assert together and all(len(batch) <= TURN for batch in together)
        for batch in together:
            assert len({chunk.number // TURN for chunk in batch}) == 1
            assert all(chunk.count == run.attempt.plan(chunk).chunk_edges for chunk in batch)
            if node is not None:
                assert len({chunk.parties.index(node) for chunk in batch}) == 1
    dealt = [chunk for batch in batches_of(run, None) for chunk in batch]
    assert dealt == chunks, "the dealer deals in the common order"


@pytest.mark.parametrize("counts", [(12, 12), (12, 9, 8)])
def test_chunks_of_one_pattern_are_together_though_others_come_between(counts):
    """Triples of two nodes have two patterns, whose chunks alternate in the common order."""
    run = run_of(counts, kernels=SKEWNESS, degree=3, edges="1600")
    turns_of = Counter()
    for node in range(len(counts)):
        for batch in batches_of(run, node):
            patterns = {pattern_of(chunk.owners) for chunk in batch}
            assert len(patterns) == 1
            turns_of[len(batch)] += 1
    assert turns_of[TURN] >= 6
    chunks = [*run.attempt.chunks()]
    assert [chunk for batch in batches_of(run, None) for chunk in batch] == chunks


def test_turns_are_for_plans_that_the_kernel_serves_and_for_many_chunks(monkeypatch):
    assert chunks_together(run_of().attempt) == TURN
    assert chunks_together(run_of(edges="20").attempt) == 1
    with monkeypatch.context() as patch:
        patch.setattr(turns, "serves", lambda plan: False)
        assert chunks_together(run_of().attempt) == 1


@pytest.mark.parametrize("room", [3 * TURN, 3 * TURN - 1])
def test_a_turn_must_fit_a_nodes_room(monkeypatch, room):
    """Each of four nodes has three cells, so a turn has nine of its chunks."""
    monkeypatch.setattr(plan.Program, "chunks_in_flight", room)
    expected = TURN if room == 3 * TURN else 1
    assert chunks_together(run_of((20, 20, 20, 20)).attempt) == expected


def test_two_nodes_send_and_sum_as_with_single_chunks():
    plain = evaluated(run_of(), OneByOne())
    assert plain.chunks > 4 * TURN
    for places in (
        (None,),
        (InlineExecutor(),),
        (CoreThreads(2),),
        (OneByOne(), CoreThreads(2)),
        (None, OneByOne()),
    ):
        assert evaluated(run_of(), *places) == plain


def test_nodes_end_with_the_least_room_whoever_computes_chunks_one_by_one(monkeypatch):
    """Four nodes whose turns just fit: nobody waits for ever, and every frame is the same."""
    counts = (20, 20, 20, 20)
    plain = evaluated(run_of(counts), OneByOne())
    monkeypatch.setattr(plan.Program, "chunks_in_flight", 3 * TURN)
    here, alone = InlineExecutor(), OneByOne()
    for places in ((here,), (here, alone, here, alone), (alone, here, here, here)):
        run = run_of(counts)
        assert chunks_together(run.attempt) == TURN
        assert evaluated(run, *places) == plain


def test_the_dealer_deals_a_batch_as_single_chunks_in_their_order():
    run = run_of()
    plain = [list(run.dealer.deal_one(chunk)) for chunk in run.attempt.chunks()]

    async def material(workers) -> list:
        batches = batches_of(run, None)
        return [each async for each in in_order.dealt_in_order(run.dealer, batches, workers)]

    for workers in (None, InlineExecutor(), CoreThreads(2)):
        assert asyncio.run(material(workers)) == plain


def test_a_dealer_deals_few_chunks_ahead_with_any_number_of_cores(monkeypatch):
    """Its memory is bounded: so many full chunks, and one batch."""
    monkeypatch.setattr(in_order, "AHEAD", 2 * TURN)
    run = run_of()
    begun = 0

    async def deal(session, batch, workers) -> list:
        nonlocal begun
        begun += len(batch)
        return dealt(session, batch)

    async def ahead() -> list[int]:
        batches = batches_of(run, None)
        material = in_order.dealt_in_order(run.dealer, batches, CoreThreads(5))
        return [begun - handed_out async for handed_out, _ in _numbered(material)]

    monkeypatch.setattr(in_order, "_deal", deal)
    found = asyncio.run(ahead())
    assert len(found) > 5 * TURN, "there are more chunks than may be dealt ahead"
    assert max(found) == 3 * TURN


async def _numbered(items):
    number = 0
    async for item in items:
        yield number, item
        number += 1


def test_a_batch_of_a_turn_runs_compiled_in_one_call_for_each_layer(monkeypatch):
    """The kernel gets all chunks of a batch at once, so Python has one call for all of them."""
    if KERNEL is None:
        return
    calls: list[int] = []
    true_run = tasks.compiled_together

    def counted(party, plan, inputs, names, counts, materials, seeds):
        calls.append(len(counts))
        return true_run(party, plan, inputs, names, counts, materials, seeds)

    monkeypatch.setattr(tasks, "compiled_together", counted)
    evaluated(run_of(), None)
    assert calls.count(TURN) > 4
