"""The predicted error of U-MPC, and how many edges a wanted error needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt

from umpc.errors import StudyError
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.sums import Law
from umpc.study.sizes import Sizes
from umpc.ustat.estimators import estimate


def error_of_sums(
    sizes: Sizes, table: ReferenceTable, laws: Sequence[Law] | None = None
) -> PredictedError:
    """The error of a study that adds up its kernels over E: the noise of the sums, and E.

    Args: laws: the noise of each sum; U-MPC's if not given.

    Raises: StudyError where the statistic cannot be told from the table, or under the noise.
    """
    study = sizes.study
    laws = noise_of_sums(sizes) if laws is None else laws
    units = [float(kernel.unit) / sizes.edges for kernel in study.parsed_kernels]
    stds = [law.std * unit for law, unit in zip(laws, units, strict=True)]
    if study.degree > 2:
        return _of_larger_sets(sizes, stds)
    released = estimate(study.estimator, list(table.means), stds, [0.0] * len(stds), sizes.sets)
    if released.value is None and table.statistic is not None:
        raise StudyError(f"the report is expected to have {released.note}")
    noise = sqrt(sum((slope * std) ** 2 for slope, std in zip(table.slopes, stds, strict=True)))
    return PredictedError(noise, table.sampling_std(sizes))


def _of_larger_sets(sizes: Sizes, stds: Sequence[float]) -> PredictedError:
    """Only a bound of the sampling error is known, and only for one mean. Raises: StudyError."""
    study = sizes.study
    if study.estimator != "mean":
        raise StudyError(
            f"the error of {study.statistic!r} is not predicted: it is a {study.estimator} of "
            f"larger sets"
        )
    if sizes.edges == sizes.sets:
        return PredictedError(stds[0], 0.0, sampling_is_bound=True)
    bound = float(study.parsed_kernels[0].interval.width) / (2 * sqrt(sizes.edges))
    return PredictedError(stds[0], bound, sampling_is_bound=True)


def edges_for_noise(sizes: Sizes, table: ReferenceTable) -> int:
    """The least |E| of which the sampling error is at most the noise.

    More edges gain little, fewer lose much. For degree 1 or 2 and equal degrees the noise hardly
    depends on |E|, because one record is in as many more edges as there are more of them.
    """
    return _least_edges(sizes, lambda error: error.sampling <= error.noise, table)


def edges_for_error(sizes: Sizes, table: ReferenceTable, error: float) -> int | None:
    """The least |E| whose root mean squared error is at most this; None if all sets are too few."""
    whole = sizes.study.replaced(edges="all")
    if error_of_sums(replace(sizes, study=whole), table).mse > error**2:
        return None
    return _least_edges(sizes, lambda found: found.mse <= error**2, table)


def _least_edges(
    sizes: Sizes, suffices: Callable[[PredictedError], bool], table: ReferenceTable
) -> int:
    """The least |E| that suffices, by bisection over δ_max."""
    first, others = sizes.classes
    if sizes.study.two_sample:
        each = Fraction(min(first, others))
    else:
        each = Fraction(sizes.records, sizes.study.degree)
    low = 0
    high = ceil(sizes.sets / each)

    def edges(degree: int) -> int:
        return min(sizes.sets, int(degree * each))

    while high - low > 1:
        middle = (low + high) // 2
        study = sizes.study.replaced(edges=str(edges(middle)))
        if suffices(error_of_sums(replace(sizes, study=study), table)):
            high = middle
        else:
            low = middle
    return edges(high)
