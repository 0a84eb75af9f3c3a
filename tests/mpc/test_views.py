"""What each participant sees has a law that does not depend on the others' data: the test that notices one value more.

One chunk with many edges, each with masks and keys of its own, between an owner whose records are fixed and one whose
record is one of two. If what the first owner sees, jointly, could tell the two apart, these tests fail; the
mutants below show that they do. Whole studies: `tests/test_simulation.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from umpc.mpc import dealing, evaluation
from umpc.mpc.material import SeededPart
from umpc.mpc.ring import RINGS
from umpc.ustat.kernel import Kernel
from umpc.ustat.tracing import sign, trace

from . import studies
from .studies import ALPHA, EDGES, ChunkRun, homogeneity, make_schema, opened_bits, run_chunk

BITS = make_schema(x=("0", "1"), y=("0", "1"))
KERNELS = {
    "kendall": Kernel(trace(lambda a, b: sign(a.x - b.x) * sign(a.y - b.y)), BITS),
    "gini": Kernel(trace(lambda a, b: abs(a.x - b.x)), BITS),
    "product": Kernel(trace(lambda a, b: a.x * b.x), BITS),
}
MINE = {"x": 1, "y": 0}
THEIRS = ({"x": 0, "y": 0}, {"x": 1, "y": 1})
"""The two data sets of the other owner; among both are a tie in x, a tie in y, and both orders."""


def fields_and_bits(run: ChunkRun, party: int) -> np.ndarray:
    """Masked fields of the other (2 bits each), opened bits: up to 8 bits jointly."""
    fields = [wire & np.uint64(3) for wire in run.masked[1 - party]]
    bits = [row.astype(np.uint64) for row in opened_bits(run)] if run.plan.bits else []
    return join([(field, 2) for field in fields] + [(bit, 1) for bit in bits])


def masked_differences_and_bits(run: ChunkRun, party: int) -> np.ndarray:
    """What is compared, masked (both owners know it), and the opened bits: up to 8 bits jointly."""
    differences = [(a - b) & np.uint64(3) for a, b in zip(*run.masked, strict=True)]
    bits = [(row, 1) for row in opened_bits(run)] if run.plan.bits else []
    return join([(difference, 2) for difference in differences] + bits)


def fields_and_material(run: ChunkRun, party: int) -> np.ndarray:
    """Masked fields of the other, low bits of keys, of the first element share and of the own σ."""
    fields = [(wire & np.uint64(3), 2) for wire in run.masked[1 - party]]
    keys = [(keys.leaves[:, word] >> 3 & 1, 1) for keys in run.dealt[party].keys for word in (0, 2)]
    own = run.seeded[party].elements if party == 0 else run.dealt[party].elements
    return join(fields + keys + [(own[0] & 3, 2)])


def opened_bits_and_elements(run: ChunkRun, party: int) -> np.ndarray:
    """Opened bits and the low bit of up to three element shares."""
    bits = [(row, 1) for row in opened_bits(run)] if run.plan.bits else []
    own = run.seeded[party].elements if party == 0 else run.dealt[party].elements
    return join(bits + [(share & 1, 1) for share in own[:3]])


VIEWS = (fields_and_bits, masked_differences_and_bits, fields_and_material, opened_bits_and_elements)


def join(parts: list[tuple[np.ndarray, int]]) -> np.ndarray:
    """Several small numbers of given bits as one category."""
    total, shift = np.zeros(EDGES, dtype=np.int64), 0
    for values, bits in parts:
        total |= values.astype(np.int64) << shift
        shift += bits
    return total


def runs(name: str, party: int, label: str) -> list[ChunkRun]:
    """The chunk over both data sets of the other owner, with randomness of its own."""
    found = []
    for number, theirs in enumerate(THEIRS):
        tables = [{k: np.full(EDGES, v, np.int64) for k, v in row.items()} for row in (MINE, theirs)]
        first, second = tables if party == 0 else tables[::-1]
        found.append(run_chunk(KERNELS[name], RINGS[0], first, second, EDGES, f"{label} {number}"))
    return found


def p_of(pair: list[ChunkRun], party: int) -> float:
    return min(homogeneity(*(view(run, party) for run in pair)) for view in VIEWS)


@pytest.mark.parametrize("party", [0, 1])
@pytest.mark.parametrize("name", KERNELS)
def test_an_owners_view_does_not_depend_on_the_others_record(name, party):
    label = f"view {name} {party}"
    p = p_of(runs(name, party, label), party)
    assert p > ALPHA, f"{name}: party {party}'s view tells the data sets apart, p = {p:.1e}, N = {EDGES}, {label!r}"


# --- power: the same test finds every protection that is left out -------------------------------------------


def without_masks(monkeypatch) -> None:
    real = studies.wire_masks
    monkeypatch.setattr(studies, "wire_masks", lambda *a: [mask * np.uint64(0) for mask in real(*a)])


def without_sigma(bits: slice):
    def mutate(monkeypatch) -> None:
        real = SeededPart.expand.__func__

        def expand(cls, plan, seed, party, count):
            part = real(cls, plan, seed, party, count)
            part.sigma[bits] = 0
            return part

        monkeypatch.setattr(SeededPart, "expand", classmethod(expand))

    return mutate


def without_a_mask_bit(monkeypatch) -> None:
    """The lowest bit of every mask is 0."""
    real = studies.wire_masks
    monkeypatch.setattr(studies, "wire_masks", lambda *a: [mask & ~np.uint64(1) for mask in real(*a)])


def without_the_shares_pad(monkeypatch) -> None:
    """The dealer gives the second owner the products of masks themselves."""
    real = dealing.deal_chunk

    def deal(plan, first_masks, second_masks, seeds, count, tree_hash):
        first, second = real(plan, first_masks, second_masks, seeds, count, tree_hash)
        pad = SeededPart.expand(plan, seeds[0], 0, count).elements
        return first, type(second)(second.keys, second.elements + pad)

    monkeypatch.setattr(studies, "deal_chunk", deal)


@pytest.mark.parametrize(
    ("mutate", "name", "party"),
    [
        (without_masks, "kendall", 0),
        (without_masks, "product", 1),
        (without_a_mask_bit, "gini", 1),
        (without_sigma(slice(None)), "kendall", 0),
        (without_sigma(slice(None)), "kendall", 1),
        (without_sigma(slice(0, 1)), "gini", 1),
        (without_sigma(slice(3, 4)), "kendall", 1),
        (without_the_shares_pad, "kendall", 1),
    ],
)
def test_power_a_protection_left_out_is_found(monkeypatch, mutate, name, party):
    mutate(monkeypatch)
    p = p_of(runs(name, party, "power"), party)
    assert p < ALPHA, f"the mutant passes with p = {p:.1e}, N = {EDGES}"


def test_the_view_covers_all_that_is_sent_online():
    """Nothing but masked fields and opened bits is exchanged between owners."""
    run = runs("kendall", 0, "all")[0]
    assert {line.message.step for line in run.sent} == {"open_bits"} and evaluation.FIELDS_BYTES
