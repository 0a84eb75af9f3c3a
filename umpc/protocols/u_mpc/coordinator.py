"""The coordinator's side of U-MPC: it checks the nodes' noisy shares and adds them up.

*Reveals*: the coordinator learns shares that are uniform to it, and the noisy sums. It refuses a
sum that no records and no noise can give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from umpc.crypto.ring import RINGS, Ring
from umpc.errors import AlreadyReleased, LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.backends import predict
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.u_mpc.noise_binding import (
    check_edges,
    delta_of_sums,
    noise_of_sums,
    ring_for,
    shared_attempt,
)
from umpc.protocols.u_mpc.settings import noisy_sums, sum_reports
from umpc.study import messages as m
from umpc.study.cost import Cost, Measured
from umpc.study.interval import Limits
from umpc.study.making_report import check_sums, report_of
from umpc.study.report import Report, SumReport
from umpc.study.sizes import Member, Sizes


class UMpcCoordinator(CoordinatorSide):
    """One study, one attempt. Lists are in the study's order of nodes."""

    _attempt: SharedAttempt | None = None

    def check_sizes(self, members: Sequence[Member]) -> None:
        sizes = Sizes.of(self.study, members)
        # refused before any node draws or charges
        check_edges(sizes)
        self._ring(sizes)

    def _ring(self, sizes: Sizes) -> Ring:
        """The ring of the sums with their noise. Raises: RangeError where none is wide enough."""
        return ring_for(sizes, [law.tail_bound() for law in noise_of_sums(sizes)])

    def _make_attempt(self, members: Sequence[Member], openings: Sequence[bytes]) -> SharedAttempt:
        return shared_attempt(self.study, members, openings)

    @property
    def attempt(self) -> SharedAttempt:
        if self._attempt is None:
            raise LocalProtocolError("the attempt has not begun")
        return self._attempt

    def finish(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        values = [self.attempt.released_values(node) for node in range(len(self.names))]
        shares = self._shares(answers, self.attempt.id, [self.attempt.ring], values)
        return self._report(shares, self.attempt, measured)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        sizes = Sizes.of(self.study, answers)
        shares = self._shares(answers, answers[0].attempt, RINGS, [1] * len(answers))
        return self._report(shares, sizes, measured)

    def _report(
        self, shares: Sequence[bytes], run: SharedAttempt | Sizes, measured: Measured
    ) -> Report:
        """Add up the shares and say what the numbers mean."""
        # a run has an attempt and a cost; a replay has sizes only
        if isinstance(run, SharedAttempt):
            sums = self._sums(shares, run.sizes)
            cost = self._cost(run, prepared=measured.prepared)
            delta = self._delta(run.sizes)
            return report_of(self.study, sums, run, delta, measured, cost, self._limits(sums))
        sums, delta = self._sums(shares, run), self._delta(run)
        return report_of(self.study, sums, run, delta, measured, limits=self._limits(sums))

    def _limits(self, sums: Sequence[SumReport]) -> Limits | None:
        """The value that intervals are for, where it is not the value on all sets."""
        return None

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        # the aggregator adds all shares; zero shares cancel
        totals = noisy_sums(shares, len(self.study.kernels))
        laws = noise_of_sums(sizes)
        # outside every kernel's range plus noise: somebody lied
        check_sums(sizes, totals, [law.tail_bound() for law in laws])
        return sum_reports(sizes, totals, laws, noise_of_sums(sizes.if_honest))

    def _cost(self, attempt: SharedAttempt, *, prepared: bool) -> Cost:
        return predict(attempt, prepared=prepared)

    def _delta(self, sizes: Sizes) -> Fraction:
        return delta_of_sums(sizes)

    def _shares(
        self,
        answers: Sequence[m.Released],
        attempt: bytes,
        rings: Iterable[Ring],
        values: Sequence[int],
    ) -> list[bytes]:
        """The nodes' shares, if they are of one attempt and have their size.

        Args: values: how many numbers of each sum every node releases.
        """
        rings = list(rings)
        sums = len(self.study.kernels)
        for name, answer, count in zip(self.names, answers, values, strict=True):
            # a replay does not know the ring, so it tries both
            sizes = [ring.bytes * sums * count for ring in rings]
            if len(answer.share) not in sizes:
                raise RemoteProtocolError(
                    f"{name} released {len(answer.share)} bytes, {' or '.join(map(str, sizes))} "
                    f"were due for {sums} sum(s)",
                    culprit=name,
                    step="release",
                )
        for name, answer in zip(self.names, answers, strict=True):
            # shares of two rings do not add up
            other_ring = len(rings) > 1 and len(answer.share) != len(answers[0].share)
            if answer.attempt != attempt or other_ring:
                raise AlreadyReleased(
                    f"{name} released the study {self.study.name!r} in another attempt than the "
                    f"others, so the shares do not add up; give the study a new name to run it "
                    f"anew",
                    culprit=name,
                )
        return [answer.share for answer in answers]
