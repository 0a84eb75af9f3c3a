"""The coordinator's side of `vector`: the nodes' noisy shares of every sum, added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from umpc.crypto.ring import Ring
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.u_mpc.coordinator import UMpcCoordinator
from umpc.protocols.u_mpc.noise_binding import ring_for
from umpc.protocols.u_mpc.settings import noisy_sums, sum_reports
from umpc.protocols.vector.noise_binding import noise_of_vector, vector_attempt
from umpc.study.making_report import check_sums
from umpc.study.report import SumReport
from umpc.study.sizes import Member, Sizes


class VectorCoordinator(UMpcCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    def _ring(self, sizes: Sizes) -> Ring:
        return ring_for(sizes, [law.tail_bound() for law in noise_of_vector(sizes)])

    def _make_attempt(self, members: Sequence[Member], openings: Sequence[bytes]) -> SharedAttempt:
        return vector_attempt(self.study, members, openings)

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        totals = noisy_sums(shares, len(self.study.kernels))
        laws = noise_of_vector(sizes)
        check_sums(sizes, totals, [law.tail_bound() for law in laws])
        epsilon = float(self.study.exact_epsilon)
        # the sums share all of ε: none of them has a part of its own
        return [replace(entry, epsilon=epsilon) for entry in sum_reports(sizes, totals, laws)]

    def _delta(self, sizes: Sizes) -> Fraction:
        return sizes.study.exact_delta
