"""The coordinator's gRPC shell: one stream to every node, step by step, each with a deadline.

The first failure ends the study everywhere: every other node is told who and why, within a second, and nothing
waits for a peer that is gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from umpc.coordinator.links import CONNECT_SECONDS, NodeLink, Tell, each
from umpc.coordinator.sessions import coordinator_session
from umpc.coordinator.shufflers import ShufflerLink
from umpc.errors import AlreadyReleased, PreparationLost, StudyError, UmpcError
from umpc.failpoints import failpoint
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.u_mpc.coordinator import CoordinatorSession
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.study.report import Measured, Moment, Report, count_online
from umpc.transport.authority import Identity
from umpc.transport.channels import connect
from umpc.transport.services import grpc, rpc
from umpc.transport.status import error_of

log = logging.getLogger("umpc.coordinator")
T = TypeVar("T")
Beside = Callable[[ShufflerLink], Awaitable[None]]


@dataclass(frozen=True)
class Preparation:
    """What waits at the nodes for a study's run: bytes on each one's disk, for so many seconds."""

    bytes_by_node: dict[str, int]
    seconds: int


def silent(step: str, done: int, total: int) -> None:
    pass


async def run_study(study: Study, identity: Identity, tell: Tell = silent) -> Report:
    """Run a study to its report; what was prepared for it is used, if all nodes still have that.

    Raises: UmpcError naming who failed; then nothing was released, except as the message says.
    """
    try:
        return await _lead(study, identity, tell, Conductor.conduct)
    except PreparationLost as error:
        # Whoever had something has dropped it, so this is a run like any other.
        log.warning("%s", error.message)
        return await _lead(study, identity, tell, Conductor.conduct)


async def prepare_study(study: Study, identity: Identity, tell: Tell = silent) -> Preparation:
    """Have all nodes do everything that needs no data, and keep it for the study's run.

    Raises: UmpcError naming who failed; then nothing waits anywhere, or what waits is of no use and lapses. StudyError
    where there is nothing to prepare.
    """
    if study.one_message:
        raise StudyError(
            f'a study of protocol = "{study.protocol}" has nothing to prepare ahead; run it'
        )
    return await _lead(study, identity, tell, Conductor.park)


async def _lead(
    study: Study, identity: Identity, tell: Tell, lead: Callable[[Conductor], Awaitable[T]]
) -> T:
    """Over streams to all nodes, which end with it."""
    session = coordinator_session(study)
    started = time.perf_counter()
    links = [NodeLink(node, tell) for node in study.nodes]
    shufflers = [ShufflerLink(study, place) for place in range(len(study.shufflers))]
    try:
        await each([*links, *shufflers], "connect", lambda link: link.open(identity))
        return await lead(Conductor(session, links, tell, started, shufflers))
    except UmpcError as error:
        await asyncio.gather(*(link.abort(error) for link in links))
        raise
    finally:
        await asyncio.gather(*(link.close() for link in [*links, *shufflers]))


async def greet(study: Study, identity: Identity) -> list[tuple[str, str | UmpcError]]:
    """Who of a study's dealer, shufflers and nodes answers: (name, what it runs, or why it does not answer)."""

    async def ask(role: str, participant: Participant) -> tuple[str, str | UmpcError]:
        try:
            channel = await connect(
                identity, participant.name, role, participant.address, CONNECT_SECONDS
            )
        except UmpcError as error:
            return participant.name, error
        stub = {"node": rpc.NodeStub, "dealer": rpc.DealerStub, "shuffler": rpc.ShufflerStub}[role](
            channel
        )
        try:
            reply = await stub.Hello(pb.HelloRequest(), timeout=CONNECT_SECONDS)
        except grpc.aio.AioRpcError as error:
            return participant.name, error_of(error, participant.name, "hello")
        finally:
            await channel.close()
        return participant.name, f"answers, umpc {reply.version}"

    dealers = [study.dealer] if study.dealer else []
    return await asyncio.gather(
        *(ask("dealer", dealer) for dealer in dealers),
        *(ask("shuffler", shuffler) for shuffler in study.shufflers),
        *(ask("node", node) for node in study.nodes),
    )


class Conductor:
    """Leads all nodes through the steps of docs/protocol.md."""

    def __init__(
        self,
        session: CoordinatorSession,
        links: list[NodeLink],
        tell: Tell,
        started: float,
        shufflers: list[ShufflerLink],
    ):
        self.session, self.links, self.tell, self.started = session, links, tell, started
        self.shufflers = shufflers
        self.seconds = session.study.seconds_per_step
        self.moments: list[Moment] = []

    async def conduct(self) -> Report:
        """A run, from the start or from what was prepared: the nodes know."""
        answers = await self._ask("propose", self.session.propose(), m.Accepted, m.Released)
        agree = self.session.agree(answers)
        if agree is None:
            return await self._replay(answers)
        opened = await self._ask("agree", agree, m.Opened)
        offline = time.perf_counter()
        prepared = await self._prepare(opened)
        online = time.perf_counter()
        ready = await self._ask("evaluate", m.Evaluate(), m.Ready)
        await each(self.shufflers, "evaluate", lambda shuffler: shuffler.greet())
        released = await self._ask("release", m.Release(), m.Released, beside=self._collect)
        asked, told = await self._question(released)
        revealed = [len(answer.share) + more for answer, more in zip(released, told, strict=True)]
        sent = [(*before.sent, *last.sent) for before, last in zip(ready, released, strict=True)]
        heaps = self.session.heaps_received if self.shufflers else []
        measured = Measured(
            rounds=max(answer.rounds for answer in ready) + 1 + bool(asked or heaps),
            **count_online(sent, revealed, asked, heaps),
            bytes_offline=sum(answer.bytes_received for answer in ready),
            seconds_online=self._elapsed(online),
            seconds_offline=online - offline,
            seconds_total=self._elapsed(self.started),
            prepared=all(answer.ahead for answer in prepared),
            timeline=tuple(
                sorted(self.moments, key=lambda moment: self.session.names.index(moment.node))
            ),
        )
        return await asyncio.to_thread(self.session.finish, released, measured)

    async def park(self) -> Preparation:
        """All steps before the data, which then wait at the nodes."""
        answers = await self._ask(
            "propose", self.session.propose(ahead=True), m.Accepted, m.Released
        )
        agree = self.session.agree(answers)
        if agree is None:
            raise AlreadyReleased(
                f"the study {self.session.study.name!r} was released before, so there is nothing to prepare; `umpc "
                f"study run` shows its stored result at no cost"
            )
        await self._prepare(await self._ask("agree", agree, m.Opened))
        parked = await self._ask("park", m.Park(), m.Parked)
        sizes = {
            link.node.name: answer.bytes for link, answer in zip(self.links, parked, strict=True)
        }
        return Preparation(sizes, min(answer.seconds for answer in parked))

    async def _question(self, released: list[m.Released]) -> tuple[list[int], list[int]]:
        """The question that follows from what was released, if there is one.

        Returns: bytes that each node was asked with (empty without a question), and bytes that it told.
        """
        ask = await asyncio.to_thread(self.session.ask, released)
        if ask is None:
            return [], [0] * len(released)
        failpoint("before-ask")
        told = await self._ask("ask", ask, m.Answer)
        await asyncio.to_thread(self.session.hear, told)
        return [len(ask.question)] * len(told), [len(answer.answer) for answer in told]

    async def _prepare(self, opened: list[m.Opened]) -> list[m.Prepared]:
        begin = await asyncio.to_thread(self.session.begin, opened)
        shuffling = self._begin_shuffling(self.session.attempt.id) if self.shufflers else None
        prepared = await self._ask("prepare", begin, m.Prepared, beside=shuffling)
        self.session.check_prepared(prepared)
        return prepared

    async def _replay(self, answers: list[m.Released]) -> Report:
        """What was released before; shufflers get it once more, at no cost."""
        if self.shufflers:
            begin = self._begin_shuffling(self.session.recall(answers))
            await each(self.shufflers, "prepare", begin)
            answers = await self._ask("release", m.Release(), m.Released, beside=self._collect)
        await self._question(answers)
        measured = Measured(replayed=True, seconds_total=self._elapsed(self.started))
        return await asyncio.to_thread(self.session.replay, answers, measured)

    def _begin_shuffling(self, attempt: bytes) -> Beside:
        """A job for each shuffler: have its run begin, and the last one compares."""
        runs: dict[int, bytes] = {}

        async def begin(shuffler: ShufflerLink) -> None:
            runs[shuffler.place] = await shuffler.begin(attempt, self.seconds + 5)
            if len(runs) == len(self.shufflers):
                self.session.check_runs([runs[place] for place in sorted(runs)])

        return begin

    async def _collect(self, shuffler: ShufflerLink) -> None:
        await shuffler.collect(self.session.receive, self.seconds + 5)

    async def _ask(
        self,
        step: str,
        message: m.CoordinatorMessage,
        *kinds: type[T],
        beside: Beside | None = None,
    ) -> list[T]:
        """Send to all nodes, and wait for everybody's answer of one of these kinds. beside: of each shuffler."""
        self.tell(step, 0, len(self.links))
        answered = 0

        async def ask(link: NodeLink | ShufflerLink) -> T | None:
            nonlocal answered
            if isinstance(link, ShufflerLink):
                return await beside(link)
            asked = self._elapsed(self.started)
            answer = await link.ask(step, message, kinds, self.seconds + 5)
            self.moments.append(Moment(step, link.node.name, asked, self._elapsed(self.started)))
            answered += 1
            self.tell(step, answered, len(self.links))
            return answer

        answers = await each([*self.links, *(self.shufflers if beside else ())], step, ask)
        return answers[: len(self.links)]

    @staticmethod
    def _elapsed(since: float) -> float:
        return time.perf_counter() - since
