"""A number of three or more owners, and its mask, are exactly uniform to all owners but one.

docs/protocol.md: two of three owners would read the mask off a comparison key, so there the mask's
bits are dealt as shares among all. Here all that the honest owner draws (its mask, the masks of the
bits that it opens, its shares) takes every value once, one value an edge, while all else stands
still. If then the others' view takes every value once too, exactly one completion belongs to any
view and any candidate for the honest owner's record: they learn nothing. The view of a smaller set
of owners is part of this view.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernels import QUADRUPLE_KERNELS, TRIPLE_KERNELS
from tests.support.mpc_studies import (
    ChunkRun,
    deal_chunk,
    loose,
    make_schema,
    patterns,
    program_of,
    run_chunk,
    seed_of,
    sent_shares,
    shared_rows,
    shares_of_rows,
    table_starts,
    tree_hash_of,
)
from tests.support.one_chunk import evaluate_chunk, seeded_part
from tests.support.studies import generator
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.masked import compiler
from umpc.mpc.masked.dcf import evaluate
from umpc.mpc.masked.edge_layout import linear_value, modulus
from umpc.mpc.masked.material import ChunkInputs, SeededPart
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import Compared, Comparison, EdgePlace, RecordPlace
from umpc.testing import lying
from umpc.ustat.kernel import Kernel

BIT, TWO_BITS = make_schema(x=("0", "1")), make_schema(x=("0", "2"))


def kernel(text: str, schema=BIT, degree: int = 3) -> Kernel:
    return Kernel.from_text(text, schema, degree, symmetric=False)


TWO = kernel("a.x < b.x", degree=2)
TIE = kernel("a.x == b.x", degree=2)
LESS = kernel("a.x + b.x < 2 * c.x")
EQUAL = kernel("a.x + b.x == 2 * c.x")
FOUR = kernel("a.x + b.x < c.x + d.x", degree=4)
WIDE = kernel("a.x + b.x < 2 * c.x", TWO_BITS)


class EnumeratedDraws:
    """Hands out bits of the edge's number: each combination of draws occurs in exactly one edge."""

    def __init__(self, plan: Plan, honest: int, forced: str = ""):
        self.plan, self.honest, self.forced, self.used = plan, honest, forced, 0
        last = honest == plan.parties - 1
        shares = 0 if last else table_starts(plan)[-1] + len(plan.elements)
        self.bits = plan.tables[0].width * len(self.own_places) + len(self.opens) + shares
        self.numbers = np.arange(1 << self.bits, dtype=np.uint64)

    @property
    def own_places(self) -> list[int]:
        return [
            n
            for n, place in enumerate(self.plan.places)
            if self.plan.pattern[place.slot] == self.honest
        ]

    @property
    def opens(self) -> list[int]:
        return [
            bit
            for layer in range(len(self.plan.layers))
            for bit in self.plan.opened_bits(layer, self.honest)
        ]

    def draw(self, what: str, width: int = 1) -> np.ndarray:
        """The next `width` bits; zero where a mutant leaves the protection out."""
        drawn = self.numbers >> np.uint64(self.used) & modulus(width)
        self.used += width
        return drawn * np.uint64(what != self.forced)


def constant_part(plan: Plan, seed: bytes, party: int, count: int) -> SeededPart:
    """The draws of a party of the coalition: anything, the same in every edge."""
    one = seeded_part(plan, seed, party, 1)
    shares = one.shares and shares_of_rows(
        plan,
        np.repeat(one.shares.elements, count, 1),
        np.repeat(shared_rows(plan, one.shares, 1), count, 1),
    )
    bits = {
        number: np.packbits(np.repeat(loose(mask, 1), count), bitorder="little")
        for number, mask in one.bit_masks.items()
    }
    return SeededPart({}, bits, {}, shares)


def enumerated_part(counter: EnumeratedDraws) -> SeededPart:
    """The draws of the honest party, but for its mask: everything, once."""
    plan, count = counter.plan, len(counter.numbers)
    bits = {
        number: np.packbits(counter.draw(f"bit {number}").astype(np.uint8), bitorder="little")
        for number in counter.opens
    }
    if counter.honest == plan.parties - 1:
        return SeededPart({}, bits, {}, None)
    first, *_, end = table_starts(plan)
    rows = [counter.draw("table" if n >= first else "product").astype(np.uint8) for n in range(end)]
    elements = [counter.draw("element").astype(plan.ring.dtype) for _ in plan.elements]
    shares = shares_of_rows(plan, np.array(elements).reshape(-1, count), np.array(rows))
    return SeededPart({}, bits, {}, shares)


def view(
    kernel: Kernel, records: tuple[int, ...], honest: int, label: str, forced: str = ""
) -> np.ndarray:
    """All that the others get to see, edge by edge, as one number; `records` are the values of x.

    It has masked records, all messages of the honest party, and the material of the last party if
    that is among the others: of elements of the ring the lowest bit.
    """
    plan = program_of(kernel, RINGS[0], tuple(range(len(records)))).plans[
        tuple(range(len(records)))
    ]
    assert (
        plan.tables
        and not plan.comparisons
        and all(isinstance(place, RecordPlace) for place in plan.places)
    )
    counter, rng = EnumeratedDraws(plan, honest, forced), generator(label)
    count, low = len(counter.numbers), modulus(plan.tables[0].width)
    masks = {
        n: np.full(count, rng.integers(0, 2**64, dtype=np.uint64)) & low
        for n in range(len(plan.places))
    }
    masks |= {n: counter.draw("mask", plan.tables[0].width) for n in counter.own_places}
    values = {
        n: np.uint64(records[plan.pattern[place.slot]]) for n, place in enumerate(plan.places)
    }
    places = {n: (mask + values[n]) & low for n, mask in masks.items()}
    seeds = [seed_of(f"{label} {party}") for party in plan.everybody]
    parts = [constant_part(plan, seed, party, count) for party, seed in enumerate(seeds)]
    parts[honest] = enumerated_part(counter)
    assert counter.used == counter.bits
    tree_hash = tree_hash_of(label)
    with lying("everybody", expand_all=lambda _, plan, seeds, party, layout: parts[party]):
        dealt = deal_chunk(plan, masks, seeds, count, tree_hash)
    own = [
        {n: m for n, m in masks.items() if plan.pattern[plan.places[n].slot] == p}
        for p in plan.everybody
    ]
    inputs = [ChunkInputs(places, own[party], {}, count, "abcd") for party in plan.everybody]
    cells = zip(plan.everybody, inputs, dealt, parts, strict=True)
    shares, sent = run_in_memory(
        [evaluate_chunk(p, plan, i, d, s, tree_hash) for p, i, d, s in cells]
    )
    wanted = kernel.evaluate([{"x": np.array([value])} for value in records])[0]
    assert plan.ring.decode(sum(part[0] for part in shares)) == int(wanted) * count
    run = ChunkRun(plan, None, inputs, [], [], dealt, parts, shares, sent, [])
    return joined(
        run, honest, [(places[n], plan.tables[0].width) for n in counter.own_places], count
    )


def joined(
    run: ChunkRun, honest: int, seen: list[tuple[np.ndarray, int]], count: int
) -> np.ndarray:
    for layer in range(len(run.plan.layers)):
        seen += [(bit, 1) for bit in sent_shares(run, layer, count)[honest].bits.values()]
    if honest != run.plan.parties - 1:
        shares = run.dealt[-1].shares
        rows = shared_rows(run.plan, shares, count)
        seen += [(row, 1) for row in rows] + [(row & 1, 1) for row in shares.elements]
    total, shift = np.zeros(count, dtype=np.uint64), 0
    for values, bits in seen:
        total |= values.astype(np.uint64) << np.uint64(shift)
        shift += bits
    assert 1 << shift == count, "the view has as many bits as the honest party draws"
    return total


def takes_every_value_once(sample: np.ndarray) -> bool:
    return bool((np.bincount(sample.astype(np.int64), minlength=len(sample)) == 1).all())


WIDE_OF_TWO = kernel("a.x < b.x", TWO_BITS, degree=2)
TIE_OF_TWO = kernel("a.x == b.x", TWO_BITS, degree=2)
OWNERS = {"TWO": 2, "TIE": 2, "LESS": 3, "EQUAL": 3, "FOUR": 4}
CASES = [(kernel, honest) for kernel, owners in OWNERS.items() for honest in range(owners)]


@pytest.fixture
def in_pieces(limit):
    """Comparisons by pieces of one bit, as wide numbers are compared by pieces of six."""
    limit(compiler.tables, ONE_PIECE=1)
    limit(compiler.tables, PIECE=1)
    compiler.program_of.cache_clear()
    yield
    compiler.program_of.cache_clear()


@pytest.mark.parametrize("others", ["one", "other"])
@pytest.mark.parametrize(("kernel", "honest"), CASES)
def test_the_others_view_is_exactly_uniform_whatever_the_honest_owners_record(
    kernel, honest, others
):
    """`others`: what the coalition has and draws; the honest owner's record is 0, then 1."""
    chosen = globals()[kernel]
    for hidden in (0, 1):
        records = [
            int(bit) for bit in generator(f"{kernel} {others}").integers(0, 2, chosen.degree)
        ]
        records[honest] = hidden
        sample = view(chosen, tuple(records), honest, f"secrecy {others}")
        assert takes_every_value_once(sample), f"{kernel}, honest {honest}, record {hidden}"


@pytest.mark.parametrize("hidden", range(2))
@pytest.mark.parametrize(("name", "honest"), [("LESS", 0), ("LESS", 2), ("EQUAL", 1)])
def test_pieces_of_three_owners_are_as_secret(name, honest, hidden, in_pieces):
    """Two pieces, opened under masks, and the bit that products of their masks combine."""
    records = [1, 0, 1]
    records[honest] = hidden
    sample = view(globals()[name], tuple(records), honest, "pieces of three")
    assert takes_every_value_once(sample)


@pytest.mark.parametrize("hidden", range(3))
@pytest.mark.parametrize("honest", range(2))
@pytest.mark.parametrize("name", ["WIDE_OF_TWO", "TIE_OF_TWO"])
def test_pieces_of_two_owners_are_as_secret(name, honest, hidden, in_pieces):
    records = [1, 1]
    records[honest] = hidden
    sample = view(globals()[name], tuple(records), honest, "pieces of two")
    assert takes_every_value_once(sample)


PIECES = ["mask", "bit 0", "bit 1", "bit 2", "bit 3"]


@pytest.mark.parametrize(
    ("forced", "honest"),
    [(what, honest) for what in PIECES for honest in range(2)]
    + [(what, 0) for what in ("table", "product", "element")],
)
def test_power_whatever_is_not_drawn_for_pieces_is_found(forced, honest, in_pieces):
    sample = view(WIDE_OF_TWO, (1, 2), honest, "power", forced)
    assert not takes_every_value_once(sample)


@pytest.mark.parametrize("hidden", range(3))
@pytest.mark.parametrize(("honest", "bits"), [(0, 4 + 1 + 8 + 1), (2, 4 + 1)])
def test_a_width_of_four_bits_with_three_candidates(honest, bits, hidden):
    """The honest owner draws a mask of 4 bits, the mask of the opened bit, and shares.

    Its shares are of the 8 places of a table, and an element.
    """
    records = (hidden, 2, 1) if honest == 0 else (1, 2, hidden)
    sample = view(WIDE, records, honest, "wide")
    assert len(sample) == 1 << bits and takes_every_value_once(sample)


BY_ALL, NOT_BY_THE_LAST = ["mask", "bit 0"], ["table", "element"]


@pytest.mark.parametrize(
    ("forced", "honest"),
    [(what, honest) for what in BY_ALL for honest in range(3)]
    + [(what, n) for what in NOT_BY_THE_LAST for n in (0, 1)],
)
def test_power_whatever_is_not_drawn_is_found(forced, honest):
    """A mask, a table share, a share of an element or the mask of a bit that is zero."""
    assert not takes_every_value_once(view(LESS, (1, 0, 1), honest, "power", forced))


# --- comparison keys ------------------------------------------------------------------------------


def owners_of(plan: Plan, number: int) -> set[int]:
    """The parties that know a part of a place's mask."""
    match plan.places[number]:
        case RecordPlace(slot):
            return {plan.pattern[slot]}
        case EdgePlace(party):
            return {party}
        case _:
            return set(plan.everybody)


def check_keys(plan: Plan) -> None:
    for gate in plan.comparisons:
        owners = set().union(*(owners_of(plan, place) for place, _ in gate.difference.terms))
        assert len(gate.holders) == 2 and set(gate.holders) == owners, plan.pattern
    for table in plan.tables:
        owners = set().union(*(owners_of(plan, place) for place, _ in table.difference.terms))
        assert len(owners) >= 2, "one owner would have compared alone"


@pytest.mark.parametrize("degree", [3, 4])
def test_the_holders_of_a_key_are_the_owners_of_the_compared_number(degree):
    """So they know its mask anyhow; and no number of three owners has a key."""
    kernels, seen = {3: TRIPLE_KERNELS, 4: QUADRUPLE_KERNELS}[degree], set()
    for kernel in kernels.values():
        for pattern in patterns(degree):
            plan = program_of(kernel, RINGS[1], pattern, few=True).plans[pattern]
            check_keys(plan)
            seen |= {(plan.parties, "key") for _ in plan.comparisons} | {
                (plan.parties, "table") for _ in plan.tables
            }
    assert seen >= {(n, "table") for n in range(2, degree + 1)}
    assert ((2, "key") in seen) == (degree == 3)


def compare_with_keys(honest, builder, difference, width, kind, layer):
    """A forbidden comparison: two of three owners hold a key for a number that all three make."""
    gate = Comparison(difference, width, (0, 1))
    return builder.add_bit(Compared(builder.add_comparison(gate), kind), layer)


def test_power_two_holders_of_a_key_for_three_owners_read_the_thirds_record():
    """[d̂ = r] from both keys at every point gives r, and with it the third owner's record.

    That is the reason for the tables.
    """
    compiler.program_of.cache_clear()  # compile anew
    hidden = generator("attack").integers(0, 2, 50, endpoint=True)
    records = [{"x": np.full(50, 1)}, {"x": np.full(50, 2)}, {"x": hidden}]
    with lying("everybody", compare=compare_with_keys):
        run = run_chunk(WIDE, RINGS[0], records, 50, "attack", (0, 1, 2))
    compiler.program_of.cache_clear()
    with pytest.raises(AssertionError):
        check_keys(run.plan)
    (gate,), keys = run.plan.comparisons, run.dealt[0].keys[0]
    found = np.zeros(50, dtype=np.uint64)
    for point in range(1 << gate.width):
        guess, tree_hash = np.full(50, point, dtype=np.uint64), tree_hash_of("attack")
        shares = [
            evaluate(side, keys, guess, run.seeded[side].roots[0], tree_hash)[1] for side in (0, 1)
        ]
        found[shares[0] ^ shares[1] == 1] = point
    masked = linear_value(gate.difference, run.inputs[0].places)
    difference = ((masked - found) & modulus(gate.width)).astype(np.int64)
    difference -= (difference >> (gate.width - 1)) << gate.width
    assert np.array_equal((1 + 2 - difference) // 2, hidden)  # d = a + b − 2c
