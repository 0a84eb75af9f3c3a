"""The settings of studies whose records become cells or bins, and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import prod
from typing import Annotated

import numpy as np

from umpc.errors import StudyError, UmpcError
from umpc.study.document import Study
from umpc.study.parts import FieldBins
from umpc.study.rules import check_between_0_and_1, check_choice
from umpc.study.settings import ProtocolSettings, describe
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import to_text
from umpc_papers.local.cell_kernels import has_average, has_extremes
from umpc_papers.local.quantisation import CELL_KERNELS, MIDDLE, Bins, Points, Quantiser

ROUNDINGS = ("simple", "randomised")
MOST_CELLS = 2048
"""The limit of `quantisation.py`: products of matrices of this size take a second."""
MOST_LEVELS = 20
"""The limit of `bell_auc.py`."""
USUAL_BINS = 4
FEW_VALUES = 8
"""A field of at most so many values has a bin for each."""
USUAL_LEVELS = 4
SPLITS = ("users", "budget")
VARIANTS = ("half", "zero")
ROUNDED = 1e-9
"""A kernel that differs between cells by this part of its range is the same but for rounding."""


class CellSettings(ProtocolSettings, frozen=True, kw_only=True):
    """How records become cells. A field without bins gets the usual ones."""

    bins: Annotated[
        tuple[FieldBins, ...],
        describe(
            "Each field's number of bins, or cut points known beforehand. The default is 4, or "
            "one bin for each value where there are at most 8."
        ),
    ] = ()
    rounding: Annotated[str, describe("How values become bins.", *ROUNDINGS)] = "simple"
    cell_kernel: Annotated[
        str,
        describe(
            "The kernel between two bins: its average over their values, the middle of its least "
            "and largest value, or its value at the bins' middles. The default is the average, "
            "where bins have several values and it can be computed, else the middle.",
            *CELL_KERNELS,
        ),
    ] = ""

    @property
    def newer(self) -> tuple[str, ...]:
        return ("cell_kernel",)

    def has_usual_bins(self, bins: FieldBins, schema: Schema) -> bool:
        return bins == usual_bins(schema[bins.field])

    @property
    def kernel_of_cells(self) -> str:
        """One of `CELL_KERNELS`. A document without one has the middles, as studies once had."""
        return self.cell_kernel or MIDDLE

    @property
    def takes_classes(self) -> bool:
        """Whether the protocol computes a mean over two public classes too."""
        return False

    @property
    def noise(self) -> str:
        return "local"


class BellLdpSettings(CellSettings, frozen=True, kw_only=True, tag="bell-ldp"):
    """Each record answers with its cell, or with a random one (Bell et al. 2020)."""

    bins_epsilon_share: Annotated[
        str,
        describe(
            "The share of ε with which a first answer of every record finds the cut points of "
            "fields that have a number of bins, above 0 and below 1, such as 1/4. The default is "
            "none: bins of equal width."
        ),
    ] = ""

    @property
    def newer(self) -> tuple[str, ...]:
        return (*super().newer, "bins_epsilon_share")

    @property
    def takes_classes(self) -> bool:
        return True


class GhaziLdpSettings(CellSettings, frozen=True, kw_only=True, tag="ghazi-ldp"):
    """Each record answers with one bit about its column of a factor of the kernel."""


class BellAucSettings(ProtocolSettings, frozen=True, kw_only=True, tag="bell-auc"):
    """An AUC from noisy counts in a tree of bins of the score."""

    levels: Annotated[int, describe("The scores become 2^levels bins.")] = USUAL_LEVELS
    levels_by: Annotated[
        str,
        describe(
            "What is divided over the levels: the users, who answer for one level each, or the "
            "budget, with which everybody answers for all levels.",
            *SPLITS,
        ),
    ] = "users"
    discarded: Annotated[
        str,
        describe("What pairs inside a node of few records count: a half, or nothing.", *VARIANTS),
    ] = "half"
    delta: Annotated[
        str,
        describe("δ of all levels together, such as 1e-6, with levels_by = budget."),
    ] = ""

    @property
    def newer(self) -> tuple[str, ...]:
        return ("levels_by", "discarded", "delta")

    @property
    def noise(self) -> str:
        return "local"


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
    return _with_cell_kernel(study.replaced(bins=(*settings.bins, *map(usual_bins, missing))))


def _with_cell_kernel(study: Study) -> Study:
    """The study with the average kernel, if it names no kernel between cells and its bins fit."""
    settings = study.settings_as(CellSettings)
    if settings.cell_kernel or settings.rounding != "simple":
        return study
    try:
        cells = quantiser_of(study)
    except UmpcError:
        return study  # `check` says what is wrong
    if cells.limits() is None or not has_average(cells.kernel, cells.starts):
        return study
    return study.replaced(cell_kernel="average")


def usual_bins(field: FieldSchema) -> FieldBins:
    """Bins of equal width, without a look at the data; each category and each of few values."""
    values = field.upper_units - field.lower_units + 1
    is_each = field.categories or values <= FEW_VALUES
    return FieldBins(field.name, values if is_each else USUAL_BINS)


def check_auc(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(BellAucSettings)
    _ = auc_field(study)
    check_choice("levels_by", settings.levels_by, SPLITS)
    check_choice("discarded", settings.discarded, VARIANTS)
    if settings.delta:
        check_between_0_and_1(settings.delta, study)
        if settings.levels_by != "budget":
            raise StudyError(
                'delta is for levels that share a record\'s budget; write levels_by = "budget", or '
                "leave delta out"
            )
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
    facts = (study.degree, study.estimator, len(study.kernels))
    if facts != (2, "mean", 1) or (study.two_sample and not settings.takes_classes):
        classes = "of all, or of two classes" if settings.takes_classes else "without classes"
        raise StudyError(
            f'"{study.protocol}" computes the mean of one kernel over all pairs of records, '
            f"{classes}; got {study.statistic[:63]!r}, the {study.estimator} of "
            f"{len(study.kernels)} sum(s) over sets of {study.degree} record(s), "
            f'"{study.sampling}"'
        )
    check_choice("rounding", settings.rounding, ROUNDINGS)
    check_choice("cell_kernel", settings.kernel_of_cells, CELL_KERNELS)
    if settings.rounding == "randomised" and settings.kernel_of_cells != MIDDLE:
        raise StudyError(
            f'rounding = "randomised" makes points, between which the kernel is that of the '
            f'points; write cell_kernel = "{MIDDLE}", or leave it out'
        )
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
    _check_cell_kernel(study)


def _check_cell_kernel(study: Study) -> None:
    """Whether the kernel between cells can be computed. Raises: StudyError."""
    chosen = study.settings_as(CellSettings).kernel_of_cells
    if chosen == MIDDLE:
        return
    cells = quantiser_of(study)
    possible = has_average(cells.kernel, cells.starts)
    if chosen == "midpoint":
        possible = has_extremes(cells.starts)
    if not possible:
        raise StudyError(
            f'cell_kernel = "{chosen}" goes through all pairs of values of this kernel, and there '
            f'are too many; take coarser resolutions, or cell_kernel = "{MIDDLE}"'
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


def constant_cells(study: Study) -> str:
    """Why the kernel is the same between all cells, and what to do; empty if it is not."""
    cells = quantiser_of(study)
    width = float(cells.kernel.interval.width)
    if np.ptp(cells.matrix) > ROUNDED * width:
        return ""
    return (
        f"the kernel has one value between all bins ({described(study)}); give a field more bins "
        f"under [bins]"
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


def quantiser_of(study: Study, found: Mapping[str, tuple[int, ...]] | None = None) -> Quantiser:
    """The cells of a checked study's records, and its kernel as a matrix over them.

    Args: found: by field, cut points that were searched, in steps of its resolution above its
    lower bound.
    """
    settings = study.settings_as(CellSettings)
    axes = tuple(
        _found_axis(study.schema[bins.field], found[bins.field])
        if found and bins.field in found
        else _axis(study, bins, settings.rounding)
        for bins in settings.bins
    )
    return Quantiser(study.parsed_kernels[0], axes, settings.kernel_of_cells, study.two_sample)


def _found_axis(field: FieldSchema, cuts: tuple[int, ...]) -> Bins:
    return Bins(field, tuple(field.lower_units + cut for cut in cuts))


def _axis(study: Study, bins: FieldBins, rounding: str) -> Bins | Points:
    field = study.schema[bins.field]
    cuts = bins.units(field)
    if rounding == "simple" or field.categories:
        return Bins.equal(field, bins.count) if bins.count else Bins(field, cuts)
    if bins.count:
        return Points.equal(field, bins.count)
    return Points(field, (field.lower_units, *cuts, field.upper_units))
