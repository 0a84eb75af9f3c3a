"""Words of the lines of agreement: ratios of series, and how far measured means are from theory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.figures.figure import Row, row_at


def ratio(rows: Sequence[Row], x: float, quantity: str, to: str = "Umpc") -> Callable[[str], float]:
    """A series' mean over another's, at one place."""
    base = row_at(rows, to, x).means[quantity]
    return lambda series: row_at(rows, series, x).means[quantity] / base


def times(factor: float) -> str:
    """Such as "37 times" or "0.012 times"."""
    return f"{factor:,.0f} times" if factor >= 10 else f"{factor:.2g} times"


def deviations(rows: Sequence[Row], quantity: str) -> list[float]:
    """How many standard errors each measured mean is from its prediction."""
    told = [row for row in rows if row.predicted is not None and row.errors[quantity] > 0]
    return [(row.means[quantity] - row.predicted) / row.errors[quantity] for row in told]


def worst(rows: Sequence[Row], quantity: str = "squared_error") -> str:
    """One sentence: measured beside theory."""
    found = sorted(deviations(rows, quantity), key=abs)
    if not found:
        return ""
    return f"Of {len(found)} errors the one farthest from theory is {abs(found[-1]):.1f} standard errors off."


def verdict(*parts: bool) -> str:
    """Of a claim's parts: all hold, some, or none."""
    return "agrees" if all(parts) else "in part" if any(parts) else "disagrees"
