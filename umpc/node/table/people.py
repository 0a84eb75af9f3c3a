"""Records of the same person: each record's place among them, so that only the first ones count."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]


def places_among_own(persons: NDArray[np.object_]) -> Places:
    """Return each record's place among the records of its person, from 0, in the table's order.

    It depends on that person's own records alone, so another person's records change no place.

    Args: persons: (records,) text that tells people apart.
    """
    seen: dict[str, int] = {}
    who = np.fromiter((seen.setdefault(each, len(seen)) for each in persons), np.int64)
    order = np.argsort(who, kind="stable")
    sizes = np.bincount(who)
    firsts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.empty(len(who), dtype=np.int64)
    places[order] = np.arange(len(who)) - firsts
    return places


class PeopleSoFar:
    """The number of records of each person in the batches so far."""

    def __init__(self) -> None:
        self._records: Counter[str] = Counter()

    def places(self, persons: NDArray[np.object_]) -> Places:
        """Return each record's place among its person's, in all batches so far and this one."""
        within = places_among_own(persons)
        before = (self._records[person] for person in persons)
        found = within + np.fromiter(before, np.int64, len(persons))
        self._records.update(persons.tolist())
        return found
