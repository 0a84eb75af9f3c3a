"""A study that was released before and is asked again: the same stored bytes, at no cost."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from umpc.mpc import messages as m
from umpc.node.dialogue import Dialogue
from umpc.node.ledger import Release
from umpc.node.tworounds import question_digest, stored_answer
from umpc.node.work import Site, Work
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb

log = logging.getLogger("umpc.node")


@dataclass(frozen=True)
class Again:
    """words: with the coordinator. work: of this run, for shufflers."""

    site: Site
    words: Dialogue
    work: Work

    async def release(self, stored: Release) -> None:
        """The same study asked again gets the same stored bytes, at no cost; raw records only while the rules allow."""
        self.words.step = "release"
        if self.words.study.shuffled:
            await self._deliver(codec.decode_delivery(stored.share))
        else:
            await self._send(stored)
        self.words.answered = True
        log.info("study %s was released before: the stored share sent again, nothing charged", self.words.label)

    async def _send(self, stored: Release) -> None:
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
            await self.words.send(m.Told(stored_answer(answer, asked, self.words.study, self.site.name)))

    async def _deliver(self, kept: m.Delivery) -> None:
        """To shufflers, who put the same messages into a new order (`umpc.protocols.shuffling`)."""
        own = kept.members[self.words.study.index_of(self.site.name)]
        message = m.Released(kept.attempt, b"", own.records, own.first_class)
        await self.words.send(message)
        await self.words.expect(m.Release)
        await self.work.reach_shufflers(self.words.study, kept.attempt, kept.members, kept.openings)
        await self.words.send(replace(message, sent=await self.work.deliver(self.words.study, kept)))
