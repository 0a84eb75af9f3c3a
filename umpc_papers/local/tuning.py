"""The bins and levels with the least predicted error over a table like the sites' own.

Paper: Bell et al. 2020, corollary 1. More bins make the bins' own error smaller and the noise
larger. The corollary balances two bounds; here the error itself is predicted over the table, for
one number of bins after the other. The table must be public or older than the sites' data: the bins
of a study are public and must not depend on the records that it randomises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from umpc.errors import StudyError
from umpc.study.document import Study
from umpc.study.parts import FieldBins
from umpc_papers.local.settings import BellAucSettings, CellSettings, size_of

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""The numbers of bins that are tried for a field."""
MOST_TRIED = 128
"""The most cells that are tried: each number of cells takes products of such matrices."""
SHARES = ("1/10", "1/4", "1/2")
"""The shares of ε for cut points that are tried."""
MOST_LEVELS_TRIED = 12
PASSES = 2
"""How often each field is tried anew, beside the others' best numbers."""

Predict = Callable[[Study], float]
"""The mean squared error of a study over the table. Raises: StudyError where it cannot run."""


def best_bins(study: Study, predict: Predict) -> Study:
    """The study with the numbers of bins of the least error, one field after the other.

    Fields with cut points and categories keep theirs.
    """
    best, least = study, _error(study, predict)
    for _ in range(PASSES):
        before = best
        for number in range(len(study.settings_as(CellSettings).bins)):
            for other in _with_other_counts(best, number):
                error = _error(other, predict)
                if error < least:
                    best, least = other, error
        if best == before:
            break
    return best


def best_share(study: Study, predict: Predict) -> Study:
    """The study with the numbers of bins and the share of ε for their cut points of least error.

    Bins of equal width, which take no share, are among those that are tried.
    """
    predict = cache(predict)
    bins = best_bins(study, predict)
    others = [bins.replaced(bins_epsilon_share=share) for share in SHARES]
    equal = best_bins(study.replaced(bins_epsilon_share=""), predict)
    return min([study, bins, *others, equal], key=lambda each: _error(each, predict))


def best_levels(study: Study, predict: Predict) -> Study:
    """The AUC's study with the levels, and the value of discarded pairs, of least error."""
    levels = range(1, MOST_LEVELS_TRIED + 1)
    others = [
        study.replaced(levels=count, discarded=discarded)
        for count in levels
        for discarded in ("half", "zero")
    ]
    study.settings_as(BellAucSettings)
    return min([study, *others], key=lambda each: _error(each, predict))


def _with_other_counts(study: Study, number: int) -> Iterator[Study]:
    settings = study.settings_as(CellSettings)
    bins = settings.bins
    field = study.schema[bins[number].field]
    if bins[number].cuts or field.categories:
        return
    cells = 1
    for each in bins:
        cells *= size_of(each, settings.rounding) if each != bins[number] else 1
    for count in COUNTS:
        if count <= field.upper_units - field.lower_units + 1 and 2 <= cells * count <= MOST_TRIED:
            changed = (*bins[:number], FieldBins(field.name, count), *bins[number + 1 :])
            yield study.replaced(bins=changed)


def _error(study: Study, predict: Predict) -> float:
    try:
        return predict(study)
    except StudyError:
        return float("inf")
