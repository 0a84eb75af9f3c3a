"""The predicted error of U-MPC, and how many edges a wanted error needs.

*Edge budget.* The usual number of edges: as many as a budget of bytes pays for, because more edges
err less.

With equal degrees the noise of a mean does not depend on |E|, and the sampling error falls with it.
So a study file that names no `edges` asks for all sets, or for as many as cost BUDGET_BYTES where
every record of a set belongs to another node. The rule is part of the study document, as
`up to 580000`. Everybody derives |E| from it and from the numbers of records.

100 MB take eight seconds on a line of 100 megabits a second. A processor core deals and evaluates
them in about as long (`umpc plan` prints it for a machine).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, sqrt

from umpc.crypto.ring import RINGS
from umpc.errors import StudyError
from umpc.mpc.masked.compiler import FEW_EDGES, compile_program
from umpc.planning.reference_table import PredictedError, ReferenceTable
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.settings import Law
from umpc.study.document import Study
from umpc.study.sizes import Sizes, most_sampled
from umpc.ustat.estimators import estimate
from umpc.ustat.sampling import UP_TO


def error_of_sums(
    sizes: Sizes, table: ReferenceTable, laws: Sequence[Law] | None = None
) -> PredictedError:
    """The error of a study that adds up its kernels over E: the noise of the sums, and E.

    Args: laws: the noise of each sum; U-MPC's if not given.

    Raises: StudyError where the statistic cannot be told from the table, or under the noise.
    """
    study = sizes.study
    if study.several:
        raise StudyError(
            "a study of several values has an error for each; plan each statistic by itself, with "
            "its part of epsilon"
        )
    laws = noise_of_sums(sizes) if laws is None else laws
    units = [float(kernel.unit) / sizes.edges for kernel in study.parsed_kernels]
    # errors of means, in the statistic's unit
    stds = [law.std * unit for law, unit in zip(laws, units, strict=True)]
    zeros = [0.0] * len(stds)
    means = list(table.means)
    released = estimate(study.estimator, means, stds, zeros, sizes.sets, study.pair_ends)
    if released.value is None and table.statistic is not None:
        raise StudyError(f"the report is expected to have {released.note}")
    # delta method: independent noises add up in squares
    noise = sqrt(sum((slope * std) ** 2 for slope, std in zip(table.slopes, stds, strict=True)))
    return PredictedError(noise, table.sampling_std(sizes))


def edges_for_noise(sizes: Sizes, table: ReferenceTable) -> int:
    """The least |E| of which the sampling error is at most the noise, if so many can be sampled.

    More edges gain little, fewer lose much. For degree 1 or 2 and equal degrees the noise hardly
    depends on |E|, because one record is in as many more edges as there are more of them. Where
    more edges would be needed than can be sampled, these are as many as can.
    """

    def suffices(error: PredictedError) -> bool:
        return error.sampling <= error.noise

    return _least_edges(sizes, suffices, table) or _most_sampled(sizes)


def edges_for_error(sizes: Sizes, table: ReferenceTable, error: float) -> int | None:
    """The least |E| whose root mean squared error is at most this; None if all sets are too few.

    All sets are asked for where more than can be sampled are needed.
    """
    if found := _least_edges(sizes, lambda found: found.mse <= error**2, table):
        return found
    whole = replace(sizes, study=sizes.study.replaced(edges="all"))
    return sizes.sets if error_of_sums(whole, table).mse <= error**2 else None


def _most_sampled(sizes: Sizes) -> int:
    """The most edges that can be sampled, with equal degrees; all sets if they are no more."""
    most = most_sampled(sizes.study)
    if sizes.sets <= most:
        return sizes.sets
    each = _edges_of_a_degree(sizes)
    return int(int(most / each) * each) or most


def _edges_of_a_degree(sizes: Sizes) -> Fraction:
    """The edges for which each record, of the smaller class, is in one more."""
    if sizes.study.two_sample:
        return Fraction(min(sizes.classes))
    return Fraction(sizes.records, sizes.study.degree)


def _least_edges(
    sizes: Sizes, suffices: Callable[[PredictedError], bool], table: ReferenceTable
) -> int | None:
    """The least |E| that suffices, by bisection over δ_max; None if none that can be sampled."""
    each = _edges_of_a_degree(sizes)
    most = _most_sampled(sizes)

    def is_enough(degree: int) -> bool:
        study = sizes.study.replaced(edges=str(min(most, int(degree * each))))
        return suffices(error_of_sums(replace(sizes, study=study), table))

    high = ceil(most / each)
    if not is_enough(high):
        return None
    # errors fall with δ_max, so bisection finds the least
    return min(most, int(bisect_left(range(high), True, 1, key=is_enough) * each))


# --- edge budget ----------------------------------------------------------------------------------

BUDGET_BYTES = 100_000_000
"""All bytes of all edges: from the dealer, and between nodes."""


def usual_edges(study: Study) -> str:
    """The rule for a study that names no edges."""
    if study.degree == 1:
        return "all"
    # equal degrees: noise of a mean does not grow with |E|
    count = BUDGET_BYTES * 8 // bits_of_an_edge(study)
    # two digits are enough for a budget
    unit = 10 ** max(0, len(str(count)) - 2)
    return f"{UP_TO}{max(1, count // unit * unit)}"


def bits_of_an_edge(study: Study) -> int:
    """Bits that are dealt and sent for an edge whose records belong to different nodes."""
    everybody = tuple(range(study.degree))
    if study.backend == "garbled":
        from umpc.mpc.garbled.plan import garbled_program

        garbled = garbled_program(study.parsed_kernels, RINGS[-1], [everybody])
        return max(plan.edge_bits for plan in garbled.plans.values())
    if study.backend == "triples":
        from umpc.mpc.triples.plan import triples_program

        triples = triples_program(study.parsed_kernels, RINGS[-1], [everybody])
        return max(1, *(each.edge_bits for each in triples.plans.values()))
    bits = _dealt_and_opened(study, few=False)
    if BUDGET_BYTES * 8 // bits > FEW_EDGES:
        return bits
    # so few edges are compared by keys, which take more bytes
    return _dealt_and_opened(study, few=True)


def _dealt_and_opened(study: Study, *, few: bool) -> int:
    """Bits of an edge with a dealer."""
    everybody = tuple(range(study.degree))
    program = compile_program(study.parsed_kernels, RINGS[-1], [everybody], few=few)
    (plan,) = program.plans.values()
    # dealer's bits to all owners of an edge
    dealt = sum(plan.dealt_bits(party) for party in plan.everybody)
    opened = sum(
        plan.open_width(layer, party)
        for layer in range(len(plan.layers))
        for party in plan.everybody
    )
    return max(1, dealt + (plan.parties - 1) * opened)
