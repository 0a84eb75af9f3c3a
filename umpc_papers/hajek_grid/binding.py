"""A study's two sums, their noise, ring and attempt. Every process derives them for itself.

The first sum is P, the squares of the projections (`projections.py`), with λ·ε. The second one is
S, with the rest of ε and noise for the bound that follows from the noisy P. P's noise is below its
negative reach with a probability of at most δ/2.

*The ring* holds twice either sum with its noise, but for a probability of 2^-64, and P but for one
of δ/2. The noise of S is then that of the largest bound, (n - 1)·Δf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil

from umpc.crypto.ring import RINGS, Ring, ring_that_holds
from umpc.dp.calibration import DistributedLaplace
from umpc.errors import RangeError
from umpc.protocols.grid.attempt import GridAttempt
from umpc.protocols.grid.binding import cost_of
from umpc.protocols.grid.coarse import cut_points
from umpc.protocols.grid.cross_terms import DealerlessAttempt, check_transfers
from umpc.protocols.grid.operators import Grid
from umpc.protocols.grid.operators.compiler import DenseForm, dense_layout
from umpc.protocols.grid.operators.cuts import Cuts
from umpc.protocols.grid.operators.layout import require_cells
from umpc.study.cost import Cost
from umpc.study.document import Study
from umpc.study.sizes import Member, Sizes
from umpc_papers.hajek_grid.projections import MOST_CELLS, MatrixForm, Projections
from umpc_papers.hajek_grid.settings import HajekGridSettings

SUMS = 2
TAIL_BITS = 64
"""Either sum leaves the ring with a probability of at most 2^-TAIL_BITS."""
FACTOR = 2
"""Shares are of twice each sum."""


class HajekAttempt(GridAttempt):
    """An attempt of two sums, of which the second one waits for a question."""

    sums = SUMS


class DealerlessHajekAttempt(DealerlessAttempt):
    """An attempt of two sums without a dealer."""

    sums = SUMS


@dataclass(frozen=True, eq=False)
class HajekGrid:
    """A study's table with both sums as forms of it, and the projections."""

    grid: Grid
    projections: Projections


@lru_cache(maxsize=16)
def hajek_grid_of(study: Study) -> HajekGrid:
    """The study's operators. Raises: RangeError where the table is too large."""
    cuts = Cuts(study.schema, cut_points(study))
    (kernel,) = study.parsed_kernels
    if cuts.points:
        kernel = cuts.kernel(kernel)
    layout = dense_layout([kernel], "")
    require_cells(layout, [kernel], MOST_CELLS, 'for "hajek-grid"', cuts.points)
    projections = Projections(DenseForm(layout, kernel, "").matrix())
    forms = (MatrixForm(projections.gram), MatrixForm(projections.entries))
    return HajekGrid(Grid(layout, forms, cuts), projections)


def squares_law(sizes: Sizes) -> DistributedLaplace:
    """The noise of P."""
    study = sizes.study
    share = study.settings_as(HajekGridSettings).exact_share()
    sensitivity = hajek_grid_of(study).projections.sensitivity_of_squares(sizes.records)
    nodes = len(study.nodes)
    return DistributedLaplace(study.exact_epsilon * share, sensitivity, nodes, study.honest)


def reach(sizes: Sizes) -> int:
    """T such that the noise of P is below -T with a probability of at most δ/2.

    The law is symmetric, so P(X < -T) is half of P(|X| > T), which is at most 2^-bits.
    """
    return squares_law(sizes).tail_bound(_tail_bits(sizes))


def _tail_bits(sizes: Sizes) -> int:
    """The least bits, at least 2, with 2^-bits <= δ."""
    least = ceil(1 / sizes.study.exact_delta)
    return max(2, (least - 1).bit_length())


def bound_of(sizes: Sizes, squares: int) -> int:
    """The bound of the local sensitivity of S that follows from the noisy P, in units."""
    projections = hajek_grid_of(sizes.study).projections
    found = projections.bound(squares + reach(sizes), sizes.records)
    return min(found, sizes.sensitivities[0])


def value_law(sizes: Sizes, sensitivity: int) -> DistributedLaplace:
    """The noise of S for a bound of its local sensitivity."""
    study = sizes.study
    share = study.settings_as(HajekGridSettings).exact_share()
    nodes = len(study.nodes)
    rest: Fraction = study.exact_epsilon * (1 - share)
    return DistributedLaplace(rest, sensitivity, nodes, study.honest)


def hajek_ring(sizes: Sizes) -> Ring:
    """The ring of the shares. Raises: RangeError where none is wide enough.

    The noisy P leaves the ring with a probability of at most δ/2: the other half of δ.
    """
    grid = hajek_grid_of(sizes.study).grid
    laws = (squares_law(sizes), value_law(sizes, sizes.sensitivities[0]))
    bits = max(TAIL_BITS, _tail_bits(sizes) + 1)
    magnitudes = [form.magnitude for form in grid.forms]
    bound = FACTOR * max(
        sizes.edges * magnitude + law.tail_bound(bits)
        for magnitude, law in zip(magnitudes, laws, strict=True)
    )
    if ring := ring_that_holds(bound):
        return ring
    raise RangeError(
        f"twice the squares of all projections, with their noise, may reach "
        f"2^{bound.bit_length()}, and the ring holds 2^{RINGS[-1].bits - 1} at most; take fewer "
        f'bins, a larger bound_share, or backend = "grid"'
    )


def hajek_attempt(
    study: Study, members: Sequence[Member], openings: Sequence[bytes]
) -> GridAttempt:
    """The attempt of these members and openings. Raises: RemoteProtocolError, RangeError."""
    ring = hajek_ring(Sizes.of(study, members))
    grid = hajek_grid_of(study).grid
    if study.preprocessing == "none":
        check_transfers(study, members, grid, ring.bits - 1)
        return DealerlessHajekAttempt(study, members, openings, ring, grid)
    return HajekAttempt(study, members, openings, ring, grid)


def question_of(shares: Sequence[bytes]) -> bytes:
    """The question: what every node released, in the study's order."""
    return b"".join(shares)


def cost_of_steps(attempt: GridAttempt) -> Cost:
    """The cost of an attempt: that of a grid with two sums, and the question to every node.

    A node's two shares leave one after the other.
    """
    cost = cost_of(attempt)
    nodes = len(attempt.members)
    asked = (nodes * attempt.ring.bytes,) * nodes
    return replace(cost, rounds=cost.rounds + 1, asked=asked)
