"""The making of links: the earlier node of a pair dials, the later one waits.

A dialled node answers only when a run of its own is at the same attempt and wants this peer. It
reads nothing before that. A process that shares no study with it can therefore neither send it
frames nor fill its memory.

*Contact.* `umpc study check --contact` at a node: which processes of a study this node can reach.

A node calls those that it would call in a run: the nodes that come later in the study, the dealer
and the shufflers. It does so only for a coordinator and a study that its rules allow, and where a
person must approve studies, only after that. Otherwise anybody with a certificate could look
through the site's network. Nothing here depends on data, and nothing is reserved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field

from umpc.errors import ApprovalPending, RemoteProtocolError, StepTimeout, StudyError, UmpcError
from umpc.node.approvals import Approvals
from umpc.node.policy import Policy
from umpc.node.run.link import PeerLink, peer_stream
from umpc.node.standing import StandingWith
from umpc.node.starts import Starts
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.registry import allowed_as, decode_study, protocol_of
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.transport.addresses import is_behind_hub
from umpc.transport.greeting import greet_or_fail
from umpc.transport.identity import Identity
from umpc.transport.patience import time_limit
from umpc.transport.status import refusal_of
from umpc.transport.tls import Context, Peer, node_stub, read

HELLO_SECONDS = 60
"""Seconds that a busy caller may take to say for which attempt it calls.

The kernel closes the connection of a dead one before.
"""
DIALS_AT_ONCE = 16
"""TLS handshakes that a node begins at once.

A handshake takes the processors of both sides, so more of them at once only make each one late.
"""
UNCLAIMED = 8
"""Calls of one peer that may wait for a run of this node."""

Place = tuple[bytes, str]
"""(meeting, peer's name). A meeting has the attempt's id; a run of prepared work has its own."""
PeerContext = Context[pb.PeerMessage, pb.PeerMessage]


@dataclass
class Meeting:
    """A run that wants a peer, and the peer's call. Either of them may come first."""

    standing: StandingWith | None = None
    """From which the run that wants the peer takes a channel of transfers, if it needs one."""
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    link: asyncio.Future[PeerLink] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Links:
    """The links of this node to other nodes: it serves their calls and dials them."""

    def __init__(self, identity: Identity, starts: Starts):
        self.identity = identity
        self._starts = starts
        self._pumps: set[asyncio.Task[None]] = set()
        self._meetings: dict[Place, Meeting] = {}
        self._dialling = asyncio.Semaphore(DIALS_AT_ONCE)

    async def serve(self, caller: str, context: PeerContext) -> None:
        """Serve a peer's call, for as long as its link lives."""
        place: Place | None = None
        try:
            hello = await self._greeting(caller, context)
            place = (hello.attempt, caller)
            meeting = self._meetings.setdefault(place, Meeting())
            await meeting.wanted.wait()
            if meeting.link.done():
                raise RemoteProtocolError(
                    f"{caller} opened a second link for one attempt", culprit=caller
                )
            await self._serve_link(caller, context, hello, meeting)
        except UmpcError as error:
            await context.abort(*refusal_of(error, caller))
        finally:
            if place is not None:
                self._meetings.pop(place, None)

    async def _greeting(self, caller: str, context: PeerContext) -> pb.PeerHello:
        """Return the greeting with the attempt that a caller wants to meet in."""
        try:
            async with time_limit(HELLO_SECONDS):
                hello = await read(context)
        except TimeoutError as error:
            raise StepTimeout(
                f"{caller} called and did not say for which attempt", culprit=caller
            ) from error
        if hello is None or len(hello.hello.attempt) != 32:
            raise RemoteProtocolError(f"{caller} did not begin with an attempt", culprit=caller)
        unclaimed = sum(
            name == caller and not m.wanted.is_set() for (_, name), m in self._meetings.items()
        )
        if unclaimed >= UNCLAIMED:
            raise RemoteProtocolError(
                f"{caller} has {unclaimed} calls waiting already", culprit=caller
            )
        greeting: pb.PeerHello = hello.hello
        return greeting

    async def _serve_link(
        self, caller: str, context: PeerContext, hello: pb.PeerHello, meeting: Meeting
    ) -> None:
        stream = peer_stream(caller)
        stream.accept(context)
        link = PeerLink(stream)
        # the stream is read from here on, so it is closed whatever ends this call
        try:
            if hello.channel and meeting.standing is not None:
                link.channel = await meeting.standing.accept(hello.channel)
            taken = hello.channel if link.channel is not None else b""
            answer = self._starts.greeting(caller, hello.attempt, taken)
            await asyncio.to_thread(self._starts.hear, caller, hello)
            # The greeting goes first: nothing else may be written to this stream before.
            await stream.send(pb.PeerMessage(hello=answer), "prepare")
            meeting.link.set_result(link)
            await link.pump()
        finally:
            link.close()

    async def wait_for(
        self, study: Study, peer: int, meeting_id: bytes, standing: StandingWith | None = None
    ) -> PeerLink:
        """Return the link of a peer that comes earlier in the study, once it has dialled.

        Args: standing: has the channel that the peer may offer, if the run can use one.

        Raises: StepTimeout.
        """
        name = study.nodes[peer].name
        place = (meeting_id, name)
        meeting = self._meetings.setdefault(place, Meeting())
        meeting.standing = standing
        meeting.wanted.set()
        try:
            async with time_limit(study.seconds_per_step):
                link = await asyncio.shield(meeting.link)
        except TimeoutError as error:
            raise StepTimeout(
                f"{name} did not connect to {self.identity.name}", culprit=name, step="prepare"
            ) from error
        finally:
            if not meeting.link.done():
                self._meetings.pop(place, None)
        return link

    async def dial(
        self, study: Study, peer: int, meeting_id: bytes, standing: StandingWith | None = None
    ) -> PeerLink:
        """Return a link to a peer that comes later in the study.

        Args: standing: has a channel that this node may offer, if the run can use one.

        Raises: PeerUnavailable, CertificateError, PeerLost, the peer's own failure.
        """
        node = study.nodes[peer]
        stream = peer_stream(node.name)
        offered = await standing.offer() if standing is not None else None
        name = offered.name if offered else b""
        hello = self._starts.greeting(node.name, meeting_id, name)
        try:
            # a hub has no TLS handshakes for it, and takes many openings in one message
            async with nullcontext() if is_behind_hub(node.address) else self._dialling:
                patience = study.seconds_per_step
                await stream.connect(self.identity, "node", node.address, patience)
            stream.begin(node_stub(stream.channel).Peer())
            await stream.write(pb.PeerMessage(hello=hello))
            greeting = (await stream.next("prepare")).hello
            await asyncio.to_thread(self._starts.hear, node.name, greeting)
            answer = greeting.channel
            if answer and answer != hello.channel:
                raise stream.violation("took a channel that was not offered")
        except BaseException:
            stream.cancel()
            raise
        link = PeerLink(stream)
        link.channel = offered if answer else None
        pump = asyncio.create_task(link.pump())
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)
        return link


# --- contact --------------------------------------------------------------------------------------

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

    async def answer(self, request: pb.ContactRequest, caller: Peer) -> pb.ContactReply:
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

    def _admit(self, study: Study, caller: Peer) -> None:
        name = self._identity.name
        if study.coordinator != caller.name:
            raise StudyError(
                f"the study's coordinator is {study.coordinator!r}, and {caller.name!r} asked "
                f"{name} about it; name the coordinator as in its certificate"
            )
        caller.check_study(allowed_as(study))
        policy, approvals = self._rules_for(study)
        policy.check(study, name)
        if not approvals.is_accepted(allowed_as(study), name) and policy.approval:
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
