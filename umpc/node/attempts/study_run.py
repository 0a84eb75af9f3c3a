"""One study at one node: its proposal, and what is done about it, with its failures.

| what there is of the study | what follows |
|---|---|
| nothing | an attempt, or its preparation: `attempt_steps.py` |
| a prepared attempt | its run: `attempt_steps.py` |
| an attempt that is held | `held_run.py` |
| a release | `replay.py` |
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from umpc.errors import EncodingError, LocalProtocolError, StepTimeout, UmpcError
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.attempt_steps import AttemptSteps
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.node.attempts.held_run import HeldRun
from umpc.node.attempts.prepared_attempts import PreparedAttempt
from umpc.node.attempts.replay import Replay, refuse_former
from umpc.node.attempts.site import Site
from umpc.node.audit.study_rows import about
from umpc.node.budget.held_attempts import HeldAttempt
from umpc.node.budget.ledger import StoredRelease
from umpc.protocols.registry import check_new_run, decode_study, protocol_of
from umpc.study import messages as m
from umpc.study.document import Study

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
