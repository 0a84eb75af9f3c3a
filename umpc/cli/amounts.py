"""Amounts of ε and δ in a few characters, for people."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from umpc.node.budget.budget_account import Balance

AMOUNTS = ("total", "spent", "reserved", "left")
"""The parts of a balance, in the order of tables."""
EXACT_CHARACTERS = 8
"""The longest fraction that is shown as it is."""
SHOWN_DIGITS = 6
ROUNDED = {"total": ROUND_FLOOR, "spent": ROUND_CEILING, "reserved": ROUND_CEILING}
"""A part of a balance → how it is rounded; so the budget never looks larger than it is."""


def short_amount(amount: Fraction | None, rounding: str = ROUND_HALF_EVEN) -> str:
    """Return an amount as an exact fraction if that is short, else with six digits.

    Args: amount: None where it is not yet known. rounding: one of `decimal`.
    """
    if amount is None:
        return "not yet known"
    if len(str(amount)) <= EXACT_CHARACTERS:
        return str(amount)
    context = Context(prec=SHOWN_DIGITS, rounding=rounding)
    rounded = context.divide(Decimal(amount.numerator), Decimal(amount.denominator))
    return f"{float(rounded):.{SHOWN_DIGITS}g}"


def short_part(balance: Balance, part: str) -> str:
    """Return one of AMOUNTS; what is left is rounded down, and what is gone up."""
    amount: Fraction = getattr(balance, part)
    return short_amount(amount, ROUNDED.get(part, ROUND_FLOOR))


def balance_text(balance: Balance) -> str:
    """Return a balance of ε or δ in words."""
    total, spent, reserved, left = (short_part(balance, part) for part in AMOUNTS)
    return f"{left} left of {total} ({spent} spent, {reserved} reserved)"
