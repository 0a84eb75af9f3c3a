"""The coordinator's gRPC shell: one stream to every node, step by step, each with a deadline.

The first failure ends the study everywhere: every other node is told the culprit and the reason
within a second, and nothing waits for a peer that is gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from umpc.coordinator.conductor import Conductor, Preparation
from umpc.coordinator.links import NodeLink, Tell, each
from umpc.coordinator.shufflers import ShufflerLink
from umpc.errors import PreparationLost, UmpcError
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.base.coordinator import CoordinatorSide
from umpc.protocols.registry import checked, protocol_of
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.study.report import Report
from umpc.transport.authority import Identity
from umpc.transport.channels import connect
from umpc.transport.credentials import verifier_of
from umpc.transport.services import Channel, Greeted, dealer_stub, grpc, node_stub, shuffler_stub
from umpc.transport.status import error_of
from umpc.transport.stream import CONNECT_SECONDS

log = logging.getLogger("umpc.coordinator")
Outcome = TypeVar("Outcome")
STUBS: dict[str, Callable[[Channel], Greeted]] = {
    "node": node_stub,
    "dealer": dealer_stub,
    "shuffler": shuffler_stub,
}


def silent(step: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


async def run_study(study: Study, identity: Identity, tell: Tell = silent) -> Report:
    """Run a study to its report. A preparation is used if all nodes still have it.

    Raises: UmpcError naming who failed; then nothing was released, except as the message says.
    """
    try:
        return await _lead(_side(study, identity), identity, tell, Conductor.conduct)
    except PreparationLost as error:
        # All nodes have dropped what they had, so this is a run like any other.
        log.warning("%s", error.message)
        return await _lead(_side(study, identity), identity, tell, Conductor.conduct)


async def prepare_study(study: Study, identity: Identity, tell: Tell = silent) -> Preparation:
    """Have all nodes do everything that needs no data, and keep it for the study's run.

    Raises: UmpcError naming who failed; then nothing waits anywhere, or what waits is of no use and
    lapses. StudyError where there is nothing to prepare.
    """
    protocol_of(study).check_ahead(study)
    return await _lead(_side(study, identity), identity, tell, Conductor.park)


def _side(study: Study, identity: Identity) -> CoordinatorSide:
    return protocol_of(study).coordinator(checked(study), verifier_of(identity))


async def _lead(
    side: CoordinatorSide,
    identity: Identity,
    tell: Tell,
    lead: Callable[[Conductor], Awaitable[Outcome]],
) -> Outcome:
    """Lead a study over streams to all nodes, which end with it."""
    study = side.study
    started = time.perf_counter()
    links = [NodeLink(node, tell) for node in study.nodes]
    shufflers = [ShufflerLink(study, place) for place in range(len(study.shufflers))]
    parties: list[NodeLink | ShufflerLink] = [*links, *shufflers]
    conductor = Conductor(side, links, tell, started, shufflers)
    try:
        await each(parties, "connect", lambda link: link.open(identity))
        return await lead(conductor)
    except UmpcError as error:
        keep = conductor.may_be_charged
        await asyncio.gather(*(link.abort(error, keep=keep) for link in links))
        raise
    finally:
        await asyncio.gather(*(link.close() for link in parties))


async def greet(study: Study, identity: Identity) -> list[tuple[str, str | UmpcError]]:
    """The answers of a study's dealer, shufflers and nodes.

    Returns: each one's name, and its version or the reason why it does not answer.
    """

    async def ask(role: str, participant: Participant) -> tuple[str, str | UmpcError]:
        name = participant.name
        try:
            channel = await connect(identity, name, role, participant.address, CONNECT_SECONDS)
        except UmpcError as error:
            return name, error
        try:
            reply = await STUBS[role](channel).Hello(pb.HelloRequest(), timeout=CONNECT_SECONDS)
        except grpc.aio.AioRpcError as error:
            return name, error_of(error, name, "hello")
        finally:
            await channel.close(None)
        return name, f"answers, umpc {reply.version}"

    dealers = [study.dealer] if study.dealer else []
    return await asyncio.gather(
        *(ask("dealer", dealer) for dealer in dealers),
        *(ask("shuffler", shuffler) for shuffler in study.shufflers),
        *(ask("node", node) for node in study.nodes),
    )
