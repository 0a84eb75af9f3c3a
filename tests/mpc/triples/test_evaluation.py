"""Edges by triples equal the clear ones: every value of small fields, every pattern of owners."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.support.mpc_studies import make_schema, patterns
from tests.support.tossing import altered_mesh
from tests.support.triples import owners_of, plan_of, run_triples
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import run_mesh
from umpc.errors import RemoteProtocolError
from umpc.mpc.triples.cells import evaluate_chunk
from umpc.mpc.triples.plan import TRIPLES
from umpc.ustat.kernel import Kernel

SMALL = make_schema(x=("-1", "2"), y=("0", "1"))
KERNELS = {
    "skewness": ("sign(a.x + b.x - 2 * c.x)", 3),
    "product": ("a.x * b.x * c.x", 3),
    "sum": ("a.x + b.x - c.x", 3),
    "order": ("(a.x < b.x) & (b.x == c.x) & (a.y < c.y)", 3),
    "distance": ("abs(a.x - b.x) * (a.x < c.x)", 3),
    "four": ("(a.y < b.y) ^ (c.y == d.y)", 4),
    "four products": ("a.y * b.y * c.y * d.y - 3", 4),
    "pair": ("sign(a.x - b.x) * sign(a.y - b.y)", 2),
    "constant": ("7", 3),
}


def kernel(text: str, degree: int) -> Kernel:
    return Kernel.from_text(text, SMALL, degree, symmetric=False)


def every_edge(fields: tuple[str, ...], degree: int) -> list[dict[str, np.ndarray]]:
    """All values of all records of an edge, one combination a row."""
    ranges = [
        range(SMALL[name].lower_units, SMALL[name].upper_units + 1)
        for _ in range(degree)
        for name in fields
    ]
    columns = iter(np.array(list(product(*ranges)), dtype=np.int64).T)
    return [{name: next(columns) for name in fields} for _ in range(degree)]


CASES = [
    (name, pattern) for name, (_, degree) in KERNELS.items() for pattern in patterns(degree)
] + [("order", (1, 0, 0)), ("pair", (1, 0)), ("order", (0, 1, 0))]


@pytest.mark.parametrize(("name", "pattern"), CASES, ids=str)
def test_every_edge_of_small_fields_equals_the_clear_one(name, pattern):
    text, degree = KERNELS[name]
    one = kernel(text, degree)
    records = every_edge(one.fields or ("y",), degree)
    for ring in RINGS:
        run = run_triples(plan_of(one, pattern, ring), records, f"{name} {pattern} {ring}")
        assert run.values == [one.evaluate(records).tolist()]


def test_the_parties_shares_add_up_to_the_sums_and_several_sums_share_gates():
    texts = ("a.x * b.x", "(a.x < b.x)", "a.x + c.x")
    kernels = [kernel(text, 3) for text in texts]
    records = every_edge(("x",), 3)
    plan = plan_of(kernels, (0, 1, 2))
    shares, _ = run_mesh([evaluate_chunk(each) for each in owners_of(plan, records, "sums")])
    totals = [plan.ring.decode(sum(parts)) for parts in zip(*shares, strict=True)]
    assert totals == [int(each.evaluate(records).sum()) for each in kernels]


@pytest.mark.parametrize("pattern", [(0, 1, 2), (0, 0, 1)], ids=str)
def test_messages_are_those_that_the_plan_predicts(pattern):
    plan = plan_of(kernel(*KERNELS["order"]), pattern)
    run = run_triples(plan, every_edge(("x", "y"), 3), f"shapes {pattern}")
    count = run.owners[0].count
    sent = {(line.round, line.sender, line.receiver): line.message for line in run.sent}
    for place in product(range(1, plan.rounds + 1), plan.everybody, plan.everybody):
        if place[1] != place[2]:
            due = plan.shape_to(*place, count)
            said = sent.pop(place, None)
            assert (said is not None) == bool(due.width)
            if said is not None:
                assert len(said.payload) == len(due.payload)
                assert replace(said, payload=b"") == replace(due, payload=b"")
    assert not sent


def test_an_owner_gets_nothing_of_gates_that_do_not_concern_it():
    """Only two of three owners compare; the third one sends and gets no message."""
    plan = plan_of(kernel("(a.x < b.x) * (2 * c.x)", 3), (0, 1, 2))
    alone = plan_of(kernel("(a.x < b.x) + c.x", 3), (0, 1, 2))
    assert set(plan.pairs) == {(0, 1), (0, 2), (1, 2)} and alone.pairs == ((0, 1),)
    run = run_triples(alone, every_edge(("x",), 3), "third")
    assert {frozenset((line.sender, line.receiver)) for line in run.sent} == {frozenset((0, 1))}


@pytest.mark.parametrize("change", ["short", "long", "step"])
def test_a_malformed_message_names_its_sender(change):
    plan = plan_of(kernel(*KERNELS["skewness"]), (0, 1, 2))
    owners = owners_of(plan, every_edge(("x",), 3), "malformed")
    changes = {
        "short": lambda said: replace(said, payload=said.payload[:-1]),
        "long": lambda said: replace(said, payload=said.payload + b"\0"),
        "step": lambda said: replace(said, step="open"),
    }
    parties = [evaluate_chunk(owner) for owner in owners]
    parties[1] = altered_mesh(parties[1], TRIPLES, changes[change])
    with pytest.raises(RemoteProtocolError) as caught:
        run_mesh(parties)
    assert (caught.value.culprit, caught.value.step) == ("node-1", TRIPLES)


def test_secrets_are_not_shown():
    (owner, *_) = owners_of(
        plan_of(kernel(*KERNELS["order"]), (0, 1, 1)), every_edge(("x", "y"), 3), "shown"
    )
    assert repr(owner) == "ChunkOwner(node-0, <redacted>)"
