"""The law of any coalition's view does not depend on the other owners' data.

One chunk has many edges, each with masks and keys of its own. All owners but one pool their views
and hold fixed records; the record of the honest one is one of two. If the joint view, stripped of
every mask that they know, could tell the two apart, these tests fail. The mutants below show that
they do: the tests notice one value more. `test_secrecy.py` tests small widths exactly, and
`tests/test_simulation.py` tests whole studies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.mpc.test_secrecy import compare_with_keys
from tests.support.coalition import views
from tests.support.doors import limits
from tests.support.mpc_studies import (
    ALPHA,
    EDGES,
    ChunkRun,
    homogeneity,
    make_schema,
    opened,
    run_chunk,
    sent_shares,
    tree_hash_of,
    uniformity,
)
from tests.support.one_chunk import seeded_part
from umpc.crypto.ring import RINGS
from umpc.mpc.chunks import Pattern
from umpc.mpc.masked import compiler
from umpc.mpc.masked.material import SeededPart, Shares
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.testing import lying
from umpc.ustat.kernel import Kernel

BITS = make_schema(x=("0", "1"), y=("0", "1"))


def kernel(text: str, degree: int) -> Kernel:
    return Kernel.from_text(text, BITS, degree, symmetric=False)


CASES: dict[str, tuple[Kernel, Pattern]] = {
    "kendall": (kernel("sign(a.x - b.x) * sign(a.y - b.y)", 2), (0, 1)),
    "total in pieces": (kernel("sign(a.x + 2 * a.y - b.x - 2 * b.y)", 2), (0, 1)),
    "leaning in pieces": (kernel("sign(a.x + b.x - 2 * c.x)", 3), (0, 1, 2)),
    "gini": (kernel("abs(a.x - b.x)", 2), (0, 1)),
    "product": (kernel("a.x * b.x", 2), (1, 0)),
    "distance": (kernel("abs(a.x - b.x - b.y) < c.x + c.y", 3), (0, 0, 1)),
    "leaning": (kernel("sign(a.x + b.x - 2 * c.x)", 3), (0, 1, 2)),
    "leaning four": (kernel("a.x + b.x < c.x + d.x", 4), (0, 1, 2, 3)),
    "product of three": (kernel("a.x * b.x * c.x", 3), (0, 1, 2)),
    "product compared": (kernel("a.x * b.x < c.x", 3), (0, 1, 2)),
    "nested": (kernel("abs(a.x - b.x) < 1", 2), (0, 1)),
    "order": (kernel("(a.x < b.x) & (b.x == c.x) & (a.y < c.y)", 3), (0, 1, 2)),
    "two and one": (kernel("(a.x < b.x) & (b.y == c.y) & (a.x < c.x)", 3), (0, 1, 1)),
}
IN_PIECES = {"total in pieces", "leaning in pieces"}
THEIRS = ({"x": 0, "y": 0}, {"x": 1, "y": 1})
"""The two data sets of the honest owner: all its records are one of these."""
MINE = ({"x": 1, "y": 0}, {"x": 0, "y": 1}, {"x": 1, "y": 1}, {"x": 0, "y": 0})
"""The others' records, slot by slot: with the above, ties in x and in y and both orders occur."""


def runs(name: str, honest: int, label: str) -> list[ChunkRun]:
    """The chunk over both data sets of the honest owner, with randomness of its own.

    In the cases in pieces, several pieces of one bit make a comparison, as of wide numbers.
    """
    with limits() as limit:
        if name in IN_PIECES:
            limit(compiler.tables, ONE_PIECE=1, PIECE=1)
        compiler.program_of.cache_clear()
        found = _runs(name, honest, label)
    compiler.program_of.cache_clear()
    return found


def _runs(name: str, honest: int, label: str) -> list[ChunkRun]:
    kernel, pattern = CASES[name]
    found = []
    for number, theirs in enumerate(THEIRS):
        rows = [theirs if party == honest else MINE[slot] for slot, party in enumerate(pattern)]
        records = [{k: np.full(EDGES, v, np.int64) for k, v in row.items()} for row in rows]
        hashed = tree_hash_of("view")
        found.append(
            run_chunk(
                kernel, RINGS[0], records, EDGES, f"{label} {number}", pattern, tree_hash=hashed
            )
        )
    return found


def p_of(pair: list[ChunkRun], honest: int) -> float:
    return min(
        homogeneity(*both) for both in zip(*(views(run, honest) for run in pair), strict=True)
    )


EVERY = [(name, honest) for name, (_, pattern) in CASES.items() for honest in sorted(set(pattern))]


@pytest.mark.parametrize(("name", "honest"), EVERY)
def test_the_view_of_all_others_does_not_depend_on_an_owners_record(name, honest):
    label = f"view {name} {honest}"
    p = p_of(runs(name, honest, label), honest)
    assert p > ALPHA, (
        f"{name}: the others tell {honest}'s data sets apart, p = {p:.1e}, N = {EDGES}, {label!r}"
    )


@pytest.mark.parametrize(("name", "honest"), EVERY)
def test_opened_bits_and_words_are_uniform_to_whoever_lacks_one_mask(name, honest):
    """Every value that an owner opens or has a part in is uniform, with the owner's mask on."""
    run = runs(name, honest, f"uniform {name} {honest}")[0]
    bits, words = opened(run, EDGES)
    plan = run.plan
    own = [n for n, place in enumerate(plan.places) if isinstance(place, RecordPlace)]
    own = [n for n in own if plan.pattern[plan.places[n].slot] == honest]
    samples = [(run.inputs[0].places[n] & np.uint64(3), 4) for n in own]
    samples += [
        (value & np.uint64(3), 4)
        for n, value in words.items()
        if n in run.seeded[honest].place_masks
    ]
    samples += [(value, 2) for n, value in bits.items() if honest in plan.contributors(n)]
    for layer in range(len(plan.layers)):
        samples += [(share, 2) for share in sent_shares(run, layer, EDGES)[honest].bits.values()]
    p = min(uniformity(values, categories) for values, categories in samples)
    assert samples and p > ALPHA, f"p = {p:.1e}, N = {EDGES}"


# --- power: the same test finds every protection that is left out ---------------------------------


def without_masks():
    """All masks are 0."""
    return lying("everybody", wire_masks=lambda honest, *a: [0 * mask for mask in honest(*a)])


def without_a_mask_bit():
    """The lowest bit of every mask is 0."""

    def even(honest, *given):
        return [mask & ~np.uint64(1) for mask in honest(*given)]

    return lying("everybody", wire_masks=even)


def without(what: str, number: int | None = None, party: int | None = None):
    """A party, or all, draw zero in place of the mask of a bit or a place, or of a share."""

    def zero(part: SeededPart) -> SeededPart:
        if what == "shares":
            bits = part.shares.bits * 0
            tables = tuple(rows * 0 for rows in part.shares.tables)
            return replace(part, shares=Shares(part.shares.elements * 0, tables, bits))
        masks = part.bit_masks if what == "bit" else part.place_masks
        for found, mask in masks.items():
            mask[:] = mask * (number is not None and found != number)
        return part

    def expand_all(honest, plan, seeds, own, layout):
        part = honest(plan, seeds, own, layout)
        return zero(part) if party in (None, own) else part

    return lambda: lying("everybody", expand_all=expand_all)


def without_the_shares_pad():
    """The dealer gives the last owner the products of masks themselves."""

    def deal(honest, plan, masks, seeds, layout, tree_hash):
        parts = honest(plan, masks, seeds, layout, tree_hash)
        for party, (seed,) in enumerate(seeds[:-1]):
            pad = seeded_part(plan, seed, party, EDGES).shares
            last = parts[-1].shares
            last.elements[:] += pad.elements
            last.bits[:] ^= pad.bits
            for rows, known in zip(last.tables, pad.tables, strict=True):
                rows[:] ^= known
        return parts

    return lying("dealer", deal_chunks=deal)


def with_keys_of_two():
    return lying("everybody", compare=compare_with_keys)


@pytest.mark.parametrize(
    ("mutate", "name", "honest"),
    [
        (without_masks, "kendall", 1),
        (without_masks, "product", 0),
        (without_masks, "leaning", 2),
        (without_a_mask_bit, "gini", 0),
        (without_a_mask_bit, "leaning four", 3),
        (without("bit"), "kendall", 1),
        (without("bit"), "kendall", 0),
        (without("bit", 0), "gini", 0),
        (without("bit", 3), "kendall", 0),
        (without("bit", None, 1), "leaning", 1),
        (without_masks, "total in pieces", 1),
        (without("bit"), "total in pieces", 1),
        (without("bit", 0), "total in pieces", 0),
        (without("bit", 1), "total in pieces", 1),
        (without("bit", None, 1), "leaning in pieces", 1),
        (without("shares", None, 0), "total in pieces", 0),
        (without("shares", None, 0), "kendall", 0),
        (without_the_shares_pad, "total in pieces", 0),
        (without("bit", None, 2), "order", 2),
        (without("bit", None, 0), "two and one", 0),
        (without("place", None, 0), "distance", 0),
        (without("place", None, 1), "product compared", 1),
        (without("place", None, 0), "nested", 0),
        (without("shares", None, 0), "leaning", 0),
        (without("shares", None, 1), "product compared", 1),
        (without_the_shares_pad, "kendall", 0),
        (without_the_shares_pad, "leaning", 1),
        (with_keys_of_two, "leaning", 2),
        (with_keys_of_two, "leaning four", 3),
    ],
)
def test_power_a_protection_left_out_is_found(mutate, name, honest):
    with mutate():
        p = p_of(runs(name, honest, "power"), honest)
    assert p < ALPHA, f"the mutant passes with p = {p:.1e}, N = {EDGES}"


@pytest.mark.parametrize("name", CASES)
def test_the_view_covers_all_that_is_sent_online(name):
    """Nothing but openings is exchanged between owners, beside the masked records."""
    run = runs(name, 0, "all")[0]
    assert {line.message.step for line in run.sent} <= {"open"}
    assert {line.round for line in run.sent} == set(range(1, len(run.plan.layers) + 1))
