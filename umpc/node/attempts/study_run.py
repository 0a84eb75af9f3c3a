"""One study at one node, from proposal to release: the protocol's side with network and ledger.

The order that matters (docs/protocol.md): reserve before anything is computed; charge, on disk,
before the first byte of the noisy share leaves; give a reservation back on every failure before the
charge, never after; where the protocol asks, store the one answer before it leaves. A study that is
prepared ahead ends before the data, and its reservation waits with it (`prepared_attempts.py`); its
run takes both, once. A study that was released before is in `replay.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from fractions import Fraction

from umpc.errors import LocalProtocolError, StepTimeout, UmpcError
from umpc.failpoints import failpoint
from umpc.node.attempts.attempt_runner import AttemptRunner, Site
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.node.attempts.prepared_attempts import PreparedAttempt
from umpc.node.attempts.replay import Replay, question_digest, refuse_former
from umpc.node.budget.budget_limits import exact_delta
from umpc.proto import codec
from umpc.protocols.base.node import NodeSide
from umpc.protocols.registry import decode_study, protocol_of
from umpc.study import messages as m

log = logging.getLogger("umpc.node")
PROPOSE_SECONDS = 60
"""How long a coordinator that has called may take to propose a study."""


class StudyRun(CoordinatorStream):
    """Args: site: the parts of the process; the others as of CoordinatorStream."""

    def __init__(
        self,
        site: Site,
        coordinator: str,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        send: Callable[[m.NodeMessage], Awaitable[None]],
    ):
        super().__init__(site.name, coordinator, receive, send)
        self.site = site
        self._runner = AttemptRunner(site, self.tell)
        self.parked: PreparedAttempt | None = None
        """The attempt that waits for another run: this run ended, the study did not."""
        self.aborted = False
        """The coordinator said that the study ends, even if it is parked."""

    async def run(self) -> None:
        """All steps. Whatever happens, a reservation that is not charged is given back.

        Raises: UmpcError.
        """
        try:
            await self._runner.guard(self._steps())
        except TimeoutError as error:
            raise self._timeout() from error
        except UmpcError:
            raise
        except Exception as error:
            log.exception("an error of umpc's own")
            raise LocalProtocolError(
                f"step {self.step} failed with {type(error).__name__}, which is an error of "
                f"umpc's own; see the log",
                step=self.step,
            ) from error
        finally:
            self._runner.close()

    def _timeout(self) -> StepTimeout:
        """A step took too long: the missing peer is named, else this node itself."""
        waited_for = self._runner.waited_for(self.step)
        missing = f", waiting for {', '.join(waited_for)}" if waited_for else ""
        return StepTimeout(
            f"step {self.step} did not end within {self.study.seconds_per_step} s{missing}; give "
            f"it more with seconds_per_step, or look at what keeps it",
            culprit=waited_for[0] if waited_for else self.site.name,
            step=self.step,
        )

    async def _steps(self) -> None:
        propose = await self.expect(m.Propose, PROPOSE_SECONDS)
        self.proposed = await asyncio.to_thread(decode_study, propose.study)
        study = self.study
        self.check_caller()
        released = await asyncio.to_thread(self.site.ledger.released, study.hash)
        parked = self.site.parking.take(study.hash)
        if parked is not None and not propose.ahead:
            await self._run_parked(parked)
            return
        if parked is not None:
            self._settle(parked)
            log.info("study %s is prepared anew: the earlier preparation is dropped", self.label)
        if released is not None:
            await Replay(self.site, self, self._runner).release(released)
            return
        await asyncio.to_thread(refuse_former, self.site, study)
        await self._run_attempt(propose.ahead)

    async def _run_attempt(self, ahead: bool) -> None:
        study = self.study
        ledger = self.site.ledger
        protocol = protocol_of(study)
        if ahead:
            protocol.check_ahead(study)
            self.site.parking.check_room()
        failpoint("before-reserve")
        records = await asyncio.to_thread(self.site.load, study)
        # Not in a thread: no cancellation may come in between.
        ledger.reserve(study.hash, study.exact_epsilon, name=study.name)
        failpoint("after-reserve")
        try:
            side = protocol.node(self.name, study, records.columns, records.count, os.urandom)
            await self._log_study(records.count, records.dropped)
            await self.send(m.Accepted(study.hash, side.accept()))
            agree = await self.expect(m.Agree)
            failpoint("agree")
            await self.send(m.Opened(side.agree(agree.members)))
            delta = await self._prepare(side, ahead)
            if ahead:
                await self._park(delta)
            else:
                await self._evaluate()
                await self._release(side, delta)
        finally:
            if self.parked is None:
                ledger.cancel(study.hash)

    async def _log_study(self, count: int, dropped: int) -> None:
        log.info(
            "study %s of %s accepted: %d records, %d rows dropped",
            self.label,
            self.coordinator,
            count,
            dropped,
        )
        kernels = self.study.parsed_kernels
        await asyncio.to_thread(lambda: [kernel.interval for kernel in kernels])  # maybe seconds
        for kernel in kernels:
            low = kernel.interval.low
            high = kernel.interval.high
            log.info(
                "kernel %s of hash %s, range [%s, %s], delta f %s",
                kernel.text,
                kernel.hash[:16],
                low,
                high,
                high - low,
            )

    async def _prepare(self, side: NodeSide, ahead: bool) -> Fraction:
        """Everything before the data. Returns: the δ that is now reserved too."""
        begin = await self.expect(m.Begin)
        self.step = "prepare"
        failpoint("before-prepare")
        attempt = await self._runner.in_thread(side.begin, begin.openings)
        delta = exact_delta(await self._runner.in_thread(lambda: side.delta))
        self.site.ledger.reserve_delta(self.study.hash, delta)  # not in a thread, as epsilon
        failpoint("after-reserve-delta")
        await self._runner.ready(side, begin.openings, ahead=ahead)
        failpoint("after-prepare")
        await self.send(m.Prepared(attempt.id, self._runner.bytes_offline))
        return delta

    async def _park(self, delta: Fraction) -> None:
        """Leave the prepared attempt, and its reservation, to a later run."""
        await self.expect(m.Park)
        self.step = "park"
        failpoint("before-park")
        parked = self._runner.park(delta)
        parking = self.site.parking
        try:
            parking.put(parked)
        except UmpcError:
            parked.close()
            raise
        # Before the answer: the coordinator may hang up as soon as it has it.
        self.parked = parked
        self.answered = True
        waiting = parked.spool.bytes_waiting if parked.spool else 0
        try:
            await self.send(m.Parked(waiting, int(parking.seconds)))
        except BaseException:
            parking.drop(parked, "could not be told of")
            raise
        log.info("study %s is prepared: %d bytes wait for its run", self.label, waiting)

    async def _run_parked(self, parked: PreparedAttempt) -> None:
        """The run of what was prepared, with the same messages; whatever happens, it is used up."""
        study = self.study
        try:
            await asyncio.to_thread(self.site.permit, study, parked.side.records)
            log.info("study %s of %s goes on as it was prepared", self.label, self.coordinator)
            await self.send(m.Accepted(study.hash, parked.side.accept()))
            agree = await self.expect(m.Agree)
            await self.send(m.Opened(parked.agree(agree.members)))
            begin = await self.expect(m.Begin)
            attempt = parked.begin(begin.openings)
            self.step = "prepare"
            failpoint("before-resume")
            await self._runner.resume(parked, study)
            await self.send(m.Prepared(attempt.id, parked.bytes_offline, ahead=True))
            await self._evaluate()
            await self._release(parked.side, parked.delta)
        finally:
            self._settle(parked)

    def _settle(self, parked: PreparedAttempt) -> None:
        """End a parked attempt that was taken: its material, and its reservation if not charged."""
        parked.close()
        self.site.ledger.cancel(self.study.hash)

    async def _evaluate(self) -> None:
        await self.expect(m.Evaluate)
        self.step = "evaluate"
        failpoint("before-evaluate")
        await self._runner.evaluate()
        failpoint("before-ready")
        runner = self._runner
        await self.send(
            m.Ready(runner.bytes_online_by_round, runner.bytes_offline, runner.rounds_used)
        )
        failpoint("after-ready")

    async def _release(self, side: NodeSide, delta: Fraction) -> None:
        """Charge, then let the share leave; then answer the protocol's questions."""
        await self.expect(m.Release)
        self.step = "release"
        failpoint("release-asked")
        study = self.study
        questions = protocol_of(study).questions
        kept = side.release()
        stored = codec.encode_kept(kept)
        self._runner.check_delivery(kept)
        failpoint("before-charge")
        ledger = self.site.ledger
        await asyncio.to_thread(ledger.charge, study.hash, side.attempt.id, stored)
        failpoint("after-charge")
        log.info(
            "study %s: epsilon %s, delta %.3g charged, the share leaves",
            self.label,
            study.epsilon,
            delta,
        )
        self.log_disclosure(side.records)
        await self.send(await self._delivered(side, kept))
        self.answered = questions == 0
        failpoint("after-send")
        await asyncio.shield(asyncio.to_thread(ledger.record_release, study.hash))
        failpoint("after-record-release")
        for number in range(questions):
            await self._answer(side, is_last=number + 1 == questions)

    async def _delivered(self, side: NodeSide, kept: m.Released | m.Delivery) -> m.Released:
        """The message for the coordinator, once shufflers have what goes to them."""
        if isinstance(kept, m.Released):
            return kept
        own = side.accept()
        message = m.Released(kept.attempt, b"", own.records, own.first_class)
        return replace(message, sent=await self._runner.deliver(self.study, kept))

    async def _answer(self, side: NodeSide, *, is_last: bool) -> None:
        """The answer to a question: on disk before it leaves; the release has paid for it."""
        ask = await self.expect(m.Ask)
        self.step = "ask"
        failpoint("before-answer")
        async with asyncio.timeout(self.study.seconds_per_step):
            answer = await self._runner.in_thread(side.answer, ask.question)
        attempt = side.attempt.id
        asked = question_digest(self.study, attempt, ask.question)
        await asyncio.to_thread(self.site.ledger.answer, self.study.hash, attempt, asked, answer)
        failpoint("after-answer")
        await self.send(m.Answer(answer))
        self.answered = is_last
        log.info("study %s: the question is answered", self.label)
        failpoint("after-told")
