"""The released sums of a study: the nodes' shares added up, with the errors of each mean."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import sqrt
from typing import Protocol

import numpy as np

from umpc.crypto.ring import Ring
from umpc.study.report import SumReport
from umpc.study.sizes import Sizes
from umpc.ustat.sampling import pairings_of


class Law(Protocol):
    """The law of one sum's noise."""

    @property
    def std(self) -> float:
        """The standard deviation, in units of the kernel."""
        ...


def sum_reports(
    sizes: Sizes,
    totals: Sequence[int | Fraction],
    laws: Sequence[Law],
    laws_if_honest: Sequence[Law] | None = None,
) -> list[SumReport]:
    """The mean of each sum and its errors.

    Args:
        totals: the noisy sums, in units.
        laws_if_honest: the noise in grade honest; by default that of the study.
    """
    study = sizes.study
    honest = laws_if_honest or laws
    rows = zip(totals, study.parsed_kernels, study.epsilons, laws, honest, strict=True)
    return [
        SumReport(
            kernel=kernel.text,
            mean=float(Fraction(total) * kernel.unit / sizes.edges),
            epsilon=float(epsilon),
            noise_std=law.std * float(kernel.unit) / sizes.edges,
            sampling_std_bound=sampling_bound(float(kernel.interval.width), sizes),
            noise_std_if_honest=law_if_honest.std * float(kernel.unit) / sizes.edges,
        )
        for total, kernel, epsilon, law, law_if_honest in rows
    ]


def noisy_sums(shares: Sequence[bytes], sums: int, ring: Ring | None = None) -> list[int]:
    """Σ kernel over E plus noise, in units, for each sum.

    The shares are added in their ring, and the totals are read as signed integers.

    Args:
        ring: the ring of shares of every edge's value; without it a share is one element a sum.
    """
    ring = ring or Ring(8 * len(shares[0]) // sums)
    rows = [
        np.frombuffer(share, dtype=ring.dtype.newbyteorder("<")).reshape(sums, -1)
        for share in shares
    ]
    parts = np.stack([row.sum(axis=1, dtype=ring.dtype) for row in rows])
    totals = parts.sum(axis=0, dtype=ring.dtype)
    return [ring.decode(int(total)) for total in totals]


def sampling_bound(width: float, sizes: Sizes) -> float:
    """The square root of a bound of the variance from taking E.

    The bound is (Δf)²/(4|E|) times the part that is left of it. P pairings are independent of each
    other, so their bound is P times smaller than that of one pairing.
    """
    draws = pairings_of(sizes.study.edges) or 1
    left = _left(sizes.edges // draws, sizes)
    # In this order no factor leaves the floats' range, however many sets there are.
    return width * sqrt(float(left) / (4 * sizes.edges))


def _left(edges: int, sizes: Sizes) -> Fraction:
    """The part of the variance that is left when edges are drawn without repetition.

    For sets, and for pairs of two classes, it is (C − |E|)/(C − 1), where C is the number of
    possible ones (Sinh & Ramon 2025, D.1, E_inc, for edges drawn one by one without repetition).

    Pairs in a balanced E are not drawn one by one: let d = 2|E|/n. Hoeffding's decomposition splits
    the variance of f over all pairs in two parts. In g(x) + g(y) everything cancels, except that
    a = d − ⌊d⌋ of the records are in one pair more. In the rest h, whose sums over the pairs of a
    record are 0, pairs that share a record have the covariance −σ²/(n − 2), and disjoint pairs have
    σ²/C(n − 2, 2). The larger of both factors holds for any mixture.
    """
    n = sizes.records
    if sizes.study.degree == 2 and not sizes.study.two_sample and n > 3:
        degree = Fraction(2 * edges, n)
        more = degree - degree.numerator // degree.denominator
        one_more = n * n * more * (1 - more) / (2 * (n - 2) * edges)
        return max((n - 1 - degree) / (n - 3), one_more)
    if sizes.sets > 1:
        return Fraction(sizes.sets - edges, sizes.sets - 1)
    return Fraction(0)
