"""Coarser fields: bins of a field's values, or levels of two columns. Values alike are ties.

Both keep the kernel's range. A value's bin has a member, so a pair of bins has a pair of values
with the same order, and the kernel's value on bins is one of its values. `dyadic.py` refuses
kernels for which levels would do otherwise. So Δf, and with it the noise, stays that of the kernel.

*The share of ties.* It depends on the data, and no bound below 1 holds for all data. A released
mean bounds it: if f = u on all ties, then |mean − u| ≤ (1 − share)·max|f − u|.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from umpc.errors import KernelError, StudyError
from umpc.planning.reference_table import ReferenceTable
from umpc.protocols.base.bins import Bins, bins_of_field, check_bins, limits_of_bins
from umpc.protocols.grid.operators import ties_of_uniform_columns
from umpc.protocols.grid.operators.cuts import Cuts
from umpc.protocols.grid.operators.dyadic import Signs, signs_of
from umpc.protocols.grid.settings import USUAL_LEVELS, GridSettings, instead
from umpc.study.document import Study
from umpc.study.making_report import Limits
from umpc.study.parts import FieldBins, FieldText
from umpc.study.report import SumReport
from umpc.ustat.kernel import Kernel

MOST_LEVELS = 64
DEVIATIONS = 2
"""Standard deviations of noise by which a bound from a released mean is widened."""


def check_coarse(study: Study) -> None:
    """Raises: StudyError."""
    settings = study.settings_as(GridSettings)
    if settings.bins and settings.levels:
        raise StudyError(
            "bins are of some fields, and levels of two columns together; give one of them"
        )
    check_bins(study, settings.bins)
    if settings.levels:
        _check_levels(study, settings.levels)


def _check_levels(study: Study, levels: int) -> None:
    if not 1 <= levels <= MOST_LEVELS:
        raise StudyError(
            f"levels is a whole number from 1 to {MOST_LEVELS}, got {levels}; {USUAL_LEVELS} is a "
            f"usual one"
        )
    if study.degree != 2 or study.two_sample:
        raise StudyError(
            f"levels are for pairs of all records, and not for triples or two classes; "
            f"{instead(study)}"
        )


def _bins_of(study: Study, bins: FieldBins) -> Bins:
    """Raises: StudyError where cut points do not fit the field, or it has fewer values."""
    return bins_of_field(study.schema[bins.field], bins)


def cut_points(study: Study) -> Mapping[str, Sequence[int]]:
    """The cut points of the study's bins, in steps of resolutions. Raises: StudyError."""
    settings = study.settings_as(GridSettings)
    return {bins.field: _bins_of(study, bins).cuts for bins in settings.bins}


def described(study: Study) -> Iterator[tuple[str, str]]:
    """Lines for people: the values that count as ties."""
    settings = study.settings_as(GridSettings)
    for bins in settings.bins:
        size = f"{_bins_of(study, bins).size:,} of {bins.field}"
        cuts = f", cut at {', '.join(bins.cuts)}" if bins.cuts else ", of equal width"
        yield "bins", f"{size}{cuts}; values in one bin are ties"
    if settings.levels:
        yield (
            "levels",
            "as many as tell all values apart" if _tells_all_apart(study) else _in_words(study),
        )


def limits_of(study: Study, sums: Sequence[SumReport]) -> Limits | None:
    """The value that the intervals are for, where fields are coarse, and the share of ties."""
    settings = study.settings_as(GridSettings)
    if settings.levels and _tells_all_apart(study):
        return None
    if settings.levels:
        covers = f"the value at {settings.levels} levels of {_columns(study)}"
        return Limits(covers, f"{_in_words(study)}: {_ties(study, sums)}")
    limits = limits_of_bins(
        (study.schema[bins.field], _bins_of(study, bins).size) for bins in settings.bins
    )
    if limits is None:
        return None
    return Limits(limits.covers, f"{limits.note}. Values in one bin are ties: {_ties(study, sums)}")


def _columns(study: Study) -> str:
    return " and ".join(sorted(field.name for field in study.fields))


def _tells_all_apart(study: Study) -> bool:
    """Whether the levels are all bits of both columns, so that only equal values are ties."""
    sizes = (field.upper_units - field.lower_units for field in study.schema)
    bits = sum(max(1, size.bit_length()) - 1 for size in sizes)
    return study.settings_as(GridSettings).levels >= bits


def _in_words(study: Study) -> str:
    levels = study.settings_as(GridSettings).levels
    share = float(ties_of_uniform_columns(levels))
    return (
        f"pairs that agree on more than {levels} leading bits of {_columns(study)} together are "
        f"ties ({100 * share:.2g} % of pairs, if both were uniform and independent)"
    )


def _ties(study: Study, sums: Sequence[SumReport]) -> str:
    bound = ties_bound(study, sums)
    if bound >= 1:
        return "no released mean bounds their share"
    return (
        f"with real ties they are at most {100 * bound:.3g} % of all pairs, as the released means "
        f"say up to {DEVIATIONS} standard deviations of noise"
    )


def ties_bound(study: Study, sums: Sequence[SumReport]) -> float:
    """The largest share of pairs that can be ties, given the released means; 1 for no bound."""
    found = [1.0]
    for kernel, entry in zip(study.parsed_kernels, sums, strict=True):
        signs = _signs(kernel)
        if signs is None or len({signs.first, signs.second, signs.none}) > 1:
            continue
        tie = signs.none
        most = max(abs(signs.alike - tie), abs(signs.unlike - tie)) * float(kernel.unit)
        # mean − tie = Σ over pairs without a tie: far from it, few are ties
        away = abs(entry.mean - tie * float(kernel.unit)) - DEVIATIONS * entry.noise_std
        if most:
            found.append(1 - max(0.0, away) / most)
    return max(0.0, min(found))


def _signs(kernel: Kernel) -> Signs | None:
    """The kernel by the signs of its two columns; None for another kernel."""
    names = sorted(kernel.fields)
    if kernel.degree != 2 or len(names) != 2:
        return None
    try:
        return signs_of(kernel, *names)
    except KernelError:
        return None


def binned_table(table: ReferenceTable) -> ReferenceTable:
    """A table like the sites' own with bins in place of values, and the study over bins."""
    study = table.study
    cuts = Cuts(study.schema, cut_points(study))
    fields = tuple(
        FieldText(each.name, "0", str(len(cuts.points[each.name])), whole=True)
        if each.name in cuts.points
        else each
        for each in study.fields
    )
    return ReferenceTable(study.replaced(fields=fields), cuts.apply(table.columns), table.first)
