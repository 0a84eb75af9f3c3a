"""The steps of one attempt of a study at a node, with the ledger between them.

    run(ahead)          from the reservation to the release, or until the attempt is parked
    run_parked(parked)  from the proposal of a study that was prepared ahead to its release

The order that matters (docs/protocol.md): reserve before the table is read; hold the finished
share, on disk, before the node says *ready*; charge, on disk, before the first byte of the noisy
share leaves; where the protocol asks, store the one answer before it leaves. A failure before
*ready* gives the reservation back. From then on the attempt is held, and a later run finishes it
(`study_run.py`), unless the coordinator says that nobody has charged. Nothing is given back after
the charge.

A study that is prepared ahead ends before the data, and its reservation waits with it
(`prepared_attempts.py`); its run takes both, once.

*Release.* The end of an attempt at a node: its share is held, charged, and leaves, in this order.

    hold(side)        evaluate: all that will leave is on disk before the node says *ready*
    release(held)     release: ε and δ are charged on disk before the first byte leaves

Both steps work on the bytes on disk. So it makes no difference whether the run that held a share
releases it, or a later run of the same study (`study_run.py`).

*Total.* The total of all nodes' masked vectors, at one node: its own up, the total down, then
signatures.

All of it is part of *evaluate*, in protocols whose side has an aggregation
(`umpc/protocols/base/aggregation.py`). A node holds one frame at a time besides what its side
keeps: gRPC's flow control holds a faster sender back.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from umpc.dp.events import Event
from umpc.errors import CertificateError, PreparationLost, UmpcError
from umpc.failpoints import failpoint
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.coordinator_stream import (
    PATIENCE_SECONDS,
    CoordinatorStream,
    Questions,
    kept_rest,
)
from umpc.node.attempts.prepared_attempts import PreparedAttempt
from umpc.node.attempts.site import Site
from umpc.node.audit.trail import about
from umpc.node.budget.budget_account import exact_delta
from umpc.node.budget.store import HeldAttempt
from umpc.node.table.given_up import read_apart, waited_for
from umpc.proto import codec
from umpc.protocols.base.aggregation import NodeAggregation
from umpc.protocols.base.node import NodeSide
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.document import Study
from umpc.study.messages import Frame
from umpc.transport.patience import cancelled, task_group

log = logging.getLogger("umpc.node")

TURNS_TO_ASK = 4
"""Turns of the event loop until a request leaves over a connection that was kept."""
RECORDS = {
    True: "other records than the last study of the same fields and condition: the table changed",
    False: "no other records than the last study of the same fields and condition, if any",
}
"""For the log of the site alone: whether the table changed, by a study's records."""

Begun = tuple[Attempt, Fraction, tuple[Event, ...]]
"""An attempt, with the δ and the mechanism that are to be reserved for it."""


class AttemptSteps:
    """The steps of one attempt. Args: stream: to the coordinator. runner: of this run."""

    def __init__(self, site: Site, stream: CoordinatorStream, runner: AttemptRunner):
        self.site = site
        self.stream = stream
        self.runner = runner
        self.parked: PreparedAttempt | None = None
        """The attempt that waits for another run: this run ended, the study did not."""

    async def run(self, ahead: bool) -> None:
        """The attempt of a study that the site's rules allow.

        Args: ahead: it is prepared, and parked for a later run.
        """
        study = self.stream.study
        ledger = self.site.ledger
        protocol = protocol_of(study)
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
            with waited_for():
                side = await read_apart(self._join)
            await self.stream.send(m.Accepted(study.hash, side.accept()))
            agree = await self.stream.expect(m.Agree)
            failpoint("agree")
            opening = await self.runner.compute.for_nodes(side.agree, agree.members)
            await self.stream.send(m.Opened(opening, side.sign_members()))
            self.runner.material.dial(self.site, side)
            delta = await self._prepare(side, ahead)
            if ahead:
                await self._park(delta)
            else:
                self.runner.work_ahead()
                await self._finish(side, await self.stream.expect(m.Evaluate))
        finally:
            if self.parked is None:
                ledger.cancel(charged_as)

    async def run_parked(self, parked: PreparedAttempt) -> None:
        """The run of what was prepared; whatever happens, it is used up.

        The node answers *propose* with all that it said in the preparation. Where every node does,
        the next message is the order to evaluate; else all of them agree again.
        """
        study = self.stream.study
        try:
            await asyncio.to_thread(self._permit, study, parked)
            self.runner.meet_again(parked, study)
            caller = self.stream.coordinator
            log.info("study %s of %s goes on as it was prepared", self.stream.label, caller)
            await self.stream.send(m.Accepted(study.hash, parked.side.accept(), parked.waiting()))
            resuming = asyncio.create_task(self.runner.resume(parked, study))
            try:
                asked: m.Agree | m.Evaluate = await self.stream.expect((m.Agree, m.Evaluate))
                if isinstance(asked, m.Agree):  # some node does not have it any more
                    await self._agree_again(parked, asked)
                self.stream.step = "prepare"
                failpoint("before-resume")
                await resuming
            finally:
                await cancelled(resuming)
            self.runner.work_ahead()
            if isinstance(asked, m.Agree):
                await self.stream.send(parked.waiting().prepared)
                await self._finish(parked.side, await self.stream.expect(m.Evaluate))
            else:  # the others may still be meeting, which is a step of its own
                patience = 2 * study.seconds_per_step + PATIENCE_SECONDS
                await self._finish(parked.side, asked, patience)
        finally:
            self.settle(parked)

    async def _agree_again(self, parked: PreparedAttempt, agree: m.Agree) -> None:
        """Hear members and openings once more, with the same answers.

        Raises: PreparationLost where another node's have changed; RemoteProtocolError.
        """
        side = parked.side
        await self.stream.send(m.Opened(parked.agree(agree.members), side.sign_members()))
        begin = await self.stream.expect(m.Begin)
        await self.runner.compute.for_nodes(side.check_agreed, begin.signatures)
        parked.begin(begin.openings)

    def settle(self, parked: PreparedAttempt) -> None:
        """End a parked attempt that was taken: its material, and its reservation if not held."""
        parked.close()
        self.site.ledger.cancel(self.stream.study.whole.hash)

    def _join(self) -> NodeSide:
        """Read the records of the study, whose ε is reserved, and make this node's side."""
        study = self.stream.study
        records = self.site.load(study)
        if records.cohort is not None:
            changed = self.site.ledger.note_cohort(study.whole.hash, records.cohort)
            log.info("study %s reads %s", self.stream.label, RECORDS[changed])
        own = self.site.credentials()
        protocol = protocol_of(study)
        side = protocol.node(own, study, records.columns, records.count, os.urandom)
        self._log_study(records.count, records.dropped)
        return side

    def _log_study(self, count: int, dropped: int) -> None:
        log.info(
            "study %s of %s accepted: %d records, %d rows dropped",
            self.stream.label,
            self.stream.coordinator,
            count,
            dropped,
        )
        for kernel in self.stream.study.parsed_kernels:
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
        begin = await self.stream.expect(m.Begin)
        self.stream.step = "prepare"
        failpoint("before-prepare")
        await self.runner.compute.for_nodes(side.check_agreed, begin.signatures)
        attempt, delta, events = await self._begin_beside_dealer(side, begin.openings)
        # Not in a thread, as epsilon.
        self.site.ledger.reserve_delta(self.stream.study.whole.hash, delta, events)
        failpoint("after-reserve-delta")
        await self.runner.ready(side, begin.openings, ahead=ahead)
        failpoint("after-prepare")
        signature = side.sign_attempt()
        offline = self.runner.traffic.bytes_offline
        await self.stream.send(m.Prepared(attempt.id, offline, signature=signature))
        return delta

    async def _begin_beside_dealer(self, side: NodeSide, openings: tuple[bytes, ...]) -> Begun:
        """Derive the attempt while the dealer, which is asked, does so. Returns: as `_begin`."""
        async with task_group() as group:
            group.create_task(self.runner.material.ask_dealer(side, openings))
            for _ in range(TURNS_TO_ASK):  # a busy thread would hold up the request
                await asyncio.sleep(0)
            return await self.runner.compute.in_thread(self._begin, side, openings)

    def _begin(self, side: NodeSide, openings: tuple[bytes, ...]) -> Begun:
        """Derive the attempt, and ask the site's rules for its δ.

        Returns: the attempt, and the δ and the mechanism that are to be reserved.
        """
        attempt = side.begin(openings)
        delta = exact_delta(side.delta)
        self.site.permit_delta(delta)
        return attempt, delta, protocol_of(self.stream.study).events(attempt.sizes)

    async def _park(self, delta: Fraction) -> None:
        """Leave the prepared attempt, and its reservation, to a later run."""
        await self.stream.expect(m.Park)
        self.stream.step = "park"
        failpoint("before-park")
        parked = self.runner.park(delta)
        parking = self.site.parking
        try:
            parking.put(parked)
        except UmpcError:
            parked.close()
            raise
        # Before the answer: the coordinator may hang up as soon as it has it.
        self.parked = parked
        self.stream.answered = True
        waiting = parked.spool.bytes_waiting if parked.spool else 0
        try:
            await self.stream.send(m.Parked(waiting, int(parking.seconds)))
        except BaseException:
            parking.drop(parked, "could not be told of")
            raise
        log.info("study %s is prepared: %d bytes wait for its run", self.stream.label, waiting)

    def _permit(self, study: Study, parked: PreparedAttempt) -> None:
        """Ask the site's rules once more, and look at all nodes' certificates.

        Raises: PolicyRefused, ApprovalPending; PreparationLost, upon which the study runs from the
            start, where a member may have been renewed since.
        """
        self.site.permit(study, parked.side.records)
        self.site.permit_delta(parked.delta)
        try:
            parked.side.check_members_now()
        except CertificateError as error:
            raise PreparationLost(
                f"what was prepared for this study has a certificate that no longer counts, so all "
                f"nodes drop theirs and the study runs from the start: {error.message}",
                culprit=error.culprit,
                step="propose",
            ) from error

    async def _finish(
        self,
        side: NodeSide,
        evaluate: m.Evaluate,
        patience: float | None = None,
    ) -> None:
        """The steps on the data: evaluate, release, and the protocol's questions.

        Args: patience: seconds until all nodes are ready, where that may take more than a step.
        """
        self.stream.step = "evaluate"
        failpoint("before-evaluate")
        runner, traffic = self.runner, self.runner.traffic
        await runner.evaluate(evaluate.signatures)
        if side.aggregation is not None:
            await add_up(self.stream, runner, side.aggregation)
        failpoint("before-ready")
        ending = Ending(self.site, self.stream, runner)
        held = await ending.hold(side)
        failpoint("after-hold")
        await self.stream.send(
            m.Ready(traffic.bytes_online_by_round, traffic.bytes_offline, traffic.rounds_used)
        )
        failpoint("after-ready")
        await self.stream.expect(m.Release, patience)
        self.stream.step = "release"
        failpoint("release-asked")
        await ending.release(held)
        await Questions(self.site, self.stream, runner).answer(side)


# --- release --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ending:
    """stream: to the coordinator. runner: of this run, for shufflers."""

    site: Site
    stream: CoordinatorStream
    runner: AttemptRunner

    async def hold(self, side: NodeSide) -> HeldAttempt:
        """Put all that will leave on disk, once. Raises: LedgerError; then nothing is ready."""
        study = self.stream.study
        ledger = self.site.ledger
        kept = side.release()
        if isinstance(kept, m.Released):
            kept = replace(kept, missing=study.names_missing)
        share = codec.encode_kept(kept)
        protocol = protocol_of(study)
        course = protocol.course(study)
        table = course.encode() if course else b""
        if protocol.questions_of(study):
            table = await self.runner.compute.in_thread(kept_rest, ledger, side)
        return await asyncio.to_thread(ledger.hold, study.whole.hash, side.attempt.id, share, table)

    async def release(self, held: HeldAttempt) -> None:
        """Charge, then let the share leave."""
        study = self.stream.study
        kept = kept_of(held.share, study)
        self.runner.check_delivery(kept)
        failpoint("before-charge")
        await asyncio.to_thread(self._charge, held)
        log.info(
            "study %s: epsilon %s, delta %.3g charged, the share leaves",
            self.stream.label,
            study.epsilon,
            held.delta,
        )
        message = announced(kept, study, self.site.name)
        self.stream.log_disclosure(message.records)
        if isinstance(kept, m.Delivery):
            sent = await self.runner.delivery.send(self.site, study, kept)
            message = replace(message, sent=sent)
        failpoint("before-send")
        await self.stream.send_release(message)
        failpoint("after-send")

    def _charge(self, held: HeldAttempt) -> None:
        """Charge, then append the rows of the charge and of what leaves, all of it on disk.

        Nothing leaves without them.
        """
        study, coordinator = self.stream.study, self.stream.coordinator
        self.site.ledger.charge(study.whole.hash, held.attempt)
        failpoint("after-charge")
        cost = (held.epsilon, held.delta)
        self.site.record(
            about("charge", study, coordinator, cost=cost),
            about("release", study, coordinator, disclosed(study), cost=cost),
        )


def disclosed(study: Study) -> str:
    """Return the note of a release: the columns of raw records that leave, or that none do."""
    raw = protocol_of(study).discloses(study)
    return f"raw records of {', '.join(raw)}, to a trusted curator" if raw else ""


def kept_of(share: bytes, study: Study) -> m.Released | m.Delivery:
    """Return the release whose bytes the ledger keeps. Raises: EncodingError."""
    return codec.decode_kept(share, shuffled=bool(study.shufflers))


def announced(kept: m.Released | m.Delivery, study: Study, node: str) -> m.Released:
    """Return the message for the coordinator: it is without a share where shufflers get that.

    Args: study: as it is proposed, perhaps with other survivors than the kept attempt's.
    """
    if isinstance(kept, m.Released):
        return kept
    survivors = {member.name: member for member in kept.members}
    own = survivors[node]
    missing = tuple(each.name for each in study.whole.nodes if each.name not in survivors)
    return m.Released(kept.attempt, b"", own.records, own.first_class, missing=missing)


# --- total ----------------------------------------------------------------------------------------


async def add_up(
    stream: CoordinatorStream, runner: AttemptRunner, aggregation: NodeAggregation
) -> None:
    """Send this node's masked vector, and take the total that all nodes have signed.

    Raises: RemoteProtocolError, StepTimeout naming the coordinator.
    """
    compute = runner.compute.briefly
    frames = aggregation.masked()
    while (frame := await compute(_next, frames)) is not None:
        await stream.send(m.Part(frame))
        runner.traffic.count_with_coordinator(frame)
        failpoint("during-histogram")
    failpoint("after-histogram")
    is_complete = False
    while not is_complete:
        part = await stream.expect(m.Part)
        runner.traffic.count_with_coordinator(part.frame)
        is_complete = await compute(aggregation.take, part.frame)
        failpoint("during-total")
    await stream.send(m.TotalSigned(await compute(aggregation.sign)))
    failpoint("after-total")
    confirmed = await stream.expect(m.TotalConfirmed)
    await compute(aggregation.confirm, confirmed.signatures)


def _next(frames: Iterator[Frame]) -> Frame | None:
    """Return the next frame; None after the last one."""
    return next(frames, None)
