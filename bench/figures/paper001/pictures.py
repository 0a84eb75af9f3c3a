"""Pictures of paper 001: mean absolute errors, one panel for each data set, in it one curve for each ε or protocol."""

from __future__ import annotations

from bench.figures.drawing import Draw, Panel, facets
from bench.figures.figure import Row


def of_data(title: str, xlabel: str, xscale: str = "linear") -> Draw:
    """Means with two standard errors, and theory as lines; below the name of the data the classes' sizes, if any."""
    return facets(
        Panel("absolute_error", xlabel, "mean absolute error", xscale=xscale), title, _sizes
    )


def _sizes(row: Row) -> str:
    if "negatives" not in row.means:
        return ""
    return f"{row.means['negatives']:,.0f} negatives, {row.means['positives']:,.0f} positives"
