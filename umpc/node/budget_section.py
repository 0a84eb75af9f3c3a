"""The keys of a configuration that are amounts of budget: exact, as the file writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from umpc.dp.composition import BASIC, COMPOSITIONS, Composition
from umpc.node.config_section import Section

EPSILON = r"[0-9]{1,30}(\.[0-9]{1,30}|/[0-9]{1,30})?"
MOST_DIGITS = 30
DELTA = r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?|[0-9]{1,30}/[0-9]{1,30}"


def epsilon_of(section: Section, key: str) -> Fraction:
    """Return an ε, exact: the file's digits and never a double."""
    expected = 'a number above 0 with at most 30 digits, like 5, 0.5 or "1/3"'

    def plain(value: Any) -> str:
        is_short = isinstance(value, Decimal) and abs(value.adjusted()) < 60
        return f"{value:f}" if is_short else str(value)

    def is_right(value: Any) -> bool:
        return (_amount(EPSILON, value, plain(value)) or 0) > 0

    return Fraction(plain(section.checked(key, is_right, expected)))


def delta_of(section: Section, key: str) -> Fraction:
    """Return a δ, exact as ε. With 0, no study may cost any δ."""
    expected = (
        'a number from 0 to below 1 with at most 30 digits, like "1e-9", 0.000001 or "1/1000000"'
    )

    def is_right(value: Any) -> bool:
        delta = _amount(DELTA, value, str(value))
        return delta is not None and delta < 1 and delta.denominator <= 10**MOST_DIGITS

    return Fraction(str(section.checked(key, is_right, expected, "1e-9")))


def _amount(pattern: str, value: Any, written: str) -> Fraction | None:
    """Return the amount that a value is as it is written; None where it is no amount."""
    is_number = type(value) in (int, Decimal, str) and re.fullmatch(pattern, written)
    try:
        return Fraction(written) if is_number else None
    except ZeroDivisionError:
        return None


def composition_of(section: Section) -> Composition:
    """Return how the costs of studies add up: its name, and its own δ."""
    expected = f"one of {', '.join(map(repr, COMPOSITIONS))}"
    name = section.text("composition", "|".join(COMPOSITIONS), expected, BASIC)
    has_delta = "composition_delta" in section.values
    if name == BASIC:
        if has_delta:
            raise section.error(
                "composition_delta",
                ' goes with composition = "advanced" or "zcdp": basic composition costs no delta '
                "of its own. Remove it, or add composition",
            )
        return Composition()
    delta = delta_of(section, "composition_delta") if has_delta else Fraction(0)
    if not delta:
        raise section.error(
            "composition_delta",
            f' is missing or 0, and composition = "{name}" needs it: the delta above 0 that the '
            'composition itself costs, such as "1e-9". Add it',
        )
    return Composition(name, delta)
