"""*release* and *ask*: what leaves the node is on disk before it is told of, paid before it leaves.

    hold(side)        evaluate: all that will leave is on disk before the node says *ready*
    release(held)     release: ε and δ are charged on disk before the first byte leaves
    answer(...)       ask: one answer, on disk before it leaves

All steps work on the bytes on disk. So it makes no difference whether the run that held a share
releases it, or a later run of the same study (`earlier.py`).

*Questions.* The run of an attempt answers from its memory. A later run of the same study sends the
stored answer. If there is none, because a process ended in between, the node answers then, about
the records of the attempt: the ledger keeps what the answer needs. The table is not read again.
Another record in a place could answer twice, and a refusal would tell whether the table has
changed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from dataclasses import replace

import numpy as np

from umpc.crypto.prg import Stream, digest
from umpc.errors import AlreadyReleased, LocalProtocolError
from umpc.failpoints import failpoint
from umpc.node.audit.trail import about
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_store import StoredAnswer, StoredRelease
from umpc.node.budget.store import KEPT, StoredEntry
from umpc.node.run.context import NO_COST, RunContext, Site
from umpc.node.run.prepare import Others
from umpc.node.shufflers import ShufflerStreams
from umpc.proto import codec
from umpc.protocols.base.node import NodeSide
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.computation import former_hashes
from umpc.study.document import Study
from umpc.study.rules import with_other_direction
from umpc.transport.patience import time_limit

log = logging.getLogger("umpc.node")


async def hold(run: RunContext, side: NodeSide) -> StoredEntry:
    """Put all that will leave on disk, once. Raises: LedgerError; then nothing is ready."""
    study, ledger = run.study, run.site.ledger
    kept = replace(side.release(), policy=run.policy)
    if isinstance(kept, m.Released):
        kept = replace(kept, missing=study.names_missing)
    share = codec.encode_kept(kept)
    protocol = protocol_of(study)
    course = protocol.course(study)
    table = course.encode() if course else b""
    if protocol.questions_of(study):
        table = await run.compute.in_thread(kept_rest, ledger, side)
    return await asyncio.to_thread(ledger.hold, run.charged_as, side.attempt.id, share, table)


async def release(run: RunContext, others: Others, held: StoredEntry) -> StoredRelease:
    """Charge, then let the share leave that is in the charge's row. Returns: this row's release."""
    study = run.study
    kept = kept_of(held.share, study)
    run.guard.settle()  # the last look for a violation
    run.stream.check_certificate()
    if isinstance(kept, m.Delivery):
        _reached(others).check()
    failpoint("before-charge")
    stored = await asyncio.to_thread(_charge, run, held)
    log.info(
        "study %s: epsilon %s, delta %.3g %s, the share leaves",
        run.stream.label,
        study.epsilon,
        held.delta,
        "charged" if stored.is_new else "was charged before by another run",
    )
    kept = kept_of(stored.share, study)
    message = announced(kept, study, run.site.name)
    run.stream.log_disclosure(message.records)
    if isinstance(kept, m.Delivery):
        message = replace(message, sent=await deliver(run, others, kept))
    failpoint("before-send")
    await run.stream.send_release(message)
    failpoint("after-send")
    await asyncio.to_thread(run.site.released, study)
    return stored


def _charge(run: RunContext, held: StoredEntry) -> StoredRelease:
    """Charge, then append the rows of the charge and of what leaves, all of it on disk.

    Nothing leaves without them, and nothing else than the share that is returned. Where another
    run has charged for the attempt meanwhile, its rows say so, and this release is one more.
    """
    study, coordinator = run.study, run.stream.coordinator
    cost = (held.epsilon, held.delta)
    with run.site.charging:
        stored = run.site.ledger.charge(run.charged_as, held.attempt)
        failpoint("after-charge")
        if stored.is_new:
            run.site.record(
                about("charge", study, coordinator, cost=cost),
                about("release", study, coordinator, disclosed(study), cost=cost),
            )
    if not stored.is_new:
        note_again(run)
    return stored


def note_again(run: RunContext) -> None:
    """Append the row of what is sent again at no cost, and the charge's if it is missing."""
    with run.site.charging:
        run.site.add_charge(run.charged_as)
    note = f"again, nothing charged; {disclosed(run.study)}".rstrip("; ")
    run.site.record(about("release", run.study, run.stream.coordinator, note, cost=NO_COST))


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
    counts = own.records, own.first_class
    return m.Released(kept.attempt, b"", *counts, missing=missing, policy=kept.policy)


# --- delivery to shufflers ------------------------------------------------------------------------


async def deliver(run: RunContext, others: Others, kept: m.Delivery) -> tuple[m.StepBytes, ...]:
    """The kept message to all shufflers, until each has its part. Returns: the bytes sent."""
    streams, study = _reached(others), run.study
    node = study.index_of(run.site.name)
    places = range(len(study.shufflers))
    frames = await run.compute.in_thread(
        lambda: [list(protocol_of(study).delivered(place, node, study, kept)) for place in places]
    )
    return await streams.send(frames)


def _reached(others: Others) -> ShufflerStreams:
    if others.shufflers is None:
        raise LocalProtocolError("the shufflers were not reached before the charge")
    return others.shufflers


# --- questions ------------------------------------------------------------------------------------


async def answer(run: RunContext, attempt: NodeSide | StoredRelease) -> None:
    """Tell the answers to the protocol's questions, if it asks any.

    Args: attempt: the side of the attempt's own run, or in a later run what was released.

    Raises: AlreadyReleased where another question was answered.
    """
    questions = protocol_of(run.study).questions_of(run.study)
    for number in range(questions):
        ask = await run.stream.expect(m.Ask)
        run.stream.step = "ask"
        failpoint("before-answer")
        if isinstance(attempt, StoredRelease):
            told = m.Answer(await _answer_later(run, attempt, ask.question))
        else:
            told = m.Answer(await _first_answer(run, attempt, attempt.attempt.id, ask.question))
        is_last = number + 1 == questions
        await (run.stream.send_last if is_last else run.stream.send)(told)
        log.info("study %s: the question is answered", run.stream.label)
        failpoint("after-told")


async def _first_answer(run: RunContext, side: NodeSide, attempt: bytes, question: bytes) -> bytes:
    """Make the answer and store it; the release has paid for it."""
    study = run.study
    async with time_limit(study.seconds_per_step):
        made = await run.compute.in_thread(side.answer, question)
    asked = question_digest(study, attempt, question)
    await asyncio.to_thread(run.site.ledger.answer, run.charged_as, attempt, asked, made)
    await asyncio.to_thread(run.site.record, about("answer", study, run.stream.coordinator))
    failpoint("after-answer")
    return made


async def _answer_later(run: RunContext, stored: StoredRelease, question: bytes) -> bytes:
    """The answer of a later run: as before, or for the first time."""
    study = run.study
    asked = question_digest(study, stored.attempt, question)
    told = await asyncio.to_thread(run.site.ledger.answered, run.charged_as)
    if told is None and stored.table:
        side = await _recalled(run, stored)
        return await _first_answer(run, side, stored.attempt, question)
    again = stored_answer(told, asked, study, run.site.name)
    row = about("answer", study, run.stream.coordinator, "again, nothing charged", cost=NO_COST)
    await asyncio.to_thread(run.site.record, row)
    return again


async def _recalled(run: RunContext, stored: StoredRelease) -> NodeSide:
    """Make the side of the attempt again, from the share that left and what the ledger kept.

    Raises: AlreadyReleased where a former version of umpc kept something else.
    """
    study = run.study
    if not stored.table.startswith(KEPT):
        raise AlreadyReleased(
            f"{run.site.name} released the study {study.name!r} before, with a former version "
            f"of umpc, and it never answered: the study is charged and incomplete; give it a "
            f"new name to run it anew",
            culprit=run.site.name,
            step="ask",
        )
    none = {field.name: np.zeros(0, dtype=np.int64) for field in study.fields}
    side = protocol_of(study).node(run.site.credentials(), study, none, 0, os.urandom)
    kept = codec.decode_kept(stored.share, shuffled=False)
    if isinstance(kept, m.Released):
        hidden = stored.table[len(KEPT) :]
        rest = masked_rest(run.site.ledger, stored.attempt, hidden)
        await run.compute.in_thread(side.recall, kept.share, rest)
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


# --- what an earlier run released or holds --------------------------------------------------------


def earlier_of(site: Site, study: Study) -> StoredRelease | StoredEntry | None:
    """Return what the study released before, or else the attempt that is held; None for neither.

    Raises: AlreadyReleased under a former identity of the study.
    """
    found = site.ledger.released(study.whole.hash) or site.ledger.held(study.whole.hash)
    if found is None:
        refuse_former(site, study)
    return found


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
    for former in protocol_of(study).former_ways(study.whole):
        known = (former.hash, *(each for _, each in former_hashes(former)))
        if any(site.ledger.released(each) is not None for each in known):
            raise refused(
                f'backend = "{former.backend}", which its file meant before. Write backend = '
                f'"{former.backend}" to have that result again at no cost, or give the study a new '
                "name to run it as it is now"
            )
    for released_by, identity in former_hashes(study.whole):
        if site.ledger.released(identity) is not None:
            raise refused(
                f"{released_by}, and its "
                f"epsilon is charged; this version cannot repeat that result: keep the old "
                f"report, or give the study a new name to run it anew"
            )
