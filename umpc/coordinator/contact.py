"""`umpc study check --contact`: who answers the coordinator, and whom each node reaches."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from umpc.errors import RemoteProtocolError, UmpcError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.transport.greeting import greet_or_fail
from umpc.transport.identity import Identity
from umpc.transport.status import error_of
from umpc.transport.stream import CONNECT_SECONDS, connect
from umpc.transport.tls import grpc, node_stub

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
    dealers = [study.dealer] if study.dealer else []
    asked = [("dealer", dealer) for dealer in dealers]
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
        reply = await _call(study, identity, node)
        return [Contact(node.name, each.name[:64], _answer(each)) for each in reply.contacted]
    except UmpcError as error:
        return [Contact(node.name, "", error)]


async def _call(study: Study, identity: Identity, node: Participant) -> pb.ContactReply:
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
