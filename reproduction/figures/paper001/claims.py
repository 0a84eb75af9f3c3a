"""Words and numbers of the agreement lines."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.figures.figure import Row, row_at

QUANTITY = "absolute_error"


def error(rows: Sequence[Row], series: str, x: float) -> float:
    return row_at(rows, series, x).means[QUANTITY]


def errors(rows: Sequence[Row], series: str) -> dict[float, float]:
    """The errors of one series by x, ascending."""
    return {
        row.x: row.means[QUANTITY]
        for row in sorted(rows, key=lambda row: row.x)
        if row.series == series
    }


def verdict(*parts: bool) -> str:
    """The verdict on a claim: all its parts hold, some, or none."""
    if all(parts):
        return "agrees"
    return "in part" if any(parts) else "disagrees"


def beside_theory(rows: Sequence[Row]) -> str:
    """One sentence that compares the measured root mean squares with those of theory."""
    ratios = sorted(
        row.means["rmse"] / row.means["predicted_rmse"]
        for row in rows
        if row.means["predicted_rmse"]
    )
    middle = ratios[len(ratios) // 2]
    return (
        f"Root mean squared errors are {ratios[0]:.2f} to {ratios[-1]:.2f} times theory's, "
        f"{middle:.2f} in the middle, at {rows[0].runs} runs a point."
    )
