"""The end of an attempt at a node: its share is held, charged, and leaves, in this order.

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
from collections.abc import Iterator
from dataclasses import dataclass, replace

from umpc.failpoints import failpoint
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.coordinator_stream import CoordinatorStream, kept_rest
from umpc.node.attempts.site import Site
from umpc.node.audit.trail import about
from umpc.node.budget.held_attempts import HeldAttempt
from umpc.proto import codec
from umpc.protocols.base.aggregation import NodeAggregation
from umpc.protocols.base.node import NodeSide
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.messages import Frame

log = logging.getLogger("umpc.node")


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
