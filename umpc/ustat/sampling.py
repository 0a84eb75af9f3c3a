"""Edge sets drawn from a joint seed: the sets of records over which the statistic is averaged.

`balanced` serves the purpose of BalancedSamp of Sinh & Ramon 2025, appendix F: distinct edges, and
no record in more than ⌈k|E|/n⌉ of them. One record then changes the sum by at most ⌈k|E|/n⌉·Δf. No
construction depends on how records are numbered, so every edge is equally likely:

- Single records: a random subset.
- Pairs: a fixed graph with degrees as equal as possible, its vertices numbered by a random
  permutation. It takes linear time and no search. The estimate's variance depends on E only through
  how many pairs of edges share a record, which equal degrees fix. So no other balanced way of
  drawing E is more accurate (docs/papers.md).
- Larger edges: distinct random edges, whose degrees are then levelled (`edge_blocks.py`).
- Two samples, `biregular`: as for pairs, with a numbering of each class (docs/papers.md).

`matchings` are the pairs of Bell et al. 2020, section 5: P random pairings of all records. A pair
may come twice. The rest of this file has edges that are drawn without regard to degrees.

*Drawn edges.* Edge sets drawn without regard to degrees: the comparisons of Sinh & Ramon 2025,
table 2.

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

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from umpc.errors import RangeError, StudyError, TooFewRecords
from umpc.ustat.edge_blocks import (
    biregular_edges,
    circulant_edges,
    complement,
    level,
    narrowed,
    random_edges,
)
from umpc.ustat.text import Words, below, random_order

__all__ = ["Words", "below"]
"""Names of other modules that this one passes on."""
_RULE = re.compile(r"0*[1-9][0-9]{0,17}[np]?")
BALANCED, UNIFORM, BERNOULLI, TWO_SAMPLE = "balanced", "uniform", "bernoulli", "two_sample"
UNBALANCED = (UNIFORM, BERNOULLI)
"""The samplings of edges without regard to degrees (`sampling.py`)."""
SAMPLINGS = (BALANCED, UNIFORM, BERNOULLI, TWO_SAMPLE)
"""The ways to take E from all sets; the last is for two classes, all others for any records."""
UP_TO = "up to "
"""A rule that begins so asks for all edges, or for about as many as the number that follows."""


def edge_count(rule: str, records: int, degree: int = 2) -> int:
    """|E| for a study's rule.

    Args:
        rule: "all", a multiple of n such as "2n", pairings of all records such as "1p", a number,
            or "up to 500000": all edges, or about so many with equal degrees, but at least 2n.
        records: n, of all nodes together.
        degree: records of an edge.

    Raises: TooFewRecords, or StudyError where the rule is unreadable or asks for more edges than
    exist.
    """
    if records < degree:
        raise TooFewRecords(
            f"a statistic of degree {degree} needs at least {degree} records in all, "
            f"the nodes have {records} together"
        )
    total = comb(records, degree)
    pairings = pairings_of(rule)
    if pairings is None:
        there_are = f"{records} records have only {total} sets of {degree}"
        return _count(rule, records, total, there_are, Fraction(records, degree))
    if degree != 2:
        raise StudyError(
            f'edges = "{rule}" pairs the records, and the statistic is over {degree}; ask for "2n"'
        )
    return pairings * (records // 2)


def two_sample_edge_count(rule: str, zeros: int, ones: int) -> int:
    """|E| where an edge is a record of class 0 and a record of class 1.

    Args:
        rule: "all", a multiple of the records of both classes such as "2n", or a number.
        zeros, ones: the records of class 0 and of class 1, of all nodes together.

    Raises: TooFewRecords, or StudyError where the rule is unreadable or asks for more edges than
    exist.
    """
    if min(zeros, ones) < 1:
        raise TooFewRecords(
            f"a two-sample statistic needs at least 1 record of either class, "
            f"the nodes have {zeros} of class 0 and {ones} of class 1 together"
        )
    if pairings_of(rule) is not None:
        raise StudyError(
            f'edges = "{rule}" pairs all records, and this statistic those of two classes; '
            f'ask for "2n"'
        )
    total = zeros * ones
    there_are = f"{zeros} records of class 0 and {ones} of class 1 have only {total} pairs"
    return _count(rule, zeros + ones, total, there_are, Fraction(min(zeros, ones)))


def _count(rule: str, records: int, total: int, there_are: str, each: Fraction) -> int:
    """|E|. Args: each: the edges for which each record is in one more."""
    number, unit = read_rule(rule)
    if number is None or (unit == UP_TO and total <= number):
        return total
    if unit == UP_TO:
        # equal degrees, for the noise is that of the largest; and never fewer than 2n
        return min(total, max(2 * records, int(int(number / each) * each)))
    count = number * (records if unit == "n" else 1)
    if count > total and not unit:
        raise StudyError(f"edges = {count}, but {there_are}; ask for fewer or all")
    return min(count, total)


def read_rule(rule: str) -> tuple[int | None, str]:
    """The number in a study's rule, and what it counts.

    Returns: the number, or None for all edges; and "n" for records, "p" for pairings, "" for edges,
    UP_TO for the most edges.
    Raises: StudyError where the rule is unreadable.
    """
    if rule == "all":
        return None, ""
    most = rule.removeprefix(UP_TO)
    if not _RULE.fullmatch(most) or (most != rule and most[-1] in "np"):
        raise StudyError(
            f'edges must be "all", a multiple of n such as "2n", pairings of all records such as '
            f'"1p", a positive number, or "up to" and a number; got {rule[:40]!r}'
        )
    if most != rule:
        return int(most), UP_TO
    number = rule.rstrip("np")
    return int(number), rule[len(number) :]


def pairings_of(rule: str) -> int | None:
    """P, for a rule that asks for P pairings of all records; else None."""
    number, unit = read_rule(rule)
    return number if unit == "p" else None


def max_degree(count: int, records: int, degree: int = 2) -> int:
    """δ_max of a balanced edge set: ⌈k|E|/n⌉."""
    return -(-degree * count // records)


def two_sample_max_degree(count: int, zeros: int, ones: int) -> int:
    """δ_max of a biregular edge set: ⌈|E|/m⌉, m being the size of the smaller class."""
    return -(-count // min(zeros, ones))


def balanced(records: int, count: int, words: Words, degree: int = 2) -> NDArray[np.integer]:
    """Distinct edges with degrees as equal as possible.

    Returns: (count, degree) int32 or int64, each row ascending, in no particular order.
    Raises: RangeError where the records are too many for the edges to be numbered by int64.
    """
    if degree > 1 and records**degree > 1 << 63:
        raise RangeError(
            f"{records} records are too many for edges of {degree}; at most 2^{63 // degree}"
        )
    order = random_order(records, words)
    if degree == 1:
        return narrowed(order)[:count, None]
    if degree > 2:
        return _levelled(order, count, words, degree)
    return circulant_edges(order, count).T


def _levelled(order: NDArray[np.int64], count: int, words: Words, degree: int) -> NDArray[np.int64]:
    """Edges of three records or more. Args: order: the numbering of the records."""
    records = len(order)
    total = comb(records, degree)
    if 2 * count > total:
        # degrees of the complement differ as little; a sparse set is levelled in fewer steps
        left_out = balanced(records, total - count, words, degree)
        return complement(left_out, records, degree)
    drawn = random_edges(records, count, words, degree)
    return np.sort(order[level(drawn, records, words)], axis=1)


def matchings(records: int, pairings: int, words: Words) -> NDArray[np.int64]:
    """P independent, uniformly random pairings. Each leaves one of an odd number of records out.

    Returns: (P·⌊n/2⌋, 2) int64, each row ascending. A pair of several pairings is there several
    times.
    """
    pairs = records // 2
    edges = np.empty((pairings * pairs, 2), dtype=np.int64)
    for start in range(0, len(edges), pairs):
        order = random_order(records, words)
        edges[start : start + pairs] = order[: 2 * pairs].reshape(-1, 2)
    return np.sort(edges, axis=1)


def biregular(zeros: int, ones: int, count: int, words: Words) -> NDArray[np.integer]:
    """Distinct pairs of a class-0 and a class-1 record, with equal degrees inside either class.

    Degrees of one class differ by at most 1.

    Returns: (count, 2) int32 or int64, numbers of records inside their class, in no particular
    order.
    """
    return biregular_edges([random_order(size, words) for size in (zeros, ones)], count).T


# --- drawn edges ----------------------------------------------------------------------------------

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
