"""Names of the series in the pictures, and their points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from reproduction.figures.figure import Point

NAMES = {
    "umpc": "Umpc",
    "bell-ldp": "Bell (LDP)",
    "ghazi-ldp": "Ghazi",
    "ghazi-shuffle": "GhaziSM",
    "bell-2pc": "Bell 2PC (ours)",
    "central": "central Laplace",
}
PAPER = ("bell-ldp", "ghazi-ldp", "ghazi-shuffle", "umpc")
"""The protocols that the paper compares."""
RUNS = {
    "umpc": 1000,
    "central": 1000,
    "bell-ldp": 400,
    "ghazi-ldp": 200,
    "ghazi-shuffle": 400,
    "bell-2pc": 400,
}
"""Runs of a point. Their standard error is a tenth or less, and the differences are factors."""
BATCHES = 4


def point(
    protocol: str, x: float, facts: Mapping, quick: bool, runs: int | None = None, label: str = ""
) -> Point:
    """A point of `runs` runs in BATCHES batches; one batch of three runs for a quick figure."""
    each = 3 if quick else ceil((runs or RUNS[protocol]) / BATCHES)
    return Point(
        label or NAMES[protocol],
        x,
        1 if quick else BATCHES,
        {"protocol": protocol, "runs": each} | dict(facts),
    )


def timed(protocol: str, x: float, facts: Mapping, quick: bool, label: str = "") -> Point:
    """A point with seconds and bytes only."""
    return Point(
        label or NAMES[protocol], x, 1 if quick else 2, {"protocol": protocol} | dict(facts)
    )


def names(protocols: Sequence[str]) -> tuple[str, ...]:
    return tuple(NAMES[protocol] for protocol in protocols)
