"""The coordinator's side of `central`: it is a trusted curator, and sees all records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from umpc.protocols.base.one_message_protocol import OneMessageCoordinator, sum_report
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import Cost, Measured
from umpc.study.making_report import Limits, covers_all_sets, report_of
from umpc.study.report import Report
from umpc.study.sizes import ClassCounts, Member, Sizes
from umpc_papers.central.messages import CuratorMessages
from umpc_papers.central.uniformity import answer_of


class CuratorCoordinator(OneMessageCoordinator):
    """A trusted curator. Its draws follow from the messages, so a replay gives the same number."""

    _messages: CuratorMessages

    def check_sizes(self, members: Sequence[Member]) -> None:
        super().check_sizes(members)
        records = sum(member.records for member in members)
        self._messages.check_records(records)
        self._messages.usual_std(records)  # impossible parameters are found before the charge

    def _report(
        self,
        answers: Sequence[m.Released],
        counts: Sequence[ClassCounts],
        run: Attempt | Sizes,
        measured: Measured,
        cost: Cost,
    ) -> Report:
        estimate = self._messages.aggregate([answer.share for answer in answers], counts)
        one = sum_report(self.study, estimate, estimate.sampling)
        limits = self._messages.limits()
        test = self._messages.test(estimate.records)
        if test is not None:
            noise = self._messages.fixed_noise(estimate.records)
            note = answer_of(test, estimate.value, noise)
            limits = Limits(covers_all_sets(self.study), note)
        if told := self._messages.median_in_words(estimate.records):
            covers = limits.covers if limits else covers_all_sets(self.study)
            limits = Limits(covers, f"{told}; {limits.note}" if limits else told)
        delta = self.study.exact_delta
        report = report_of(self.study, [one], run, delta, measured, cost, limits)
        return replace(report, edges=estimate.sets, max_degree=estimate.most)
