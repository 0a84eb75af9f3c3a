"""A study's two sums, their noise, ring and attempt. Every process derives them for itself.

The first sum is P, the squares of the projections (`projections.py`), with λ·ε. The second one is
S, with the rest of ε and noise for the bound that follows from the noisy P. P's noise is below its
negative reach with a probability of at most δ/2.

*The ring* holds twice either sum with its noise, but for a probability of 2^-64, and P but for one
of δ/2. The noise of S is then that of the largest bound, (n - 1)·Δf.

*Projections.* A table's local Hájek projections over a grid, and a bound of the local sensitivity.

A is the matrix of the kernel over D cells, in units, and H the histogram of all n records. The
projections are g = A·H: g(c) is the sum of the kernel over a record in cell c and all records.

*The local sensitivity.* Let x' be x with a record of cell c replaced by one of cell c'. With H of
x, the other records have the projections g - A e_c. So the sum S over all pairs changes by

    S(x) - S(x') = (g(c) - A_cc) - (g(c') - A_c'c).

For any vector v and its mean v̄, |v(c) - v(c')| <= √2 ‖v - v̄‖. With W = max |A_cc - A_c'c|,

    |S(x) - S(x')| <= √2 ‖g - ḡ‖ + W                                             (1)

for *every* neighbour x', whatever cells it has. For a degenerate kernel g - ḡ is about √n, so this
is far below (n - 1)·(max A - min A), the sensitivity for all tables.

*Its square is a sum over pairs.* Q = D ‖g - ḡ‖² = HᵀBH with B = D·A² - (A1)(A1)ᵀ, a matrix of
integers. So Q is a sum over pairs of the kernel B and a sum over single records:

    Q = 2·P + Σ_i B(i, i) <= 2·P + n·β,   P = Σ_{i<j} B(i, j),   β = max B(c, c).           (2)

P is another sum over the same grid. One replaced record changes it by at most
(n - 1)·(max B - min B). Everything is divided by the greatest common divisor of B's entries, which
is public.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 4 (the projections). Departure: the projections
of all cells count and not only those of records, so that nothing has to be weighted down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, isqrt

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import RINGS, Ring, Word, ring_that_holds
from umpc.dp.calibration import DistributedLaplace
from umpc.errors import RangeError
from umpc.mpc.arrays import Integers, Words
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
from umpc_papers.hajek_grid.settings import HajekGridSettings

SUMS = 2
TAIL_BITS = 64
"""Either sum leaves the ring with a probability of at most 2^-TAIL_BITS."""
FACTOR = 2
"""Shares are of twice each sum."""


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
    """The attempt of two sums, of which the second one waits for a question.

    Raises: RemoteProtocolError, RangeError.
    """
    ring = hajek_ring(Sizes.of(study, members))
    grid = hajek_grid_of(study).grid
    kind: type[GridAttempt] = GridAttempt
    if study.preprocessing == "none":
        check_transfers(study, members, grid, ring.bits - 1)
        kind = DealerlessAttempt
    return kind(study, members, openings, ring, grid, sums=SUMS)


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


# --- projections ----------------------------------------------------------------------------------


MOST_CELLS = 1 << 10
"""The most cells: B takes D³ steps."""
EXACT_FLOATS = 1 << 53
"""Integers below this magnitude are exact as floats."""
MOST_ENTRY = 1 << 62


@dataclass(frozen=True, eq=False)
class MatrixForm:
    """A sum over pairs from a small matrix. Args: entries: (cells, cells) int64, symmetric."""

    entries: Integers

    @cached_property
    def magnitude(self) -> int:
        return int(np.abs(self.entries).max())

    @property
    def cost(self) -> int:
        return self.entries.size

    def apply(self, vector: NDArray[Word]) -> NDArray[Word]:
        # Casts of signed integers to unsigned ones wrap, as the ring does.
        image: NDArray[Word] = self.entries.astype(vector.dtype) @ vector
        return image

    def diagonal(self) -> Words:
        return np.ascontiguousarray(self.entries.diagonal()).view(np.uint64)


@dataclass(frozen=True, eq=False)
class Projections:
    """All projections of one kernel. Args: entries: A, (cells, cells) int64, in units."""

    entries: Integers

    @property
    def cells(self) -> int:
        """D."""
        return len(self.entries)

    @cached_property
    def _gram(self) -> tuple[Integers, int]:
        """B divided by its greatest common divisor, and the divisor. Raises: RangeError."""
        size = self.cells
        most = int(np.abs(self.entries).max())
        if 2 * size**2 * most**2 >= MOST_ENTRY:
            raise RangeError(
                f"the squares of the projections of {size:,} cells with kernel values of up to "
                f"{most:,} units do not fit 62 bits; take coarser fields"
            )
        if size * most**2 < EXACT_FLOATS:
            floats = self.entries.astype(np.float64)
            square = (floats @ floats).astype(np.int64)
        else:
            square = self.entries @ self.entries
        rows = self.entries.sum(axis=1)
        gram = size * square - np.outer(rows, rows)
        divisor = int(np.gcd.reduce(gram, axis=None)) or 1
        return gram // divisor, divisor

    @property
    def gram(self) -> Integers:
        """B, divided by `divisor`: (cells, cells) int64."""
        return self._gram[0]

    @property
    def divisor(self) -> int:
        """The greatest common divisor of B's entries."""
        return self._gram[1]

    @cached_property
    def range(self) -> tuple[int, int]:
        """The least and the largest entry of `gram`."""
        return int(self.gram.min()), int(self.gram.max())

    @cached_property
    def top(self) -> int:
        """β, divided by `divisor`."""
        return int(self.gram.diagonal().max())

    @cached_property
    def own_width(self) -> int:
        """W, in units of the kernel."""
        return int(np.abs(self.entries.diagonal()[:, None] - self.entries.T).max())

    def sensitivity_of_squares(self, records: int) -> int:
        """The most that one replaced record changes P, divided by `divisor`."""
        low, high = self.range
        return max(0, records - 1) * (high - low)

    def bound(self, pairs: int, records: int) -> int:
        """A bound of the local sensitivity of S, in units: (1), from a bound of P by (2).

        Args: pairs: at least P, divided by `divisor`. records: n.
        """
        squares = max(0, 2 * pairs + records * self.top) * self.divisor
        # √2 ‖g - ḡ‖ = √(2 Q/D). S is a whole number of units, so rounding down is exact.
        return isqrt(2 * squares // self.cells) + self.own_width
