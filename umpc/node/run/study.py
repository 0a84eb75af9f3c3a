"""One study at one node, from top to bottom: the steps of docs/protocol.md, in their order.

| step | the coordinator sends | the node | then sends |
|---|---|---|---|
| propose | `Propose` | `_take_up`, `_reserve`, `_join` | `Accepted`: its signed member |
| agree | `Agree`: the members | checks them | `Opened`: its opening, and its signature of them |
| prepare | `Begin`: openings, signatures | `prepare` (`prepare.py`) | `Prepared`: its id, signed |
| evaluate | `Evaluate`: signatures of the id | `_evaluate`: the rounds | `Ready` |
| release | `Release` | `release` (`release.py`): charges | `Released`: its noisy share |
| ask | `Ask`, in protocols with a question | `answer` (`release.py`) | `Answer` |

The order that matters: reserve before the table is read; hold the finished share, on disk, before
the node says *ready*; charge, on disk, before the first byte of the noisy share leaves; where the
protocol asks, store the one answer before it leaves. A failure before *ready* gives the reservation
back. From then on the attempt is held, and a later run finishes it (`earlier.py`), unless the
coordinator says that nobody has charged. Nothing is given back after the charge.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator

from umpc.errors import CertificateError, LocalProtocolError, StepTimeout, UmpcError
from umpc.failpoints import failpoint
from umpc.node.audit.trail import about
from umpc.node.budget.ledger_store import StoredRelease
from umpc.node.budget.store import StoredEntry
from umpc.node.run.chunks import evaluate_chunks
from umpc.node.run.context import RunContext
from umpc.node.run.coordinator import PATIENCE_SECONDS
from umpc.node.run.earlier import finish_held, park, replay, resume
from umpc.node.run.prepare import Others, prepare
from umpc.node.run.release import answer, earlier_of, hold, release
from umpc.node.run.rounds import exchange_fields
from umpc.node.standing import PreparedAttempt
from umpc.protocols.base.node import NodeAggregation, NodeSide
from umpc.protocols.registry import check_new_run, decode_study, protocol_of
from umpc.study import messages as m
from umpc.study.document import dealer_of
from umpc.study.messages import Frame
from umpc.transport.dealer_answer import AnswerCall
from umpc.transport.patience import read_apart, waited_for

log = logging.getLogger("umpc.node")
PROPOSE_SECONDS = 600
"""How long a coordinator that has called may take to propose a study.

It first calls all nodes of the study, and thousands of members take minutes on one machine."""
RECORDS = {
    True: "other records than the last study of the same fields and condition: the table changed",
    False: "no other records than the last study of the same fields and condition, if any",
}
"""For the log of the site alone: whether the table changed, by a study's records."""


async def _steps(run: RunContext, others: Others, whole: asyncio.Timeout) -> None:
    """The run of one study. Args: whole: its time limit, which the study's data set may change."""
    stream = run.stream

    # propose
    propose = await stream.expect(m.Propose, PROPOSE_SECONDS)
    stream.check_certificate()
    before = run.site.ledger.hold_seconds
    earlier, is_admitted = await asyncio.to_thread(_take_up, run, propose)
    if (due := whole.when()) is not None:
        whole.reschedule(due - before + run.site.ledger.hold_seconds)
    parked = take_parked(run, propose.ahead)
    if parked is None:
        if isinstance(earlier, StoredRelease):
            return await replay(run, others, earlier)
        if earlier is not None and await finish_held(run, others, earlier):
            return None
    if parked is None:
        if not is_admitted:
            await asyncio.to_thread(_admit, run, propose.ahead)
        _reserve(run)
    try:
        patience = None
        if parked is not None:
            prepared = parked
            order, patience = await resume(run, others, parked)
        else:
            side = await _join(run)
            await stream.send(m.Accepted(run.study.hash, side.accept()))

            # agree
            agree = await stream.expect(m.Agree)
            failpoint("agree")
            opening = await run.compute.for_nodes(side.agree, agree.members)
            await stream.send(m.Opened(opening, side.sign_members()))
            others.material.dial(side)

            # prepare
            begin = await stream.expect(m.Begin)
            prepared, said = await prepare(run, others, side, begin, ahead=propose.ahead)
            await stream.send(said)
            if propose.ahead:
                await stream.expect(m.Park)
                return await park(run, prepared)
            order = await stream.expect(m.Evaluate)

        # evaluate
        held, ready = await _evaluate(run, others, prepared, order)
        await stream.send(ready)
        failpoint("after-ready")

        # release
        await stream.expect(m.Release, patience)
        stream.step = "release"
        failpoint("release-asked")
        await release(run, others, held)

        # ask
        await answer(run, prepared.side)
    finally:
        if parked is not None:
            parked.close()
        if run.parked is None:
            run.site.ledger.cancel(run.charged_as)  # of what is held or charged, nothing


# --- propose --------------------------------------------------------------------------------------


def _take_up(
    run: RunContext, propose: m.Propose
) -> tuple[StoredRelease | StoredEntry | None, bool]:
    """Read a proposal, find its data set, note it on disk, and find what there is of it.

    Where there is nothing yet, the rules are asked, too: all this is one piece of work off the
    event loop. Returns: what there is, and whether the site's rules allow a new attempt.
    """
    stream = run.stream
    stream.proposed = study = decode_study(propose.study)
    if run.site_of is not None and run.site.name in (node.name for node in study.nodes):
        run.site = run.site_of(study)
    notes = ["to be prepared ahead"] if propose.ahead else []
    notes += [str(stream.signed_in)] if stream.signed_in else []
    run.site.record(about("proposal", study, stream.coordinator, "; ".join(notes)))
    stream.check_caller()
    run.site.check(study)
    earlier = earlier_of(run.site, study)
    if earlier is not None or run.site.parking.holds(run.charged_as):
        return earlier, False
    _admit(run, propose.ahead)
    return earlier, True


def _admit(run: RunContext, ahead: bool) -> None:
    """Whether the study may have a new run here, prepared ahead if it is to be.

    Raises: StudyError, PreparationError; as `Admission.admit`.
    """
    check_new_run(run.study)
    if ahead:
        protocol_of(run.study).check_ahead(run.study)
        run.site.parking.check_room()
    run.policy = run.site.admit(run.study)


def take_parked(run: RunContext, ahead: bool) -> PreparedAttempt | None:
    """Take the attempt that waits for this run; one that waits for another run is dropped.

    Args: ahead: the study is prepared anew.
    """
    parked = run.site.parking.take(run.charged_as)
    if parked is None or (not ahead and parked.side.study.hash == run.study.hash):
        return parked
    parked.close()
    run.site.ledger.cancel(run.charged_as)
    log.info("study %s is prepared anew: the earlier preparation is dropped", run.stream.label)
    return None


def _reserve(run: RunContext) -> None:
    """Reserve ε before the table is read: nothing about it is told without budget.

    Not in a thread: no cancellation may come in between.
    """
    study = run.study
    protocol = protocol_of(study)
    failpoint("before-reserve")
    run.site.ledger.reserve(
        run.charged_as,
        study.exact_epsilon,
        name=study.name,
        events=protocol.known_events(study),
        course=protocol.course(study),
    )
    failpoint("after-reserve")


async def _join(run: RunContext) -> NodeSide:
    """Read the records of the study, whose ε is reserved, and make this node's side."""

    def joined() -> NodeSide:
        study, stream = run.study, run.stream
        records = run.site.load(study)
        if records.cohort is not None:
            changed = run.site.ledger.note_cohort(run.charged_as, records.cohort)
            log.info("study %s reads %s", stream.label, RECORDS[changed])
        own = run.site.credentials()
        side = protocol_of(study).node(own, study, records.columns, records.count, os.urandom)
        log.info(
            "study %s of %s accepted: %d records, %d rows dropped",
            stream.label,
            stream.coordinator,
            records.count,
            records.dropped,
        )
        for kernel in study.parsed_kernels:
            low = kernel.interval.low  # maybe seconds
            high = kernel.interval.high
            log.info(
                "kernel %s of hash %s, range [%s, %s], delta f %s",
                kernel.text,
                kernel.hash[:16],
                low,
                high,
                high - low,
            )
        return side

    with waited_for():
        return await read_apart(joined)


# --- evaluate -------------------------------------------------------------------------------------


async def _evaluate(
    run: RunContext, others: Others, prepared: PreparedAttempt, order: m.Evaluate
) -> tuple[StoredEntry, m.Ready]:
    """The rounds with other nodes, and the work on the node's own records.

    Args: order: every node's signature of the attempt; nothing uses data before they are checked.

    Returns: the finished attempt, which is on disk; the answer, with bytes and rounds.
    """
    run.stream.step = "evaluate"
    failpoint("before-evaluate")
    side, mesh, briefly = prepared.side, prepared.side.mesh, run.compute.briefly
    await briefly(side.check_prepared, order.signatures)
    async with others.step("evaluate"):
        if mesh is not None:
            rounds = others.rounds(mesh)
            rounds.begin_step("evaluate")
            # round 1: masked records to each node that shares an edge; then the chunks of edges
            await exchange_fields(rounds, mesh.peers)
            failpoint("after-fields")
            await evaluate_chunks(rounds, prepared.chunks)
        steps = side.own_steps()
        while await briefly(_goes_on, steps):
            pass
    if side.aggregation is not None:
        await add_up(run, others, side.attempt.id, side.aggregation)
    failpoint("before-ready")
    held = await hold(run, side)
    failpoint("after-hold")
    links = others.links
    return held, m.Ready(links.bytes_online_by_round, others.bytes_offline, links.rounds_used)


def _goes_on(steps: Iterator[None]) -> bool:
    """Take one step. Returns: whether there was one."""
    for _ in steps:
        return True
    return False


async def add_up(
    run: RunContext, others: Others, attempt: bytes, aggregation: NodeAggregation
) -> None:
    """Send this node's masked vector, and take the total that all nodes have signed.

    It is part of *evaluate* (`umpc/protocols/base/node.py`): the vector up, the total down,
    then signatures. A node holds one frame at a time besides what its side keeps: gRPC's flow
    control holds a faster sender back.

    Raises: RemoteProtocolError, StepTimeout naming the coordinator.
    """
    stream, compute = run.stream, run.compute.briefly
    for number in range(1, aggregation.exchanges + 1):
        frames = aggregation.masked()
        while (frame := await compute(next, frames, None)) is not None:
            await stream.send(m.Part(frame))
            others.links.count_with_coordinator(frame)
            failpoint("during-histogram")
        failpoint("after-histogram")
        if aggregation.asks == number:
            await _ask_dealer(run, others, attempt, aggregation)
        is_complete = number > aggregation.answers
        while not is_complete:
            part = await stream.expect(m.Part)
            others.links.count_with_coordinator(part.frame)
            is_complete = await compute(aggregation.take, part.frame)
            failpoint("during-total")
    signature = await compute(aggregation.sign)
    # what opens a check of people leaves once
    await asyncio.to_thread(run.site.checking, run.study, False)
    failpoint("check-opened")
    await stream.send(m.TotalSigned(signature))
    failpoint("after-total")
    # who hears no answers also waits here for the others' answers, the dealer's, and verdicts
    steps = 1 if aggregation.exchanges == aggregation.answers else 3
    seconds = steps * (run.study.seconds_per_step + PATIENCE_SECONDS)
    confirmed = await stream.expect(m.TotalConfirmed, seconds)
    await compute(aggregation.confirm, confirmed.signatures)
    failpoint("check-passed")
    await asyncio.to_thread(run.site.checking, run.study, True)


async def _ask_dealer(
    run: RunContext, others: Others, attempt: bytes, aggregation: NodeAggregation
) -> None:
    """Take the dealer's one answer about what all nodes signed."""
    call = AnswerCall(dealer_of(run.study), run.study.seconds_per_step, attempt)

    def hear(frame: Frame, dealer: bytes) -> bool:
        others.links.count_with_coordinator(frame)
        return aggregation.hear(frame, dealer)

    try:
        await run.site.dial_helper(call)
        failpoint("before-answer")
        await call.hear(hear)
    finally:
        await call.close()


# --- the limits of a run --------------------------------------------------------------------------


async def run_study(run: RunContext) -> None:
    """All steps. A reservation that is neither held nor charged at the end is given back.

    A violation by a peer or by the dealer ends them at once. Raises: UmpcError.
    """
    others = Others(run)
    has_ended_well = False
    try:
        async with asyncio.timeout(run.site.ledger.hold_seconds) as whole:
            await run.guard.run(_steps(run, others, whole))
        has_ended_well = True
    except TimeoutError as error:
        raise _reserved_too_long(run) if whole.expired() else _late(run) from error
    except UmpcError as error:
        if isinstance(error, CertificateError) and error.culprit and run.site.standing is not None:
            run.site.standing.end([error.culprit])
        raise
    except Exception as error:
        log.exception("an error of umpc's own")
        raise LocalProtocolError(
            f"step {run.stream.step} failed with {type(error).__name__}, which is an error of "
            f"umpc's own; see the log",
            step=run.stream.step,
        ) from error
    finally:
        others.end(is_good=has_ended_well)


def _late(run: RunContext) -> StepTimeout:
    """A step took too long: the missing peer is named, else this node itself."""
    step = run.stream.step
    missing = f", waiting for {', '.join(run.missing)}" if run.missing else ""
    return StepTimeout(
        f"step {step} did not end within {run.study.seconds_per_step} s{missing}; give "
        f"it more with seconds_per_step, or look at what keeps it",
        culprit=run.missing[0] if run.missing else run.site.name,
        step=step,
    )


def _reserved_too_long(run: RunContext) -> StepTimeout:
    hours = run.site.ledger.hold_seconds / 3600
    step = run.stream.step
    return StepTimeout(
        f"the site reserves epsilon for one run for at most {hours:g} h, and step {step} "
        f"had not ended by then; run the study again, with less work, or have the site's "
        f"administrator raise hold_hours under [budget]",
        culprit=run.stream.coordinator,
        step=step,
    )
