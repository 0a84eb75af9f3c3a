"""A refused result is an answer: what a lie and an honest refusal tell together.

Without a dealer nothing checks the number that a sender puts in a conversion of edges. It can scale
one bit of one edge, so that the sum is impossible if the other owner's share of that bit is 1. The
coordinator then refuses, and whoever hears of the refusal and knows the liar's share has the bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.mpc_studies import make_schema
from tests.support.studies import make_study
from tests.support.triples import owners_of, plan_of
from umpc.crypto.rounds import Mesh, run_mesh
from umpc.mpc.triples.cells import evaluate_bits
from umpc.study.making_report import sum_range
from umpc.ustat.kernel import Kernel

RUNS = 6
EDGES = 5
SHIFT = 20
LESS = Kernel.from_text("a.x < b.x", make_schema(x=("0", "7")), 2, symmetric=False)


def scaling(party: Mesh, rounds: int) -> Mesh:
    """A first owner that scales the other's share of the first edge's bit by 1 + 2^SHIFT."""
    messages = next(party)
    for _ in range(rounds - 1):
        messages = party.send((yield messages))
    (said,) = messages.values()
    words = np.frombuffer(said.payload, dtype="<u4").copy()
    words[0] -= np.uint32(1 << SHIFT - 1)
    try:
        party.send((yield {1: replace(said, payload=words.tobytes())}))
    except StopIteration as stop:
        return stop.value


@pytest.mark.attack(
    "a sender scales one bit of one edge, and the sum is refused", "honest", "outside the promise"
)
def test_a_refusal_tells_the_liar_one_bit_of_one_edge():
    study = make_study("sign(a.x - b.x)", 2)
    low, high = sum_range(study, LESS, EDGES, 0)
    plan = plan_of(LESS, (0, 1))
    told = []
    for run in range(RUNS):
        rng = np.random.default_rng(run)
        records = [{"x": rng.integers(0, 8, EDGES)} for _ in range(2)]
        first, second = (evaluate_bits(o) for o in owners_of(plan, records, f"refused {run}"))
        mine, theirs = run_mesh([scaling(first, plan.rounds), second])[0]
        total = plan.ring.decode(int((mine + theirs).sum()))
        is_refused = not low <= total <= high
        # the liar's share of the bit, and the other's, which the refusal tells
        guess = bool(mine[0, 0] & np.uint64(1)) ^ is_refused
        truth = bool(records[0]["x"][0] < records[1]["x"][0])
        assert guess == truth
        told.append(truth)
    assert len(set(told)) == 2, "the power of the test: both answers occur"
