"""A study's grid, ring, noise and attempt. Every process derives them for itself.

*The ring.* Shares are of 2·(S + noise), and of 6·(S + noise) over triples. |S| is at most
|E|·max|f| in units, and the noise stays within its tail bound but for a probability of 2^-64. The
ring tells all integers of magnitude up to so many times (|E|·max|f| + tail) apart, so the result
does not wrap. Everything before the result may wrap: the identities of `masked_form.py` hold modulo
2^64, hence modulo 2^32.

*Cost.* The cost of a grid: a vector of cells up and down for each node, and what U-MPC costs
besides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from umpc.crypto.prime_field import PRIME
from umpc.crypto.ring import RINGS, Ring, ring_that_holds
from umpc.errors import KernelError, RangeError
from umpc.mpc.backends import predict
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.coarse import cut_points
from umpc.protocols.grid.cross_terms import DealerlessAttempt, check_transfers
from umpc.protocols.grid.lookup_proof import bytes_by_step, check_lists
from umpc.protocols.grid.masked_form import HISTOGRAM, TOTAL, factor_of, masked_forms
from umpc.protocols.grid.operators import (
    DyadicGrid,
    Grid,
    compile_dyadic,
    compile_grid,
    least_cells,
)
from umpc.protocols.grid.settings import USUAL_LEVELS, GridSettings, instead
from umpc.protocols.u_mpc.noise_binding import coins_of, noise_of_sums
from umpc.study.cost import Cost, sent_by_round
from umpc.study.document import Study
from umpc.study.messages import frame_of
from umpc.study.settings import HONEST
from umpc.study.sizes import Member, Sizes
from umpc.ustat.clear import Columns
from umpc.ustat.estimators import estimate


@lru_cache(maxsize=16)
def grid_of(study: Study) -> Grid | DyadicGrid:
    """The study's operators. Raises: KernelError where a kernel does not factor, RangeError."""
    label = study.label if study.two_sample else ""
    kernels = study.parsed_kernels
    try:
        # two wide columns: tables of leading bits
        if levels := study.settings_as(GridSettings).levels:
            return compile_dyadic(kernels, levels)
        # who adds up other people's cells sees no value that a cell could have beside a 1
        counts, cuts = study.settings.shares_tables, cut_points(study)
        return compile_grid(kernels, study.schema, label=label, cuts=cuts, counts=counts)
    except (KernelError, RangeError) as error:
        advice = f"{error.message}; {instead(study)}{_or_levels(study)}"
        raise type(error)(advice) from error


def least_cells_of(study: Study) -> int:
    """The fewest cells of the study's table, without its operators; 0 where nobody knows yet.

    Args: study: of any protocol with the grid's kernels and fields, and without bins and levels.
    """
    label = study.label if study.two_sample else ""
    return least_cells(study.parsed_kernels, study.schema, label=label)


def _or_levels(study: Study) -> str:
    """The advice to take levels, where the kernels have them."""
    settings = study.settings_as(GridSettings)
    if settings.shares_tables or settings.levels or study.degree != 2 or study.two_sample:
        return ""
    if study.adversary != HONEST or settings.bins:
        return ""
    try:
        compile_dyadic(study.parsed_kernels, USUAL_LEVELS)
    except (KernelError, RangeError):
        return ""
    return f", or levels = {USUAL_LEVELS}"


def statistic_of_grid(study: Study, columns: Columns, first: int) -> float | None:
    """The statistic of all sets of these records in the clear, by the study's operators.

    Args: columns: field → (records,) int64. first: the number of records of the first class.
    """
    grid = grid_of(study)
    table = grid.tabulate(columns)
    ring = RINGS[-1]
    factor = factor_of(study.degree)
    records = len(next(iter(columns.values())))
    sizes = Sizes(study, records, first)
    means = []
    for form, kernel in zip(masked_forms(grid, ring), study.parsed_kernels, strict=True):
        public = form.public(table, form.image(table))
        # the oracle: 2·S (6·S) of all records in the clear
        multiplied = ring.decode(ring.encode(public + form.own(table)))
        means.append(float(multiplied // factor * kernel.unit / sizes.sets))
    zeros = [0.0] * len(means)
    return estimate(study.estimator, means, zeros, zeros, sizes.sets, study.pair_ends).value


def ring_of(sizes: Sizes) -> Ring:
    """The ring of the shares. Raises: RangeError where none is wide enough."""
    study = sizes.study
    laws = noise_of_sums(sizes)
    factor = factor_of(study.degree)
    # shares are of factor · (S + noise): no wrap-around
    bound = factor * max(
        sizes.edges * kernel.magnitude_units + law.tail_bound()
        for kernel, law in zip(study.parsed_kernels, laws, strict=True)
    )
    ring = ring_that_holds(bound)
    if study.adversary != HONEST:
        # shares in F: integers of magnitude up to p/2 are told apart
        ring = PRIME if bound <= PRIME.largest else None
    if ring is not None:
        return ring
    raise RangeError(
        f"{factor} times the sum over all sets, with its noise, may reach 2^{bound.bit_length()}, "
        f"and the ring holds 2^{RINGS[-1].bits - 1} at most; narrow the fields' bounds, take a "
        f"coarser resolution, allow a larger epsilon, or {instead(study)}"
    )


def ring_for_members(study: Study, members: Sequence[Member]) -> Ring:
    """The ring of the shares, where the study can run over so many records.

    Raises: RangeError, TooFewRecords.
    """
    sizes = Sizes.of(study, members)
    if study.adversary != HONEST and not study.settings.shares_tables:
        check_lists(study, [member.records for member in members])
    _ = sizes.edges
    ring = ring_of(sizes)
    if study.preprocessing == "none":
        check_transfers(study, members, grid_of(study), ring.bits - 1)
    return ring


def grid_attempt(study: Study, members: Sequence[Member], openings: Sequence[bytes]) -> GridAttempt:
    """The attempt of these members and openings, with a committee's coins if one draws noise.

    Raises: RemoteProtocolError, RangeError, TooFewRecords.
    """
    ring = ring_for_members(study, members)
    coins = coins_of(noise_of_sums(Sizes.of(study, members)))
    kind = DealerlessAttempt if study.preprocessing == "none" else GridAttempt
    return kind(study, members, openings, ring, grid_of(study), coins)


# --- cost -----------------------------------------------------------------------------------------

ROUNDS_OF_PROOF = 2
"""Rounds of a total whose nodes may lie: second lists and proofs, and the dealer's answer."""
OPERATION_SECONDS = 5e-9
"""Seconds of one ring operation on a cell, with what moves the cell.

`python -m bench grid` prints runs.
"""

PROOF_SECONDS = 1.5e-6
"""Seconds to prove a value and to check all proofs, for each value of all nodes."""


def proof_seconds(values: int) -> float:
    """Seconds in which nodes that may lie prove so many values, and check the proofs, about."""
    return PROOF_SECONDS * values


def work_seconds(grid: Grid | DyadicGrid) -> float:
    """Seconds in which one process makes the masks of a table and applies its operators, about."""
    return OPERATION_SECONDS * (grid.cells + sum(form.cost for form in grid.forms))


def cost_of(attempt: GridAttempt) -> Cost:
    """Rounds and bytes of an attempt, exactly.

    A node's bytes are those of its masked histogram and of the total that it gets. Without a dealer
    they are those of its cross terms.
    """
    rest = predict(attempt)
    if isinstance(attempt, DealerlessAttempt):
        return replace(rest, bytes_offline=rest.bytes_offline + _set_up_bytes(attempt))
    layout = attempt.layout
    if attempt.study.adversary != HONEST:
        sent = tuple(
            sent_by_round(bytes_by_step(attempt, node)) for node in range(len(attempt.members))
        )
        return replace(rest, sent=sent, rounds=rest.rounds + ROUNDS_OF_PROOF)
    # ĥ_u up, Ĥ down
    vector = {(step, 0): layout.wire_bytes(step) for step in (HISTOGRAM, TOTAL)}
    return replace(rest, sent=tuple(sent_by_round(vector) for _ in attempt.members))


def _set_up_bytes(attempt: DealerlessAttempt) -> int:
    """Bytes of the channels of all cross terms."""
    ends = [(nodes, place) for nodes in attempt.pairs for place in (nodes, nodes[::-1])]
    return sum(
        frame_of(shape, nodes, 0).wire_bytes
        for nodes, place in ends
        for shape in attempt.set_up_shapes(*place)
    )
