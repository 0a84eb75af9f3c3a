"""The law of what all owners but one see does not depend on the last one's records.

One chunk has EDGES edges. All owners but one hold fixed records and pool what they see; the honest
one holds one of two. Everything that it sends is cut into bits, and so are the others' shares of
the result. Every bit, and the ⊕ of any two of them, must have one law for both data sets. Mutants
leave one protection out, and the same test must find each of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.limits import no_mask_of_choices
from tests.support.mpc_studies import make_schema
from tests.support.transfers import first_row
from tests.support.triples import TriplesChunk, plan_of, run_triples
from umpc.testing import lying
from umpc.ustat.kernel import Kernel

EDGES = 4096
LIMIT = 7.0
"""Standard errors. Among 10^5 differences one of equal laws exceeds them with p = 3e-7."""
SCHEMA = make_schema(x=("0", "3"), y=("0", "1"))
CASES = {
    "leaning": ("sign(a.x + b.x - 2 * c.x)", 3, (0, 1, 2)),
    "two and one": ("(a.x < b.x) & (b.y == c.y) & (a.x < c.x)", 3, (0, 1, 1)),
    "product": ("a.x * b.x * c.y", 3, (0, 1, 2)),
    "four": ("(a.x < b.x) ^ (c.x < d.x + a.y)", 4, (0, 1, 2, 3)),
}
THEIRS = ({"x": 0, "y": 0}, {"x": 3, "y": 1})
"""The honest owner's records: one of these."""
MINE = ({"x": 1, "y": 0}, {"x": 2, "y": 1}, {"x": 1, "y": 1}, {"x": 2, "y": 0})
EVERY = [(name, honest) for name, (*_, pattern) in CASES.items() for honest in sorted(set(pattern))]


def bits_of(values: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    """Some bits of each number: (places · rows, EDGES)."""
    rows = values.reshape(-1, EDGES).astype(np.uint64)
    return np.concatenate([rows >> np.uint64(place) & np.uint64(1) for place in places])


def said_by(run: TriplesChunk, honest: int) -> np.ndarray:
    """All that the honest owner says, as bits: (bits, EDGES)."""
    found = [np.zeros((1, EDGES), dtype=np.uint64)]
    for line in run.sent:
        if line.sender != honest:
            continue
        due = run.plan.own_messages(line.sender, line.receiver, EDGES)[line.round - 1]
        payload = np.frombuffer(line.message.payload, dtype=np.uint8)
        if due.step == "ot_open_bits":
            found.append(bits_of(np.unpackbits(payload, bitorder="little"), (0,)))
        elif due.step == "ot_extend":
            row = first_row(line.message.payload)  # one bit a transfer
            found.append(bits_of(np.unpackbits(row, bitorder="little"), (0,)))
        else:
            width = due.width // 8
            low = payload.reshape(-1, width)[:, 0]
            found.append(bits_of(low, (0,)))
    return np.concatenate(found)


def view(name: str, honest: int, theirs: dict, label: str) -> np.ndarray:
    """±1 for every bit that the others see: (bits, EDGES)."""
    text, degree, pattern = CASES[name]
    kernel = Kernel.from_text(text, SCHEMA, degree, symmetric=False)
    rows = [theirs if party == honest else MINE[slot] for slot, party in enumerate(pattern)]
    records = [{k: np.full(EDGES, v, np.int64) for k, v in row.items()} for row in rows]
    run = run_triples(plan_of(kernel, pattern), records, label, real=True)
    shares = [bits_of(each, (0, 30)) for party, each in enumerate(run.shares) if party != honest]
    outputs = len(run.plan.outputs)
    # a bit that no other owner has a share of is 0 there
    shared = [
        place
        for place, wire in enumerate(run.plan.outputs)
        if run.plan.supports[wire] >= {honest} and len(run.plan.supports[wire]) > 1
    ]
    kept = [each.reshape(2, outputs, EDGES)[:, shared].reshape(-1, EDGES) for each in shares]
    # the others' part of each bit, whose other part the honest owner's messages must not show
    others = np.bitwise_xor.reduce([each[: len(shared)] for each in kept])
    return 1.0 - 2.0 * np.concatenate([said_by(run, honest), *kept, others])


def distance(name: str, honest: int, label: str) -> float:
    """The largest difference between the data sets, in standard errors."""
    products = []
    for number, theirs in enumerate(THEIRS):
        seen = view(name, honest, theirs, f"{label} {number}")
        products.append(seen @ seen.T / EDGES)
    return float(abs(products[0] - products[1]).max() * np.sqrt(EDGES / 2))


@pytest.mark.parametrize(("name", "honest"), EVERY)
def test_the_view_of_all_others_does_not_depend_on_an_owners_records(name, honest):
    assert distance(name, honest, f"triples view {name} {honest}") < LIMIT


@pytest.mark.parametrize(("name", "honest"), EVERY)
def test_every_bit_that_an_owner_says_is_uniform(name, honest):
    seen = view(name, honest, THEIRS[1], f"triples uniform {name} {honest}")[1:]
    assert abs(seen.mean(axis=1)).max() * np.sqrt(EDGES) < LIMIT


def without_random_bits():
    """The honest owner's a and b are 0."""

    def stream(honest, seed):
        return Zeros() if is_honest else honest(seed)

    def mutant(honest, owner):
        nonlocal is_honest
        is_honest = owner.seat.number == 0
        mesh = honest(owner)
        first = next(mesh)
        is_honest = False
        return (yield from resumed(mesh, first))

    is_honest = False
    return lying("node", make_triples=mutant, Stream=stream)


class Zeros:
    def bits(self, count: int) -> np.ndarray:
        return np.zeros(count, dtype=np.uint8)


def resumed(mesh, first):
    """A mesh that has begun."""
    sent = first
    while True:
        try:
            sent = mesh.send((yield sent))
        except StopIteration as stop:
            return stop.value


def one_triple_for_all():
    """All ANDs of a level use the triple of its first."""

    def mutant(honest, owner):
        triples = yield from honest(owner)
        parts = {name: getattr(triples, name).copy() for name in "abc"}
        for part in parts.values():
            for level in owner.plan.levels:
                part[level] = part[level.start]
        return replace(triples, **parts)

    return lying("node", make_triples=mutant)


def without_pads(narrow: bool):
    """Corrections of triples, or of numbers, are not masked."""

    def mutant(honest, channel, blocks, width):
        return honest(channel, blocks, width) * np.uint64((width > 1) == narrow)

    return lambda: lying("node", both_pads=mutant)


MUTANTS = [
    ("random bits", without_random_bits, "leaning", 0),
    ("one triple", one_triple_for_all, "leaning", 0),
    ("one triple", one_triple_for_all, "four", 0),
    ("pads of triples", without_pads(narrow=True), "leaning", 0),
    ("pads of numbers", without_pads(narrow=False), "product", 0),
    ("bare choices", no_mask_of_choices, "leaning", 2),
]


@pytest.mark.parametrize(
    ("mutate", "name", "honest"),
    [mutant[1:] for mutant in MUTANTS],
    ids=[f"{mutant[0]}, {mutant[2]}" for mutant in MUTANTS],
)
def test_a_protection_that_is_left_out_is_found(mutate, name, honest):
    with mutate():
        assert distance(name, honest, f"triples mutant {name}") > 2 * LIMIT
