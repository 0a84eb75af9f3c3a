"""The settings of a study of protocol = "counts", their rules, its cells, and the noise of a cell.

The study's kernel is 1 for a record of the table's first cell, and else 0. The counts of all cells
are sums of such kernels, so bounds, δ_max and ring are those of any study over single records. The
settings say which cells there are.

*Sensitivity.* Replacing a record takes it from one cell and puts another one into another cell. So
the table changes by 2 in L1, and its square by 2 in L2². All m records of a person: by 2m at most,
and by 2m² at most, where all of them leave one cell for another.

*Tree.* Hay, Rastogi, Miklau & Suciu 2010: beside the bins of one axis also the sums of 2, 4, 8, …
neighbours, up to all of them. Any range of W bins is then a sum of at most 2·log2 W counts. A level
is one more table, which changes as the first one does, so L1 and L2² are those of a table times the
number of levels. Over the tree's axis alone the last level is n, which is public and does not
change.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import prod
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.counts import COUNTED
from umpc.counts.table import shapes_of_levels
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.committee import CommitteeLaplace
from umpc.dp.distributed_gaussian import GaussianShare, joint_gaussian
from umpc.errors import StudyError
from umpc.protocols.base.bins import Bins, bins_of_field, check_bins
from umpc.protocols.u_mpc.settings import check_noise
from umpc.study.document import Study
from umpc.study.parts import FieldBins
from umpc.study.report import CountedAxis
from umpc.study.rules import check_choice
from umpc.study.settings import HONEST, ProtocolSettings, describe
from umpc.ustat import expression as ex
from umpc.ustat.clear import Columns
from umpc.ustat.estimators import VECTOR
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.text import to_text

PLAIN = "counts"
"""The statistic of a file that names none."""
NOISES = ("distributed", "gaussian", "in_mpc")
MOST_AXES = 3
MOST_CELLS = 1 << 14
MOST_IN_MPC = 1 << 12
"""The most counts of which a committee draws the noise: each takes some 15 kB for two members."""
CellNoise: TypeAlias = DistributedLaplace | GaussianShare | CommitteeLaplace


class CountsSettings(ProtocolSettings, frozen=True, kw_only=True, tag="counts"):
    """A table of noisy counts is released: how many records lie in each cell."""

    cells: Annotated[
        tuple[str, ...],
        describe(
            "The fields of the table, one to three, the last one fastest. A file with a statistic "
            "of counts, such as kaplan_meier, has `columns` in place of it."
        ),
    ] = ()
    bins: Annotated[
        tuple[FieldBins, ...],
        describe(
            "Fields that are coarser than their values: a number of bins of equal width, or cut "
            "points known beforehand. The default is a bin for each value."
        ),
    ] = ()
    tree: Annotated[
        str,
        describe(
            "A field of many bins, whose neighbours are also counted together, two by two, up to "
            "all of them: less noise of any range and quantile, more of a single bin. The default "
            "is none."
        ),
    ] = ""
    noise: Annotated[
        str,
        describe(
            "How the noise is drawn: distributed, where each node adds its part of discrete "
            "Laplace noise; gaussian, likewise, with a delta; in_mpc, drawn by all nodes together, "
            f"for up to {MOST_IN_MPC} cells. The default is distributed, or with a delta whichever "
            "of the first two is less.",
            *NOISES,
        ),
    ] = ""
    delta: Annotated[str, describe("δ of gaussian noise, such as 1e-6.")] = ""

    @property
    def coins(self) -> str:
        return "transfers" if self.noise == "in_mpc" else "none"

    def computed(self, kernels: tuple[str, ...]) -> tuple[str, ...]:
        """The fields and the tree; bins have an entry of their own."""
        return (*self.cells, f"tree {self.tree}")


# --- the cells ------------------------------------------------------------------------------------

Shape = tuple[int, ...]


@lru_cache(maxsize=16)
def axes_of(study: Study) -> tuple[Bins, ...]:
    """The bins of each field of the table, categories one by one. Raises: StudyError."""
    settings = study.settings_as(CountsSettings)
    given = {bins.field: bins for bins in settings.bins}
    found = []
    for name in settings.cells:
        field = study.schema[name]
        found.append(bins_of_field(field, given[name]) if name in given else _every_value(field))
    return tuple(found)


def _every_value(field: FieldSchema) -> Bins:
    """A bin for each value. Raises: StudyError for more values than a table has cells."""
    low, high = field.lower_units, field.upper_units
    if high - low >= MOST_CELLS:
        raise StudyError(
            f"field {field.name!r} has {high - low + 1:,} values, and a table has at most "
            f"{MOST_CELLS:,} cells; write a number of bins or cut points, such as "
            f"bins = {{{field.name} = 100}}"
        )
    return Bins(field, tuple(range(low + 1, high + 1)))


def tree_of(study: Study) -> int:
    """The axis that has a tree, or -1."""
    settings = study.settings_as(CountsSettings)
    return settings.cells.index(settings.tree) if settings.tree else -1


def shapes_of(study: Study) -> tuple[Shape, ...]:
    """The shape of each released table: one, or one for each level of the tree, leaves first."""
    return shapes_of_levels(tuple(axis.size for axis in axes_of(study)), tree_of(study))


def size_of(study: Study) -> int:
    """D, the number of released counts."""
    return sum(map(prod, shapes_of(study)))


def counted(study: Study, columns: Columns) -> NDArray[np.int64]:
    """The counts of records, table after table, each row-major: (D,).

    Args: columns: field → (records,) int64, in steps of the resolution.
    """
    axes, shapes, place = axes_of(study), shapes_of(study), tree_of(study)
    bins = [np.searchsorted(axis.cuts, columns[axis.field.name], side="right") for axis in axes]
    cells = np.ravel_multi_index(bins, shapes[0])
    table = np.bincount(cells, minlength=prod(shapes[0])).reshape(shapes[0])
    tables = [table]
    for _ in shapes[1:]:
        # spec/counts.py, `levels`
        table = np.add.reduceat(table, np.arange(0, table.shape[place], 2), axis=place)
        tables.append(table)
    return np.concatenate([each.ravel() for each in tables]).astype(np.int64)


def axes_in_report(study: Study) -> list[CountedAxis]:
    """The axes as a report has them, in the fields' units."""
    found = []
    for axis in axes_of(study):
        field = axis.field
        cuts = [] if field.categories else [float(cut * field.resolution) for cut in axis.cuts]
        low, high, step = map(float, (field.lower, field.upper, field.resolution))
        found.append(CountedAxis(field.name, low, high, step, cuts, list(field.categories)))
    return found


def kernel_of(schema: Schema, cells: tuple[str, ...]) -> str:
    """The kernel of the first cell: 1 for a record that has the least value of every field."""
    found: ex.Expression | None = None
    for name in cells:
        lowest = ex.Equal(ex.Field(0, name), ex.Constant(schema[name].lower))
        found = lowest if found is None else ex.And(found, lowest)
    return to_text(found) if found is not None else ""


# --- the noise of a cell --------------------------------------------------------------------------


def changing(study: Study) -> tuple[int, int]:
    """(records, levels): of one person, and of the tree, in which counts differ for neighbours."""
    levels = len(shapes_of(study))
    # the last level of a tree alone is n, which is the same for neighbours
    levels -= levels > 1 and len(axes_of(study)) == 1
    return study.people.records if study.people else 1, levels


@lru_cache(maxsize=16)
def law_of(study: Study) -> CellNoise:
    """The law of each count's noise; all are independent. Raises: InvalidEpsilon."""
    most, moving = changing(study)
    nodes, honest = len(study.nodes), study.honest
    epsilon, length = study.exact_epsilon, 2 * most * moving
    if study.noise == "in_mpc":
        return CommitteeLaplace(epsilon, length)
    if study.noise == "gaussian":
        square = 2 * most**2 * moving
        scales = (Fraction(1),) * size_of(study)
        # Kairouz, Liu & Steinke 2021: one joint L2 sensitivity
        return joint_gaussian(epsilon, study.exact_delta, scales, square, nodes, honest)[0]
    # Dwork et al. 2006: one joint L1 sensitivity
    return DistributedLaplace(epsilon, length, nodes, honest)


def with_noise(study: Study) -> Study:
    """The study with a definite noise: with a δ the law that has the smaller deviation.

    Raises: as `check_counts`.
    """
    settings = study.settings_as(CountsSettings)
    if settings.noise:
        return study
    laplace = study.replaced(noise="distributed", delta="")
    if not settings.delta:
        return laplace
    gaussian = study.replaced(noise="gaussian")
    check_counts(gaussian)
    return min(laplace, gaussian, key=lambda each: law_of(each).std)


# --- rules ----------------------------------------------------------------------------------------


def check_counts(study: Study) -> None:
    """Raises: StudyError that says what to do; InvalidEpsilon."""
    settings = study.settings_as(CountsSettings)
    cells, names = settings.cells, [field.name for field in study.fields]
    if not 1 <= len(cells) <= MOST_AXES or len(set(cells)) < len(cells):
        raise StudyError(
            f"a table of counts is over 1 to {MOST_AXES} different fields, got "
            f"{', '.join(cells) or 'none'}; name them in columns"
        )
    if absent := [name for name in cells if name not in names]:
        raise StudyError(
            f"a table of counts is over fields of the study, which has {', '.join(names)}; "
            f"{', '.join(absent)} came; add it to the fields, or correct the name"
        )
    if labels := [each.name for each in study.fields if each.public]:
        raise StudyError(
            f"no field of a table is public, and {', '.join(labels)} is; leave public out"
        )
    expected = ((kernel_of(study.schema, cells),), 1, VECTOR)
    if (study.kernels, study.degree, study.estimator) != expected or study.several:
        raise StudyError(
            'a study of protocol = "counts" has a table of its own; leave kernel, statistics, '
            "strata and estimator out"
        )
    if beyond := [each.field for each in settings.bins if each.field not in cells]:
        raise StudyError(
            f"bins are of fields of the table, {', '.join(cells)}; {', '.join(beyond)} came; leave "
            f"that out"
        )
    for bins in settings.bins:
        if max(bins.count, len(bins.cuts)) > MOST_CELLS:
            raise StudyError(
                f"bins of {bins.field!r}: a table has at most {MOST_CELLS:,} cells, and more bins "
                f"came; write fewer"
            )
    check_bins(study, settings.bins)
    _check_statistic(study, cells)
    _check_cells(study, settings)
    _check_noise(study, settings)


def _check_statistic(study: Study, cells: tuple[str, ...]) -> None:
    """Raises: StudyError where the statistic has other roles, or a field does not fit its role."""
    check_choice("statistic", study.statistic, tuple(COUNTED))
    statistic = COUNTED[study.statistic]
    statistic.check_count(cells)
    statistic.check(axes_in_report(study))


def _check_cells(study: Study, settings: CountsSettings) -> None:
    axes = axes_of(study)
    count = prod(axis.size for axis in axes)
    if settings.tree and settings.tree not in settings.cells:
        raise StudyError(
            f"tree is a field of the table, {', '.join(settings.cells)}; got {settings.tree!r}"
        )
    if settings.tree and study.schema[settings.tree].categories:
        raise StudyError(
            f"tree adds neighbours up, and the categories of {settings.tree!r} have none; leave "
            f"tree out"
        )
    sizes = " x ".join(f"{axis.size:,} of {axis.field.name}" for axis in axes)
    if count == 1:
        raise StudyError(
            f"the table has one cell ({sizes}), which counts all records, and their number is "
            f"public; give its fields more values or bins"
        )
    if count > MOST_CELLS:
        raise StudyError(
            f"the table has {count:,} cells ({sizes}), at most {MOST_CELLS:,} are possible; give "
            f"its fields fewer bins, such as bins = {{{axes[0].field.name} = 20}}"
        )


def _check_noise(study: Study, settings: CountsSettings) -> None:
    check_noise(study, NOISES, "gaussian")
    if settings.noise == "in_mpc":
        _check_committee(study)
    _ = law_of(study)


def _check_committee(study: Study) -> None:
    reasons = (
        (study.adversary != HONEST, "has no promise if nodes lie, who could bias the coins"),
        (
            (size := size_of(study)) > MOST_IN_MPC,
            f"is for at most {MOST_IN_MPC} counts, because each takes its own coins by transfers, "
            f"and the table has {size:,}",
        ),
    )
    for holds, reason in reasons:
        if holds:
            raise StudyError(
                f'noise = "in_mpc" {reason}; take noise = "distributed", where each node adds its '
                f"part"
            )
