"""The coordinator's side of `bell-2pc`: shares of every pair's or group's noisy value, added up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from umpc.errors import RemoteProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.protocols.u_mpc.protocol import UMpcCoordinator
from umpc.protocols.u_mpc.settings import noisy_sums, sum_reports
from umpc.study import messages as m
from umpc.study.cost import Measured
from umpc.study.making_report import check_sums, impossible, sum_range, within
from umpc.study.report import Report, SumReport
from umpc.study.sizes import Member, Sizes
from umpc_papers.bell_2pc.group_mechanism import groups_of
from umpc_papers.bell_2pc.noise_binding import (
    check_released,
    most_groups,
    noise_of_pairs,
    pairs_ring,
)
from umpc_papers.bell_2pc.settings import group_of


class BellCoordinator(UMpcCoordinator):
    """One study, one attempt. Lists are in the study's order of nodes."""

    def check_sizes(self, members: Sequence[Member]) -> None:
        check_released(Sizes.of(self.study, members))
        super().check_sizes(members)

    def replay(self, answers: Sequence[m.Released], measured: Measured) -> Report:
        sizes = Sizes.of(self.study, answers)
        ring = pairs_ring(sizes)
        width = ring.bytes * len(self.study.kernels)
        values = [len(answer.share) // width for answer in answers]
        self._check_values(values, sizes)
        shares = self._shares(answers, answers[0].attempt, [ring], values)
        return self._report(shares, sizes, measured)

    def _report(
        self, shares: Sequence[bytes], run: SharedAttempt | Sizes, measured: Measured
    ) -> Report:
        """A replay lacks E, so it checks the sums only; the run checked every pair."""
        if isinstance(run, SharedAttempt):
            self._check_pairs(shares, run)
        return super()._report(shares, run, measured)

    def _check_pairs(self, shares: Sequence[bytes], attempt: SharedAttempt) -> None:
        """Whether every pair's noisy value is possible. Raises: ImpossibleResult."""
        kernels = self.study.parsed_kernels
        group = group_of(self.study)
        what = "a pair" if group == 1 else f"{group} pairs"
        laws = noise_of_pairs(attempt.sizes)
        for values in pair_values(shares, attempt):
            for kernel, law, row in zip(kernels, laws, values, strict=True):
                low, high = sum_range(self.study, kernel, group, law.pair_tail_bound())
                if row.size and not (low <= int(row.min()) and int(row.max()) <= high):
                    limits = within(low * kernel.unit, high * kernel.unit)
                    raise impossible(self.study, f"every possible value of {what} {limits}")

    def _sums(self, shares: Sequence[bytes], sizes: Sizes) -> list[SumReport]:
        laws = noise_of_pairs(sizes)
        noisy = noisy_sums(shares, len(self.study.kernels), pairs_ring(sizes))
        check_sums(sizes, noisy, [law.tail_bound() for law in laws])
        totals = [law.unbiased(total) for law, total in zip(laws, noisy, strict=True)]
        return sum_reports(sizes, totals, laws)

    def _check_values(self, values: Sequence[int], sizes: Sizes) -> None:
        """Every pair or group is released by one owner or by two. Raises: RemoteProtocolError."""
        edges, group = sizes.edges, group_of(self.study)
        least, most = groups_of(edges, group), most_groups(sizes)
        for name, count in zip(self.names, values, strict=True):
            if count > most or not least <= sum(values) <= 2 * most:
                raise RemoteProtocolError(
                    f"{name} released {count} values of pairs and all nodes {sum(values)}, for "
                    f"{edges} pairs in groups of {group}; give the study a new name to run it anew",
                    culprit=name,
                    step="release",
                )


def pair_values(
    shares: Sequence[bytes], attempt: SharedAttempt
) -> Iterator[NDArray[np.signedinteger]]:
    """The noisy values of each cell's pairs or groups: (sums, values), signed, in units.

    A node's share holds its cells in canonical order, and within them the edges in theirs.
    """
    ring = attempt.ring
    sums = len(attempt.study.kernels)
    group = group_of(attempt.study)
    rows = [
        np.frombuffer(share, dtype=ring.dtype.newbyteorder("<")).reshape(sums, -1)
        for share in shares
    ]
    signed = np.dtype(f"i{ring.bytes}")
    starts = [0] * len(shares)
    for owners, cell in sorted(attempt.hypergraph.cells.items()):
        count = groups_of(cell.count, group)
        total = np.zeros((sums, count), dtype=ring.dtype)
        for node in set(owners):
            total += rows[node][:, starts[node] : starts[node] + count]
            starts[node] += count
        yield total.view(signed)
