"""The table of where a curator's mechanisms gain over Laplace noise, by the number of records.

The kernel is the share of equal pairs over 4 values, and ε = 1. Noise is computed, not measured.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from reproduction.baselines.error_tables import Printed
from umpc.dp.calibration import DistributedLaplace
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.central.central_mechanisms import Choice
from umpc_papers.central.hajek import bernstein_concentration
from umpc_papers.central.terms import CompleteFamily
from umpc_papers.hajek_grid.binding import Projections

RECORDS = (60, 120, 250, 500, 1_000, 2_000, 10_000)
ONE = Fraction(1)
VALUES = 4
KNOWN = Fraction(1, 50)
"""ξ or τ where somebody knows that all values or means lie this close together."""


def equal_pairs() -> Kernel:
    """[x = y] over 4 values, which is degenerate if they are equally likely."""
    field = FieldSchema("x", Fraction(0), Fraction(3), ONE)
    return Kernel.from_text("a.x == b.x", Schema([field]))


def without_a_curator(records: int) -> float:
    """The noise of `hajek-grid` for equally many records of each value; δ = 1e-9, λ = 1/3."""
    of = Projections(np.eye(VALUES, dtype=np.int64))
    squares = DistributedLaplace(ONE / 3, of.sensitivity_of_squares(records), 1, 1)
    counts = np.bincount(np.arange(records) % VALUES, minlength=VALUES)
    pairs = int(counts @ of.gram @ counts - of.gram.diagonal() @ counts) // 2
    # P(|noise| > T) <= 2^-29, so P(noise < -T) <= 2^-30 < 1e-9.
    bound = min(of.bound(pairs + squares.tail_bound(29), records), records - 1)
    return DistributedLaplace(2 * ONE / 3, bound, 1, 1).std / comb(records, 2)


def gain() -> Printed:
    """The standard deviation of the noise of each mechanism."""
    kernel = equal_pairs()
    rows = []
    for records in RECORDS:
        degenerate = bernstein_concentration(records, 2, ONE, ONE / 4, Fraction(1, 100))
        choices = (
            Choice("laplace", kernel, ONE),
            Choice("hajek", kernel, ONE),
            Choice("hajek", kernel, ONE, concentration=degenerate),
            Choice("hajek", kernel, ONE, concentration=KNOWN),
            Choice("coinpress_all", kernel, ONE, spread=KNOWN),
        )
        family = CompleteFamily(records, 2)
        noise = [choice.noise_std(records, family) for choice in choices]
        noise.append(without_a_curator(records))
        rows.append((f"{records:,}", *(f"{each:.2g}" for each in noise)))
    columns = (
        "records",
        "laplace",
        "hajek",
        'hajek, "degenerate"',
        f"hajek, ξ = {float(KNOWN)}",
        f"coinpress_all, τ = {float(KNOWN)}",
        "hajek-grid, no curator",
    )
    return Printed("Gain: noise of the share of equal pairs, ε = 1", columns, rows)
