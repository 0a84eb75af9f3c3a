"""Measured constants of tables 1 and 3: measured numbers over the paper's expressions.

If an expression has the right growth, its constant is the same at all sizes. `spread` is the
largest constant over the smallest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reproduction.figures.figure import Row, series_of
from reproduction.figures.paper003.expressions import Expression

SIZES = ((500, 16), (500, 64), (2000, 16), (2000, 64))
"""(n, t) for the Gini mean difference of uniform records.

Its kernel is Lipschitz, as the paper assumes.
"""
SAME = 3.0
"""Constants with a smaller spread count as one constant."""


def place(n: int, t: int) -> float:
    """The x of a pair of sizes in the CSV file: n before the decimal point, t after it."""
    return n + t / 1000


class Constants(NamedTuple):
    """The constants of one expression of one protocol, at SIZES."""

    series: str
    quantity: str
    expression: str
    values: list[float]

    @property
    def spread(self) -> float:
        return max(self.values) / min(self.values)

    @property
    def cells(self) -> list[str]:
        shown = [f"{value:.2g}" for value in self.values]
        return [self.quantity, self.series, self.expression, *shown, f"{self.spread:.2g}"]


def constants(
    rows: Sequence[Row], quantity: str, name: str, expressions: dict[str, tuple[str, Expression]]
) -> list[Constants]:
    """The constants of each protocol, from the measured rows."""
    found = []
    for series, own in series_of(rows).items():
        if series in expressions:
            text, expression = expressions[series]
            values = [
                row.means[quantity] / expression(row.point.facts["n"], row.point.facts["t"], 1)
                for row in own
            ]
            found.append(Constants(series, name, text, values))
    return found


def columns(rows: Sequence[Row]) -> list[str]:
    """Titles of a table of constants."""
    sizes = [
        (row.point.facts["n"], row.point.facts["t"]) for row in next(iter(series_of(rows).values()))
    ]
    return ["", "protocol", "expression", *(f"n = {n:,}, t = {t}" for n, t in sizes), "spread"]


def told(found: Sequence[Constants]) -> str:
    """Sentences that say which expressions have one constant."""
    same = [f"{each.series}'s {each.quantity}" for each in found if each.spread <= SAME]
    other = [
        f"{each.series}'s {each.quantity} by {each.spread:,.0f}"
        for each in found
        if each.spread > SAME
    ]
    return (
        "Measured over expression, at n = 500 and 2,000 and t = 16 and 64, is one constant within "
        f"a factor of {SAME:.0f} for {', '.join(same) or 'none'}; it varies for "
        f"{', '.join(other) or 'none'}."
    )
