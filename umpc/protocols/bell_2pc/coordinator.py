"""The coordinator's side of `bell-2pc`: the shares of every pair's noisy value, added up."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from umpc.crypto.ring import Ring
from umpc.errors import RemoteProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.bell_2pc.noise_binding import (
    check_released,
    delta_of_pairs,
    noise_of_pairs,
    pairs_attempt,
    pairs_ring,
)
from umpc.protocols.u_mpc.coordinator import UMpcCoordinator
from umpc.protocols.u_mpc.sums import noisy_sums, sum_reports
from umpc.study import messages as m
from umpc.study.report import Measured, Report, SumReport
from umpc.study.sizes import Member, Sizes


class BellCoordinator(UMpcCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    def check_sizes(self, members: Sequence[Member]) -> None:
        check_released(Sizes.of(self.study, members))
        super().check_sizes(members)

    def _ring(self, sizes: Sizes) -> Ring:
        return pairs_ring(sizes)

    def _make_attempt(self, members: Sequence[Member], openings: Sequence[bytes]) -> SharedAttempt:
        return pairs_attempt(self.study, members, openings)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        sizes = Sizes.of(self.study, answers)
        ring = pairs_ring(sizes)
        width = ring.bytes * len(self.study.kernels)
        values = [len(answer.share) // width for answer in answers]
        self._check_values(values, sizes.edges)
        shares = self._shares(answers, answers[0].attempt, [ring], values)
        return self._report(shares, sizes, measured)

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        laws = noise_of_pairs(sizes)
        noisy = noisy_sums(shares, len(self.study.kernels), pairs_ring(sizes))
        totals = [law.unbiased(total) for law, total in zip(laws, noisy, strict=True)]
        return sum_reports(sizes, totals, laws)

    def _delta(self, sizes: Sizes) -> Fraction:
        return delta_of_pairs(sizes)

    def _check_values(self, values: Sequence[int], edges: int) -> None:
        """Every pair is released by one owner or by two. Raises: RemoteProtocolError."""
        for name, count in zip(self.names, values, strict=True):
            if count > edges or not edges <= sum(values) <= 2 * edges:
                raise RemoteProtocolError(
                    f"{name} released {count} values of pairs and all nodes {sum(values)}, for "
                    f"{edges} pairs; give the study a new name to run it anew",
                    culprit=name,
                    step="release",
                )
