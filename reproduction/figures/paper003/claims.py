"""Words of the lines of agreement: ratios of series, and how far measured means are from theory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reproduction.figures.figure import Row, row_at


def ratio(rows: Sequence[Row], x: float, quantity: str, to: str = "Umpc") -> Callable[[str], float]:
    """A function from a series to its mean, divided by the mean of series `to`, at one place."""
    base = row_at(rows, to, x).means[quantity]
    return lambda series: row_at(rows, series, x).means[quantity] / base


def times(factor: float) -> str:
    """A factor in words, such as "37 times" or "0.012 times"."""
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:.2g} times"


def deviations(rows: Sequence[Row], quantity: str) -> list[float]:
    """The distance of each measured mean from its prediction, in standard errors."""
    told = [row for row in rows if row.predicted is not None and row.errors[quantity] > 0]
    return [(row.means[quantity] - row.predicted) / row.errors[quantity] for row in told]


def worst(rows: Sequence[Row], quantity: str = "squared_error") -> str:
    """One sentence that compares the measured means with theory."""
    found = sorted(deviations(rows, quantity), key=abs)
    if not found:
        return ""
    most = abs(found[-1])
    return f"Of {len(found)} errors the one farthest from theory is {most:.1f} standard errors off."


def verdict(*parts: bool) -> str:
    """The verdict on a claim: all its parts hold, some, or none."""
    if all(parts):
        return "agrees"
    return "in part" if any(parts) else "disagrees"
