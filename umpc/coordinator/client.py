"""The coordinator's gRPC shell: one stream to every node, step by step, each with a deadline.

The first failure ends the study everywhere: every other node is told the culprit and the reason
within a second, and nothing waits for a peer that is gone.

*Returning.* A site that is lost after it was ready: the run waits until it is there again.

From *ready* on, a node has its finished attempt on disk, and a node that starts again offers it
(`node/run/earlier.py`). So the coordinator proposes the same study once more: each node then
releases the bytes that it holds, or sends those that it has released, and no node charges twice.
That is also what a second `umpc study run` does.

*Contact.* `umpc study check --contact`: who answers the coordinator, and whom each node reaches.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from umpc.coordinator.conductor import Conductor, Expect, Preparation
from umpc.coordinator.links import (
    ABORT_SECONDS,
    GIVE_UP_SECONDS,
    Losses,
    NodeLink,
    Note,
    Tell,
    each,
    silent,
)
from umpc.coordinator.shufflers import ShufflerLink
from umpc.crypto.signing import is_signature
from umpc.errors import ImpossibleResult, PeerUnavailable, RemoteProtocolError, UmpcError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.registry import checked, protocol_of
from umpc.study.document import Study, dealer_of
from umpc.study.messages import Frame
from umpc.study.parts import Participant
from umpc.study.report import Report
from umpc.transport.dealer_answer import AnswerCall
from umpc.transport.greeting import greet_or_fail
from umpc.transport.identity import Identity, verifier_of
from umpc.transport.status import error_of
from umpc.transport.stream import CONNECT_SECONDS, connect
from umpc.transport.tls import grpc, node_stub

Outcome = TypeVar("Outcome")


async def run_study(
    study: Study,
    identity: Identity,
    tell: Tell = silent,
    expect: Expect | None = None,
    note: Note = silent,
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
            return await _lead(losses, identity, tell, Conductor.conduct, expect, note)
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
    expect: Expect | None = None,
    note: Note = silent,
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
    expect: Expect | None,
    note: Note,
) -> Outcome:
    """Lead a study over streams to all nodes, which end with it."""
    study = checked(losses.study)
    side = protocol_of(study).coordinator(study, verifier_of(identity))
    started = time.perf_counter()
    links = [NodeLink(node, tell, note) for node in study.nodes]
    shufflers = [ShufflerLink(study, place) for place in range(len(study.shufflers))]
    parties: list[NodeLink | ShufflerLink] = [*links, *shufflers]

    async def hear_dealer(
        attempt: bytes, statements: Sequence[bytes], hear: Callable[[Frame, bytes], bool]
    ) -> None:
        dealer = dealer_of(study)
        call = AnswerCall(dealer, study.seconds_per_step, attempt, statements)
        try:
            await call.connect(identity)
            await call.hear(hear)
        finally:
            await call.close()

    conductor = Conductor(side, links, tell, started, shufflers, expect, losses, hear_dealer)
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


# --- contact --------------------------------------------------------------------------------------

CONTACT_SECONDS = 90
"""Seconds that a node may take to call all others: late ones are tried again while they answer."""


@dataclass(frozen=True)
class Contact:
    """One process called another. answer: its version of the protocol, or what went wrong."""

    caller: str
    called: str
    answer: str | UmpcError

    def __str__(self) -> str:
        if isinstance(self.answer, UmpcError):
            return str(self.answer)
        return f"answers, protocol {self.answer}"


async def contact_all(study: Study, identity: Identity) -> tuple[list[Contact], list[Contact]]:
    """Call all processes of a study, and have each node call those that it calls in a run.

    Returns: the coordinator's own calls, and those of the nodes that answered.
    """
    asked = [("dealer", study.dealer)] if study.dealer else []
    asked += [("shuffler", shuffler) for shuffler in study.shufflers]
    asked += [("node", node) for node in study.nodes]
    answers = await asyncio.gather(
        *(greet_or_fail(identity, role, each.name, each.address) for role, each in asked)
    )
    own = [
        Contact(identity.name, each.name, answer)
        for (_, each), answer in zip(asked, answers, strict=True)
    ]
    reached = {each.called for each in own if isinstance(each.answer, str)}
    nodes = [node for node in study.nodes if node.name in reached]
    found = await asyncio.gather(*(_ask(study, identity, node) for node in nodes))
    return own, [contact for contacts in found for contact in contacts]


async def _ask(study: Study, identity: Identity, node: Participant) -> list[Contact]:
    """Ask one node whom it reaches. A refusal of its own is one contact without a called one."""
    try:
        reply = await _contacts(study, identity, node)
        return [Contact(node.name, each.name[:64], _answer(each)) for each in reply.contacted]
    except UmpcError as error:
        return [Contact(node.name, "", error)]


async def _contacts(study: Study, identity: Identity, node: Participant) -> pb.ContactReply:
    channel = await connect(identity, node.name, "node", node.address, CONNECT_SECONDS)
    request = pb.ContactRequest(study=study.encode())
    try:
        reply: pb.ContactReply = await node_stub(channel).Contact(request, timeout=CONTACT_SECONDS)
    except grpc.aio.AioRpcError as error:
        raise error_of(error, node.name, "contact") from error
    finally:
        await channel.close(None)
    if len(reply.contacted) > len(study.nodes) + len(study.shufflers) + 1:
        raise RemoteProtocolError(
            f"{node.name} named more processes than the study has; look into its log",
            culprit=node.name,
            step="contact",
        )
    return reply


def _answer(contacted: pb.Contacted) -> str | UmpcError:
    if contacted.WhichOneof("answer") == "version":
        return codec.one_line(contacted.version)
    return codec.error_of(codec.decode_failure(contacted.failure))
