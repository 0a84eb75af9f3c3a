"""The conductor: it leads all nodes, and shufflers if there are some, through one study."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from umpc import __version__
from umpc.coordinator.links import Encoded, Losses, NodeLink, Tell, each, encoded, saying_what_holds
from umpc.coordinator.shufflers import ShufflerLink
from umpc.errors import AlreadyReleased, LocalProtocolError, StudyError
from umpc.failpoints import failpoint
from umpc.protocols.base.coordinator import CoordinatorSide, Finished, Proposed, StudyState
from umpc.protocols.registry import check_new_run
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.cost import Measured, Moment, count_online
from umpc.study.messages import Frame
from umpc.study.report import Report

log = logging.getLogger("umpc.coordinator")
ANSWER_SECONDS = 5
"""How much longer than a step the coordinator waits for an answer."""

Expected = TypeVar("Expected")
PROPOSED: tuple[type[Proposed], ...] = (m.Accepted, m.Held, m.Released)
"""The answers to a proposal."""
Beside = Callable[[ShufflerLink], Coroutine[Any, Any, None]]
"""The part of a step that each shuffler does while the nodes do theirs."""


Hear = Callable[[Frame, bytes], bool]
HearDealer = Callable[[bytes, Sequence[bytes], Hear], Coroutine[Any, Any, None]]
"""Pass statements on to the dealer, and hear its answer about an attempt, frame by frame."""
Expect = Callable[[Attempt], None]
"""It is told the attempt as soon as all numbers of records are known, in a thread of its own."""


def utc_text(seconds_ago: float = 0) -> str:
    """The time, or that of so many seconds ago, as reports have it."""
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat(timespec="seconds")


def _prepared_at(answers: Sequence[Proposed]) -> str:
    """When what waits was prepared; empty where nothing does, or where a node does not say."""
    waited = [a.waiting.seconds for a in answers if isinstance(a, m.Accepted) and a.waiting]
    return utc_text(max(waited)) if waited and all(waited) else ""


async def hear_nobody(attempt: bytes, statements: Sequence[bytes], hear: Hear) -> None:
    """There is no dealer that answers."""
    raise LocalProtocolError("a dealer's answer was due in a study that has none")


def _look_away(told: asyncio.Task[None]) -> None:
    if not told.cancelled() and told.exception() is not None:
        log.info("there is no forecast: %s", told.exception())


@dataclass(frozen=True)
class Preparation:
    """The bytes that wait on each node's disk for a study's run, and for how many seconds."""

    bytes_by_node: dict[str, int]
    seconds: int


@dataclass(eq=False)
class Conductor:
    """Leads all nodes through the steps of docs/protocol.md."""

    side: CoordinatorSide
    links: list[NodeLink]
    tell: Tell
    started: float
    shufflers: list[ShufflerLink]
    expect: Expect | None
    losses: Losses
    hear_dealer: HearDealer = hear_nobody

    def __post_init__(self) -> None:
        self.seconds = self.side.study.seconds_per_step
        self.moments: list[Moment] = []
        self._told: asyncio.Task[None] | None = None
        self._evaluate_seconds = self.seconds + ANSWER_SECONDS
        self.may_be_charged = True
        """Whether some node may have charged for an attempt that another node holds.

        Nobody knows before all nodes have answered the proposal: a run that ends earlier lets the
        nodes keep what they hold.
        """

    async def conduct(self) -> Report:
        """A run, from the start or from what was prepared or held: the nodes know which."""
        answers = await self._ask("propose", self.side.propose(), PROPOSED)
        self.losses.hear(answers)
        answers = await self._take_up(answers)
        self._check_new(answers)
        prepared_at = _prepared_at(answers)
        offline = time.perf_counter()
        prepared = await self._resume(answers)
        if prepared is None:
            agree = self._agree(answers)
            if agree is None:
                return await self._complete([a for a in answers if not isinstance(a, m.Accepted)])
            opened = await self._ask("agree", agree, (m.Opened,))
            offline = time.perf_counter()
            prepared = await self._prepare(opened)
        is_ahead = all(answer.ahead for answer in prepared)
        online = time.perf_counter()
        ready = await self._evaluate()
        await each(self.shufflers, "evaluate", lambda shuffler: shuffler.greet())
        self.may_be_charged = True
        self.losses.is_settled = self.losses.has_evaluated = True
        failpoint("before-release")
        released = await self._ask("release", m.Release(), (m.Released,), self._collect)
        asked, answered = await self._question(released)
        seconds_online, seconds_total = self._elapsed(online), self._elapsed(self.started)
        for link in self.links:  # their nodes end the streams while the report is made
            await link.hang_up()
        revealed = [
            len(answer.share) + more for answer, more in zip(released, answered, strict=True)
        ]
        sent = [(*before.sent, *last.sent) for before, last in zip(ready, released, strict=True)]
        heaps = self.side.heaps.heaps_received if self.side.heaps else []
        names = self.side.names
        measured = Measured(
            rounds=max(answer.rounds for answer in ready) + 1 + bool(asked or heaps),
            **count_online(sent, revealed, asked, heaps),
            bytes_offline=sum(answer.bytes_received for answer in ready),
            seconds_online=seconds_online,
            seconds_offline=online - offline,
            seconds_total=seconds_total,
            prepared=is_ahead,
            timeline=tuple(sorted(self.moments, key=lambda each: names.index(each.node))),
            finished=utc_text(),
            prepared_at=prepared_at if is_ahead else "",
            version=__version__,
            policies=self._policies(released),
        )
        return await asyncio.to_thread(self.side.finish, released, measured)

    def _check_new(self, answers: Sequence[Proposed]) -> None:
        """Ask the rules for new runs where no node has a result. Raises: StudyError."""
        if self.side.state(answers) is StudyState.ANEW:
            try:
                check_new_run(self.side.study)
            except StudyError as error:
                raise saying_what_holds(error, "propose") from None

    def _agree(self, answers: Sequence[Proposed]) -> m.Agree | None:
        """Return the next message. Raises: as `agree`; a StudyError says what was charged."""
        try:
            return self.side.agree(answers)
        except StudyError as error:
            saying_what_holds(error, "agree")
            raise

    async def park(self) -> Preparation:
        """All steps before the data. Their material then waits at the nodes."""
        proposal = self.side.propose(ahead=True)
        answers = await self._ask("propose", proposal, PROPOSED)
        self.losses.hear(answers)
        self.may_be_charged = any(not isinstance(answer, m.Accepted) for answer in answers)
        state = self.side.state(answers)
        if state is StudyState.REPLAY:
            raise AlreadyReleased(
                f"the study {self.side.study.name!r} was released before, so there is nothing to "
                f"prepare; `umpc study run` shows its stored result at no cost"
            )
        self._check_new(answers)
        agree = self._agree(answers) if state is StudyState.ANEW else None
        if agree is None:
            raise AlreadyReleased(
                f"nodes hold an attempt of the study {self.side.study.name!r} that was finished "
                f"before, so there is nothing to prepare; `umpc study run` finishes it"
            )
        await self._prepare(await self._ask("agree", agree, (m.Opened,)))
        parked = await self._ask("park", m.Park(), (m.Parked,))
        sizes = {
            link.node.name: answer.bytes for link, answer in zip(self.links, parked, strict=True)
        }
        return Preparation(sizes, min(answer.seconds for answer in parked))

    async def _question(self, released: list[m.Released]) -> tuple[list[int], list[int]]:
        """The question that follows from what was released, if there is one.

        Returns: the bytes that each node was asked with, empty without a question; and the bytes
        that it answered.
        """
        if not self.side.asks:
            return [], [0] * len(released)
        ask = await asyncio.to_thread(self.side.ask, released)
        if ask is None:
            return [], [0] * len(released)
        failpoint("before-ask")
        answers = await self._ask("ask", ask, (m.Answer,))
        await asyncio.to_thread(self.side.hear, answers)
        asked = [len(ask.question)] * len(answers)
        return asked, [len(answer.answer) for answer in answers]

    async def _resume(self, answers: list[Proposed]) -> list[m.Prepared] | None:
        """Go on with what every node has prepared, if each has. Returns: what it has.

        Nodes that go on still have to meet, for which each has the time of the step *prepare*. The
        coordinator waits for both steps at once: a peer that meets the others late and then says
        nothing is thereby named by them, before the coordinator has to name one of them.
        """
        if self.shufflers:
            return None
        prepared = await asyncio.to_thread(self.side.resume, answers)
        if prepared is not None:
            self._evaluate_seconds += self.seconds
            self._begin_forecast()
        return prepared

    async def _prepare(self, opened: list[m.Opened]) -> list[m.Prepared]:
        begin = await asyncio.to_thread(self.side.begin, opened)
        shuffling = self._begin_shuffling(self.side.attempt.id) if self.side.heaps else None
        self._begin_forecast()
        prepared = await self._ask("prepare", begin, (m.Prepared,), shuffling)
        self.side.check_prepared(prepared)
        return prepared

    def _begin_forecast(self) -> None:
        """The nodes work meanwhile, and a run does not fail for want of a forecast."""
        if self.expect is not None:
            self._told = asyncio.create_task(asyncio.to_thread(self.expect, self.side.attempt))
            self._told.add_done_callback(_look_away)

    async def _evaluate(self) -> list[m.Ready]:
        """The work on the data. Where the side adds up masked vectors, these come first."""
        evaluate = self.side.evaluate()
        begun = self._elapsed(self.started)
        aggregation = self.side.aggregation
        if aggregation is None:
            return await self._ask("evaluate", evaluate, (m.Ready,), seconds=self._evaluate_seconds)
        seconds = self.seconds + ANSWER_SECONDS
        message = encoded(evaluate)
        places = {link.node.name: place for place, link in enumerate(self.links)}

        async def collect(link: NodeLink) -> None:
            add = partial(aggregation.add, places[link.node.name])
            await link.collect("evaluate", [message], add, seconds)

        def told(link: NodeLink) -> Iterator[Encoded]:
            frames = aggregation.told(places[link.node.name])
            return (encoded(m.Part(frame)) for frame in frames)

        async def go_on(link: NodeLink) -> None:
            add = partial(aggregation.add, places[link.node.name])
            await link.collect("evaluate", told(link), add, seconds)

        async def deliver(link: NodeLink) -> m.TotalSigned:
            return await link.deliver("evaluate", told(link), (m.TotalSigned,), seconds)

        for number in range(1, aggregation.exchanges + 1):
            await each(self.links, "evaluate", collect if number == 1 else go_on)
            await asyncio.to_thread(aggregation.end_exchange)
            if number == 1:
                failpoint("before-total")
            if aggregation.asks == number:
                asked = await asyncio.to_thread(lambda: aggregation.questions)
                await self.hear_dealer(self.side.attempt.id, asked, aggregation.hear)
                await asyncio.to_thread(aggregation.end_exchange)
        signed = await each(self.links, "evaluate", deliver)
        signatures = tuple(answer.signature for answer in signed)
        await asyncio.to_thread(aggregation.check_signed, signatures)
        ready = await self._ask("evaluate", m.TotalConfirmed(signatures), (m.Ready,))
        self.moments = [
            replace(moment, asked=begun) if moment.step == "evaluate" else moment
            for moment in self.moments
        ]
        return ready

    async def _take_up(self, answers: list[Proposed]) -> list[Proposed]:
        """The answers with which the study goes on.

        Nodes that hold an attempt which cannot be finished drop it, since nobody has charged.
        """
        self.may_be_charged = any(not isinstance(answer, m.Accepted) for answer in answers)
        self.losses.is_uncharged = self.losses.is_uncharged or not self.may_be_charged
        if self.side.state(answers) is not StudyState.DROP:
            return answers
        holders = [
            link for link, a in zip(self.links, answers, strict=True) if isinstance(a, m.Held)
        ]
        again = iter(await self._ask("propose", m.Drop(), (m.Accepted,), links=holders))
        self.may_be_charged = False
        self.losses.is_uncharged = True
        return [next(again) if isinstance(answer, m.Held) else answer for answer in answers]

    async def _complete(self, answers: list[Finished]) -> Report:
        """The report of an attempt that every node has finished before, perhaps in this run.

        Nodes that hold it charge for it and release it now. All others send what they released
        before, at no cost; shufflers get it once more from all.
        """
        self.losses.is_settled = True
        heaps = self.side.heaps
        links = self.links
        beside: Beside | None = None
        if heaps is not None:
            begin = self._begin_shuffling(heaps.recall(answers))
            await each(self.shufflers, "prepare", begin)
            beside = self._collect
        else:
            links = [link for link, a in zip(links, answers, strict=True) if isinstance(a, m.Held)]
        fresh: Iterator[m.Released] = iter(())
        if links:
            asked = await self._ask("release", m.Release(), (m.Released,), beside, links)
            fresh = iter(asked)
        released = [
            answer if isinstance(answer, m.Released) and heaps is None else next(fresh)
            for answer in answers
        ]
        await self._question(released)
        is_replay = not self.losses.has_evaluated
        seconds = self._elapsed(self.started)
        measured = Measured(
            replayed=is_replay,
            seconds_total=seconds,
            finished=utc_text(),
            version=__version__,
            policies=self._policies(released),
        )
        return await asyncio.to_thread(self.side.replay, released, measured)

    def _policies(self, released: Sequence[m.Released]) -> dict[str, str]:
        """Site → its rules, in its own words; without sites that do not say."""
        told = zip(self.side.names, released, strict=True)
        return {name: answer.policy for name, answer in told if answer.policy}

    def _begin_shuffling(self, attempt: bytes) -> Beside:
        """A job for each shuffler: its run begins, and the last one compares all runs."""
        runs: dict[int, bytes] = {}

        async def begin(shuffler: ShufflerLink) -> None:
            runs[shuffler.place] = await shuffler.begin(attempt, self.seconds + ANSWER_SECONDS)
            if len(runs) == len(self.shufflers) and self.side.heaps is not None:
                self.side.heaps.check_runs([runs[place] for place in sorted(runs)])

        return begin

    async def _collect(self, shuffler: ShufflerLink) -> None:
        if self.side.heaps is not None:
            await shuffler.collect(self.side.heaps.receive, self.seconds + ANSWER_SECONDS)

    async def _ask(
        self,
        step: str,
        message: m.CoordinatorMessage,
        kinds: tuple[type[Expected], ...],
        beside: Beside | None = None,
        links: list[NodeLink] | None = None,
        seconds: float | None = None,
    ) -> list[Expected]:
        """Send to all nodes, and wait for everybody's answer of one of these kinds.

        Args: links: where not all nodes are asked. seconds: where an answer may take longer than
            one step.
        """
        patience = self.seconds + ANSWER_SECONDS if seconds is None else seconds
        asked_links = self.links if links is None else links
        told = encoded(message)
        self.tell(step, 0, len(asked_links))
        found: dict[str, Expected] = {}

        async def ask(link: NodeLink | ShufflerLink) -> None:
            if isinstance(link, ShufflerLink):
                if beside is not None:
                    await beside(link)
                return
            asked = self._elapsed(self.started)
            answer = await link.ask(step, told, kinds, patience)
            self.moments.append(Moment(step, link.node.name, asked, self._elapsed(self.started)))
            found[link.node.name] = answer
            failpoint(f"answered-{step}")
            self.tell(step, len(found), len(asked_links))

        parties: Sequence[NodeLink | ShufflerLink] = asked_links
        if beside is not None:
            parties = [*asked_links, *self.shufflers]
        await each(parties, step, ask)
        return [found[link.node.name] for link in asked_links]

    @staticmethod
    def _elapsed(since: float) -> float:
        return time.perf_counter() - since
