"""The coordinator's part where it is a trusted curator, and sees all records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from umpc.mpc.attempt import Attempt
from umpc.mpc.cost import Cost
from umpc.protocols.base.one_message_coordinator import OneMessageCoordinator
from umpc.protocols.local.messages import Counts
from umpc.study.report import Measured, Report, report_of
from umpc.study.sizes import Member, Sizes


class CuratorCoordinator(OneMessageCoordinator):
    """A trusted curator. What it draws follows from the messages, so a replay gives the same number."""

    def _check_sizes(self, members: tuple[Member, ...]) -> None:
        super()._check_sizes(members)
        records = sum(member.records for member in members)
        self._protocol.check_records(records)
        self._protocol.usual_std(
            records
        )  # what its parameters cannot do is found here, not after the charge

    def _report_of(
        self,
        messages: Sequence[bytes],
        counts: Sequence[Counts],
        run: Attempt | Sizes,
        cost: Cost,
        measured: Measured,
    ) -> Report:
        estimate = self._protocol.aggregate(messages, counts)
        one = self._sum(estimate.value, estimate.std, estimate.sampling)
        return replace(
            report_of(self.study, [one], run, cost, measured),
            edges=estimate.sets,
            max_degree=estimate.most,
        )
