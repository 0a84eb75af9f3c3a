"""Pictures of paper 001: mean absolute errors, one panel a data set, one curve an ε or protocol."""

from __future__ import annotations

from reproduction.figures.drawing import Draw, Panel, facets
from reproduction.figures.figure import Row


def of_data(title: str, xlabel: str, xscale: str = "linear") -> Draw:
    """A picture of means with two standard errors, and theory as lines.

    The sizes of the classes, if any, are below the name of the data.
    """
    return facets(
        Panel("absolute_error", xlabel, "mean absolute error", xscale=xscale), title, _sizes
    )


def _sizes(row: Row) -> str:
    if "negatives" not in row.means:
        return ""
    return f"{row.means['negatives']:,.0f} negatives, {row.means['positives']:,.0f} positives"
