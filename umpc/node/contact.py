"""`umpc study check --contact` at a node: which processes of a study this node can reach.

A node calls those that it would call in a run: the nodes that come later in the study, the dealer
and the shufflers. It does so only for a coordinator and a study that its rules allow, and where a
person must approve studies, only after that. Otherwise anybody with a certificate could look
through the site's network. Nothing here depends on data, and nothing is reserved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from umpc.errors import ApprovalPending, StudyError, UmpcError
from umpc.node.approvals import Approvals
from umpc.node.policy import Policy
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.registry import decode_study, protocol_of
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.transport.authority import Identity
from umpc.transport.greeting import greet_or_fail

Called = tuple[str, Participant]
"""A role and a participant."""


def called_by(study: Study, node: str) -> Iterator[Called]:
    """The processes that a node calls in a run of the study. Raises: StudyError."""
    place = study.index_of(node)
    if protocol_of(study).has_links(study):
        yield from (("node", each) for each in study.nodes[place + 1 :])
    if study.dealer is not None and (study.degree > 1 or study.coins == "dealt"):
        yield "dealer", study.dealer
    yield from (("shuffler", each) for each in study.shufflers)


class ContactCheck:
    """The answers to a coordinator that asks which processes this node reaches, one at a time.

    Args: rules_for: the rules and the decisions of persons that hold for a study.
    """

    def __init__(self, identity: Identity, rules_for: Callable[[Study], tuple[Policy, Approvals]]):
        self._identity = identity
        self._rules_for = rules_for
        self._turn = asyncio.Lock()

    async def answer(self, request: pb.ContactRequest, caller: str) -> pb.ContactReply:
        """Call the processes of a study.

        Raises: StudyError, EncodingError, VersionMismatch for the study; PolicyRefused,
            ApprovalPending, ConfigError.
        """
        study = await asyncio.to_thread(decode_study, request.study)
        await asyncio.to_thread(self._admit, study, caller)
        called = list(called_by(study, self._identity.name))
        async with self._turn:
            answers = await asyncio.gather(
                *(greet_or_fail(self._identity, role, p.name, p.address) for role, p in called)
            )
        reply = pb.ContactReply()
        for (_, participant), answer in zip(called, answers, strict=True):
            reply.contacted.append(_contacted(participant.name, answer))
        return reply

    def _admit(self, study: Study, caller: str) -> None:
        name = self._identity.name
        if study.coordinator != caller:
            raise StudyError(
                f"the study's coordinator is {study.coordinator!r}, and {caller!r} asked {name} "
                f"about it; name the coordinator as in its certificate"
            )
        policy, approvals = self._rules_for(study)
        policy.check(study, name)
        if not approvals.is_accepted(study, name) and policy.approval:
            raise ApprovalPending(
                f"{name} calls nobody for a study that its administrator has yet to accept "
                "(approval under [policy]); run the study, which then waits there, and check "
                "again once it is accepted",
                culprit=name,
            )


def _contacted(name: str, answer: str | UmpcError) -> pb.Contacted:
    if isinstance(answer, str):
        return pb.Contacted(name=name, version=answer)
    known = codec.failure_of(answer)
    failure = pb.Failure(error=known.error, message=known.message, culprit=name)
    return pb.Contacted(name=name, failure=failure)
