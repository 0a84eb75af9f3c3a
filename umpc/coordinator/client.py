"""The coordinator's gRPC shell: one stream to every node, step by step, each with a deadline.

The first failure ends the study everywhere: every other node is told the culprit and the reason
within a second, and nothing waits for a peer that is gone.

*Returning.* A site that is lost after it was ready: the run waits until it is there again.

From *ready* on, a node has its finished attempt on disk, and a node that starts again offers it
(`node/run/earlier.py`). So the coordinator proposes the same study once more: each node then
releases the bytes that it holds, or sends those that it has released, and no node charges twice.
That is also what a second `umpc study run` does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from umpc.coordinator.conductor import Conductor, Expect, Preparation, expect_nothing
from umpc.coordinator.links import ABORT_SECONDS, GIVE_UP_SECONDS, Losses, NodeLink, Tell, each
from umpc.coordinator.run_file import Note, no_note
from umpc.coordinator.shufflers import ShufflerLink
from umpc.crypto.signing import is_signature
from umpc.errors import ImpossibleResult, PeerUnavailable, UmpcError
from umpc.protocols.registry import checked, protocol_of
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.study.report import Report
from umpc.transport.identity import Identity, verifier_of
from umpc.transport.stream import connect

Outcome = TypeVar("Outcome")


def silent(step: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


async def run_study(
    study: Study,
    identity: Identity,
    tell: Tell = silent,
    expect: Expect = expect_nothing,
    note: Note = no_note,
    returning: float = 0.0,
) -> Report:
    """Run a study to its report. A preparation is used if all nodes still have it.

    Where the study may miss nodes, it goes on without those that are lost before the release. A
    node that is lost after it was ready has some time to start again, and then finishes.

    Args: tell: is told each step's progress. expect: is told the attempt before the nodes prepare.
        note: takes notes of how far each node is. returning: seconds for nodes that are lost
        after they were ready, together.

    Raises: UmpcError naming who failed; then nothing was released, except as the message says.
    """
    losses = Losses(study)
    patience = Returning(_reach_by(identity), returning)
    while True:
        try:
            lead = Conductor.conduct
            return await _lead(losses, identity, tell, lead, expect, note)
        except UmpcError as error:
            node = losses.returning(error)
            if node is None:
                losses.after(error)
            else:
                await patience.wait_for(node, error)
        finally:
            is_signature.cache_clear()  # it would grow by 5 KiB a study, to 10 MiB


def _reach_by(identity: Identity) -> Reach:
    """The way to a node that may start again, over a connection that is closed at once."""

    async def reach(node: Participant, seconds: float) -> None:
        channel = await connect(identity, node.name, "node", node.address, seconds)
        await channel.close(None)

    return reach


async def prepare_study(
    study: Study,
    identity: Identity,
    tell: Tell = silent,
    expect: Expect = expect_nothing,
    note: Note = no_note,
) -> Preparation:
    """Have all nodes do everything that needs no data, and keep it for the study's run.

    Args: as of `run_study`.

    Raises: UmpcError naming who failed; then nothing waits anywhere, or what waits is of no use and
    lapses. StudyError where there is nothing to prepare.
    """
    protocol_of(study).check_ahead(study)
    return await _lead(Losses(study), identity, tell, Conductor.park, expect, note)


async def _lead(
    losses: Losses,
    identity: Identity,
    tell: Tell,
    lead: Callable[[Conductor], Awaitable[Outcome]],
    expect: Expect,
    note: Note,
) -> Outcome:
    """Lead a study over streams to all nodes, which end with it."""
    study = checked(losses.study)
    side = protocol_of(study).coordinator(study, verifier_of(identity))
    started = time.perf_counter()
    links = [NodeLink(node, tell, note) for node in study.nodes]
    shufflers = [ShufflerLink(study, place) for place in range(len(study.shufflers))]
    parties: list[NodeLink | ShufflerLink] = [*links, *shufflers]
    conductor = Conductor(side, links, tell, started, shufflers, expect, losses)
    try:
        patience = study.seconds_per_step
        await each(parties, "connect", lambda link: link.open(identity, patience))
        return await lead(conductor)
    except ImpossibleResult:
        raise  # all nodes have answered, and a refusal is an answer to a lie
    except UmpcError as error:
        keep = conductor.may_be_charged
        seconds = GIVE_UP_SECONDS if study.most_missing else ABORT_SECONDS
        await asyncio.gather(*(link.abort(error, keep=keep, seconds=seconds) for link in links))
        raise
    finally:
        await asyncio.gather(*(link.close() for link in parties))


# --- returning ------------------------------------------------------------------------------------

log = logging.getLogger("umpc.coordinator")
RETURN_SECONDS = 30.0
"""Seconds for which a run waits by default. A service manager starts a node again sooner."""
PAUSE_SECONDS = 1.0
"""Seconds between two proposals, in case a node dies at each of them."""

Reach = Callable[[Participant, float], Awaitable[None]]
"""Reach a node that may take so many seconds to start. Raises: PeerUnavailable."""


class Returning:
    """The patience of one run. Args: seconds: for all losses of the run together."""

    def __init__(self, reach: Reach, seconds: float):
        self._reach = reach
        self._seconds = seconds
        self._until: float | None = None

    async def wait_for(self, node: Participant, error: UmpcError) -> None:
        """Wait until a lost node answers again. Raises: the error, if it does not in time."""
        now = asyncio.get_running_loop().time()
        self._until = now + self._seconds if self._until is None else self._until
        if self._until <= now:
            raise error
        log.warning(
            "%s was lost after it was ready; the run waits up to %.0f s for it to start again",
            node.name,
            self._until - now,
        )
        is_back = False
        while not is_back and (left := self._until - asyncio.get_running_loop().time()) > 0:
            with suppress(PeerUnavailable):  # at once, where a hub does not expect the node
                await self._reach(node, left)
                is_back = True
            await asyncio.sleep(min(left, PAUSE_SECONDS))
        if not is_back:
            raise error
