"""Words and numbers of the agreement lines."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures.figure import Row, row_at

QUANTITY = "absolute_error"


def error(rows: Sequence[Row], series: str, x: float) -> float:
    return row_at(rows, series, x).means[QUANTITY]


def errors(rows: Sequence[Row], series: str) -> dict[float, float]:
    """By x, ascending."""
    return {
        row.x: row.means[QUANTITY]
        for row in sorted(rows, key=lambda row: row.x)
        if row.series == series
    }


def verdict(*parts: bool) -> str:
    """Of a claim's parts: all hold, some, or none."""
    return "agrees" if all(parts) else "in part" if any(parts) else "disagrees"


def beside_theory(rows: Sequence[Row]) -> str:
    """One sentence: the measured root mean squares over those that theory gives."""
    ratios = sorted(
        row.means["rmse"] / row.means["predicted_rmse"]
        for row in rows
        if row.means["predicted_rmse"]
    )
    middle = ratios[len(ratios) // 2]
    return (
        f"Root mean squared errors are {ratios[0]:.2f} to {ratios[-1]:.2f} times theory's, {middle:.2f} in the middle, "
        f"at {rows[0].runs} runs a point."
    )
