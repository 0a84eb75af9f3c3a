"""The replay of a study that was released before: the same stored bytes, at no cost."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from umpc.crypto.prg import digest
from umpc.errors import AlreadyReleased
from umpc.node.attempts.attempt_runner import AttemptRunner, Site
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.node.budget.ledger import StoredAnswer, StoredRelease
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.former import former_hash

log = logging.getLogger("umpc.node")


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
        if study.shufflers:
            await self._deliver(codec.decode_delivery(stored.share))
        else:
            await self._send(stored)
        self.stream.answered = True
        log.info(
            "study %s was released before: the stored share sent again, nothing charged",
            self.stream.label,
        )

    async def _send(self, stored: StoredRelease) -> None:
        study = self.stream.study
        protocol = protocol_of(study)
        message = codec.decode_node(codec.parse(pb.NodeMessage, stored.share))
        if not isinstance(message, m.Released):
            raise AlreadyReleased(f"the ledger of {self.site.name} holds no share of this study")
        if protocol.discloses(study):
            await asyncio.to_thread(self.site.permit, study, message.records)
            self.stream.log_disclosure(message.records)
        await self.stream.send(message)
        for _ in range(protocol.questions):
            ask = await self.stream.expect(m.Ask)
            self.stream.step = "ask"
            asked = question_digest(study, stored.attempt, ask.question)
            answer = await asyncio.to_thread(self.site.ledger.answered, study.hash)
            await self.stream.send(m.Answer(stored_answer(answer, asked, study, self.site.name)))

    async def _deliver(self, kept: m.Delivery) -> None:
        """Send the same messages to the shufflers, which put them into a new order."""
        study = self.stream.study
        own = kept.members[study.index_of(self.site.name)]
        message = m.Released(kept.attempt, b"", own.records, own.first_class)
        await self.stream.send(message)
        await self.stream.expect(m.Release)
        await self.runner.reach_shufflers(
            study, kept.attempt, kept.members, kept.openings, kept.signatures
        )
        sent = await self.runner.deliver(study, kept)
        await self.stream.send(replace(message, sent=sent))


def refuse_former(site: Site, study: Study) -> None:
    """Refuse a study that umpc 0.1 released under its former identity: it would be charged twice.

    Raises: AlreadyReleased.
    """
    if site.ledger.released(former_hash(study)) is not None:
        raise AlreadyReleased(
            f"{site.name} released the study {study.name!r} with umpc 0.1, and its epsilon is "
            f"charged; this version cannot repeat that result: keep the old report, or give the "
            f"study a new name to run it anew",
            culprit=site.name,
            step="propose",
        )


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
