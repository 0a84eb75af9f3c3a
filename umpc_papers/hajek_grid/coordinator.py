"""The coordinator's side of `hajek-grid`: the noisy squares, one question, and the noisy sum.

side.ask(released)         ask: all nodes' shares of the squares, to all nodes
side.hear(answers)         their shares of the sum
side.finish(released, …)   or replay: the same question leads to the stored answers

*Reveals*: shares that are uniform given their sums, the noisy P, and the noisy S.
"""

from __future__ import annotations

from collections.abc import Sequence

from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.protocols.grid.cross_terms import check_transfers
from umpc.protocols.grid.protocol import GridCoordinator
from umpc.protocols.u_mpc.settings import noisy_sums, sum_reports
from umpc.study import messages as m
from umpc.study.making_report import Limits, check_sums, covers_all_sets, impossible
from umpc.study.report import SumReport
from umpc.study.sizes import Member, Sizes
from umpc_papers.hajek_grid.binding import (
    FACTOR,
    bound_of,
    hajek_grid_of,
    hajek_ring,
    question_of,
    squares_law,
    value_law,
)


class HajekGridCoordinator(GridCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    _question = b""
    _answers: tuple[bytes, ...] = ()
    _bound: tuple[int, int] = (0, 0)

    def check_sizes(self, members: Sequence[Member]) -> None:
        sizes = Sizes.of(self.study, members)
        _ = sizes.edges
        ring = hajek_ring(sizes)
        if self.study.preprocessing == "none":
            grid = hajek_grid_of(self.study).grid
            check_transfers(self.study, members, grid, ring.bits - 1)

    def ask(self, answers: Sequence[m.Released]) -> m.Ask:
        """Raises: RemoteProtocolError naming whose share is malformed; AlreadyReleased."""
        if self._question:
            raise LocalProtocolError("one question is asked")
        if self._attempt is not None:
            rings, attempt = [self.attempt.ring], self.attempt.id
        else:
            rings, attempt = [hajek_ring(Sizes.of(self.study, answers))], answers[0].attempt
        self._question = question_of(self._shares(answers, attempt, rings, [1] * len(answers)))
        return m.Ask(self._question)

    def hear(self, answers: Sequence[m.Answer]) -> None:
        """Raises: RemoteProtocolError naming the node whose answer is malformed."""
        if not self._question or self._answers:
            raise LocalProtocolError("answers come once, after the question")
        due = len(self._question) // len(self.names)
        for name, answer in zip(self.names, answers, strict=True):
            if len(answer.answer) != due:
                raise RemoteProtocolError(
                    f"{name} answered with {len(answer.answer)} bytes, {due} were due",
                    culprit=name,
                    step="ask",
                )
        self._answers = tuple(answer.answer for answer in answers)

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        """The noisy sum. Raises: ImpossibleResult."""
        if not self._answers or question_of(shares) != self._question:
            raise LocalProtocolError("a sum follows from the shares that were asked with")
        projections = hajek_grid_of(self.study).projections
        squares = self._half(shares)
        low, high = projections.range
        tail = squares_law(sizes).tail_bound()
        if not sizes.edges * low - tail <= squares <= sizes.edges * high + tail:
            raise impossible(self.study, "the squares of the projections are in their range")
        sensitivity = bound_of(sizes, squares)
        law = value_law(sizes, sensitivity)
        total = self._half(self._answers)
        check_sums(sizes, [total], [law.tail_bound()])
        self._bound = (sensitivity, sizes.sensitivities[0])
        return sum_reports(sizes, [total], [law])

    def _half(self, shares: Sequence[bytes]) -> int:
        """Half of what shares add up to. Raises: ImpossibleResult."""
        doubled = noisy_sums(shares, 1)[0]
        if doubled % FACTOR:
            raise impossible(self.study, f"shares add up to a multiple of {FACTOR}")
        return doubled // FACTOR

    def _limits(self, sums: Sequence[SumReport]) -> Limits:
        coarse = super()._limits(sums)
        found, most = self._bound
        part = found / most if most else 1.0
        note = (
            f"the noise is for a bound of the local sensitivity that is {part:.3g} of the "
            f"sensitivity for all tables"
        )
        if coarse is None:
            return Limits(covers_all_sets(self.study), note)
        return Limits(coarse.covers, f"{coarse.note}; {note}" if coarse.note else note)
