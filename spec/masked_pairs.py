"""Pairs of two nodes' records under masks: from masked records to shares of a sum.

Sinh & Ramon 2025, protocol 3.1. Step 1: the owners of an edge share its records; here a record is
masked once, for all its edges. Step 2: they evaluate f on shares; here by a *plan*
(`masked_plan.py`) and the dealer's material (`masked_dealing.py`). Each party sends:

    round 1          x̂ = x + r of its records
    a round a layer  its shares of bits b, under masks σ; the sum of all shares is m = b ⊕ s
    no round         a share of Σ coefficient · Π b · Π x, by products of masks that were dealt
"""

from __future__ import annotations

from itertools import product
from typing import Any

from spec import dcf
from spec.masked_dealing import Masks, deal, difference, expand, read, record_masks
from spec.masked_plan import (
    Plan,
    factor,
    layers,
    plan_of,
    products_of_bits,
    products_of_numbers,
    subsets,
)
from spec.prg import derive, pack, unpack
from spec.refused import Refused, require
from spec.sharing import decode

NAMES = ("north", "south")
Party = dict[str, Any]
"""A party's material, seeds expanded: number, keys, roots, sigma, numbers, tables, bits; masks: of
its own records; own: its own records' wire 0."""


def table_bit(row: int, kind: str, place: int) -> int:
    """A share of [v < r] or [v = r] of a piece, from a share of the one-hot row of r.

    The row's 1 is at place r. So [v = r] is the bit at v, and [v < r] the parity of all bits above.
    Both are linear, so they are read off shares.
    """
    return row >> place & 1 if kind == "equal" else (row >> place + 1).bit_count() & 1


def bit_share(
    plan: Plan, party: Party, number: int, masked: Masks, opened: dict[int, list[int]], key: bytes
) -> list[int]:
    """A party's shares of one bit in all edges. Args: masked: x̂ of both ends. opened: m so far."""
    kind, where, sign = plan["bits"][number]
    count = len(masked[0][0])
    if kind.startswith("gate"):
        # Boyle et al. 2021, Eval<: a key of its own for each edge
        d = difference(plan, masked, plan["gates"][where])
        width = plan["compared"][plan["gates"][where]]
        gates = zip(party["keys"][where], d, party["roots"][where], strict=True)
        both = [dcf.evaluate(party["number"], width, *gate, key) for gate in gates]
        return [bits[0 if kind == "gate less" else 1] for bits in both]
    if kind == "and":
        shares = [0] * count
        for conjunction in where:
            for edge, share in enumerate(_conjunction(plan, party, conjunction, opened, count)):
                shares[edge] ^= share
    else:
        wire, low, size = plan["tables"][where]
        places = [value >> low & (1 << size) - 1 for value in difference(plan, masked, wire)]
        rows = zip(party["tables"][where], places, strict=True)
        shares = [table_bit(row, kind, place) for row, place in rows]
    if sign >= 0 and party["number"] == 0:
        # [d < 0] = msb(d̂) ⊕ msb(r) ⊕ borrow: the first party adds the public bit
        top = plan["compared"][sign] - 1
        tops = [value >> top for value in difference(plan, masked, sign)]
        shares = [share ^ top for share, top in zip(shares, tops, strict=True)]
    return shares


def _conjunction(
    plan: Plan, party: Party, bits: list[int], opened: dict[int, list[int]], count: int
) -> list[int]:
    """Shares of Π (m ⊕ s): Beaver 1991, for as many factors as there are bits."""
    shares = [0] * count
    dealt = dict(zip(products_of_bits(plan), party["bits"], strict=True))
    for part in subsets(bits):
        for edge in range(count):
            public = all(opened[bit][edge] for bit in bits if bit not in part)
            secret = dealt[tuple(sorted(part))][edge] if part else party["number"] == 0
            shares[edge] ^= int(public and secret)
    return shares


def output_share(
    plan: Plan,
    party: Party,
    masked: Masks,
    opened: dict[int, list[int]],
    weights: list[int] | None = None,
) -> int:
    """A party's share of the sum of f over all edges, by no message. Args: weights: of each edge.

    With b = m + (1 − 2m)·s and x = x̂ − r a term is a sum of public numbers times products of masks.
    """
    total, count = 0, len(masked[0][0])
    dealt = dict(zip(products_of_numbers(plan), party["numbers"], strict=True))
    for edge in range(count):
        share = plan["constant"] if party["number"] == 0 else 0
        if plan["local"]:
            share += plan["local"][party["number"]] * party["own"][edge]
        for coefficient, bits, factors in plan["terms"]:
            forms = [factor(form) for form in factors]
            for part, some in product(subsets(sorted(bits)), subsets(forms)):
                public = coefficient
                for bit in bits:
                    m = opened[bit][edge]
                    public *= 1 - 2 * m if bit in part else m
                for form in forms:
                    value = sum(c * masked[place % 2][place // 2][edge] for place, c in form)
                    public *= -1 if form in some else value
                share += public * _secret(party, part, some, dealt, edge)
        total += share * (weights[edge] if weights else 1)
    return total % (1 << plan["ring"])


def _secret(party: Party, part: Any, some: Any, dealt: dict[Any, list[int]], edge: int) -> int:
    """A party's share of a product of masks. No product at all is 1, which the first party has."""
    if (part, some) in dealt:
        return dealt[part, some][edge]
    if not some:
        return int(party["number"] == 0)
    # of a sum of masks each party has its own
    return sum(
        c * party["masks"][place // 2][edge] for place, c in some[0] if place % 2 == party["number"]
    )


def chunk(
    kernel: str,
    bounds: list[list[int]],
    ring: int,
    by_keys: bool,
    records: Masks,
    node_seeds: list[bytes],
    chunk_seeds: list[bytes],
    hash_key: bytes,
    material: bytes | None = None,
    sent: bytes | None = None,
) -> dict[str, Any]:
    """A chunk of edges from dealing to the sum; edge j joins record j of either node.

    Args: kernel, bounds, ring, by_keys: as in `plan_of`. records: of each node, for each field, its
    numbers. material, sent: what the second party gets from the dealer, and what it sends in its
    first opening, in place of what is due.
    """
    plan, count = plan_of(kernel, bounds, ring, by_keys), len(records[0][0])
    masks = [record_masks(plan, derive(seed, "masks"), count) for seed in node_seeds]
    dealt = deal(plan, masks, chunk_seeds, hash_key)
    if material is not None:
        dealt[1] = material
    # round 1: masked records
    masked = [
        [
            [(x + r) % (1 << width) for x, r in zip(*rows, strict=True)]
            for width, *rows in zip(plan["wires"], records[end], masks[end], strict=True)
        ]
        for end in (0, 1)
    ]
    parties = []
    for number in (0, 1):
        expanded = expand(plan, chunk_seeds[number], count)
        parties.append(expanded | read(plan, dealt[number], number == 1, count))
        parties[number] |= {"number": number, "masks": masks[number], "own": records[number][0]}
    # a round a layer: open bits under their masks
    opened: dict[int, list[int]] = {}
    messages = []
    for turn, layer in enumerate(layers(plan), 1):
        came = []
        for party in parties:
            bits = []
            for number in layer:
                shares = bit_share(plan, party, number, masked, opened, hash_key)
                bits += [b ^ s for b, s in zip(shares, party["sigma"][number], strict=True)]
            payload = pack(bits, 1)
            if sent is not None and party["number"] == 1 and turn == 1:
                payload = sent
            messages.append({"round": turn, "party": party["number"], "payload": payload})
            came.append(read_bits(payload, len(bits), NAMES[party["number"]]))
        for place, number in enumerate(layer):
            part = slice(place * count, (place + 1) * count)
            opened[number] = [a ^ b for a, b in zip(came[0][part], came[1][part], strict=True)]
    shares = [output_share(plan, party, masked, opened) for party in parties]
    total = decode(sum(shares), plan["ring"])
    return {
        "masked_records": masked,
        "material": dealt,
        "messages": messages,
        "shares": shares,
        "sum": total,
    }


def read_bits(payload: bytes, count: int, name: str) -> list[int]:
    """The bits of an opening. Args: name: of its sender."""
    require(len(payload) == (count + 7) // 8, "length of opened bits", name)
    try:
        return unpack(payload, count, 1)
    except Refused:
        raise Refused("padding of opened bits", name) from None
