"""The keys of a configuration that are amounts of budget: exact, as the file writes them."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from umpc.dp.composition import BASIC, COMPOSITIONS, Composition
from umpc.errors import ConfigError
from umpc.node.config_section import Section

EPSILON = r"[0-9]{1,30}(\.[0-9]{1,30}|/[0-9]{1,30})?"
MOST_DIGITS = 30
ZERO_BELOW = r".*/0+"
"""A fraction whose denominator is 0."""
DELTA = r"[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?|[0-9]{1,30}/[0-9]{1,30}"


def epsilon_of(section: Section, key: str) -> Fraction:
    """Return an ε, exact: the file's digits and never a double."""
    expected = 'a number above 0 with at most 30 digits, like 5, 0.5 or "1/3"'
    value = section.typed(key, (int, Decimal, str), expected)
    written = str(value)
    if isinstance(value, Decimal) and abs(value.adjusted()) < 60:
        written = f"{value:f}"
    if not re.fullmatch(EPSILON, written) or re.fullmatch(ZERO_BELOW, written):
        raise section.wrong(key, expected, value)
    epsilon = Fraction(written)
    if epsilon <= 0:
        raise section.wrong(key, expected, value)
    return epsilon


def delta_of(section: Section, key: str) -> Fraction:
    """Return a δ, exact as ε. With 0, no study may cost any δ."""
    expected = (
        'a number from 0 to below 1 with at most 30 digits, like "1e-9", 0.000001 or "1/1000000"'
    )
    value = section.typed(key, (int, Decimal, str), expected, "1e-9")
    written = str(value)
    is_number = re.fullmatch(DELTA, written) and not re.fullmatch(ZERO_BELOW, written)
    if isinstance(value, bool) or not is_number:
        raise section.wrong(key, expected, value)
    delta = Fraction(written)
    if delta >= 1 or delta.denominator > 10**MOST_DIGITS:
        raise section.wrong(key, expected, value)
    return delta


def composition_of(section: Section) -> Composition:
    """Return how the costs of studies add up: its name, and its own δ."""
    expected = f"one of {', '.join(map(repr, COMPOSITIONS))}"
    name = section.text("composition", "|".join(COMPOSITIONS), expected, BASIC)
    if name == BASIC:
        if "composition_delta" in section.values:
            _refuse_composition_delta(section)
        return Composition()
    has_delta = "composition_delta" in section.values
    delta = delta_of(section, "composition_delta") if has_delta else Fraction(0)
    if not delta:
        raise ConfigError(
            f"{section.file}: key {section.key('composition_delta')!r} is missing or 0, and "
            f'composition = "{name}" needs it: the delta above 0 that the composition itself '
            'costs, such as "1e-9". Add it'
        )
    return Composition(name, delta)


def _refuse_composition_delta(section: Section) -> None:
    raise ConfigError(
        f"{section.file}: key {section.key('composition_delta')!r} goes with composition = "
        '"advanced" or "zcdp": basic composition costs no delta of its own. Remove it, or add '
        "composition"
    )
