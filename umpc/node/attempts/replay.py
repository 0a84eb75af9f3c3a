"""A study that was released before and is asked again: the same stored bytes, at no cost."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from umpc.node.attempts.attempt_runner import AttemptRunner, Site
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.node.budget.ledger import StoredRelease
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.ghazi_rounds.node import question_digest, stored_answer
from umpc.study import messages as m

log = logging.getLogger("umpc.node")


@dataclass(frozen=True)
class Replay:
    """words: with the coordinator. work: of this run, for shufflers."""

    site: Site
    words: CoordinatorStream
    work: AttemptRunner

    async def release(self, stored: StoredRelease) -> None:
        """The same study asked again gets the same stored bytes, at no cost; raw records only while the rules allow."""
        self.words.step = "release"
        if self.words.study.shuffled:
            await self._deliver(codec.decode_delivery(stored.share))
        else:
            await self._send(stored)
        self.words.answered = True
        log.info(
            "study %s was released before: the stored share sent again, nothing charged",
            self.words.label,
        )

    async def _send(self, stored: StoredRelease) -> None:
        message = codec.decode_node(codec.parse(pb.NodeMessage, stored.share))
        if self.words.study.central:
            await asyncio.to_thread(self.site.permit, self.words.study, message.records)
            self.words.log_raw_records(message.records)
        await self.words.send(message)
        if self.words.study.asks:
            ask = await self.words.expect(m.Ask)
            self.words.step = "ask"
            asked = question_digest(self.words.study, stored.attempt, ask.question)
            answer = await asyncio.to_thread(self.site.ledger.answered, self.words.study.hash)
            await self.words.send(
                m.Answer(stored_answer(answer, asked, self.words.study, self.site.name))
            )

    async def _deliver(self, kept: m.Delivery) -> None:
        """To shufflers, who put the same messages into a new order (`umpc.protocols.ghazi_shuffle.messages`)."""
        own = kept.members[self.words.study.index_of(self.site.name)]
        message = m.Released(kept.attempt, b"", own.records, own.first_class)
        await self.words.send(message)
        await self.words.expect(m.StoredRelease)
        await self.work.reach_shufflers(self.words.study, kept.attempt, kept.members, kept.openings)
        await self.words.send(
            replace(message, sent=await self.work.deliver(self.words.study, kept))
        )
