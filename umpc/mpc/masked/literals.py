"""A Boolean function in the literals that make it short: below, equal or above zero.

The three bits of one comparison sum to 1 over GF(2). So any two of them span the third, and all
three are known once two are opened. "All below or all above" over four comparisons takes 80
conjunctions of below and equal, and two conjunctions of below and above.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from umpc.ustat import logic
from umpc.ustat.normal_form import Function, Polynomial

FormLiteral: TypeAlias = tuple[Polynomial, str]
"""(polynomial that is compared with zero, "less" | "equal" | "above")"""
FormConjunction: TypeAlias = tuple[FormLiteral, ...]
_Conjunctions: TypeAlias = frozenset[frozenset[FormLiteral]]


def conjunctions_of(function: Function) -> tuple[tuple[FormConjunction, ...], bool]:
    """(conjunctions, constant): their exclusive or is the function.

    The choice of literals is greedy, form by form.
    """
    best: _Conjunctions = frozenset(
        frozenset((bit.form, bit.kind) for bit in bits) for bits in function
    )
    for form in sorted(logic.forms(function), key=lambda form: form.order):
        for kind in ("equal", "less"):
            best = min(best, _without(best, form, kind), key=len)
    constant = frozenset() in best
    sorted_inside = (tuple(sorted(literals, key=_order)) for literals in best if literals)
    ordered = sorted(sorted_inside, key=lambda literals: [_order(each) for each in literals])
    return tuple(ordered), constant


def _without(function: _Conjunctions, form: Polynomial, kind: str) -> _Conjunctions:
    """The function with a literal replaced by 1 ⊕ the other two of its comparison."""
    replaced = (form, kind)
    others = [(form, other) for other in ("less", "equal", "above") if other != kind]
    found: set[frozenset[FormLiteral]] = set()
    for conjunction in function:
        if replaced not in conjunction:
            found ^= {conjunction}
            continue
        rest = conjunction - {replaced}
        for part in (rest, *(rest | {other} for other in others)):
            found ^= {part}
    return frozenset(found)


def _order(literal: FormLiteral) -> tuple[Any, ...]:
    form, kind = literal
    return (kind, form.order)
