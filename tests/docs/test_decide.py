"""docs/decide.md: its figures are those of ε, and what it names exists."""

from __future__ import annotations

import re
from math import exp
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "decide.md").read_text(encoding="utf-8")


def told(epsilon: float) -> tuple[str, str]:
    """The odds and the chance of a right guess at this ε, as the page writes them."""
    odds = exp(epsilon)
    return f"{odds:.3g}", f"{100 * odds / (1 + odds):.1f} %"


def from_one_percent(epsilon: float) -> str:
    """The chance of a guess that was right with 1 % before the release, as the page writes it."""
    odds = exp(epsilon) / 99
    return f"{100 * odds / (1 + odds):.1f} %"


def test_the_table_of_epsilon_is_computed():
    row = r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+ %) \| ([\d.]+ %) \|$"
    rows = re.findall(row, PAGE, re.MULTILINE)
    assert len(rows) == 7
    assert [row[1:3] for row in rows] == [told(float(row[0])) for row in rows]
    assert [row[3] for row in rows] == [from_one_percent(float(row[0])) for row in rows]


def test_the_person_with_twelve_rows_is_computed():
    row = r"^\| [^|]+ \| [^|]+ \| (?:(\d+) · ([\d.]+) = )?([\d.]+) \| ([\d.]+) \| ([\d.]+ %) \|$"
    rows = re.findall(row, PAGE, re.MULTILINE)
    assert len(rows) == 3
    for rows_of_person, each, epsilon, odds, chance in rows:
        assert (odds, chance) == told(float(epsilon))
        assert not each or int(rows_of_person) * float(each) == float(epsilon)
    assert rows[0][:3] == ("12", "0.5", "6")


def test_it_is_two_screens():
    assert len(PAGE.splitlines()) <= 110
