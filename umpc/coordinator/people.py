"""The coordinator in a study of people, before the run: it is opened, and people are counted.

    opened = await open_people(study, keys, identity)     nobody came yet
    ...                                                   people send their boxes
    counted, rows = await count_people(study, identity)   after the closing time
    report = await run_study(counted, identity)           the grid

Where columns lie at different sites, `link_rows` does all of it before the run.

The coordinator passes on lists, and compares what both aggregators signed. Both calls may be
repeated at any time: each step of a process is on its disk before it answers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from umpc.coordinator.links import Tell, each, silent
from umpc.errors import RemoteProtocolError, StudyError
from umpc.people.messages import both_have, check_counted
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.people.terms import (
    check_box_keys,
    messages_of,
    points_of,
    survey_of,
    with_counted,
)
from umpc.protocols.registry import checked
from umpc.study.document import Study, dealer_of
from umpc.study.parts import Participant
from umpc.transport.identity import Identity, verifier_of
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import dealer_stub, node_stub

KEYS_AT_ONCE = 4096
QUIET_SECONDS = 120
"""Seconds without a word of progress until a process counts as hanging."""
MESSAGES_AHEAD = 4


@dataclass(frozen=True)
class BoxKey:
    """An aggregator's key for the boxes of one study. signature: of `opened_statement`."""

    name: str
    key: bytes
    certificate: bytes
    signature: bytes


async def open_people(
    study: Study,
    keys: Callable[[], Iterable[bytes]],
    identity: Identity,
    tell: Tell = silent,
) -> tuple[BoxKey, ...]:
    """Open a study at the dealer, and then at both aggregators, which fetch the dealer's keys.

    Args: keys: the Ed25519 key of each place, anew at each call.
    Returns: the aggregators' box keys, in the study's order. Each one's signature was checked.
    Raises: as a run; ApprovalPending where an administrator has yet to accept the study.
    """
    opened = await _opened(survey_of(checked(study)), keys, identity, tell)
    return tuple(
        BoxKey(node.name, key.box_key, key.certificate, key.signature)
        for node, key in zip(study.nodes, opened, strict=True)
    )


async def _opened(
    survey: Study, keys: Callable[[], Iterable[bytes]], identity: Identity, tell: Tell
) -> list[pb.PeopleOpened]:
    """`open_people`, with box keys as they came."""
    dealer = _Called("dealer", Participant(*dealer_of(survey)), identity, tell)
    nodes = [_Called("node", node, identity, tell) for node in survey.nodes]
    await dealer.open(survey, keys)
    opened = await each(nodes, "open", lambda link: link.open(survey, keys))
    names = " and ".join(node.name for node in survey.nodes)
    check_box_keys(survey, opened, verifier_of(identity), names)
    return opened


async def count_people(
    study: Study, identity: Identity, tell: Tell = silent
) -> tuple[Study, list[bytes]]:
    """Close the study, let both aggregators sign who is counted, and add up their shares.

    Returns: the study that the grid runs, and the rows of (place, receipt) that are counted.
    Raises: MessageRefused before the closing time, and where too few people came; as a run.
    """
    survey = survey_of(checked(study))
    nodes = [_Called("node", node, identity, tell) for node in survey.nodes]
    lists = await each(nodes, "compare", lambda link: link.listed(survey.hash))
    counted = await _signed(survey, nodes, lists, identity)
    return counted, list(both_have(lists[0], lists[1], nodes[1].node.name))


async def link_rows(study: Study, identity: Identity, tell: Tell = silent) -> Study:
    """Let two sites link their rows, sign both lists, and add up their shares.

    Sites that have signed are not asked to link again.

    Returns: the study that the grid runs.
    Raises: StudyError where the sites have not the same rows; as `open_people`.
    """
    survey = survey_of(checked(study))
    nodes = [_Called("node", node, identity, tell) for node in survey.nodes]
    with suppress(StudyError):
        return await _signed(survey, nodes, [[], []], identity)
    opened = await _opened(survey, lambda: (), identity, tell)
    lists = await each(nodes, "compare", lambda link: link.listed(survey.hash, opened))
    return await _signed(survey, nodes, lists, identity)


async def _signed(
    survey: Study, nodes: Sequence[_Called], lists: Sequence[Sequence[bytes]], identity: Identity
) -> Study:
    """Let both sign what follows from these lists, and add up. Returns: the counted study."""
    other = {link.node.name: rows for link, rows in zip(nodes, reversed(lists), strict=True)}
    signed = await each(
        nodes, "compare", lambda link: link.count(survey.hash, other[link.node.name])
    )
    names = " and ".join(node.name for node in survey.nodes)
    if not all(one.statement for one in signed):
        raise StudyError(f"{names} have not both signed their linked rows yet: run the study again")
    certificates = [one.certificate for one in signed]
    points = points_of(survey, certificates, verifier_of(identity), names)
    statement, signatures = signed[0].statement, [one.signature for one in signed]
    if statement != signed[1].statement:
        raise RemoteProtocolError(
            f"{names} have not signed the same list of people: one of them has another list or "
            "other keys of the dealer. There is no result; look into the logs of both",
            step="compare",
        )
    check_counted(messages_of(survey), statement, points, signatures, names)
    both = pb.PeopleSigned(
        hash=survey.hash,
        statement=statement,
        signatures=signatures,
        certificates=certificates,
    )
    await each(nodes, "add up", lambda link: link.add_up(both))
    return with_counted(survey, b"".join((statement, *signatures)).hex())


class _Called:
    """The calls about people to one process; each has a connection of its own."""

    def __init__(self, role: str, node: Participant, identity: Identity, tell: Tell):
        self.role = role
        self.node = node
        self._identity = identity
        self._tell = tell

    async def open(self, study: Study, keys: Callable[[], Iterable[bytes]]) -> pb.PeopleOpened:
        """It opens a study. Args: keys: as of `open_people`."""

        def messages() -> Iterator[pb.PeopleList]:
            yield pb.PeopleList(study=study.encode())
            rest = iter(keys())
            while some := b"".join(islice(rest, KEYS_AT_ONCE)):
                yield pb.PeopleList(keys=some)
            yield pb.PeopleList()

        opened: pb.PeopleOpened = await self._ended("open", "OpenPeople", messages=messages())
        return opened

    async def listed(self, study: bytes, opened: Sequence[pb.PeopleOpened] = ()) -> list[bytes]:
        """Its rows, in parts. Args: opened: of both sites, whose rows are linked."""
        request = pb.PeopleStudy(hash=study, opened=opened)
        async with self._called("compare", "ListPeople", request) as stream:
            rows = []
            while part := (await stream.next("compare", QUIET_SECONDS)).data:
                rows.append(part)
            return rows

    async def count(self, study: bytes, theirs: Sequence[bytes]) -> pb.PeopleCounted:
        """Let it sign the rows that the other aggregator has, too."""
        parts = (pb.PeoplePart(data=part) for part in (*theirs, b""))
        messages = chain((pb.PeoplePart(hash=study),), parts)
        counted: pb.PeopleCounted = await self._ended("compare", "CountPeople", messages=messages)
        return counted

    async def add_up(self, signed: pb.PeopleSigned) -> None:
        """It adds up its share of the table."""
        await self._ended("add up", "SumPeople", signed)

    @asynccontextmanager
    async def _called(
        self, step: str, method: str, *request: Any, messages: Iterable[Any] = ()
    ) -> AsyncIterator[RpcStream[Any, Any]]:
        """A call that has its request, or all of its messages."""
        stream: RpcStream[Any, Any] = RpcStream(
            self.node.name, step, as_received, ahead=MESSAGES_AHEAD
        )
        try:
            await stream.connect(self._identity, self.role, self.node.address)
            stub = (dealer_stub if self.role == "dealer" else node_stub)(stream.channel)
            stream.begin(getattr(stub, method)(*request))
            for each in messages:
                await stream.write(each)
            yield stream
        finally:
            await stream.close()

    async def _ended(
        self, step: str, method: str, *request: Any, messages: Iterable[Any] = ()
    ) -> Any:
        """The answer that ends a call, after its words of progress."""
        async with self._called(step, method, *request, messages=messages) as stream:
            while True:
                said: pb.PeopleOpening = await stream.next(step, QUIET_SECONDS)
                kind = said.WhichOneof("body")
                if kind != "progress":
                    return getattr(said, kind or "opened")
                told = said.progress
                label = f"{codec.one_line(told.step)} {self.node.name}"
                self._tell(label, min(told.done, told.total), told.total)
