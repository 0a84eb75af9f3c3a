"""The table of where a curator's mechanisms gain over Laplace noise, by the number of records.

The kernel is the share of equal pairs over 4 values, and ε = 1. Noise is computed, not measured.
"""

from __future__ import annotations

from fractions import Fraction

from bench.baselines.error_tables import Printed
from umpc.protocols.central.central_mechanisms import Choice
from umpc.protocols.central.hajek import bernstein_concentration
from umpc.protocols.central.terms import CompleteFamily
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema

RECORDS = (60, 120, 250, 500, 1_000, 2_000)
ONE = Fraction(1)
KNOWN = Fraction(1, 50)
"""ξ or τ where somebody knows that all values or means lie this close together."""


def equal_pairs() -> Kernel:
    """[x = y] over 4 values, which is degenerate if they are equally likely."""
    field = FieldSchema("x", Fraction(0), Fraction(3), ONE)
    return Kernel.from_text("a.x == b.x", Schema([field]))


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
        noise = (choice.noise_std(records, family) for choice in choices)
        rows.append((f"{records:,}", *(f"{each:.2g}" for each in noise)))
    columns = (
        "records",
        "laplace",
        "hajek",
        'hajek, "degenerate"',
        f"hajek, ξ = {float(KNOWN)}",
        f"coinpress_all, τ = {float(KNOWN)}",
    )
    return Printed("Gain: noise of the share of equal pairs, ε = 1", columns, rows)
