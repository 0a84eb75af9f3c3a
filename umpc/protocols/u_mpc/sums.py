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
from umpc.ustat.design import largest_factor, largest_factor_two_sample
from umpc.ustat.drawn_edges import largest_random_factor
from umpc.ustat.sampling import UNBALANCED, pairings_of


class Law(Protocol):
    """The law of one sum's noise, in units of the kernel.

    A law may also have `shape`, by default 1; `step`, by default 1; and `shift`, by default 0
    (`umpc/ustat/error_law.py`).
    """

    @property
    def std(self) -> float:
        """The standard deviation."""
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
            noise_step=getattr(law, "step", 1.0) * float(kernel.unit) / sizes.edges,
            noise_shape=float(getattr(law, "shape", 1.0)),
            noise_shift=getattr(law, "shift", 0.0) * float(kernel.unit) / sizes.edges,
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
    """The largest standard deviation from taking E instead of all sets, whatever the records are.

    The variance of a kernel of this width is at most width²/4, and a mean over E keeps at most
    factor/|E| of it (`umpc/ustat/design.py`). P pairings are independent of each other, so their
    variance is P times smaller than that of one pairing.
    """
    draws = pairings_of(sizes.study.edges)
    edges = sizes.edges // (draws or 1)
    if sizes.study.two_sample:
        factor = largest_factor_two_sample(edges, *sizes.classes)
    else:
        factor = largest_factor(edges, sizes.records, sizes.study.degree)
        if sizes.study.sampling in UNBALANCED:
            factor = largest_random_factor(edges, sizes.records, sizes.study.degree, factor)
    # In this order no factor leaves the floats' range, however many sets there are.
    return width * sqrt(float(factor) / (4 * sizes.edges))
