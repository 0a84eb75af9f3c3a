"""Several statistics in one study, and one statistic in several strata, with their parts of ε.

*Several statistics* over the same E: ε is split between the statistics, and the part of each is
split equally over its sums.

*Strata.* The sums of one kernel inside different strata share one part of ε. Replacing a record can
move it from one stratum to another. Still each edge of two and more records changes the sum of one
stratum only: the one that its other records are in. So all strata together change by no more than
one sum may, and each sum has noise for the whole part of ε. An edge of one record can change two
sums, which then have half of the part each. docs/privacy.md has the proof. It needs noise that is
discrete Laplace and participants that follow the protocol; otherwise the part is split over strata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import msgspec

LAPLACE = ("distributed", "in_mpc")
"""The noises that are discrete Laplace, but for the distance that δ states."""


class StudyPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value of a study that reports several.

    name: tells the study's statistics apart. Strata of one statistic have one name.
    statistic: the library's name or the kernel's. estimator: what is computed from its sums.
    sums: how many of the study's kernels are its own; parts take them in order.
    stratum: the category that its sets lie in; empty where the study has no strata.
    """

    name: str
    statistic: str
    estimator: str
    sums: int
    stratum: str = ""


@dataclass(frozen=True)
class SumOfPart:
    """A sum's place. number: of the sum in its part, from 0. strata: of the part's statistic."""

    part: StudyPart
    number: int
    strata: int

    @property
    def shared(self) -> tuple[str, int]:
        """Equal for the sums of one kernel in different strata."""
        return self.part.name, self.number


def sums_of(parts: Sequence[StudyPart]) -> Iterator[SumOfPart]:
    """The place of each of the study's sums, in order."""
    strata = Counter(part.name for part in parts)
    for part in parts:
        for number in range(part.sums):
            yield SumOfPart(part, number, strata[part.name])


def names_of(parts: Sequence[StudyPart]) -> tuple[str, ...]:
    """The names of the study's statistics, in order, each once."""
    return tuple(dict.fromkeys(part.name for part in parts))


def changed_at_once(degree: int, strata: int) -> int:
    """How many strata's sums may one edge change when a record is replaced."""
    return 1 if degree > 1 else min(2, strata)


def shares_of_sums(
    parts: Sequence[StudyPart], shares: Mapping[str, Fraction], degree: int, *, is_shared: bool
) -> tuple[Fraction, ...]:
    """Each sum's part of ε.

    Args:
        shares: the part of each statistic, by name.
        is_shared: whether strata share the part of their statistic.
    """
    found = []
    for each in sums_of(parts):
        over = changed_at_once(degree, each.strata) if is_shared else each.strata
        found.append(shares[each.part.name] / each.part.sums / over)
    return tuple(found)


def groups_of_sums(parts: Sequence[StudyPart]) -> tuple[tuple[int, ...], ...]:
    """The numbers of the sums that share one part of ε, for each such part."""
    found: dict[tuple[str, int], list[int]] = {}
    for place, each in enumerate(sums_of(parts)):
        found.setdefault(each.shared, []).append(place)
    return tuple(map(tuple, found.values()))
