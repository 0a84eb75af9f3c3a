"""Edge sets drawn without regard to degrees: the comparisons of Sinh & Ramon 2025, table 2.

| sampling | E | the number of edges |
|---|---|---|
| uniform | all sets of m edges are equally likely | m, by the study's rule |
| bernoulli | each edge is in E with probability m/N, independently | binomial, of mean m |

N is the number of all sets of k records. A Bernoulli E is a uniform E of a binomial size. The size
follows from the study's name, so it is known before anybody has the joint seed, as all sizes are
(`umpc/study/sizes.py`). E itself follows from the joint seed.

*Departure from the paper.* There the noise covers the largest degree of the E that came. Here it
covers a bound that is known before E is drawn: the least c such that n·P(degree of a record > c)
is at most 1/2. An E that exceeds it is drawn again. So E is uniform among all E within the bound,
at least half of all. The bound is close to what the paper's E would have, and reports and replays
need no seed.

Laws are computed in integers. So every process gets the same numbers, whatever its processor.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from umpc.errors import RangeError
from umpc.ustat.levelling import random_edges
from umpc.ustat.text import Words

SCALE = 1 << 96
"""The weight of a law's most likely number. Numbers of less than 2^-96 of it are left out."""
TRIES = 256
"""An E exceeds the bound with probability at most 1/2, so more tries are never taken."""


def uniform(
    records: int, count: int, most: int, words: Words, degree: int = 2
) -> NDArray[np.int64]:
    """Distinct random edges of which no record is in more than `most`.

    Returns: (count, degree) int64, each row ascending, in no particular order.
    Raises: RangeError where the records are too many for the edges to be numbered by int64, or
        hardly any E is within the bound.
    """
    if records**degree > 1 << 63:
        raise RangeError(
            f"{records} records are too many for edges of {degree}; at most 2^{63 // degree}"
        )
    for _ in range(TRIES):
        edges = random_edges(records, count, words, degree)
        if np.bincount(edges.ravel(), minlength=records).max(initial=0) <= most:
            return edges
    raise RangeError(
        f"no {count} random edges with at most {most} for each of {records} records were found; "
        f'take sampling = "balanced"'
    )


@lru_cache(maxsize=64)
def greatest_degree(count: int, records: int, degree: int = 2) -> int:
    """The least c such that n·P(degree of a record > c) <= 1/2, for a uniform E.

    The degree of a record is hypergeometric: so many of the N sets are in E, and C(n−1, k−1) of
    them hold the record.
    """
    sets, own = comb(records, degree), comb(records - 1, degree - 1)
    others = sets - own
    low, high = max(0, count - others), min(count, own)
    mode = min(high, max(low, (count + 1) * (own + 1) // (sets + 2)))
    law = _law(
        mode,
        lambda d: ((own - d) * (count - d), (d + 1) * (others - count + d + 1)),
        (low, high),
    )
    total = sum(law.values())
    above = 0
    for number in sorted(law, reverse=True):
        above += law[number]
        if 2 * records * above > total:
            return number
    return low


@lru_cache(maxsize=64)
def bernoulli_count(expected: int, sets: int, seed: bytes) -> int:
    """The size of a Bernoulli E: binomial with mean `expected`; at least 1.

    Args: expected: fewer than `sets`, the number of all sets. seed: 32 uniform bytes.
    """
    mode = (sets + 1) * expected // sets
    law = _law(
        mode,
        lambda m: ((sets - m) * expected, (m + 1) * (sets - expected)),
        (0, sets),
    )
    place = int.from_bytes(seed, "big") * sum(law.values()) >> 8 * len(seed)
    for number in sorted(law):
        place -= law[number]
        if place < 0:
            return max(1, number)
    return max(law)


def largest_random_factor(edges: int, records: int, degree: int, balanced: Fraction) -> Fraction:
    """How much of a kernel's variance is left in its mean over a uniform E, as in `design.py`.

    Without a bound of the degrees it is (N − m)/(N − 1) for every kernel. The bound leaves less of
    what single records contribute. It can leave more of the rest, but at most as much as equal
    degrees do.

    Args: balanced: the factor of a balanced E.
    """
    sets = comb(records, degree)
    if edges >= sets:
        return Fraction(0)
    return max(balanced, Fraction(sets - edges, sets - 1))


def _law(
    mode: int, ratio: Callable[[int], tuple[int, int]], ends: tuple[int, int]
) -> dict[int, int]:
    """Weights of all numbers around the most likely one, in proportion to their probabilities.

    Args: ratio: numerator and denominator of P(j + 1)/P(j). ends: the least and the largest number.
    """
    law = {mode: SCALE}
    number, weight = mode, SCALE
    while weight and number < ends[1]:
        over, under = ratio(number)
        weight = weight * over // under
        number += 1
        law[number] = weight
    number, weight = mode, SCALE
    while weight and number > ends[0]:
        number -= 1
        over, under = ratio(number)
        weight = weight * under // over
        law[number] = weight
    return law
