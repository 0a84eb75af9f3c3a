"""The joint knowledge of all owners of a chunk except one.

Its law must not depend on the honest owner's data.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import combinations

import numpy as np

from tests.support.mpc_studies import (
    EDGES,
    ChunkRun,
    loose,
    opened,
    sent_shares,
    shared_rows,
    table_starts,
    tree_hash_of,
)
from tests.support.studies import generator
from umpc.mpc.masked.dcf import evaluate
from umpc.mpc.masked.edge_layout import linear_value, modulus
from umpc.mpc.masked.plan_items import (
    Bit,
    Compared,
    Comparison,
    Logic,
    LookupBit,
    LookupTable,
    TopBit,
)

Part = tuple[np.ndarray, int]
"""A small number with that many bits per edge."""
Gate = Comparison | LookupTable | TopBit
"""A part of a plan that has a masked difference."""


class Coalition:
    """All owners except one: their joint knowledge, without every mask that they know."""

    def __init__(self, run: ChunkRun, honest: int):
        self.run, self.plan, self.honest = run, run.plan, honest
        self.others = [party for party in run.plan.everybody if party != honest]
        self.bits, words = opened(run, EDGES)
        self.places = {**run.inputs[0].places, **words}
        self.masks = {
            n: mask for party in self.others for n, mask in run.inputs[party].masks.items()
        }
        sent = [sent_shares(run, layer, EDGES)[honest] for layer in range(len(run.plan.layers))]
        self.sent_bits = {number: share for part in sent for number, share in part.bits.items()}
        self.sent_places = {number: share for part in sent for number, share in part.places.items()}

    def groups(self) -> Iterator[list[Part]]:
        """Return the numbers that belong together, and so are looked at jointly."""
        yield from map(self.place, self.places)
        yield from map(self.difference, (*self.plan.comparisons, *self.plan.tables))
        yield from map(self.key, range(len(self.plan.comparisons)))
        for number, bit in enumerate(self.plan.bits):
            yield [*self.bit(number), *(self.bit(number + 1) if number + 1 in self.bits else [])]
            gate = self.compared_in(bit)
            if gate is not None:
                yield [*self.bit(number), *self.difference(gate)]
        if self.honest != self.plan.parties - 1:
            yield from self.products()

    def compared_in(self, bit: Bit) -> Gate | None:
        """Return the comparison that a bit tells of, together with the masked difference."""
        match bit:
            case Compared(gate):
                return self.plan.comparisons[gate]
            case LookupBit(table):
                return self.plan.tables[table]
            case Logic(top=top):
                return top
            case _:
                return None

    def difference(self, gate: Gate) -> list[Part]:
        masked = linear_value(gate.difference, self.places)
        stripped = masked - linear_value(gate.difference.mask, self.masks)
        return [(value & modulus(gate.width) & np.uint64(7), 3) for value in (masked, stripped)]

    def place(self, number: int) -> list[Part]:
        known = [
            self.run.seeded[party].place_masks.get(number, np.uint64(0)) for party in self.others
        ]
        value = self.places[number]
        stripped = value - sum(known, start=np.uint64(0)) - self.masks.get(number, np.uint64(0))
        return [low(value), low(stripped)] + [
            low(share) for n, share in self.sent_places.items() if n == number
        ]

    def bit(self, number: int) -> list[Part]:
        """Return the bit under the honest owner's mask alone, and the message of the honest owner.

        With that message the coalition knows the others' share.
        """
        masks = [self.run.seeded[party].bit_masks for party in self.others]
        known = [loose(each[number], EDGES) for each in masks if number in each]
        parts = [(reduce(np.bitwise_xor, known, self.bits[number]), 1)]
        return parts + [(share, 1) for n, share in self.sent_bits.items() if n == number]

    def key(self, number: int) -> list[Part]:
        """Return a bit of a key; with both keys also the mask and the number that it hides."""
        gate, tree_hash = self.plan.comparisons[number], tree_hash_of("view")
        holders = [party for party in gate.holders if party in self.others]
        parts = [
            (self.run.dealt[party].keys[number].leaves[:, 2] >> 3 & 1, 1) for party in holders[:1]
        ]
        if len(holders) < 2:
            return parts
        mask = np.zeros(EDGES, dtype=np.uint64)
        keys, roots = (
            self.run.dealt[holders[0]].keys[number],
            [self.run.seeded[p].roots[number] for p in holders],
        )
        for point in range(1 << gate.width):
            guess = np.full(EDGES, point, dtype=np.uint64)
            shares = [evaluate(side, keys, guess, roots[side], tree_hash)[1] for side in (0, 1)]
            mask[shares[0] ^ shares[1] == 1] = point
        return [*parts, ((linear_value(gate.difference, self.places) - mask) & np.uint64(7), 3)]

    def products(self) -> Iterator[list[Part]]:
        """Return the last owner's share of each product of masks, beside the masked number.

        All shares except the honest owner's are taken off.
        """
        last = self.run.dealt[self.plan.parties - 1].shares
        known = [
            self.run.seeded[party].shares for party in self.others if party != self.plan.parties - 1
        ]
        elements = sum((part.elements for part in known), start=last.elements)
        mine = shared_rows(self.plan, last, EDGES)
        rows = reduce(np.bitwise_xor, (shared_rows(self.plan, part, EDGES) for part in known), mine)
        for (bits, factors), alone, element in zip(
            self.plan.elements, last.elements, elements, strict=True
        ):
            forms = [linear_value(form, of) for form in factors for of in (self.places, self.masks)]
            values = [(self.bits[number], 1) for number in bits] + [
                low(np.broadcast_to(f, EDGES)) for f in forms
            ]
            yield from ([low(share), *values[:5]] for share in (alone, element))
        for literals, alone, row in zip(self.plan.bit_elements, mine, rows, strict=False):
            values = [(self.bits[number], 1) for numbers in literals for number in numbers]
            yield from ([(share, 1), *values[:8]] for share in (alone, row))
        for table, start in zip(self.plan.tables, table_starts(self.plan), strict=False):
            stop = start + min(6, 1 << table.size)
            for shares in (mine, rows):
                yield [*((row, 1) for row in shares[start:stop]), *self.difference(table)]


def low(values: np.ndarray) -> Part:
    return values & values.dtype.type(3), 2


def views(run: ChunkRun, honest: int) -> Iterator[np.ndarray]:
    """Return each number alone, each group, and 60 random pairs and triples.

    Each view is one category made of up to 12 bits.
    """
    groups = list(Coalition(run, honest).groups())
    parts = [part for group in groups for part in group]
    yield from (joined([part]) for part in parts)
    yield from map(joined, groups)
    chosen = [*combinations(range(len(parts)), 2), *combinations(range(min(len(parts), 20)), 3)]
    for number in generator("views").permutation(len(chosen))[:60]:
        yield joined([parts[n] for n in chosen[number]])


def joined(parts: list[Part]) -> np.ndarray:
    total, shift = np.zeros(EDGES, dtype=np.int64), 0
    for values, bits in parts:
        total |= np.asarray(values).astype(np.int64) << shift
        shift += bits
    return total
