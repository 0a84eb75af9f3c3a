"""The replay of a study that was released before: the same stored bytes, at no cost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from umpc.errors import AlreadyReleased, LedgerError
from umpc.node.attempts.attempt_runner import AttemptRunner
from umpc.node.attempts.coordinator_stream import CoordinatorStream
from umpc.node.attempts.questions import Questions
from umpc.node.attempts.release import announced, disclosed, kept_of
from umpc.node.attempts.site import Site
from umpc.node.audit.study_rows import about
from umpc.node.budget.ledger import StoredRelease
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.field_rules import with_other_direction
from umpc.study.former import former_hashes

LOOK_SECONDS = 5.0
"""Seconds that a look at the table's files may take, on a disk that may hang."""
NO_COST = (Fraction(0), Fraction(0))
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
