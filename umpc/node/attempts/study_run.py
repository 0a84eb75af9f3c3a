"""One study at one node: its proposal, and what is done about it, with its failures.

| what there is of the study | what follows |
|---|---|
| nothing | an attempt, or its preparation: `attempt_steps.py` |
| a prepared attempt | its run: `attempt_steps.py` |
| an attempt that is held | its release, or its end |
| a release | the same stored bytes |

*Replay.* The replay of a study that was released before: the same stored bytes, at no cost.

*Held run.* A run of a study whose finished attempt this node holds: it is released, or given up.

The node offers the attempt by its id. The coordinator asks for the release if every other node
holds or has released the same attempt. It has the attempt dropped only if no node has charged.
Nothing new leaves in either case: the bytes are those of the one attempt, and a node begins another
attempt of the study only after it has dropped this one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from umpc.errors import (
    AlreadyReleased,
    EncodingError,
    LedgerError,
    LocalProtocolError,
    StepTimeout,
    UmpcError,
)
from umpc.failpoints import failpoint
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.attempt_steps import AttemptSteps, Ending, announced, disclosed, kept_of
from umpc.node.attempts.coordinator_stream import CoordinatorStream, Questions
from umpc.node.attempts.prepared_attempts import PreparedAttempt
from umpc.node.attempts.site import Site
from umpc.node.audit.trail import about
from umpc.node.budget.ledger import StoredRelease
from umpc.node.budget.store import HeldAttempt
from umpc.protocols.registry import check_new_run, decode_study, protocol_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.former import former_hashes
from umpc.study.rules import with_other_direction

log = logging.getLogger("umpc.node")
PROPOSE_SECONDS = 600
"""How long a coordinator that has called may take to propose a study.

It first calls all nodes of the study, and thousands of members take minutes on one machine."""


@dataclass(frozen=True)
class DatasetChoice:
    """How a node with several data sets finds that of a study.

    site_of: the parts of the process for the study's data set; the first one's where it has none.
    check: raises StudyError where the study has no data set of the node.
    """

    site_of: Callable[[Study], Site]
    check: Callable[[Study], None]


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
        self._attempt: AttemptSteps | None = None
        self.aborted = False
        """The coordinator said that the study ends, even if it is parked."""
        self.unreadable: EncodingError | None = None
        """The coordinator sent bytes that are no message."""
        self.keeps = False
        """The coordinator said that a held attempt stays."""

    @property
    def parked(self) -> PreparedAttempt | None:
        """The attempt that waits for another run: this run ended, the study did not."""
        return self._attempt.parked if self._attempt is not None else None

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
        attempt = self._attempt = AttemptSteps(self.site, self, self._runner)
        parked = self.site.parking.take(study.whole.hash)
        if parked is not None and not propose.ahead and parked.side.study.hash == study.hash:
            self.watch.attempt()
            await attempt.run_parked(parked)
            return
        if parked is not None:
            attempt.settle(parked)
            log.info("study %s is prepared anew: the earlier preparation is dropped", self.label)
        if released is not None:
            await Replay(self.site, self, self._runner).release(released)
            return
        if held is not None:
            if not await HeldRun(self.site, self, self._runner).offer(held):
                return
            await asyncio.to_thread(refuse_former, self.site, study)
        self.watch.attempt()
        if not self._is_admitted:
            await asyncio.to_thread(self._admit, propose.ahead)
        await attempt.run(propose.ahead)

    def _take_up(self, propose: m.Propose) -> tuple[StoredRelease | None, HeldAttempt | None]:
        """Read a proposal, note it on disk, and find what there is of it.

        Where there is nothing yet, the rules are asked, too: all this is one piece of work off the
        event loop. Returns: as `_look_up`.
        """
        self._read_proposal(propose.study)
        released, held = self._look_up(propose.ahead)
        is_new = released is None and held is None
        if is_new and not self.site.parking.holds(self.study.whole.hash):
            self._admit(propose.ahead)
            self._is_admitted = True
        return released, held

    def _admit(self, ahead: bool) -> None:
        """Whether the study may have a new run here, prepared ahead if it is to be.

        Raises: StudyError, PreparationError; as `Admission.admit`.
        """
        check_new_run(self.study)
        if ahead:
            protocol_of(self.study).check_ahead(self.study)
            self.site.parking.check_room()
        self.site.admit(self.study)

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


# --- replay ---------------------------------------------------------------------------------------

LOOK_SECONDS = 5.0
"""Seconds that a look at the table's files may take, on a disk that may hang."""
NO_COST = (Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Replay:
    """stream: to the coordinator. runner: of this run, for shufflers."""

    site: Site
    stream: CoordinatorStream
    runner: AttemptRunner

    async def release(self, stored: StoredRelease) -> None:
        """Send what was released. Raw records leave again only while the site's rules allow it."""
        study = self.stream.study
        self.stream.step = "release"
        kept = kept_of(stored.share, study)
        own = announced(kept, study, self.site.name)
        if own.missing != study.names_missing:
            await self.stream.send_last(replace(own, share=b""))
            log.info(
                "study %s was released with other survivors: nothing leaves", self.stream.label
            )
            return
        note = f"again, nothing charged; {disclosed(study)}".rstrip("; ")
        row = about("release", study, self.stream.coordinator, note, cost=NO_COST)
        await asyncio.to_thread(self.site.add_charge, study.whole.hash)
        await asyncio.to_thread(self.site.record, row)
        if isinstance(kept, m.Delivery):
            await self._deliver(kept)
        else:
            await self._send(stored, kept)
        self.stream.answered = True
        changes = ""
        with contextlib.suppress(LedgerError, TimeoutError):  # this is only a note: all has left
            changes = await asyncio.wait_for(asyncio.to_thread(self._changes), LOOK_SECONDS)
        log.info(
            "study %s was released before: the stored share sent again, nothing charged%s",
            self.stream.label,
            changes,
        )

    def _changes(self) -> str:
        """Say what is known of the table since the release. Its values are not read."""
        ledger, study = self.site.ledger, self.stream.study.whole.hash
        if ledger.has_changed_since(study):
            return "; a later study found that the table has changed since"
        charged = ledger.charged_at(study)
        if not charged or self.site.written_at() <= datetime.fromisoformat(charged).timestamp() + 1:
            return ""
        return f"; the table was written since {charged}, so the answer may be of other data"

    async def _send(self, stored: StoredRelease, message: m.Released) -> None:
        study = self.stream.study
        if protocol_of(study).discloses(study):
            await asyncio.to_thread(self.site.permit, study, message.records)
            self.stream.log_disclosure(message.records)
        await self.stream.send_release(message)
        await Questions(self.site, self.stream, self.runner).answer_later(stored)

    async def _deliver(self, kept: m.Delivery) -> None:
        """Send the same messages to the shufflers, which put them into a new order."""
        study = self.stream.study
        message = announced(kept, study, self.site.name)
        await self.stream.send(message)
        await self.stream.expect(m.Release)
        await self.runner.delivery.reach_again(self.site, study, kept)
        sent = await self.runner.delivery.send(self.site, study, kept)
        await self.stream.send_last(replace(message, sent=sent))


def refuse_former(site: Site, study: Study) -> None:
    """Refuse a study that was released under a former identity: it would be charged twice.

    Files of before listed the class that should score higher first, and now they list it last. So
    one of their studies is the same file's study with its classes exchanged.

    Raises: AlreadyReleased.
    """

    def refused(what: str) -> AlreadyReleased:
        said = f"{site.name} released the study {study.name!r} with {what}"
        return AlreadyReleased(said, culprit=site.name, step="propose")

    other = with_other_direction(study.whole)
    if other is not None and site.ledger.released(other.hash) is not None:
        low, high = other.schema[other.label].categories[::-1]
        raise refused(
            f"the classes of {other.label!r} "
            f"exchanged: {high!r} should score higher there. Write categories = "
            f"{json.dumps([low, high], ensure_ascii=False)} to have that result again at no cost, "
            f"or give the study a new name"
        )
    for released_by, identity in former_hashes(study.whole):
        if site.ledger.released(identity) is not None:
            raise refused(
                f"{released_by}, and its "
                f"epsilon is charged; this version cannot repeat that result: keep the old "
                f"report, or give the study a new name to run it anew"
            )


# --- held run -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldRun:
    """stream: to the coordinator. runner: of this run, for shufflers."""

    site: Site
    stream: CoordinatorStream
    runner: AttemptRunner

    async def offer(self, held: HeldAttempt) -> bool:
        """Offer the attempt, and release it or drop it as the coordinator asks.

        Returns: whether it was dropped, so that the study runs anew.

        Raises: PolicyRefused, ApprovalPending where the site's rules no longer allow the study.
        """
        study = self.stream.study
        kept = kept_of(held.share, study)
        own = announced(kept, study, self.site.name)
        await asyncio.to_thread(self.site.permit, study, own.records)
        log.info("study %s: a finished attempt of it is held here", self.stream.label)
        await self.stream.send(m.Held(own.attempt, own.records, own.first_class, own.missing))
        # The shares of one set of survivors answer no proposal of another.
        is_due = own.missing == study.names_missing
        orders = (m.Release, m.Drop) if is_due else (m.Drop,)
        order: m.Release | m.Drop = await self.stream.expect(orders)
        if isinstance(order, m.Drop):
            await asyncio.to_thread(self.site.ledger.drop, study.whole.hash)
            log.info("study %s: the held attempt is dropped, nothing charged", self.stream.label)
            return True
        self.stream.step = "release"
        failpoint("release-asked")
        if isinstance(kept, m.Delivery):
            await self.runner.delivery.reach_again(self.site, study, kept)
        ending = Ending(self.site, self.stream, self.runner)
        await ending.release(held)
        table = held.attempt.removeprefix(kept.attempt)
        stored = StoredRelease(kept.attempt, held.share, table)
        await Questions(self.site, self.stream, self.runner).answer_later(stored)
        return False
