"""The law of the sampling's error where a kernel has two values: how many sets of E have one.

    error = width · (H/|E| − p)

H is the number of sets in E with the rarer value, and p ≤ 1/2 is the share of all sets that have
it. E takes each set once at most, so H has a smaller variance than independent draws. For the worst
table it is factor·|E|·p·(1 − p) (`design.py`). H has here the law

    Bin(M, q),  q = 1 − factor·(1 − p),  M = |E|·p/q,

which has the mean |E|·p, this variance, and only whole numbers of sets. For a part of M, one more
draw is made with a chance of frac(M), which makes the variance a little larger, never smaller. For
one set of the rarer value it is the exact law: M = 1, and q is the chance that E takes the set. For
a small E it is the law of |E| independent draws.

Sets without a common record repel each other, so an E of few sets may have a factor above 1. H then
has the law Bin(|E|, p) with a symmetric number of sets more or less, which makes up the variance.

Independent draws of the right variance are no substitute. There are |E|/factor of them, so a single
observed set is more than one draw, and none observed is less likely than it truly is.
`tests/ustat/test_counted_sets.py` adds up the probabilities of hypergeometric laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, sqrt

import numpy as np

from umpc.ustat.error_law import LEAST_LOGARITHM, Draws, Floats

EXCESS = 0.01
"""A part of a draw counts as a whole one where the variance grows by less than this part of it."""
ROUNDING = 1e-9
"""A smaller part of a draw is none."""


@dataclass(frozen=True)
class CountedSets:
    """The error of the mean over E of a kernel with two values.

    Args:
        low, high: the values, less their mean over all sets: low < 0 < high.
        edges: |E|, at least 1. factor: above 0, of the variance of |E| independent draws.
    """

    low: float
    high: float
    edges: float
    factor: float

    @cached_property
    def parts(self) -> Sequence[Draws]:
        """Independent draws whose means add up to the error."""
        width = self.high - self.low
        share = min(self.high, -self.low) / width
        if self.factor > 1 + ROUNDING:
            return [self._part(self.edges, share), self._more(share)]
        chance = max(share, 1 - self.factor * (1 - share))  # they differ in rounding at factor 1
        draws = self.edges * share / chance
        if chance <= EXCESS * draws * (1 - chance):
            whole = float(ceil(draws))
            return [self._part(whole, self.edges * share / whole)]
        whole = float(floor(draws + ROUNDING))
        found = [self._part(whole, chance)] if whole else []
        rest = (draws - whole) * chance
        if rest <= ROUNDING and found:
            return found
        return [*found, self._part(1.0, rest)]

    def _part(self, count: float, chance: float) -> Draws:
        """The law of `count` draws that each take a set with this chance, less its mean."""
        unit = (self.high - self.low) * count / self.edges
        if -self.low > self.high:
            unit = -unit  # the rarer value is the low one
        ends = sorted((-chance * unit, (1 - chance) * unit))
        return Draws(ends[0], ends[1], chance * (1 - chance) * unit**2, count)

    def _more(self, share: float) -> Draws:
        """Sets more or less, each as likely: the variance that |E| independent draws lack."""
        lacking = (self.factor - 1) * self.edges * share * (1 - share)
        count = float(ceil(lacking))
        end = count * (self.high - self.low) / self.edges
        return Draws(-end, end, lacking / count * end**2, count)

    @property
    def std(self) -> float:
        return sqrt(sum(part.std**2 for part in self.parts))

    def modulus(self, times: Floats) -> Floats:
        """|E exp(i·t·error)|, or e^LEAST_LOGARITHM where it is less."""
        found = self.parts[0].modulus(times)
        for part in self.parts[1:]:
            found = np.maximum(found * part.modulus(times), np.exp(LEAST_LOGARITHM))
        return found

    def angle(self, times: Floats) -> Floats:
        """The angle of E exp(i·t·error), which counts where the modulus is not 0."""
        found = self.parts[0].angle(times)
        for part in self.parts[1:]:
            found = found + part.angle(times)
        return found
