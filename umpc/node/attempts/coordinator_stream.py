"""The node's stream to a study's coordinator: which message is due, and deadlines for it.

*Questions.* The questions after a release, in protocols that have one: one answer, on disk before
it leaves.

The run of an attempt answers from its memory. A later run of the same study sends the stored
answer. If there is none, because a process ended in between, the node answers then, about the
records of the attempt: the ledger keeps what the answer needs. The table is not read again. Another
record in a place could answer twice, and a refusal would tell whether the table has changed.

*Run watch.* The observer of one study at a node, for traces. It learns steps and outcome, and no
value.

The node knows nothing of the library that makes traces: `umpc/monitoring/traces.py` has the same
methods.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from umpc import logs
from umpc.crypto.prg import Stream, digest
from umpc.errors import (
    AlreadyReleased,
    LocalProtocolError,
    RemoteProtocolError,
    StepTimeout,
    UmpcError,
)
from umpc.failpoints import failpoint
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.site import Site
from umpc.node.audit.trail import about
from umpc.node.budget.ledger import Ledger, StoredAnswer, StoredRelease
from umpc.node.budget.store import KEPT
from umpc.proto import codec
from umpc.protocols.base.node import NodeSide
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.transport.patience import time_limit

log = logging.getLogger("umpc.node")
Expected = TypeVar("Expected")

PATIENCE_SECONDS = 10
"""How much longer than a step a node waits for the coordinator.

The coordinator itself waits for the slowest node.
"""


class CoordinatorStream:
    """Args:
    name: this node's.
    coordinator: the name in the caller's certificate.
    receive: the coordinator's next message.
    send: one message to the coordinator.
    """

    def __init__(
        self,
        name: str,
        coordinator: str,
        receive: Callable[[], Awaitable[m.CoordinatorMessage]],
        send: Callable[[m.NodeMessage], Awaitable[None]],
    ):
        self.name = name
        self.coordinator = coordinator
        self._receive = receive
        self.send = send
        self.proposed: Study | None = None
        self.watch: RunWatch = Unwatched()
        self._step = "propose"
        self.answering = False
        """The last message is on its way: the coordinator may hang up before its sender knows."""
        self.answered = False
        """The share is out, or the study waits prepared.

        Whatever the coordinator does now, this run is complete here.
        """

    @property
    def step(self) -> str:
        """The present step of the study."""
        return self._step

    @step.setter
    def step(self, name: str) -> None:
        self._step = name
        self.watch.step(name)

    @property
    def study(self) -> Study:
        """The study, once it is proposed."""
        if self.proposed is None:
            raise LocalProtocolError("no study is proposed yet", step=self.step)
        return self.proposed

    async def expect(
        self,
        kind: type[Expected] | tuple[type[Expected], ...],
        seconds: float | None = None,
    ) -> Expected:
        """The coordinator's next message, which must be of this kind, or of one of these.

        Raises: StepTimeout, RemoteProtocolError.
        """
        if seconds is None:
            seconds = self.study.seconds_per_step + PATIENCE_SECONDS
        try:
            async with time_limit(seconds):
                message = await self._receive()
        except TimeoutError as error:
            raise StepTimeout(
                f"{self.coordinator} did not continue after step {self.step}",
                culprit=self.coordinator,
                step=self.step,
            ) from error
        if not isinstance(message, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            due = " or ".join(each.__name__ for each in kinds)
            raise RemoteProtocolError(
                f"{self.coordinator} sent {type(message).__name__} where {due} was due",
                culprit=self.coordinator,
                step=self.step,
            )
        return message

    async def send_last(self, message: m.NodeMessage) -> None:
        """Send the message after which this run is complete here."""
        self.answering = True
        await self.send(message)
        self.answered = True

    async def send_release(self, message: m.Released) -> None:
        """Send what is released: the last message, unless the protocol asks afterwards."""
        asks = protocol_of(self.study).questions_of(self.study)
        await (self.send if asks else self.send_last)(message)

    async def tell(self, done: int, total: int) -> None:
        """Report progress of the present step."""
        await self.send(m.Progress(self.step, done, total))

    def check_caller(self) -> None:
        """Raises: StudyError, RemoteProtocolError where the study is not the caller's."""
        study = self.study
        study.index_of(self.name)
        if study.coordinator != self.coordinator:
            raise RemoteProtocolError(
                f"the study names {study.coordinator!r} as its coordinator, its certificate says "
                f"{self.coordinator!r}",
                culprit=self.coordinator,
                step="propose",
            )

    def log_disclosure(self, records: int) -> None:
        """Write to the log, each time, that raw records leave, where the protocol discloses any."""
        disclosed = protocol_of(self.study).discloses(self.study)
        if disclosed:
            log.info(
                "study %s: RAW RECORDS leave: %s of all %d records, shown to %s, a trusted curator",
                self.label,
                ", ".join(disclosed),
                records,
                self.coordinator,
            )

    def place(self) -> logs.Place:
        """The study and the step, for the lines of the log."""
        study = self.proposed.hash.hex()[: logs.DIGITS] if self.proposed else ""
        return study, self.step

    @property
    def label(self) -> str:
        """The study's name and the beginning of its hash, for the log."""
        missing = self.study.names_missing
        without = f" without {', '.join(missing)}" if missing else ""
        return f"{self.study.name!r} ({self.study.hash.hex()[:8]}){without}"


# --- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Questions:
    """stream: to the coordinator. runner: of this run."""

    site: Site
    stream: CoordinatorStream
    runner: AttemptRunner

    async def answer(self, side: NodeSide) -> None:
        """Answer the questions of the attempt's own run."""
        await self._answer(lambda asked: self._first_answer(side, side.attempt.id, asked))

    async def answer_later(self, stored: StoredRelease) -> None:
        """Answer the questions of a later run: as before, or for the first time.

        Raises: AlreadyReleased where another question was answered.
        """
        study = self.stream.study

        async def answer(question: bytes) -> bytes:
            asked = question_digest(study, stored.attempt, question)
            told = await asyncio.to_thread(self.site.ledger.answered, study.whole.hash)
            if told is None and stored.table:
                side = await self._recalled(stored)
                return await self._first_answer(side, stored.attempt, question)
            return stored_answer(told, asked, study, self.site.name)

        await self._answer(answer)

    async def _answer(self, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        """Tell the answers to the protocol's questions. Args: answer: question → answer."""
        study = self.stream.study
        questions = protocol_of(study).questions_of(study)
        for number in range(questions):
            ask = await self.stream.expect(m.Ask)
            self.stream.step = "ask"
            failpoint("before-answer")
            told = m.Answer(await answer(ask.question))
            is_last = number + 1 == questions
            await (self.stream.send_last if is_last else self.stream.send)(told)
            log.info("study %s: the question is answered", self.stream.label)
            failpoint("after-told")

    async def _first_answer(self, side: NodeSide, attempt: bytes, question: bytes) -> bytes:
        """Make the answer and store it; the release has paid for it."""
        study = self.stream.study
        async with time_limit(study.seconds_per_step):
            answer = await self.runner.compute.in_thread(side.answer, question)
        asked = question_digest(study, attempt, question)
        await asyncio.to_thread(self.site.ledger.answer, study.whole.hash, attempt, asked, answer)
        await asyncio.to_thread(self.site.record, about("answer", study, self.stream.coordinator))
        failpoint("after-answer")
        return answer

    async def _recalled(self, stored: StoredRelease) -> NodeSide:
        """Make the side of the attempt again, from the share that left and what the ledger kept.

        Raises: AlreadyReleased where a former version of umpc kept something else.
        """
        study = self.stream.study
        if not stored.table.startswith(KEPT):
            raise AlreadyReleased(
                f"{self.site.name} released the study {study.name!r} before, with a former version "
                f"of umpc, and it never answered: the study is charged and incomplete; give it a "
                f"new name to run it anew",
                culprit=self.site.name,
                step="ask",
            )
        none = {field.name: np.zeros(0, dtype=np.int64) for field in study.fields}
        own = self.site.credentials()
        side = protocol_of(study).node(own, study, none, 0, os.urandom)
        kept = codec.decode_kept(stored.share, shuffled=False)
        if isinstance(kept, m.Released):
            hidden = stored.table[len(KEPT) :]
            rest = masked_rest(self.site.ledger, stored.attempt, hidden)
            await self.runner.compute.in_thread(side.recall, kept.share, rest)
        return side


def kept_rest(ledger: Ledger, side: NodeSide) -> bytes:
    """The bytes that a ledger keeps for a later answer."""
    return KEPT + masked_rest(ledger, side.attempt.id, side.rest)


def masked_rest(ledger: Ledger, attempt: bytes, rest: bytes) -> bytes:
    """The rest of a side under a pad of this ledger's key, or back again.

    An attempt has one pad. So what the ledger keeps says nothing to who lacks its key.
    """
    pad = Stream(ledger.fingerprint(digest(b"umpc rest 2", attempt))).words(len(rest), np.uint8)
    return (np.frombuffer(rest, dtype=np.uint8) ^ pad).tobytes()


def question_digest(study: Study, attempt: bytes, question: bytes) -> bytes:
    """32 bytes that stand for a question of this attempt."""
    return digest(b"umpc question 1", study.hash, attempt, question)


def stored_answer(stored: StoredAnswer | None, asked: bytes, study: Study, node: str) -> bytes:
    """The answer that was given to the same question.

    Args: asked: the question's digest.

    Raises: AlreadyReleased where there was no answer, or another question.
    """
    if stored is not None and stored.question == asked:
        return stored.answer
    why = "it never answered, because that run ended before"
    if stored is not None:
        why = "it answered another question then"
    raise AlreadyReleased(
        f"{node} released the study {study.name!r} before, and {why}: the study is charged and "
        f"incomplete; give it a new name to run it anew",
        culprit=node,
        step="ask",
    )


# --- run watch ------------------------------------------------------------------------------------


class RunWatch(Protocol):
    """An observer of one study."""

    def attempt(self) -> None:
        """The study's attempt begins."""

    def step(self, name: str) -> None:
        """The step of this name begins."""

    def end(self, study_hash: bytes | None, error: UmpcError | None) -> None:
        """The study has ended, without a hash if none was proposed."""


class Unwatched:
    """Nobody observes."""

    def attempt(self) -> None:
        """Do nothing."""

    def step(self, name: str) -> None:
        """Do nothing."""

    def end(self, study_hash: bytes | None, error: UmpcError | None) -> None:
        """Do nothing."""
