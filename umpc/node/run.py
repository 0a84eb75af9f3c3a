"""One study at one node, from proposal to release: the session's steps with their network and ledger.

The order that matters (docs/protocol.md): reserve before anything is computed; charge, on disk, before the first byte
of the noisy share leaves; give a reservation back on every failure before the charge, never after; where the protocol
asks, store the one answer before it leaves. A study that is
prepared ahead ends before the data, and its reservation waits with it (`parking.py`); its run takes both, once.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from umpc.agreement import delta_of
from umpc.errors import LocalProtocolError, RemoteProtocolError, StepTimeout, UmpcError
from umpc.failpoints import failpoint
from umpc.mpc import messages as m
from umpc.node.amounts import exact_delta
from umpc.node.ledger import Release
from umpc.node.onemessage import OneMessageSession
from umpc.node.parking import ParkedAttempt
from umpc.node.session import NodeSession
from umpc.node.sessions import Session, session_of
from umpc.node.shuffling import ShuffledSession
from umpc.node.tworounds import TwoRoundsSession, question_digest, stored_answer
from umpc.node.work import Site, Work
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study import Study, decode_study

log = logging.getLogger("umpc.node")
T = TypeVar("T")

PATIENCE_SECONDS = 10
"""How much longer than a step a node waits for the coordinator, which waits for the slowest node itself."""
PROPOSE_SECONDS = 60
"""How long a coordinator that has called may take to say what it wants."""


class StudyRun:
    """Args: receive: the coordinator's next message. send: one message to the coordinator."""

    def __init__(
        self,
        site: Site,
        coordinator: str,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        send: Callable[[m.NodeMessage], Awaitable[None]],
    ):
        self.site, self.coordinator = site, coordinator
        self._receive, self._send = receive, send
        self._work = Work(site, self._tell)
        self.study: Study | None = None
        self.step = "propose"
        self.answered = False
        """The share is out, or the study is parked: whatever the coordinator does now, this run is complete here."""
        self.parked: ParkedAttempt | None = None
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
        propose = await self._expect(m.Propose, PROPOSE_SECONDS)
        self.study = await asyncio.to_thread(decode_study, propose.study)
        self._check_caller()
        released = await asyncio.to_thread(self.site.ledger.released, self.study.hash)
        parked = self.site.parking.take(self.study.hash)
        if parked is not None and not propose.ahead:
            await self._run_parked(parked)
            return
        if parked is not None:
            self._settle(parked)
            log.info("study %s is prepared anew: what waited is dropped", self._label)
        if released is not None:
            await self._release_again(released)
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
            session = session_of(study)(self.site.name, study, records.columns, records.count, os.urandom)
            await self._log_study(records.count, records.dropped)
            await self._send(m.Accepted(study.hash, session.accept()))
            agree = await self._expect(m.Agree)
            failpoint("agree")
            await self._send(m.Opened(session.agree(agree.members)))
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
        who = f"study {self._label} of {self.coordinator}"
        log.info("%s accepted: %d records, %d rows dropped", who, count, dropped)
        kernels = self.study.parsed_kernels
        await asyncio.to_thread(lambda: [kernel.interval for kernel in kernels])  # may take seconds
        for kernel in kernels:
            low, high = kernel.interval.low, kernel.interval.high
            facts = kernel.text, kernel.hash[:16], low, high, high - low
            log.info("kernel %s of hash %s, range [%s, %s], delta f %s", *facts)

    async def _prepare(self, session: NodeSession, ahead: bool) -> Fraction:
        """Everything before the data. Returns: the delta that is now reserved too."""
        begin = await self._expect(m.Begin)
        self.step = "prepare"
        failpoint("before-prepare")
        attempt = await self._work.in_thread(session.begin, begin.openings)
        delta = exact_delta(await self._work.in_thread(delta_of, attempt.sizes))
        self.site.ledger.reserve_delta(self.study.hash, delta)  # not in a thread, as epsilon
        failpoint("after-reserve-delta")
        await self._work.ready(session, begin.openings, ahead=ahead)
        failpoint("after-prepare")
        await self._send(m.Prepared(attempt.id, self._work.bytes_offline))
        return delta

    async def _park(self, delta: Fraction) -> None:
        """Leave the prepared attempt, and its reservation, to a later run."""
        await self._expect(m.Park)
        self.step = "park"
        failpoint("before-park")
        parked, parking = self._work.park(delta), self.site.parking
        try:
            parking.put(parked)
        except UmpcError:
            parked.close()
            raise
        self.parked, self.answered = parked, True  # before the answer: the coordinator may hang up as soon as it has it
        waiting = parked.spool.bytes_waiting if parked.spool else 0
        try:
            await self._send(m.Parked(waiting, int(parking.seconds)))
        except BaseException:
            parking.drop(parked, "could not be told of")
            raise
        log.info("study %s is prepared: %d bytes wait for its run", self._label, waiting)

    async def _randomise(self, session: OneMessageSession | ShuffledSession) -> Fraction:
        """Prepare and evaluate of a one-message protocol: nothing is dealt, nobody but shufflers is called."""
        begin = await self._expect(m.Begin)
        self.step = "prepare"
        failpoint("before-prepare")
        attempt = await self._work.in_thread(session.begin, begin.openings)
        delta = exact_delta(delta_of(attempt.sizes))
        self.site.ledger.reserve_delta(self.study.hash, delta)  # not in a thread, as epsilon
        failpoint("after-reserve-delta")
        if self.study.shuffled:
            await self._work.reach_shufflers(self.study, attempt.id, attempt.members, begin.openings)
        await self._send(m.Prepared(attempt.id, 0))
        await self._expect(m.Evaluate)
        self.step = "evaluate"
        failpoint("before-evaluate")
        async with asyncio.timeout(self.study.seconds_per_step):
            await self._work.in_thread(session.randomise)
        failpoint("before-ready")
        await self._send(m.Ready((), 0, 0))
        failpoint("after-ready")
        return delta

    async def _run_parked(self, parked: ParkedAttempt) -> None:
        """The run of what was prepared, in the same words; whatever happens, it is used up."""
        try:
            await asyncio.to_thread(self.site.permit, self.study, parked.session.records)
            log.info("study %s of %s goes on as it was prepared", self._label, self.coordinator)
            await self._send(m.Accepted(self.study.hash, parked.session.accept()))
            await self._send(m.Opened(parked.agree((await self._expect(m.Agree)).members)))
            attempt = parked.begin((await self._expect(m.Begin)).openings)
            self.step = "prepare"
            failpoint("before-resume")
            await self._work.resume(parked, self.study)
            await self._send(m.Prepared(attempt.id, parked.bytes_offline, ahead=True))
            await self._evaluate()
            await self._release(parked.session, parked.delta)
        finally:
            self._settle(parked)

    def _settle(self, parked: ParkedAttempt) -> None:
        """A parked attempt that was taken is over: its material is gone, and its reservation unless it was charged."""
        parked.close()
        self.site.ledger.cancel(self.study.hash)

    async def _evaluate(self) -> None:
        await self._expect(m.Evaluate)
        self.step = "evaluate"
        failpoint("before-evaluate")
        await self._work.evaluate()
        failpoint("before-ready")
        await self._send(m.Ready(self._work.bytes_online_by_round, self._work.bytes_offline, self._work.rounds_used))
        failpoint("after-ready")

    async def _tell(self, done: int, total: int) -> None:
        await self._send(m.Progress(self.step, done, total))

    async def _release(self, session: Session, delta: Fraction) -> None:
        await self._expect(m.Release)
        self.step = "release"
        failpoint("release-asked")
        share = session.release()
        kept = share if isinstance(share, m.Delivery) else None
        message = m.Released(session.attempt.id, b"" if kept else share, session.records, session.accept().first_class)
        stored = codec.encode_delivery(kept) if kept else codec.encode_node(message).SerializeToString()
        if kept:
            self._work.delivery.check()
        failpoint("before-charge")
        await asyncio.to_thread(self.site.ledger.charge, self.study.hash, session.attempt.id, stored)
        failpoint("after-charge")
        log.info("study %s: epsilon %s, delta %.3g charged, the share leaves", self._label, self.study.epsilon, delta)
        self._log_raw_records(session.records)
        if kept:
            message = replace(message, sent=await self._work.deliver(self.study, kept))
        await self._send(message)
        self.answered = not self.study.asks
        failpoint("after-send")
        await asyncio.shield(asyncio.to_thread(self.site.ledger.record_release, self.study.hash))
        failpoint("after-record-release")

    async def _answer(self, session: TwoRoundsSession) -> None:
        """The second message, of records that were not in the first: on disk before it leaves, and charged already."""
        ask = await self._expect(m.Ask)
        self.step = "ask"
        failpoint("before-answer")
        async with asyncio.timeout(self.study.seconds_per_step):
            answer = await self._work.in_thread(session.answer, ask.question)
        attempt, ledger = session.attempt.id, self.site.ledger
        asked = question_digest(self.study, attempt, ask.question)
        await asyncio.to_thread(ledger.answer, self.study.hash, attempt, asked, answer)
        failpoint("after-answer")
        await self._send(m.Told(answer))
        self.answered = True
        log.info("study %s: the question is answered", self._label)
        failpoint("after-told")

    async def _release_again(self, stored: Release) -> None:
        """The same study asked again gets the same stored bytes, at no cost; raw records only while the rules allow."""
        self.step = "release"
        if self.study.shuffled:
            await self._deliver_again(codec.decode_delivery(stored.share))
        else:
            await self._send_again(stored)
        self.answered = True
        log.info("study %s was released before: the stored share sent again, nothing charged", self._label)

    async def _send_again(self, stored: Release) -> None:
        message = codec.decode_node(codec.parse(pb.NodeMessage, stored.share))
        if self.study.central:
            await asyncio.to_thread(self.site.permit, self.study, message.records)
            self._log_raw_records(message.records)
        await self._send(message)
        if self.study.asks:
            ask = await self._expect(m.Ask)
            self.step = "ask"
            asked = question_digest(self.study, stored.attempt, ask.question)
            answer = await asyncio.to_thread(self.site.ledger.answered, self.study.hash)
            await self._send(m.Told(stored_answer(answer, asked, self.study, self.site.name)))

    async def _deliver_again(self, kept: m.Delivery) -> None:
        """To shufflers, who put the same messages into a new order (`umpc.protocols.shuffling`)."""
        own = kept.members[self.study.index_of(self.site.name)]
        message = m.Released(kept.attempt, b"", own.records, own.first_class)
        await self._send(message)
        await self._expect(m.Release)
        await self._work.reach_shufflers(self.study, kept.attempt, kept.members, kept.openings)
        await self._send(replace(message, sent=await self._work.deliver(self.study, kept)))

    def _log_raw_records(self, records: int) -> None:
        """A trusted curator is shown what nobody else is: the log says so, each time."""
        if self.study.central:
            fields = ", ".join(self.study.parsed_kernels[0].fields)
            told = "study %s: RAW RECORDS leave: %s of all %d records, shown to %s, a trusted curator"
            log.warning(told, self._label, fields, records, self.coordinator)

    def _check_caller(self) -> None:
        study = self.study
        study.index_of(self.site.name)
        if study.coordinator != self.coordinator:
            raise RemoteProtocolError(
                f"the study names {study.coordinator!r} as its coordinator, its certificate says {self.coordinator!r}",
                culprit=self.coordinator,
                step="propose",
            )

    async def _expect(self, kind: type[T], seconds: float | None = None) -> T:
        """The coordinator's next message, which must be of this kind."""
        try:
            async with asyncio.timeout(seconds or self.study.seconds_per_step + PATIENCE_SECONDS):
                message = await self._receive()
        except TimeoutError as error:
            raise StepTimeout(
                f"{self.coordinator} did not continue after step {self.step}", culprit=self.coordinator, step=self.step
            ) from error
        if not isinstance(message, kind):
            raise RemoteProtocolError(
                f"{self.coordinator} sent {type(message).__name__} where {kind.__name__} was due",
                culprit=self.coordinator,
                step=self.step,
            )
        return message

    @property
    def _label(self) -> str:
        return f"{self.study.name!r} ({self.study.hash.hex()[:8]})"
