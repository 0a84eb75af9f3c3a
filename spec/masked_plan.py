"""The computation of a pair's owners: three kernels as bits, terms and tables.

Sinh & Ramon 2025, section 3, leaves the evaluation of f to a functionality F_f. Here it is a
*plan*, in bits b = m ⊕ s and numbers x = x̂ − r, of which everybody knows m and x̂:

    ring      bits of the ring of the sum
    wires     for each number of a record that is sent masked, its bits
    compared  the bits of a wire's difference between the two ends of the pair
    tables    [wire, low, size]: the one-hot row of bits low … low + size − 1 of a mask
    gates     wires that are compared by a key of `dcf.py`
    bits      [kind, where, sign]. kind "less" or "equal" of a table, "gate less" or "gate equal" of
              a gate, or "and": the exclusive or of conjunctions of earlier bits. sign: the wire
              whose masked msb is part of the bit; −1 for none
    terms     [coefficient, bits, factors]; a factor is a list of [end, wire, coefficient]
    constant  what is added once; local: each end's coefficient of its own wire 0, if any
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

Plan = dict[str, Any]
Part = tuple[tuple[int, ...], tuple[Any, ...]]
"""A product of masks: of these bits, and of these factors."""


def pieces(bits: int) -> list[tuple[int, int]]:
    """(low, size) of the pieces of a number's low bits, the highest first.

    Rathee et al. 2021 (SIRNN): a comparison by tables of pieces. One piece up to 8 bits.
    """
    count = 1 if bits <= 8 else min(8, -(-bits // 6))
    ends = [bits * number // count for number in range(count + 1)]
    return [(ends[n], ends[n + 1] - ends[n]) for n in range(count)][::-1]


def _number(items: list[Any], item: Any) -> int:
    """The number of an item, which is added where it is new."""
    if item not in items:
        items.append(item)
    return items.index(item)


def _compare(plan: Plan, wire: int, kind: str, by_key: bool) -> int:
    """The number of the bit [d < 0] or [d = 0]."""
    cut = pieces(plan["compared"][wire] - 1)
    sign = wire if kind == "less" else -1
    if by_key and len(cut) > 1:
        gate = _number(plan["gates"], wire)
        return _number(plan["bits"], [f"gate {kind}", gate, sign])
    tables = [_number(plan["tables"], [wire, low, size]) for low, size in cut]
    if len(tables) == 1:
        return _number(plan["bits"], [kind, tables[0], sign])
    # borrow = lt_1 ⊕ eq_1·lt_2 ⊕ eq_1·eq_2·lt_3 ⊕ …; the lowest equality decides nothing
    needed = tables if kind == "equal" else tables[:-1]
    equal = [_number(plan["bits"], ["equal", table, -1]) for table in needed]
    if kind == "equal":
        return _number(plan["bits"], ["and", [equal], -1])
    less = [_number(plan["bits"], ["less", table, -1]) for table in tables]
    borrow = [[*equal[:place], bit] for place, bit in enumerate(less)]
    return _number(plan["bits"], ["and", borrow, sign])


def empty_plan(ring: int, wires: list[int]) -> Plan:
    """A plan without anything to compute."""
    return {
        "ring": ring,
        "wires": list(wires),
        "compared": list(wires),
        "tables": [],
        "gates": [],
        "bits": [],
        "terms": [],
        "constant": 0,
        "local": [],
    }


def product_plan(ring: int) -> Plan:
    """f(a, b) = a.x · b.x. It takes no round."""
    plan = empty_plan(ring, [ring])
    plan["terms"] = [[1, [], [[[0, 0, 1]], [[1, 0, 1]]]]]
    return plan


def gini_plan(ring: int, width: int) -> Plan:
    """f(a, b) = |a.x − b.x| = d − 2·[d < 0]·d. Paper: Sinh & Ramon 2025, A.5.2.

    Args: width: so many bits that |d| < 2^(width − 1).
    """
    plan = empty_plan(ring, [width])
    less = _compare(plan, 0, "less", False)
    plan["wires"] = [ring]
    plan["terms"] = [[1, [less], [[[0, 0, -2], [1, 0, 2]]]]]
    plan["local"] = [1, -1]
    return plan


def kendall_plan(ring: int, widths: list[int], by_keys: bool) -> Plan:
    """f(a, b) = sign(a.x − b.x)·sign(a.y − b.y), with sign(d) = 1 − [d = 0] − 2·[d < 0].

    Paper: Sinh & Ramon 2025, A.5.1. Args: by_keys: a study of few edges; wide numbers take keys.
    """
    plan = empty_plan(ring, widths)
    equal_x = _compare(plan, 0, "equal", by_keys)
    equal_y = _compare(plan, 1, "equal", by_keys)
    less_y = _compare(plan, 1, "less", by_keys)
    less_x = _compare(plan, 0, "less", by_keys)
    of_x: list[tuple[int, list[int]]] = [(1, []), (-1, [equal_x]), (-2, [less_x])]
    of_y: list[tuple[int, list[int]]] = [(1, []), (-1, [equal_y]), (-2, [less_y])]
    for (one, bits), (other, more) in list(product(of_x, of_y))[1:]:
        plan["terms"].append([one * other, sorted(bits + more), []])
    plan["constant"] = 1
    return plan


# --- what follows from a plan ---


def layers(plan: Plan) -> list[list[int]]:
    """The bits that each round opens: a function of opened bits comes after those that it reads."""
    depths: list[int] = []
    for kind, where, _ in plan["bits"]:
        read = [depths[bit] for part in where for bit in part] if kind == "and" else [-1]
        depths.append(1 + max(read))
    turns = range(1 + max(depths, default=-1))
    return [[bit for bit, depth in enumerate(depths) if depth == turn] for turn in turns]


def subsets(items: Any) -> list[Any]:
    """All subsets of the items."""
    items = tuple(items)
    return [each for size in range(len(items) + 1) for each in combinations(items, size)]


def factor(form: list[list[int]]) -> tuple[tuple[int, int], ...]:
    """A factor as (place, coefficient); the place of an end's wire is 2·wire + end."""
    return tuple((2 * wire + end, coefficient) for end, wire, coefficient in form)


def products_of_numbers(plan: Plan) -> list[Part]:
    """The products of masks that are dealt as additive shares, in the order of the material.

    A factor's mask alone is not among them: each party knows its own part of it.
    """
    found: set[Part] = set()
    for _, bits, factors in plan["terms"]:
        forms = [factor(form) for form in factors]
        found |= {(part, some) for part in subsets(sorted(bits)) for some in subsets(forms)}
    return sorted(part for part in found if part[0] or len(part[1]) > 1)


def products_of_bits(plan: Plan) -> list[tuple[int, ...]]:
    """The conjunctions of masks of bits that are dealt as XOR shares, in the same order."""
    functions = [where for kind, where, _ in plan["bits"] if kind == "and"]
    found = {part for each in functions for conjunction in each for part in subsets(conjunction)}
    return sorted(tuple(sorted(part)) for part in found if part)


def plan_of(kernel: str, bounds: list[list[int]], ring: int, by_keys: bool) -> Plan:
    """The plan of a kernel by its name. Args: bounds: the least and greatest number of a field."""
    widths = [1 + max(1, (high - low).bit_length()) for low, high in bounds]
    if kernel == "product":
        return product_plan(ring)
    return gini_plan(ring, widths[0]) if kernel == "gini" else kendall_plan(ring, widths, by_keys)
