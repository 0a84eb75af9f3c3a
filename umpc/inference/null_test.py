"""A p-value: the law of a statistic without noise, together with the law of the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from umpc.inference.hypotheses import GREATER, LESS
from umpc.inference.null_laws import NullLaw
from umpc.ustat.error_law import ErrorLaw

LEAST = 1e-12
"""With noise, p-values below this are not told apart: the law of the noise has no more digits."""
FEW_DIGITS_BELOW = 1e-4
"""Smaller p-values are shown with two digits."""


@dataclass(frozen=True, repr=False)
class NullTest:
    """A test. null: the statistic's value under the hypothesis. law: its law then, in words.
    is_below: the p-value is below p_value, which then is the least one that is told apart.
    """

    p_value: float
    alternative: str
    null: float
    hypothesis: str
    law: str
    is_below: bool = False

    @property
    def size(self) -> str:
        """The p-value in words: p = 0.03, or p < 1e-12."""
        if self.is_below:
            return f"p < {self.p_value:g}"
        digits = ".3g" if self.p_value >= FEW_DIGITS_BELOW else ".1e"
        return f"p = {self.p_value:{digits}}"

    def __repr__(self) -> str:
        size = f"p_value<{self.p_value:g}" if self.is_below else f"p_value={self.p_value!r}"
        rest = ("alternative", "null", "hypothesis", "law")
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in rest)
        return f"NullTest({size}, {told})"


def p_value(law: NullLaw, errors: ErrorLaw, seen: float, alternative: str) -> float:
    """The probability of a value as extreme as the one seen: the law and the noise together.

    P(U + e ≥ x) = Σ over errors e of P(e)·P(U ≥ x − e). Both tails are rounded towards 1, by the
    grid of the errors. Two-sided is twice the smaller tail. With noise, digits below `LEAST` mean
    nothing. With heavy tails no p-value is below the chance of an error beyond the grid.

    Args: law: without noise. errors: the noise and the sampling of E. seen: the released value.
    """
    places, masses = errors.masses()
    tails: Sequence[float]
    above = float(masses @ law.at_least(seen - places - errors.slack)) + errors.beyond
    below = float(masses @ law.at_most(seen - places + errors.slack)) + errors.beyond
    tails = {GREATER: [above], LESS: [below]}.get(alternative, [2 * above, 2 * below])
    return min(1.0, *tails)


def told(found: float, errors: ErrorLaw) -> tuple[float, bool]:
    """A p-value, or `LEAST` and that it is below: with noise, or where it is 0 in floats."""
    is_below = found < LEAST if errors.std else found == 0
    return (LEAST, True) if is_below else (found, False)
