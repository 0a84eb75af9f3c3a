"""Bins: a field's values in groups whose places are public and do not depend on the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Self

from umpc.errors import StudyError
from umpc.planning.reference_table import ReferenceTable
from umpc.study.document import Study
from umpc.study.making_report import Limits
from umpc.study.parts import FieldBins
from umpc.study.settings import wrong_type
from umpc.ustat.schema import FieldSchema

LEAST_BINS = 2
KEPT = 64
"""The most fields of which a process keeps the bins."""


@dataclass(frozen=True)
class Bins:
    """Bins of one field.

    Args:
        field: the field.
        cuts: ascending, in steps of the resolution. A value's bin number is the number of cuts
            that are at most the value.

    Raises:
        StudyError: the cuts do not ascend inside the field's bounds.
    """

    field: FieldSchema
    cuts: tuple[int, ...]

    def __post_init__(self) -> None:
        require_ascending((self.field.lower_units, *self.cuts), self.field)
        if self.cuts and self.cuts[-1] > self.field.upper_units:
            raise StudyError(f"field {self.field.name!r}: the last cut lies above the upper bound")

    @classmethod
    def equal(cls, field: FieldSchema, bins: int) -> Self:
        """Bins of equal width, up to rounding."""
        low = field.lower_units
        span = field.upper_units - low + 1
        if not 1 <= bins <= span:
            raise StudyError(f"field {field.name!r} has {span} values and cannot have {bins} bins")
        cuts = (low + number * span // bins for number in range(1, bins))
        return cls(field, tuple(cuts))

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.cuts) + 1


def check_bins(study: Study, given: Sequence[FieldBins]) -> None:
    """Raises: StudyError where the bins of a study's fields are not what they should be."""
    names = [bins.field for bins in given]
    known = [field.name for field in study.fields]
    for name in names:
        if name not in known or names.count(name) > 1:
            raise StudyError(
                f"bins are given once for a field of the study, which has {', '.join(known)}; got "
                f"bins for {', '.join(names)}"
            )
    for bins in given:
        where = f"bins of {bins.field!r}"
        field = study.schema[bins.field]
        if field.categories:
            raise StudyError(f"{where}: categories have no order; leave the bins of this field out")
        if (bins.count and bins.cuts) or max(bins.count, len(bins.cuts) + 1) < LEAST_BINS:
            raise StudyError(
                f"{where}: a number of bins from {LEAST_BINS} on, or a list of cut points, was "
                f"expected; got {bins.count or 'neither'}"
            )
        _ = bins_of_field(field, bins)


@lru_cache(maxsize=KEPT)
def bins_of_field(field: FieldSchema, bins: FieldBins) -> Bins:
    """Raises: StudyError where cut points do not fit the field, or it has fewer values."""
    return Bins.equal(field, bins.count) if bins.count else Bins(field, bins.units(field))


def limits_of_bins(bins: Iterable[tuple[FieldSchema, int]]) -> Limits | None:
    """The value that an interval covers where some fields have fewer bins than values.

    Nobody knows the bias of such bins without the data, so the report says where it is.

    Args: bins: fields with their numbers of bins.
    """
    coarse = []
    for field, size in bins:
        values = field.upper_units - field.lower_units + 1
        if size < values:
            coarse.append(f"{field.name} has {size} bins for {values:,} values")
    if not coarse:
        return None
    return Limits(
        "the value on the records' bins",
        f"the bins' own error is not in the interval: {', '.join(coarse)}; one bin for each value, "
        f"or bins that are finer where records differ, make it smaller",
    )


def require_ascending(numbers: tuple[int, ...], field: FieldSchema) -> None:
    if any(first >= second for first, second in pairwise(numbers)):
        raise StudyError(
            f"field {field.name!r}: cuts and points must ascend, above the lower bound"
        )


def bias_of_bins(quantised: float | None, table: ReferenceTable) -> float:
    """How far the statistic of cells is from that of the table's records. Raises: StudyError."""
    if table.statistic is None or quantised is None:
        raise StudyError("the statistic cannot be told from this table")
    return quantised - table.statistic


def read_bins(entries: Mapping[str, Any]) -> dict[str, Any]:
    """A file's entries, with the table of bins as the document has it.

    Raises: StudyError where the bins are not a table.
    """
    if "bins" not in entries:
        return dict(entries)
    table = entries["bins"]
    if not isinstance(table, Mapping):
        raise StudyError(
            f"{wrong_type('bins', 'object', type(table).__name__)}. Write a table of fields there"
        )
    bins = [_entry(field, given) for field, given in table.items()]
    return {**entries, "bins": bins}


def _entry(field: str, given: Any) -> dict[str, Any]:
    """One field's number of bins, or its cut points."""
    if isinstance(given, int) and not isinstance(given, bool):
        return {"field": field, "count": given}
    if isinstance(given, list):
        return {"field": field, "cuts": [str(cut) for cut in given]}
    raise StudyError(
        f"{wrong_type(f'bins.{field}', 'int | array', type(given).__name__)}. Write a "
        f"number of bins, or cut points"
    )
