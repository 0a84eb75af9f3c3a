"""The dealer's shares reconstruct the right products and rows, edge by edge."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

from tests.support.kernels import KERNELS, QUADRUPLE_KERNELS, TRIPLE_KERNELS, Case
from tests.support.mpc_studies import (
    ALPHA,
    deal_chunk,
    homogeneity,
    loose,
    program_of,
    seed_of,
    shared_rows,
    table_starts,
    uniformity,
)
from tests.support.one_chunk import encoded_part, seeded_part
from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.ring import RINGS
from umpc.mpc.masked.edge_layout import linear_value, modulus, wire_masks
from umpc.mpc.masked.material import DealtPart
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import (
    Compared,
    Comparison,
    Logic,
    LookupBit,
    RecordPlace,
    TopBit,
    WordPlace,
)

COUNT = 40
CASES = {name: Case(KERNELS, name, (0, 1)) for name in KERNELS}
CASES |= {
    f"{name} {p}": Case(TRIPLE_KERNELS, name, p)
    for name in TRIPLE_KERNELS
    for p in ((0, 0, 1), (0, 1, 2))
}
CASES |= {
    f"{name} of four": Case(QUADRUPLE_KERNELS, name, (0, 1, 2, 3)) for name in QUADRUPLE_KERNELS
}
NOT_DEALT = {"separable", "constant", "zero"}
"""Every owner evaluates these kernels alone."""
DEALT = [name for name, case in CASES.items() if case.name not in NOT_DEALT]


class Dealing:
    """One chunk of a plan: all expanded and dealt parts, and the masks, put together anew."""

    def __init__(self, name: str, ring, count: int = COUNT, masked: bool = True, few: bool = False):
        pattern = CASES[name].pattern
        self.count = count
        program = program_of(CASES[name].kernel, ring, pattern, few)
        self.plan: Plan = program.plans[pattern]
        wires = [
            wire_masks(program, seed_of(f"{name} {slot}"), count) for slot in range(len(pattern))
        ]
        places = {n: p for n, p in enumerate(self.plan.places) if isinstance(p, RecordPlace)}
        self.masks = {n: wires[p.slot][p.wire] * np.uint64(masked) for n, p in places.items()}
        self.seeds = [derive(seed_of(name), party, int(masked)) for party in self.plan.everybody]
        self.tree_hash = FixedKeyHash(seed_of("tree"))
        self.dealt: list[DealtPart] = deal_chunk(
            self.plan, dict(self.masks), self.seeds, count, self.tree_hash
        )
        self.parts = [seeded_part(self.plan, s, party, count) for party, s in enumerate(self.seeds)]
        for number, place in enumerate(self.plan.places):
            if not isinstance(place, RecordPlace):
                own = [
                    part.place_masks[number] for part in self.parts if number in part.place_masks
                ]
                assert len(own) == (self.plan.parties if isinstance(place, WordPlace) else 1)
                self.masks[number] = reduce(np.add, own) & modulus(place.width)

    @property
    def elements(self) -> np.ndarray:
        return reduce(np.add, [part.shares.elements for part in (*self.parts[:-1], self.dealt[-1])])

    @property
    def shared(self) -> np.ndarray:
        return reduce(
            np.bitwise_xor,
            [
                shared_rows(self.plan, part.shares, self.count)
                for part in (*self.parts[:-1], self.dealt[-1])
            ],
        )

    def bit_mask(self, number: int) -> np.ndarray:
        """A bit's mask from all parts; for a sign, with the top bit of the number's mask."""
        mask = reduce(
            np.bitwise_xor,
            [
                loose(part.bit_masks[number], self.count)
                for part in self.parts
                if number in part.bit_masks
            ],
        )
        top = self.sign_of(number)
        if top is not None:
            difference = linear_value(top.difference.mask, self.masks) & modulus(top.width)
            mask = mask ^ (difference >> np.uint64(top.width - 1)).astype(np.uint8)
        return mask

    def sign_of(self, number: int) -> Comparison | TopBit | None:
        """The difference whose sign a bit is; None if it is no sign."""
        bit = self.plan.bits[number]
        if isinstance(bit, Compared):
            return self.plan.comparisons[bit.comparison] if bit.kind == "less" else None
        return bit.top if isinstance(bit, LookupBit | Logic) else None


def test_the_dealer_deals_for_all_kernels_but_those():
    for name, (_, kernel, pattern) in CASES.items():
        program = program_of(CASES[name].kernel, RINGS[0], pattern)
        assert program.needs_dealer == (kernel not in NOT_DEALT), name


@pytest.mark.parametrize("name", DEALT)
@pytest.mark.parametrize(("ring", "few"), [*zip(RINGS, (False, True), strict=True)], ids=str)
def test_element_shares_add_up_to_products_of_masks(name, ring, few):
    dealing = Dealing(name, ring, few=few)
    assert (
        all(part.shares is None for part in dealing.dealt[:-1]) and dealing.parts[-1].shares is None
    )
    for (bits, factors), row in zip(dealing.plan.elements, dealing.elements, strict=True):
        expected = np.ones(COUNT, dtype=object)
        for bit in bits:
            expected = expected * dealing.bit_mask(bit)
        for form in factors:
            expected = expected * np.broadcast_to(linear_value(form, dealing.masks), COUNT).astype(
                object
            )
        assert [ring.encode(int(value)) for value in expected] == row.tolist(), (bits, factors)


@pytest.mark.parametrize("name", DEALT)
def test_bit_shares_add_up_to_conjunctions_of_masks_and_one_hot_rows(name):
    dealing = Dealing(name, RINGS[0])
    plan, rows = dealing.plan, dealing.shared
    assert len(rows) == table_starts(plan)[-1]
    for literals, row in zip(plan.bit_elements, rows, strict=False):
        masks = [
            reduce(np.bitwise_xor, [dealing.bit_mask(bit) for bit in bits]) for bits in literals
        ]
        assert np.array_equal(row, reduce(np.bitwise_and, masks))
    for table, start in zip(plan.tables, table_starts(plan), strict=False):
        mask = linear_value(table.difference.mask, dealing.masks) & modulus(table.width)
        one_hot = rows[start : start + (1 << table.size)]
        assert (one_hot.sum(axis=0) == 1).all()
        piece = mask >> np.uint64(table.low) & modulus(table.size)
        assert np.array_equal(one_hot.argmax(axis=0).astype(np.uint64), piece)


@pytest.mark.parametrize("name", ["wide_sign", "spearman (0, 1, 2)", "leaning (0, 1, 2)"])
def test_both_holders_get_the_same_keys_and_nobody_anything_of_anothers_seed(name):
    dealing = Dealing(name, RINGS[0], few=True)
    assert bool(dealing.plan.comparisons) == (name == "wide_sign")
    for number, gate in enumerate(dealing.plan.comparisons):
        holding = [party for party in dealing.plan.everybody if number in dealing.dealt[party].keys]
        assert tuple(holding) == gate.holders
        first, second = (dealing.dealt[party].keys[number].encode() for party in holding)
        assert first == second
    everything = b"".join(encoded_part(part) for part in dealing.dealt)
    assert everything and all(seed not in everything for seed in dealing.seeds)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("product", "elements"),
        ("kendall_tau", "bits"),
        ("wide_sign", "bits"),
        ("leaning (0, 1, 2)", "bits"),
    ],
)
def test_dealt_shares_are_uniform_whatever_the_masks(name, what):
    """With masks of 0 and with any masks, the last owner sees the same law."""
    count, shares = 8000, []
    for masked in (False, True):
        dealing = Dealing(name, RINGS[0], count, masked)
        dealt = dealing.dealt[-1].shares
        bits = shared_rows(dealing.plan, dealt, count)[-4:]
        rows = (
            [dealt.elements[0] & 15]
            if what == "elements"
            else [row << place for place, row in enumerate(bits)]
        )
        shares.append(sum(rows))
    p = min(homogeneity(*shares), *(uniformity(share, 16) for share in shares))
    assert p > ALPHA, f"p = {p:.1e}, N = {count}"


@pytest.mark.parametrize("name", ["kendall_tau", "wide_sign", "leaning (0, 1, 2)"])
def test_power_shares_without_a_pad_are_found(name):
    """The rows of a table themselves are one-hot."""
    dealing = Dealing(name, RINGS[0], 8000)
    assert (
        uniformity(sum(row << place for place, row in enumerate(dealing.shared[-4:])), 16) < ALPHA
    )
