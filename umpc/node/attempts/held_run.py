"""A run of a study whose finished attempt this node holds: it is released, or given up.

The node offers the attempt by its id. The coordinator asks for the release if every other node
holds or has released the same attempt. It has the attempt dropped only if no node has charged.
Nothing new leaves in either case: the bytes are those of the one attempt, and a node begins another
attempt of the study only after it has dropped this one.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from umpc.failpoints import failpoint
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.node.attempts.questions import Questions
from umpc.node.attempts.release import Ending, announced, kept_of
from umpc.node.attempts.site import Site
from umpc.node.budget.held_attempts import HeldAttempt
from umpc.node.budget.ledger import StoredRelease
from umpc.study import messages as m

log = logging.getLogger("umpc.node")


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
