"""The coordinator's side of a grid: it adds up masked histograms, and later the nodes' shares.

*Reveals*: masked histograms and their total, which are uniform; shares that are uniform given their
sums; and the noisy sums.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from umpc.crypto.ring import Ring
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import require
from umpc.protocols.base.coordinator import CoordinatorAggregation
from umpc.protocols.grid.attempt import (
    HISTOGRAM,
    STEP,
    TOTAL,
    GridAttempt,
    check_signed,
    total_statement,
)
from umpc.protocols.grid.binding import cost_of, grid_attempt, grid_of, ring_of
from umpc.protocols.grid.coarse import limits_of
from umpc.protocols.grid.cross_terms import check_transfers
from umpc.protocols.grid.masked_form import factor_of
from umpc.protocols.u_mpc.coordinator import UMpcCoordinator
from umpc.protocols.u_mpc.noise_binding import noise_of_sums
from umpc.protocols.u_mpc.settings import noisy_sums, sum_reports
from umpc.study.cost import Cost
from umpc.study.interval import Limits
from umpc.study.making_report import check_sums, impossible
from umpc.study.messages import Frame
from umpc.study.report import SumReport
from umpc.study.sizes import Member, Sizes


class TotalOfTables:
    """The total of one attempt: (cells,) of the ring, and how many frames came from each node.

    Args: keys: the nodes' public keys.
    """

    def __init__(self, attempt: GridAttempt, keys: Sequence[bytes]):
        self.attempt = attempt
        self._keys = keys
        self._total = np.zeros(attempt.layout.cells, dtype=attempt.ring.dtype)
        self._came = [0] * len(attempt.members)

    def add(self, node: int, frame: Frame) -> bool:
        """Add a node's next frame. Returns: whether it was the last one.

        Raises: RemoteProtocolError naming the node, also for a frame that it sent before.
        """
        layout = self.attempt.layout
        try:
            # spec/grid.py, `run`: ĥ_u, uniform without the node's seed
            start, values = layout.read(HISTOGRAM, self._came[node], frame)
        except EncodingError as error:
            name = self.attempt.members[node].name
            raise RemoteProtocolError(
                f"{name}: {error.message}", culprit=name, step=STEP
            ) from error
        # Ĥ = Σ ĥ_u = H + a
        self._total[start : start + len(values)] += values
        self._came[node] += 1
        return self._came[node] == layout.frames

    def total(self) -> Iterator[Frame]:
        """The frames of the total, each time anew."""
        layout = self.attempt.layout
        if any(came != layout.frames for came in self._came):
            raise LocalProtocolError("the total is told when all masked histograms have come")
        for start, stop in layout.ranges:
            yield layout.frame(TOTAL, start, self._total[start:stop])

    def check_signed(self, signatures: Sequence[bytes]) -> None:
        """Every node must have signed this total. Raises: RemoteProtocolError naming the node."""
        state = hashlib.sha256()
        for frame in self.total():
            state.update(frame.payload)
        # each node's signature, where it comes from
        statement = total_statement(self.attempt.id, state.digest())
        check_signed(statement, self.attempt.members, self._keys, signatures, None)


class GridCoordinator(UMpcCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    _aggregation: TotalOfTables | None = None

    @property
    def aggregation(self) -> CoordinatorAggregation | None:
        if self.study.preprocessing == "none":
            return None
        if self._aggregation is None:
            attempt = require(self.attempt, GridAttempt)
            self._aggregation = TotalOfTables(attempt, self._keys)
        return self._aggregation

    def check_sizes(self, members: Sequence[Member]) -> None:
        sizes = Sizes.of(self.study, members)
        _ = sizes.edges
        ring = ring_of(sizes)
        grid = grid_of(self.study)
        if self.study.preprocessing == "none":
            check_transfers(self.study, members, grid, ring.bits - 1)

    def _ring(self, sizes: Sizes) -> Ring:
        return ring_of(sizes)

    def _make_attempt(self, members: Sequence[Member], openings: Sequence[bytes]) -> SharedAttempt:
        return grid_attempt(self.study, members, openings)

    def _cost(self, attempt: SharedAttempt, *, prepared: bool) -> Cost:
        return cost_of(require(attempt, GridAttempt))

    def _limits(self, sums: Sequence[SumReport]) -> Limits | None:
        return limits_of(self.study, sums)

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        """Half of what the shares add up to, or a sixth; it is whole unless somebody deviated.

        Raises: ImpossibleResult.
        """
        laws = noise_of_sums(sizes)
        factor = factor_of(self.study.degree)
        multiplied = noisy_sums(shares, len(self.study.kernels))
        # each is 2·S (6·S): another remainder means that somebody deviated
        if any(total % factor for total in multiplied):
            raise impossible(self.study, f"shares add up to a multiple of {factor}")
        totals = [total // factor for total in multiplied]
        check_sums(sizes, totals, [law.tail_bound() for law in laws])
        return sum_reports(sizes, totals, laws)
