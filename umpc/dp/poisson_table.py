"""The Poisson law of a small mean as a table, for draws by one look-up of fixed work.

    P(X > k) = sum over i > k of e^-mean mean^i / i!

All terms are positive, so their balls keep their relative precision, also far in the tail. Past
twice the mean a term is less than half of the one before, so what follows the last term summed is
less than that term.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb, ctx

from umpc.dp.fixed_coins import PRECISION, TAIL_BITS, SurvivalTable

MOST_ABOVE = 128
"""P(X > 2 mean + 128) is below 2^-96 for every mean (Chernoff: at the mean 0 it is least so)."""

MARGIN = 64
"""Bits by which the last term summed is below the smallest answer's own precision."""


class PoissonTable(SurvivalTable):
    """Poisson(mean) by look-up. Args: as `poisson_table`; first, last: the table's ends."""

    def __init__(self, mean: Callable[[int], arb], first: int, last: int):
        super().__init__(lambda a, b, precision: survival(mean, a, b, precision), first, last)
        self.first = first
        self.last = last


def poisson_table(mean: Callable[[int], arb]) -> PoissonTable:
    """The table from the 2^-96 quantile to the 1 - 2^-96 quantile.

    Args:
        mean: the mean's ball at a given working precision; below a few hundred.
    """
    rare = arb((1, -TAIL_BITS))
    with ctx.workprec(PRECISION):
        ceiling = _ceiling(mean(PRECISION))
        above = survival(mean, 0, 2 * ceiling + MOST_ABOVE, PRECISION)
        first = sum(bool(1 - p < rare) for p in above[:ceiling])
        last = next(k for k, p in enumerate(above) if bool(p < rare))
    return PoissonTable(mean, max(0, first - 1), last)


def survival(mean: Callable[[int], arb], first: int, last: int, precision: int) -> list[arb]:
    """P(X > k) for k = first .. last, as balls."""
    working = precision + MARGIN
    with ctx.workprec(working):
        rate = mean(working)
        term = (-rate).exp() * rate ** (first + 1) / arb(first + 2).gamma()
        terms = [term]
        for i in range(first + 2, last + 2):
            term = term * rate / i
            terms.append(term)
        # Terms fall by half from twice the mean on; go on until they are far below the last answer.
        enough = term.upper() * arb((1, -working))
        i = last + 1
        # A ball that touches 0 cannot be told from 0, and is far below every threshold.
        while i < 2 * _ceiling(rate) or (bool(term > 0) and not bool(term <= enough)):
            i += 1
            term = term * rate / i
            terms.append(term)
        # A ball from 0 to the last term stands for all that follow it.
        suffix = term * arb(arb((1, -1)), arb((1, -1)))
        answers = []
        for term in reversed(terms):
            suffix += term
            answers.append(suffix)
        return answers[::-1][: last - first + 1]


def _ceiling(number: arb) -> int:
    """An integer above the number, by at most 1."""
    return int(number.upper().floor().unique_fmpz() or 0) + 1
