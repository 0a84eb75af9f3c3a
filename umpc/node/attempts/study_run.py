"""One study at one node, from proposal to release: the session's steps with their network and ledger.

The order that matters (docs/protocol.md): reserve before anything is computed; charge, on disk, before the first byte
of the noisy share leaves; give a reservation back on every failure before the charge, never after; where the protocol
asks, store the one answer before it leaves. A study that is prepared ahead ends before the data, and its reservation
waits with it (`parking.py`); its run takes both, once. What was released before is in `again.py`.
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
from umpc.node.attempts.replay import Replay
from umpc.node.budget.budget_limits import exact_delta
from umpc.node.sessions import Session, session_of
from umpc.proto import codec
from umpc.protocols.base.one_message_node import OneMessageSession
from umpc.protocols.ghazi_rounds.node import TwoRoundsSession, question_digest
from umpc.protocols.ghazi_shuffle.node import ShuffledSession
from umpc.protocols.u_mpc.node import NodeSession
from umpc.protocols.u_mpc.noise_binding import delta_of
from umpc.study import messages as m
from umpc.study.document import decode_study

log = logging.getLogger("umpc.node")
PROPOSE_SECONDS = 60
"""How long a coordinator that has called may take to say what it wants."""


class StudyRun(CoordinatorStream):
    """Args: as CoordinatorStream."""

    def __init__(
        self,
        site: Site,
        coordinator: str,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        send: Callable[[m.NodeMessage], Awaitable[None]],
    ):
        super().__init__(site.name, coordinator, receive, send)
        self.site, self._work = site, AttemptRunner(site, self.tell)
        self.parked: PreparedAttempt | None = None
        """What waits for another run: this one ended, the study did not."""
        self.aborted = False
        """The coordinator said that the study ends, even if it is parked."""

    async def run(self) -> None:
        """All steps. Raises: UmpcError; whatever happens, an uncharged reservation is given back."""
        try:
            await self._steps()
        except TimeoutError as error:
            raise self._timeout() from error
        except Exception as error:
            if isinstance(error, UmpcError):
                raise
            log.exception("an error of umpc's own")
            raise LocalProtocolError(
                f"step {self.step} failed with {type(error).__name__}, which is an error of umpc's own; see the log",
                step=self.step,
            ) from error
        finally:
            self._work.close()

    def _timeout(self) -> StepTimeout:
        """A step took too long: whoever was waited for is named, else this node itself."""
        waited_for = self._work.waited_for(self.step)
        missing = f", waiting for {', '.join(waited_for)}" if waited_for else ""
        return StepTimeout(
            f"step {self.step} did not end within {self.study.seconds_per_step} s{missing}; give it more with "
            f"seconds_per_step, or look at what keeps it",
            culprit=waited_for[0] if waited_for else self.site.name,
            step=self.step,
        )

    async def _steps(self) -> None:
        propose = await self.expect(m.Propose, PROPOSE_SECONDS)
        self.study = await asyncio.to_thread(decode_study, propose.study)
        self.check_caller()
        released = await asyncio.to_thread(self.site.ledger.released, self.study.hash)
        parked = self.site.parking.take(self.study.hash)
        if parked is not None and not propose.ahead:
            await self._run_parked(parked)
            return
        if parked is not None:
            self._settle(parked)
            log.info("study %s is prepared anew: what waited is dropped", self.label)
        if released is not None:
            await Replay(self.site, self, self._work).release(released)
        else:
            await self._run_attempt(propose.ahead)

    async def _run_attempt(self, ahead: bool) -> None:
        study, ledger = self.study, self.site.ledger
        if ahead:
            self.site.parking.check_room()
        failpoint("before-reserve")
        records = await asyncio.to_thread(self.site.load, study)
        # Not in a thread: no cancellation may come in between.
        ledger.reserve(study.hash, study.exact_epsilon, name=study.name)
        failpoint("after-reserve")
        try:
            session = session_of(study)(
                self.name, study, records.columns, records.count, os.urandom
            )
            await self._log_study(records.count, records.dropped)
            await self.send(m.Accepted(study.hash, session.accept()))
            agree = await self.expect(m.Agree)
            failpoint("agree")
            await self.send(m.Opened(session.agree(agree.members)))
            if not isinstance(session, NodeSession):
                delta = await self._randomise(session)
                await self._release(session, delta)
                if isinstance(session, TwoRoundsSession):
                    await self._answer(session)
                return
            delta = await self._prepare(session, ahead)
            if ahead:
                await self._park(delta)
            else:
                await self._evaluate()
                await self._release(session, delta)
        finally:
            if self.parked is None:
                ledger.cancel(study.hash)

    async def _log_study(self, count: int, dropped: int) -> None:
        who = f"study {self.label} of {self.coordinator}"
        log.info("%s accepted: %d records, %d rows dropped", who, count, dropped)
        kernels = self.study.parsed_kernels
        await asyncio.to_thread(lambda: [kernel.interval for kernel in kernels])  # may take seconds
        for kernel in kernels:
            low, high = kernel.interval.low, kernel.interval.high
            facts = kernel.text, kernel.hash[:16], low, high, high - low
            log.info("kernel %s of hash %s, range [%s, %s], delta f %s", *facts)

    async def _prepare(self, session: NodeSession, ahead: bool) -> Fraction:
        """Everything before the data. Returns: the delta that is now reserved too."""
        begin = await self.expect(m.Begin)
        self.step = "prepare"
        failpoint("before-prepare")
        attempt = await self._work.in_thread(session.begin, begin.openings)
        delta = exact_delta(await self._work.in_thread(delta_of, attempt.sizes))
        self.site.ledger.reserve_delta(self.study.hash, delta)  # not in a thread, as epsilon
        failpoint("after-reserve-delta")
        await self._work.ready(session, begin.openings, ahead=ahead)
        failpoint("after-prepare")
        await self.send(m.Prepared(attempt.id, self._work.bytes_offline))
        return delta

    async def _park(self, delta: Fraction) -> None:
        """Leave the prepared attempt, and its reservation, to a later run."""
        await self.expect(m.Park)
        self.step = "park"
        failpoint("before-park")
        parked, parking = self._work.park(delta), self.site.parking
        try:
            parking.put(parked)
        except UmpcError:
            parked.close()
            raise
        self.parked, self.answered = (
            parked,
            True,
        )  # before the answer: the coordinator may hang up as soon as it has it
        waiting = parked.spool.bytes_waiting if parked.spool else 0
        try:
            await self.send(m.Parked(waiting, int(parking.seconds)))
        except BaseException:
            parking.drop(parked, "could not be told of")
            raise
        log.info("study %s is prepared: %d bytes wait for its run", self.label, waiting)

    async def _randomise(self, session: OneMessageSession | ShuffledSession) -> Fraction:
        """Prepare and evaluate of a one-message protocol: nothing is dealt, nobody but shufflers is called."""
        begin = await self.expect(m.Begin)
        self.step = "prepare"
        failpoint("before-prepare")
        attempt = await self._work.in_thread(session.begin, begin.openings)
        delta = exact_delta(delta_of(attempt.sizes))
        self.site.ledger.reserve_delta(self.study.hash, delta)  # not in a thread, as epsilon
        failpoint("after-reserve-delta")
        if self.study.shuffled:
            await self._work.reach_shufflers(
                self.study, attempt.id, attempt.members, begin.openings
            )
        await self.send(m.Prepared(attempt.id, 0))
        await self.expect(m.Evaluate)
        self.step = "evaluate"
        failpoint("before-evaluate")
        async with asyncio.timeout(self.study.seconds_per_step):
            await self._work.in_thread(session.randomise)
        failpoint("before-ready")
        await self.send(m.Ready((), 0, 0))
        failpoint("after-ready")
        return delta

    async def _run_parked(self, parked: PreparedAttempt) -> None:
        """The run of what was prepared, in the same words; whatever happens, it is used up."""
        try:
            await asyncio.to_thread(self.site.permit, self.study, parked.session.records)
            log.info("study %s of %s goes on as it was prepared", self.label, self.coordinator)
            await self.send(m.Accepted(self.study.hash, parked.session.accept()))
            await self.send(m.Opened(parked.agree((await self.expect(m.Agree)).members)))
            attempt = parked.begin((await self.expect(m.Begin)).openings)
            self.step = "prepare"
            failpoint("before-resume")
            await self._work.resume(parked, self.study)
            await self.send(m.Prepared(attempt.id, parked.bytes_offline, ahead=True))
            await self._evaluate()
            await self._release(parked.session, parked.delta)
        finally:
            self._settle(parked)

    def _settle(self, parked: PreparedAttempt) -> None:
        """A parked attempt that was taken is over: its material is gone, and its reservation unless it was charged."""
        parked.close()
        self.site.ledger.cancel(self.study.hash)

    async def _evaluate(self) -> None:
        await self.expect(m.Evaluate)
        self.step = "evaluate"
        failpoint("before-evaluate")
        await self._work.evaluate()
        failpoint("before-ready")
        await self.send(
            m.Ready(
                self._work.bytes_online_by_round, self._work.bytes_offline, self._work.rounds_used
            )
        )
        failpoint("after-ready")

    async def _release(self, session: Session, delta: Fraction) -> None:
        await self.expect(m.Release)
        self.step = "release"
        failpoint("release-asked")
        share = session.release()
        kept = share if isinstance(share, m.Delivery) else None
        message = m.Released(
            session.attempt.id,
            b"" if kept else share,
            session.records,
            session.accept().first_class,
        )
        stored = (
            codec.encode_delivery(kept) if kept else codec.encode_node(message).SerializeToString()
        )
        if kept:
            self._work.delivery.check()
        failpoint("before-charge")
        await asyncio.to_thread(
            self.site.ledger.charge, self.study.hash, session.attempt.id, stored
        )
        failpoint("after-charge")
        log.info(
            "study %s: epsilon %s, delta %.3g charged, the share leaves",
            self.label,
            self.study.epsilon,
            delta,
        )
        self.log_raw_records(session.records)
        if kept:
            message = replace(message, sent=await self._work.deliver(self.study, kept))
        await self.send(message)
        self.answered = not self.study.asks
        failpoint("after-send")
        await asyncio.shield(asyncio.to_thread(self.site.ledger.record_release, self.study.hash))
        failpoint("after-record-release")

    async def _answer(self, session: TwoRoundsSession) -> None:
        """The second message, of records that were not in the first: on disk before it leaves, and charged already."""
        ask = await self.expect(m.Ask)
        self.step = "ask"
        failpoint("before-answer")
        async with asyncio.timeout(self.study.seconds_per_step):
            answer = await self._work.in_thread(session.answer, ask.question)
        attempt, ledger = session.attempt.id, self.site.ledger
        asked = question_digest(self.study, attempt, ask.question)
        await asyncio.to_thread(ledger.answer, self.study.hash, attempt, asked, answer)
        failpoint("after-answer")
        await self.send(m.Answer(answer))
        self.answered = True
        log.info("study %s: the question is answered", self.label)
        failpoint("after-told")
