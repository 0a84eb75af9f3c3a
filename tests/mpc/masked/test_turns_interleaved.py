"""Turns of full chunks under any order of events: every node ends, with the sums of single chunks.

A seed draws each case: what the dealer, the nodes and the lines have room for, how far each of them
is behind, who takes turns, and in which order frames come. Some of them come twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.support.interleaved import Interleaved, SlowPlace, same_dealer, sums_of
from tests.support.sessions import Run
from tests.support.spread import small_chunks
from tests.support.studies import AUC, SKEWNESS, Entropy
from umpc.compute.executor import Executor
from umpc.dealer import attempt_run, frame_queue
from umpc.dealer.session import DealerSession
from umpc.errors import PeerLost
from umpc.mpc import waves
from umpc.mpc.masked import plan, turns
from umpc.mpc.masked.compiled import rows
from umpc.mpc.masked.native import KERNEL
from umpc.mpc.masked.turns import chunks_together
from umpc.node.attempts import material
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

TAU_STAR = to_text(LIBRARY["bergsma_dassios_tau_star"].expression(["x", "y"]))
TRIPLES: dict[str, Any] = {"kernels": SKEWNESS, "degree": 3}
STUDIES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "pairs": ((30, 40), {"edges": "700"}),
    "a last chunk of few edges": ((30, 40), {"edges": "233"}),
    "nodes with many and with few chunks": ((60, 12, 3), {"edges": "900"}),
    "four nodes": ((20, 20, 20, 20), {"edges": "700"}),
    "a node with one record": ((40, 30, 1), {"edges": "400"}),
    "two classes": ((30, 40), {"edges": "700", "kernels": AUC, "sampling": "two_sample"}),
    "triples of two nodes": ((12, 12), {"edges": "500", **TRIPLES}),
    "triples of three nodes": ((12, 9, 8), {"edges": "400", **TRIPLES}),
    "quadruples": ((7, 6), {"edges": "90", "kernels": TAU_STAR, "degree": 4}),
}
CASES = 4
"""Cases of each study. Two of those of four nodes lock where a turn may exceed a node's room."""


def drawn(name: str, number: int, patch: pytest.MonkeyPatch) -> Interleaved:
    """An evaluation that a seed draws. It prints the seed, for a case that fails."""
    print(f"seed {name} {number}")
    rng = Random(f"{name} {number}")
    turn = rng.choice((2, 3, 8))
    patch.setattr(turns, "TURN", turn)
    patch.setattr(turns, "FEWEST", turn)
    patch.setattr(waves, "WAVE_CHUNKS", rng.choice((1, 2, 8)))
    patch.setattr(plan.Program, "small_cell", rng.choice((0, 0, 10, 40)))
    patch.setattr(frame_queue, "QUEUE_BYTES", rng.choice((1, 100, 2_000, 1_000_000)))
    patch.setattr(frame_queue, "MESSAGE_BYTES", rng.choice((1, 1_000, 60_000)))
    patch.setattr(attempt_run, "BRIEF_SIZE", rng.choice((0, 0, 1_000_000)))
    patch.setattr(material, "WINDOW_BYTES", rng.choice((1, 500, 3_000, 1_000_000)))
    if KERNEL is None:  # numpy computes the same batches
        patch.setattr(turns, "serves", rows.is_served)
    counts, changes = STUDIES[name]
    run = Run(counts, "interleaved", **changes).agree().begin()
    cells = Counter(node for owners, _ in run.attempt.large_cells for node in set(owners))
    least = max(1, max(cells.values(), default=0) * turn)
    patch.setattr(plan.Program, "chunks_in_flight", rng.choice((least, least, 2 * least)))
    places = [rng.choice(_places(rng)) for _ in counts]
    return Interleaved(run, rng, places, rng.choice(_places(rng)), rng.choice((1, 200, 5_000)))


def _places(rng: Random) -> tuple[Executor | None, ...]:
    """One core, several of them, and places that compute chunk by chunk."""
    return None, SlowPlace(rng, 2), SlowPlace(rng, 5), SlowPlace(rng, 3, takes_turns=False)


def alone(name: str) -> Run:
    """The run of the same study whose chunks are computed one after the other."""
    counts, changes = STUDIES[name]
    run = Run(counts, "interleaved", **changes).agree().begin()
    run.dealer = DealerSession(run.attempt, Entropy("dealer"))
    run.seed().fields()
    for chunk in run.attempt.chunks():
        run.finish(chunk)
    return run


@pytest.mark.parametrize("number", range(CASES))
@pytest.mark.parametrize("name", STUDIES)
def test_every_node_ends_with_the_sums_of_single_chunks(name, number, monkeypatch):
    same_dealer(monkeypatch)
    with small_chunks(Random(number).choice((200, 300, 800))):
        made = drawn(name, number, monkeypatch)
        assert chunks_together(made.run.attempt) in (1, turns.TURN)
        assert asyncio.run(made.evaluate()) == [None] * len(made.run.nodes)
        assert sums_of(made.run) == sums_of(alone(name))


@pytest.mark.parametrize("number", range(CASES))
def test_a_node_that_is_lost_in_the_middle_of_a_turn_is_named_by_all_others(number, monkeypatch):
    """The attempt ends at once. Where the study may miss a node, the next one is without it."""
    same_dealer(monkeypatch)
    with small_chunks():
        made = drawn("four nodes", number, monkeypatch)
        lost = number % 4
        left = 20 + 7 * number

        def die() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                error = PeerLost("it went away", culprit=f"node-{lost}")
                for other in set(range(4)) - {lost}:
                    made.links[other, lost].mailbox.fail(error)
                    made.links[lost, other].mailbox.fail(error)

        for link in made.links.values():
            link._tell = die
        ended = asyncio.run(made.evaluate())
    errors = [each.exceptions[0] if isinstance(each, ExceptionGroup) else each for each in ended]
    assert {type(error) for error in errors} == {PeerLost}
    assert {error.culprit for error in errors} == {f"node-{lost}"}
