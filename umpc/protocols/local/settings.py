"""The settings of studies whose records become cells or bins, and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import prod
from typing import Annotated, Any

import msgspec

from umpc.errors import StudyError
from umpc.protocols.local.quantisation import Bins, Points, Quantiser
from umpc.study.document import Study
from umpc.study.parts import FieldBins
from umpc.study.rules import check_choice
from umpc.study.settings import Settings, describe
from umpc.ustat.schema import FieldSchema
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import to_text

ROUNDINGS = ("simple", "randomised")
MOST_CELLS = 2048
"""The limit of `quantisation.py`: products of matrices of this size take a second."""
MOST_LEVELS = 20
"""The limit of `bell_auc.py`."""
USUAL_BINS = 4
FEW_VALUES = 8
"""A field of at most so many values has a bin for each."""
USUAL_LEVELS = 4


class CellSettings(
    Settings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
):
    """How records become cells. A field without bins gets the usual ones."""

    bins: Annotated[
        tuple[FieldBins, ...],
        describe(
            "Each field's number of bins, or cut points known beforehand. The default is 4, or "
            "one bin for each value where there are at most 8."
        ),
    ] = ()
    rounding: Annotated[str, describe("How values become bins.", *ROUNDINGS)] = "simple"

    @property
    def noise(self) -> str:
        return "local"


class BellLdpSettings(CellSettings, frozen=True, kw_only=True, tag="bell-ldp"):
    """Each record answers with its cell, or with a random one (Bell et al. 2020)."""


class GhaziLdpSettings(CellSettings, frozen=True, kw_only=True, tag="ghazi-ldp"):
    """Each record answers with one bit about its column of a factor of the kernel."""


class BellAucSettings(
    Settings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
    tag="bell-auc",
):
    """An AUC from noisy counts in a tree of bins of the score."""

    levels: Annotated[int, describe("The scores become 2^levels bins.")] = USUAL_LEVELS

    @property
    def noise(self) -> str:
        return "local"


def read_bins(entries: Mapping[str, Any]) -> dict[str, Any]:
    """A file's entries, with the table of bins as the document has it.

    Raises: StudyError where the bins are not a table.
    """
    if "bins" not in entries:
        return dict(entries)
    table = entries["bins"]
    if not isinstance(table, Mapping):
        raise StudyError(
            f"Expected `object`, got `{type(table).__name__}` - at `$.bins`. Write a table of "
            f"fields there"
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
        f"Expected `int | array`, got `{type(given).__name__}` - at `$.bins.{field}`. Write a "
        f"number of bins, or cut points"
    )


def with_usual_bins(study: Study) -> Study:
    """The study with bins for those fields of its kernel that have none."""
    settings = study.settings_as(CellSettings)
    given = {bins.field for bins in settings.bins}
    missing = [
        study.schema[name]
        for kernel in study.parsed_kernels
        for name in kernel.fields
        if name not in given
    ]
    return study.replaced(bins=(*settings.bins, *map(usual_bins, missing)))


def usual_bins(field: FieldSchema) -> FieldBins:
    """Bins of equal width, without a look at the data; each category and each of few values."""
    values = field.upper_units - field.lower_units + 1
    is_each = field.categories or values <= FEW_VALUES
    return FieldBins(field.name, values if is_each else USUAL_BINS)


def check_auc(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(BellAucSettings)
    _ = auc_field(study)
    if not 1 <= settings.levels <= MOST_LEVELS:
        raise StudyError(
            f"the scores of bell-auc become 2^levels bins; write levels = {USUAL_LEVELS} or "
            f"another number of 1 to {MOST_LEVELS}, got {settings.levels}"
        )


def auc_field(study: Study) -> str:
    """The score of an AUC with public labels. Raises: StudyError for any other statistic."""
    is_mean = study.two_sample and (study.estimator, len(study.kernels)) == ("mean", 1)
    found = study.parsed_kernels[0].fields if is_mean else ()
    expected = to_text(find_statistic("auc").expression(found)) if len(found) == 1 else ""
    if not expected or study.parsed_kernels[0].text != expected:
        raise StudyError(
            f'protocol = "bell-auc" computes statistic = "auc" of one field, with a public '
            f"label; got {study.statistic[:63]!r}"
        )
    return found[0]


def check_cells(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(CellSettings)
    facts = (study.degree, study.sampling, study.estimator, len(study.kernels))
    if facts != (2, "balanced", "mean", 1):
        raise StudyError(
            f'"{study.protocol}" computes the mean of one kernel over all pairs of records, '
            f"without classes; got {study.statistic[:63]!r}, the {study.estimator} of "
            f"{len(study.kernels)} sum(s) over sets of {study.degree} record(s), "
            f'"{study.sampling}"'
        )
    check_choice("rounding", settings.rounding, ROUNDINGS)
    fields = study.parsed_kernels[0].fields
    if sorted(bins.field for bins in settings.bins) != list(fields):
        raise StudyError(
            f'"{study.protocol}" takes bins for each field of the kernel, which are '
            f"{', '.join(fields)}; got bins for "
            f"{', '.join(bins.field for bins in settings.bins) or 'none'}; write under [bins] a "
            f"number of bins, or cut points, for each"
        )
    for bins in settings.bins:
        _check_bins(bins, study.schema[bins.field], settings.rounding)
    cells = prod(size_of(bins, settings.rounding) for bins in settings.bins)
    if not 2 <= cells <= MOST_CELLS:
        raise StudyError(
            f"bins make {cells} cells in all, 2 to {MOST_CELLS} are possible; change their numbers"
        )


def _check_bins(bins: FieldBins, field: FieldSchema, rounding: str) -> None:
    where = f"bins of {field.name!r}"
    values = field.upper_units - field.lower_units + 1
    if (bins.count and bins.cuts) or bins.count < 0 or len(bins.cuts) >= MOST_CELLS:
        raise StudyError(
            f"{where}: either a number of bins or at most {MOST_CELLS - 1} cut points were expected"
        )
    if bins.cuts and field.categories:
        raise StudyError(
            f"{where}: categories have no order, so no cut points; write their number, {values}"
        )
    least = 2 if rounding == "randomised" and not field.categories else 1
    if not bins.cuts and not least <= bins.count <= values:
        raise StudyError(
            f"{where}: {least} to {values} bins are possible for its {values} values, got "
            f"{bins.count}"
        )
    last = field.upper_units + (rounding == "simple")
    edges = (field.lower_units, *bins.units(field), last)
    if bins.cuts and any(first >= second for first, second in pairwise(edges)):
        raise StudyError(
            f"{where}: cut points must ascend, above {field.lower} and up to {field.upper}; got "
            f"{', '.join(bins.cuts)}"
        )


def size_of(bins: FieldBins, rounding: str) -> int:
    """The number of a field's bins; with randomised rounding, of points and both bounds."""
    return bins.count or len(bins.cuts) + (1 if rounding == "simple" else 2)


def described(study: Study) -> str:
    """How records become bins, for people."""
    settings = study.settings_as(CellSettings)
    parts = []
    for bins in settings.bins:
        cuts = f" cut at {', '.join(bins.cuts)}" if bins.cuts else ""
        parts.append(f"{size_of(bins, settings.rounding)} of {bins.field!r}{cuts}")
    return f"{settings.rounding} rounding to bins: {', '.join(parts)}"


def quantiser_of(study: Study) -> Quantiser:
    """The cells of a checked study's records, and its kernel as a matrix over them."""
    settings = study.settings_as(CellSettings)
    axes = tuple(_axis(study, bins, settings.rounding) for bins in settings.bins)
    return Quantiser(study.parsed_kernels[0], axes)


def _axis(study: Study, bins: FieldBins, rounding: str) -> Bins | Points:
    field = study.schema[bins.field]
    cuts = bins.units(field)
    if rounding == "simple" or field.categories:
        return Bins.equal(field, bins.count) if bins.count else Bins(field, cuts)
    if bins.count:
        return Points.equal(field, bins.count)
    return Points(field, (field.lower_units, *cuts, field.upper_units))
