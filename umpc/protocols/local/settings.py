"""What a study of a one-message protocol says: bins, levels, and what it may not say.

Each node randomises its own records and releases one message, so there are no edges between nodes, no dealer, and no
noise that nodes would have to agree on. What of a study's entries cannot mean anything has one value, which the file
of a study may leave out; another value is refused, because somebody would think that it had been obeyed.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

import msgspec

from umpc.errors import StudyError
from umpc.study.parts import FieldBins
from umpc.ustat.schema import FieldSchema
from umpc.ustat.statistics import find_statistic
from umpc.ustat.text import to_text

if TYPE_CHECKING:
    from umpc.study.document import Study

ASKS = "ghazi-rounds"
"""The one whose nodes answer a question after their first message."""
OF_CELLS = ("bell-ldp", "ghazi-ldp", ASKS, "ghazi-shuffle")
ONE_MESSAGE = ("bell-ldp", "bell-auc", "ghazi-ldp", ASKS)
"""The coordinator gets every node's message."""
SHUFFLED = ("ghazi-shuffle",)
"""Two shufflers get it, half and half."""
SHUFFLERS = 2
FIXED = {"edges": "all", "noise": "local", "backend": "none", "preprocessing": "none", "delta": ""}
"""Entries that have one value: every record answers for itself, and all pairs are estimated."""
ROUNDINGS = ("simple", "randomised")
MOST_CELLS = 2048
"""As `umpc.protocols.local.quantisation`: products of matrices of this size take a second."""
MOST_LEVELS = 20
"""As `umpc.protocols.local.bell_auc`."""
USUAL_BINS = 4
USUAL_LEVELS = 4


def check_local(study: Study) -> None:
    """Everything that can be said of bins and levels without data. Raises: StudyError and its kinds."""
    protocol = study.protocol
    if protocol not in OF_CELLS and (study.bins or study.rounding != "simple"):
        raise StudyError(
            f'bins and rounding go with {_quoted(OF_CELLS)}; leave them out of "{protocol}"'
        )
    if protocol != "bell-auc" and study.levels:
        raise StudyError(
            f'levels go with "bell-auc"; leave levels = {study.levels} out of "{protocol}"'
        )
    _check_shufflers(study)
    if protocol not in (*ONE_MESSAGE, *SHUFFLED):
        return
    for key, value in (FIXED | ({"noise": "shuffled"} if study.shuffled else {})).items():
        if (came := getattr(study, key)) != value:
            raise StudyError(
                f'{key} of "{protocol}" is "{value}", for every record answers for itself and all pairs count; leave '
                f"{key} out, got {came!r}"
            )
    if study.dealer is not None:
        raise StudyError(f'"{protocol}" has no dealer; leave {study.dealer.name!r} out')
    if protocol == "bell-auc":
        _check_auc(study)
    else:
        _check_cells(study)


def _check_shufflers(study: Study) -> None:
    count = len(study.shufflers)
    if count and not study.shuffled:
        raise StudyError(
            f'shufflers go with {_quoted(SHUFFLED)}; leave them out of "{study.protocol}"'
        )
    if count != SHUFFLERS and study.shuffled:
        raise StudyError(
            f'"{study.protocol}" takes exactly two shufflers, of which neither sees anything without the other; got '
            f"{count}: write two [[shufflers]], each with name and address"
        )


def _check_auc(study: Study) -> None:
    _ = auc_field(study)
    if not 1 <= study.levels <= MOST_LEVELS:
        raise StudyError(
            f"the scores of bell-auc become 2^levels bins; write levels = {USUAL_LEVELS} or another number "
            f"of 1 to {MOST_LEVELS}, got {study.levels}"
        )


def auc_field(study: Study) -> str:
    """The score of an AUC with public labels. Raises: StudyError where the study computes something else."""
    is_mean = study.two_sample and (study.estimator, len(study.kernels)) == ("mean", 1)
    found = study.parsed_kernels[0].fields if is_mean else ()
    if len(found) != 1 or study.parsed_kernels[0].text != to_text(
        find_statistic("auc").expression(found)
    ):
        raise StudyError(
            f'protocol = "bell-auc" computes statistic = "auc" of one field, with a public label; got '
            f"{study.statistic[:63]!r}"
        )
    return found[0]


def _check_cells(study: Study) -> None:
    if (study.degree, study.sampling, study.estimator, len(study.kernels)) != (
        2,
        "balanced",
        "mean",
        1,
    ):
        raise StudyError(
            f'"{study.protocol}" computes the mean of one kernel over all pairs of records, without classes; got '
            f"{study.statistic[:63]!r}, the {study.estimator} of {len(study.kernels)} sum(s) over sets of "
            f'{study.degree} record(s), "{study.sampling}"'
        )
    if study.rounding not in ROUNDINGS:
        raise StudyError(f"rounding must be one of {', '.join(ROUNDINGS)}, got {study.rounding!r}")
    fields = study.parsed_kernels[0].fields
    if sorted(bins.field for bins in study.bins) != list(fields):
        raise StudyError(
            f'"{study.protocol}" takes bins for each field of the kernel, which are {", ".join(fields)}; got bins for '
            f"{', '.join(bins.field for bins in study.bins) or 'none'}; write under [bins] a number of bins, or cut "
            f"points, for each"
        )
    for bins in study.bins:
        _check_bins(bins, study.schema[bins.field], study.rounding)
    if not 2 <= (cells := prod(size_of(bins, study) for bins in study.bins)) <= MOST_CELLS:
        raise StudyError(
            f"bins make {cells} cells in all, 2 to {MOST_CELLS} are possible; change their numbers"
        )


def _check_bins(bins: FieldBins, field: FieldSchema, rounding: str) -> None:
    where, values = f"bins of {field.name!r}", field.upper_units - field.lower_units + 1
    if (bins.count and bins.cuts) or bins.count < 0 or len(bins.cuts) >= MOST_CELLS:
        raise StudyError(
            f"{where}: either a number of bins or at most {MOST_CELLS - 1} cut points were expected"
        )
    least = 2 if rounding == "randomised" and not field.categories else 1
    if bins.cuts and field.categories:
        raise StudyError(
            f"{where}: categories have no order, so no cut points; write their number, {values}"
        )
    if not bins.cuts and not least <= bins.count <= values:
        raise StudyError(
            f"{where}: {least} to {values} bins are possible for its {values} values, got {bins.count}"
        )
    edges = (field.lower_units, *bins.units(field), field.upper_units + (rounding == "simple"))
    if bins.cuts and any(first >= second for first, second in pairwise(edges)):
        raise StudyError(
            f"{where}: cut points must ascend, above {field.lower} and up to {field.upper}; got {', '.join(bins.cuts)}"
        )


def size_of(bins: FieldBins, study: Study) -> int:
    """How many bins a field has; with randomised rounding, points: also its two bounds."""
    return bins.count or len(bins.cuts) + (1 if study.rounding == "simple" else 2)


def with_usual_bins(study: Study) -> Study:
    """The study with bins for those fields of its kernel that have none: as many as categories, else four."""
    if study.protocol not in OF_CELLS:
        return study
    given = {bins.field for bins in study.bins}
    missing = [
        study.schema[name]
        for kernel in study.parsed_kernels
        for name in kernel.fields
        if name not in given
    ]
    return msgspec.structs.replace(study, bins=(*study.bins, *map(usual_bins, missing)))


def usual_bins(field: FieldSchema) -> FieldBins:
    """Of equal width, blind to the data; a category is a bin."""
    return FieldBins(
        field.name,
        len(field.categories) or min(USUAL_BINS, field.upper_units - field.lower_units + 1),
    )


def described(study: Study) -> str:
    """How records become bins, for people; empty where they do not."""
    if study.protocol == "bell-auc":
        return f"{1 << study.levels} bins of {auc_field(study)!r}"
    parts = [
        f"{size_of(bins, study)} of {bins.field!r}"
        + (f" cut at {', '.join(bins.cuts)}" if bins.cuts else "")
        for bins in study.bins
    ]
    return f"{study.rounding} rounding to bins: {', '.join(parts)}" if parts else ""


def _quoted(names: tuple[str, ...]) -> str:
    *first, last = (f'"{name}"' for name in names)
    return f"{', '.join(first)} and {last}" if first else last
