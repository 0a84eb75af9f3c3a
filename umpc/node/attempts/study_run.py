"""One study at one node, from proposal to release: the protocol's side with network and ledger.

The order that matters (docs/protocol.md): reserve before the table is read; hold the finished
share, on disk, before the node says *ready*; charge, on disk, before the first byte of the noisy
share leaves; where the protocol asks, store the one answer before it leaves. A failure before
*ready* gives the reservation back. From then on the attempt is held, and a later run finishes it
(`held_run.py`), unless the coordinator says that nobody has charged. Nothing is given back after
the charge.

A study that is prepared ahead ends before the data, and its reservation waits with it
(`prepared_attempts.py`); its run takes both, once. A study that was released before is in
`replay.py`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fractions import Fraction

from umpc.dp.events import Event
from umpc.errors import LocalProtocolError, StepTimeout, UmpcError
from umpc.failpoints import failpoint
from umpc.node.attempts.attempt_runner import AttemptRunner, Site
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.node.attempts.held_run import HeldRun
from umpc.node.attempts.prepared_attempts import PreparedAttempt
from umpc.node.attempts.questions import Questions
from umpc.node.attempts.release import Ending
from umpc.node.attempts.replay import Replay, refuse_former
from umpc.node.attempts.total import add_up
from umpc.node.audit.study_rows import about
from umpc.node.budget.budget_limits import exact_delta
from umpc.node.budget.held_attempts import HeldAttempt
from umpc.node.budget.ledger import StoredRelease
from umpc.protocols.base.node import NodeSide
from umpc.protocols.registry import decode_study, protocol_of
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.transport.structured_concurrency import task_group

log = logging.getLogger("umpc.node")
PROPOSE_SECONDS = 600
"""How long a coordinator that has called may take to propose a study.

It first calls all nodes of the study, and thousands of members take minutes on one machine."""

TURNS_TO_ASK = 4
"""Turns of the event loop until a request leaves over a connection that was kept."""
RECORDS = {
    True: "other records than the last study of the same fields and condition: the table changed",
    False: "no other records than the last study of the same fields and condition, if any",
}
"""For the log of the site alone: whether the table changed, by a study's records."""


@dataclass(frozen=True)
class DatasetChoice:
    """How a node with several data sets finds that of a study.

    site_of: the parts of the process for the study's data set; the first one's where it has none.
    check: raises StudyError where the study has no data set of the node.
    """

    site_of: Callable[[Study], Site]
    check: Callable[[Study], None]


Begun = tuple[Attempt, Fraction, tuple[Event, ...]]
"""An attempt, with the δ and the mechanism that are to be reserved for it."""


class StudyRun(CoordinatorStream):
    """Args: site: the parts of the process, until `choice` has found those for the study's data
    set; the others as of CoordinatorStream."""

    def __init__(
        self,
        site: Site,
        coordinator: str,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        send: Callable[[m.NodeMessage], Awaitable[None]],
        choice: DatasetChoice | None = None,
    ):
        super().__init__(site.name, coordinator, receive, send)
        self.site = site
        self._choice = choice
        self._runner = AttemptRunner(site, self.tell)
        self._is_admitted = False
        """The site's rules, as they are now, allow the study."""
        self.parked: PreparedAttempt | None = None
        """The attempt that waits for another run: this run ended, the study did not."""
        self.aborted = False
        """The coordinator said that the study ends, even if it is parked."""
        self.keeps = False
        """The coordinator said that a held attempt stays."""

    async def run(self) -> None:
        """All steps. A reservation that is neither held nor charged at the end is given back.

        Raises: UmpcError.
        """
        try:
            async with asyncio.timeout(self.site.ledger.hold_seconds) as whole:
                await self._runner.guard.run(self._steps(whole))
            self._runner.ended_well = True
        except TimeoutError as error:
            raise self._reserved_too_long() if whole.expired() else self._timeout() from error
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
            self._runner.end()

    def _timeout(self) -> StepTimeout:
        """A step took too long: the missing peer is named, else this node itself."""
        waited_for = self._runner.missing
        missing = f", waiting for {', '.join(waited_for)}" if waited_for else ""
        return StepTimeout(
            f"step {self.step} did not end within {self.study.seconds_per_step} s{missing}; give "
            f"it more with seconds_per_step, or look at what keeps it",
            culprit=waited_for[0] if waited_for else self.site.name,
            step=self.step,
        )

    def _reserved_too_long(self) -> StepTimeout:
        hours = self.site.ledger.hold_seconds / 3600
        return StepTimeout(
            f"the site reserves epsilon for one run for at most {hours:g} h, and step {self.step} "
            f"had not ended by then; run the study again, with less work, or have the site's "
            f"administrator raise hold_hours under [budget]",
            culprit=self.coordinator,
            step=self.step,
        )

    async def _steps(self, whole: asyncio.Timeout) -> None:
        propose = await self.expect(m.Propose, PROPOSE_SECONDS)
        before = self.site.ledger.hold_seconds
        released, held = await asyncio.to_thread(self._take_up, propose)
        study = self.study
        self._runner.site = self.site
        if (due := whole.when()) is not None:
            whole.reschedule(due - before + self.site.ledger.hold_seconds)
        self._runner.study = study.hash
        parked = self.site.parking.take(study.whole.hash)
        if parked is not None and not propose.ahead and parked.side.study.hash == study.hash:
            await self._run_parked(parked)
            return
        if parked is not None:
            self._settle(parked)
            log.info("study %s is prepared anew: the earlier preparation is dropped", self.label)
        if released is not None:
            await Replay(self.site, self, self._runner).release(released)
            return
        if held is not None:
            if not await HeldRun(self.site, self, self._runner).offer(held):
                return
            await asyncio.to_thread(refuse_former, self.site, study)
        await self._run_attempt(propose.ahead)

    def _take_up(self, propose: m.Propose) -> tuple[StoredRelease | None, HeldAttempt | None]:
        """Read a proposal, note it on disk, and find what there is of it.

        Where there is nothing yet, the rules are asked, too: all this is one piece of work off the
        event loop. Returns: as `_look_up`.
        """
        self._read_proposal(propose.study)
        released, held = self._look_up(propose.ahead)
        is_new = released is None and held is None
        if is_new and not self.site.parking.holds(self.study.whole.hash):
            self._check_ahead(propose.ahead)
            self.site.admit(self.study)
            self._is_admitted = True
        return released, held

    def _check_ahead(self, ahead: bool) -> None:
        """Whether the study can be prepared ahead, if it is to be.

        Raises: StudyError, PreparationError.
        """
        if ahead:
            protocol_of(self.study).check_ahead(self.study)
            self.site.parking.check_room()

    def _read_proposal(self, document: bytes) -> None:
        """Take up the study, and go on with its data set and that one's budget."""
        self.proposed = study = decode_study(document)
        if self._choice is not None and self.site.name in (node.name for node in study.nodes):
            self.site = self._choice.site_of(study)

    def _look_up(self, ahead: bool) -> tuple[StoredRelease | None, HeldAttempt | None]:
        """Note the proposal on disk, check whose it is, and find what the ledger has of it.

        Returns: what the study released before, or else the attempt that is held for it.
        """
        study = self.study
        note = "to be prepared ahead" if ahead else ""
        self.site.record(about("proposal", study, self.coordinator, note))
        self.check_caller()
        if self._choice is not None:
            self._choice.check(study)
        released = self.site.ledger.released(study.whole.hash)
        held = None if released else self.site.ledger.held(study.whole.hash)
        if released is None and held is None:
            refuse_former(self.site, study)
        return released, held

    async def _run_attempt(self, ahead: bool) -> None:
        self.watch.attempt()
        study = self.study
        ledger = self.site.ledger
        protocol = protocol_of(study)
        if not self._is_admitted:
            self._check_ahead(ahead)
            await asyncio.to_thread(self.site.admit, study)
        failpoint("before-reserve")
        # Before the table is read: nothing about it is told without budget.
        # Not in a thread: no cancellation may come in between.
        known = protocol.known_events(study)
        course = protocol.course(study)
        charged_as = study.whole.hash
        ledger.reserve(
            charged_as, study.exact_epsilon, name=study.name, events=known, course=course
        )
        failpoint("after-reserve")
        try:
            side = await asyncio.to_thread(self._join)
            await self.send(m.Accepted(study.hash, side.accept()))
            agree = await self.expect(m.Agree)
            failpoint("agree")
            opening = await self._runner.for_nodes(side.agree, agree.members)
            await self.send(m.Opened(opening, side.sign_members()))
            delta = await self._prepare(side, ahead)
            if ahead:
                await self._park(delta)
            else:
                await self._finish(side)
        finally:
            if self.parked is None:
                ledger.cancel(charged_as)

    def _join(self) -> NodeSide:
        """Read the records of the study, whose ε is reserved, and make this node's side."""
        study = self.study
        records = self.site.load(study)
        if records.cohort is not None:
            changed = self.site.ledger.note_cohort(study.whole.hash, records.cohort)
            log.info("study %s reads %s", self.label, RECORDS[changed])
        own = self.site.credentials()
        protocol = protocol_of(study)
        side = protocol.node(own, study, records.columns, records.count, os.urandom)
        self._log_study(records.count, records.dropped)
        return side

    def _log_study(self, count: int, dropped: int) -> None:
        log.info(
            "study %s of %s accepted: %d records, %d rows dropped",
            self.label,
            self.coordinator,
            count,
            dropped,
        )
        for kernel in self.study.parsed_kernels:
            low = kernel.interval.low  # maybe seconds
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
        await self._runner.for_nodes(side.check_agreed, begin.signatures)
        attempt, delta, events = await self._begin_beside_dealer(side, begin)
        # Not in a thread, as epsilon.
        self.site.ledger.reserve_delta(self.study.whole.hash, delta, events)
        failpoint("after-reserve-delta")
        await self._runner.ready(side, begin.openings, ahead=ahead)
        failpoint("after-prepare")
        signature = side.sign_attempt()
        await self.send(m.Prepared(attempt.id, self._runner.bytes_offline, signature=signature))
        return delta

    async def _begin_beside_dealer(self, side: NodeSide, begin: m.Begin) -> Begun:
        """Derive the attempt while the dealer, which is asked, does so. Returns: as `_begin`."""
        async with task_group() as group:
            group.create_task(self._runner.ask_dealer(side, begin.openings))
            for _ in range(TURNS_TO_ASK):  # a busy thread would hold up the request
                await asyncio.sleep(0)
            return await self._runner.in_thread(self._begin, side, begin)

    def _begin(self, side: NodeSide, begin: m.Begin) -> Begun:
        """Derive the attempt, and ask the site's rules for its δ.

        Returns: the attempt, and the δ and the mechanism that are to be reserved.
        """
        attempt = side.begin(begin.openings)
        delta = exact_delta(side.delta)
        self.site.permit_delta(delta)
        return attempt, delta, protocol_of(self.study).events(attempt.sizes)

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
        self.watch.attempt()
        study = self.study
        try:
            await asyncio.to_thread(self._permit, study, parked)
            self._runner.meet_again(parked, study)
            log.info("study %s of %s goes on as it was prepared", self.label, self.coordinator)
            await self.send(m.Accepted(study.hash, parked.side.accept()))
            agree = await self.expect(m.Agree)
            side = parked.side
            await self.send(m.Opened(parked.agree(agree.members), side.sign_members()))
            begin = await self.expect(m.Begin)
            self.step = "prepare"
            await self._runner.for_nodes(side.check_agreed, begin.signatures)
            attempt = parked.begin(begin.openings)
            failpoint("before-resume")
            await self._runner.resume(parked, study)
            signature = side.sign_attempt()
            await self.send(m.Prepared(attempt.id, parked.bytes_offline, True, signature))
            await self._finish(parked.side)
        finally:
            self._settle(parked)

    def _permit(self, study: Study, parked: PreparedAttempt) -> None:
        """Ask the site's rules once more. Raises: PolicyRefused, ApprovalPending."""
        self.site.permit(study, parked.side.records)
        self.site.permit_delta(parked.delta)

    def _settle(self, parked: PreparedAttempt) -> None:
        """End a parked attempt that was taken: its material, and its reservation if not held."""
        parked.close()
        self.site.ledger.cancel(self.study.whole.hash)

    async def _finish(self, side: NodeSide) -> None:
        """The steps on the data: evaluate, release, and the protocol's questions."""
        self._runner.work_ahead()
        evaluate = await self.expect(m.Evaluate)
        self.step = "evaluate"
        failpoint("before-evaluate")
        runner = self._runner
        await runner.evaluate(evaluate.signatures)
        if side.aggregation is not None:
            await add_up(self, runner, side.aggregation)
        failpoint("before-ready")
        ending = Ending(self.site, self, runner)
        held = await ending.hold(side)
        failpoint("after-hold")
        await self.send(
            m.Ready(runner.bytes_online_by_round, runner.bytes_offline, runner.rounds_used)
        )
        failpoint("after-ready")
        await self.expect(m.Release)
        self.step = "release"
        failpoint("release-asked")
        await ending.release(held)
        await Questions(self.site, self, runner).answer(side)
