"""A study that this node knows already: what follows from an earlier run of it.

| there is | what follows |
|---|---|
| nothing | a new attempt: `study.py` |
| a release | `replay`: the same stored bytes, at no cost |
| an attempt that is held | `finish_held`: it is released, or given up for a new attempt |
| a prepared attempt | `resume`: the run goes on with it |

*Held.* The node offers the attempt by its id. The coordinator asks for the release if every other
node holds or has released the same attempt. It has the attempt dropped only if no node has charged.
Nothing new leaves in either case: the bytes are those of the one attempt, and a node begins another
attempt of the study only after it has dropped this one.

*Prepared.* A study that is prepared ahead ends before the data, and its reservation waits with it
(`umpc/node/standing.py`). Its run takes both, once, and uses them up whatever happens.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from datetime import datetime

from umpc.crypto.prg import digest
from umpc.errors import CertificateError, LedgerError, PreparationLost, UmpcError
from umpc.failpoints import failpoint
from umpc.node.budget.ledger_store import StoredRelease
from umpc.node.budget.store import StoredEntry
from umpc.node.run.context import RunContext, is_small
from umpc.node.run.coordinator import PATIENCE_SECONDS
from umpc.node.run.prepare import Others, reach_shufflers
from umpc.node.run.release import (
    announced,
    answer,
    deliver,
    kept_of,
    note_again,
    refuse_former,
    release,
)
from umpc.node.standing import PreparedAttempt
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.transport.patience import cancelled

log = logging.getLogger("umpc.node")
LOOK_SECONDS = 5.0
"""Seconds that a look at the table's files may take, on a disk that may hang."""


# --- replay ---------------------------------------------------------------------------------------


async def replay(run: RunContext, others: Others, stored: StoredRelease) -> None:
    """Send what was released. Raw records leave again only while the site's rules allow it."""
    study, stream = run.study, run.stream
    stream.step = "release"
    kept = kept_of(stored.share, study)
    own = announced(kept, study, run.site.name)
    if own.missing != study.names_missing:
        await stream.send_last(replace(own, share=b""))
        log.info("study %s was released with other survivors: nothing leaves", stream.label)
        return
    await asyncio.to_thread(note_again, run)
    if isinstance(kept, m.Delivery):
        # the shufflers put the same messages into a new order
        await stream.send(own)
        await stream.expect(m.Release)
        await _reach_again(run, others, kept)
        await stream.send_last(replace(own, sent=await deliver(run, others, kept)))
    else:
        if protocol_of(study).discloses(study):
            await asyncio.to_thread(run.site.permit, study, kept.records)
            stream.log_disclosure(kept.records)
        await stream.send_release(kept)
        await answer(run, stored)
        await asyncio.to_thread(run.site.released, study)  # also after a crash in between
    stream.answered = True
    changes = ""
    with contextlib.suppress(LedgerError, TimeoutError):  # this is only a note: all has left
        changes = await asyncio.wait_for(asyncio.to_thread(_changes, run), LOOK_SECONDS)
    log.info(
        "study %s was released before: the stored share sent again, nothing charged%s",
        stream.label,
        changes,
    )


def _changes(run: RunContext) -> str:
    """Say what is known of the table since the release. Its values are not read."""
    ledger = run.site.ledger
    if ledger.has_changed_since(run.charged_as):
        return "; a later study found that the table has changed since"
    charged = ledger.charged_at(run.charged_as)
    if not charged or run.site.written_at() <= datetime.fromisoformat(charged).timestamp() + 1:
        return ""
    return f"; the table was written since {charged}, so the answer may be of other data"


async def _reach_again(run: RunContext, others: Others, kept: m.Delivery) -> None:
    """Streams to the shufflers, for a message that an earlier run kept."""
    facts = kept.attempt, kept.members, kept.openings, kept.signatures
    await reach_shufflers(run, others, *facts)


# --- held -----------------------------------------------------------------------------------------


async def finish_held(run: RunContext, others: Others, held: StoredEntry) -> bool:
    """Offer the attempt, and release it or drop it as the coordinator asks.

    Returns: whether it was released. Otherwise it was dropped, and the study runs anew.

    Raises: PolicyRefused, ApprovalPending where the site's rules no longer allow the study.
    """
    study, stream = run.study, run.stream
    kept = kept_of(held.share, study)
    own = announced(kept, study, run.site.name)
    await asyncio.to_thread(run.site.permit, study, own.records)
    log.info("study %s: a finished attempt of it is held here", stream.label)
    await stream.send(m.Held(own.attempt, own.records, own.first_class, own.missing))
    # The shares of one set of survivors answer no proposal of another.
    is_due = own.missing == study.names_missing
    orders = (m.Release, m.Drop) if is_due else (m.Drop,)
    order: m.Release | m.Drop = await stream.expect(orders)
    if isinstance(order, m.Drop):
        await asyncio.to_thread(run.site.ledger.drop, run.charged_as)
        log.info("study %s: the held attempt is dropped, nothing charged", stream.label)
        await asyncio.to_thread(refuse_former, run.site, study)
        return False
    stream.step = "release"
    failpoint("release-asked")
    if isinstance(kept, m.Delivery):
        await _reach_again(run, others, kept)
    await answer(run, await release(run, others, held))
    return True


# --- prepared -------------------------------------------------------------------------------------


async def resume(
    run: RunContext, others: Others, parked: PreparedAttempt
) -> tuple[m.Evaluate, float | None]:
    """The steps from *propose* to *prepare* of a study that was prepared ahead.

    The node answers *propose* with all that it said in the preparation. Where every node does, the
    next message is the order to evaluate; else all of them agree again.

    Returns: the order to evaluate, and the seconds until all nodes are ready where that may take
        more than a step.
    """
    study, stream = run.study, run.stream
    await asyncio.to_thread(_permit, run, parked)
    mesh = parked.side.mesh
    if mesh is not None:
        # The links of the preparation are gone. Its peers are known, so a new meeting begins while
        # the members agree.
        meeting = digest(b"umpc links of a prepared run 1", mesh.attempt.id)
        others.links.begin_to_connect(run.site, mesh, study, meeting)
    log.info("study %s of %s goes on as it was prepared", stream.label, stream.coordinator)
    await stream.send(m.Accepted(study.hash, parked.side.accept(), parked.waiting()))
    meeting_again = asyncio.create_task(_meet_again(run, others, parked))
    try:
        asked: m.Agree | m.Evaluate = await stream.expect((m.Agree, m.Evaluate))
        if isinstance(asked, m.Agree):  # some node does not have it any more
            await _agree_again(run, parked, asked)
        stream.step = "prepare"
        failpoint("before-resume")
        await meeting_again
    finally:
        await cancelled(meeting_again)
    if isinstance(asked, m.Agree):
        await stream.send(parked.waiting().prepared)
        return await stream.expect(m.Evaluate), None
    # the others may still be meeting, which is a step of its own
    return asked, 2 * study.seconds_per_step + PATIENCE_SECONDS


async def _meet_again(run: RunContext, others: Others, parked: PreparedAttempt) -> None:
    """Go on with what was prepared, over links of a new meeting."""
    others.links.bytes_before += parked.bytes_offline
    others.material.spool = parked.spool
    others.chains = parked.chains
    mesh = parked.side.mesh
    if mesh is None:
        return
    run.compute.is_small = is_small(mesh.attempt)
    async with others.step("prepare"):
        await others.links.connected()
        await others.material.read_ahead()
    others.has_met(mesh)


async def _agree_again(run: RunContext, parked: PreparedAttempt, agree: m.Agree) -> None:
    """Hear members and openings once more, with the same answers.

    Raises: PreparationLost where another node's have changed; RemoteProtocolError.
    """
    side = parked.side
    await run.stream.send(m.Opened(parked.agree(agree.members), side.sign_members()))
    begin = await run.stream.expect(m.Begin)
    await run.compute.for_nodes(side.check_agreed, begin.signatures)
    parked.begin(begin.openings)


def _permit(run: RunContext, parked: PreparedAttempt) -> None:
    """Ask the site's rules once more, and look at all nodes' certificates.

    Raises: PolicyRefused, ApprovalPending; PreparationLost, upon which the study runs from the
        start, where a member may have been renewed since.
    """
    run.policy = run.site.permit(run.study, parked.side.records)
    run.site.permit_delta(parked.delta)
    try:
        parked.side.check_members_now()
    except CertificateError as error:
        raise PreparationLost(
            f"what was prepared for this study has a certificate that no longer counts, so all "
            f"nodes drop theirs and the study runs from the start: {error.message}",
            culprit=error.culprit,
            step="propose",
        ) from error


async def park(run: RunContext, prepared: PreparedAttempt) -> None:
    """Leave the prepared attempt, and its reservation, to a later run."""
    stream, parking = run.stream, run.site.parking
    stream.step = "park"
    failpoint("before-park")
    try:
        parking.put(prepared)
    except UmpcError:
        prepared.close()
        raise
    # Before the answer: the coordinator may hang up as soon as it has it.
    run.parked = prepared
    stream.answered = True
    waiting = prepared.spool.bytes_waiting if prepared.spool else 0
    try:
        await stream.send(m.Parked(waiting, int(parking.seconds)))
    except BaseException:
        parking.drop(prepared, "could not be told of")
        raise
    log.info("study %s is prepared: %d bytes wait for its run", stream.label, waiting)
