"""umpc.dealer.server: what it does once for all nodes that ask."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from tests.support.people import closed, people_study, with_terms
from tests.support.signed import signed, signed_members
from tests.support.studies import KENDALL, Entropy, make_members, make_study
from umpc.dealer import server
from umpc.errors import RemoteProtocolError, StudyError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.protocols.people.terms import terms_of
from umpc.protocols.registry import attempt_of
from umpc.simulation import AUTHORITY
from umpc.study.attempt import commit
from umpc.study.sizes import Member
from umpc.testing import lying
from umpc.transport.identity import Identity

STUDY = make_study(KENDALL, 3)
MEMBERS, OPENINGS = make_members(STUDY, [4, 5, 6], "members", None)
SIGNATURES = signed_members(STUDY, MEMBERS)


@pytest.fixture
def derived() -> Iterator[list]:
    """One entry for every attempt that was derived."""
    calls = []

    def counting(honest, study, members, openings):
        calls.append(openings)
        return honest(study, members, openings)

    with lying("process", attempt_of=counting):
        yield calls


def request(openings=OPENINGS) -> pb.DealRequest:
    return codec.deal_request(STUDY.encode(), MEMBERS, openings, SIGNATURES)


def dealer() -> server.DealerServer:
    ends = datetime.max.replace(tzinfo=UTC)
    identity = Identity(STUDY.dealer.name, "dealer", b"", b"", b"", ends)
    return server.DealerServer(identity, lambda error: None, AUTHORITY.verify)


def test_openings_that_do_not_fit_are_refused_to_each_node_that_sends_them(derived):
    async def scenario() -> None:
        here, swapped = dealer(), [OPENINGS[1], OPENINGS[0], *OPENINGS[2:]]
        good, *refused = await asyncio.gather(
            *(
                here.derived(request(openings), "node-2")
                for openings in (OPENINGS, swapped, swapped)
            ),
            return_exceptions=True,
        )
        assert good.members == tuple(MEMBERS) and len(derived) == 1
        for error in refused:
            assert isinstance(error, RemoteProtocolError) and error.culprit == "node-2"
        with pytest.raises(RemoteProtocolError):
            await here.derived(request(swapped), "node-2")

    asyncio.run(scenario())


def test_people_that_not_both_aggregators_signed_get_no_masks(derived):
    """The dealer may be asked with a list of people that a coordinator made up."""
    survey = people_study()
    counted, false = closed(survey, 9), terms_of(closed(survey, 10)).counted
    changed = with_terms(counted, counted=terms_of(counted).counted[:80] + false[80:])

    def asked(study) -> pb.DealRequest:
        members, openings = make_members(study, [9, 9])
        return codec.deal_request(study.encode(), members, openings, signed_members(study, members))

    async def scenario() -> None:
        here = dealer()
        assert (await here.derived(asked(counted), "node-0")).sizes.records == 9
        with pytest.raises(RemoteProtocolError, match="not both aggregators have signed"):
            await here.derived(asked(changed), "node-0")
        with pytest.raises(StudyError, match="is not closed yet"):
            await here.derived(asked(survey), "node-0")
        assert len(derived) == 1

    asyncio.run(scenario())


def test_its_memory_does_not_grow_with_attempts_that_have_ended(limit):
    """It remembers the last few, and every one that still runs."""
    limit(server, REMEMBERED=5)
    here = dealer()
    here.running[b"runs"] = here.dealt[b"runs"] = None
    ended = []
    for number in range(12):
        attempt = attempt_of(STUDY, *make_members(STUDY, [4, 5, 6], f"attempt {number}", None))
        here.dealt[attempt.id] = None
        here.end(attempt, None)
        ended.append(attempt.id)
        assert list(here.dealt)[1:] == ended[-5:]
    assert len(set(ended)) == 12
    assert b"runs" in here.dealt


class Refused(Exception):
    """The end of a call: its class and text, and whom the metadata blame."""

    def __init__(self, text: str, blame: dict[str, str]):
        super().__init__(text)
        self.blame = blame


@dataclass
class Caller:
    """A node's call, without a network."""

    name: str

    async def abort(self, code: object, text: str, blame: Sequence[tuple[str, str]]) -> None:
        raise Refused(text, dict(blame))


@pytest.fixture
def by_name() -> Iterator[None]:
    with lying("process", peer_of=lambda _, context: context):
        yield


def asking(here: server.DealerServer, name: str, request: pb.DealRequest) -> asyncio.Task[int]:
    """A node that asks for its material and counts the frames."""

    async def asked() -> AsyncIterator[pb.DealRequest]:
        for piece in codec.cut(request):
            yield piece

    async def frames() -> int:
        sent = [frame async for frame in here.Deal(asked(), Caller(name))]
        return sum(len(codec.decode_frames(frame)) for frame in sent)

    return asyncio.create_task(frames())


def request_of(members, openings, signatures) -> pb.DealRequest:
    return codec.deal_request(STUDY.encode(), members, openings, signatures)


def other_member(number: int = 1) -> tuple[Member, bytes]:
    """A second member that a node signs, and its opening."""
    opening = Entropy("other")(32)
    name = MEMBERS[number].name
    return signed(STUDY, MEMBERS[number], commitment=commit(STUDY.hash, name, opening)), opening


@pytest.mark.usefixtures("by_name")
def test_a_node_that_asks_with_members_that_not_all_have_signed_ends_the_attempt_by_its_name():
    """node-1 signs two members, and node-2 asks with the second one."""
    second, opening = other_member()
    members = [MEMBERS[0], second, MEMBERS[2]]
    openings = [OPENINGS[0], opening, OPENINGS[2]]
    signatures = [SIGNATURES[0], *signed_members(STUDY, members)[1:]]

    async def scenario() -> None:
        here = dealer()
        async with asyncio.timeout(60):
            waiting = [asking(here, name, request()) for name in ("node-0", "node-1")]
            while not here.running or any(
                next(iter(here.running.values())).waits_for(name) for name in ("node-0", "node-1")
            ):
                await asyncio.sleep(0.01)
            liar = asking(here, "node-2", request_of(members, openings, signatures))
            found = await asyncio.gather(liar, *waiting, return_exceptions=True)
        assert all(isinstance(error, Refused) for error in found)
        assert all(
            error.blame == {"umpc-culprit": "node-2", "umpc-step": "prepare"} for error in found
        )
        assert not here.running

    asyncio.run(scenario())


@pytest.mark.usefixtures("by_name")
@pytest.mark.parametrize(
    "change",
    [{"records": 9}, {"public_key": bytes(32)}, {"certificate": b"x"}, {"signature": bytes(64)}],
)
def test_a_changed_member_blames_the_node_that_asks_with_it(change):
    members = [replace(MEMBERS[0], **change), *MEMBERS[1:]]

    async def scenario() -> None:
        here = dealer()
        with pytest.raises(Refused) as caught:
            await asking(here, "node-1", request_of(members, OPENINGS, SIGNATURES))
        assert caught.value.blame["umpc-culprit"] == "node-1"

    asyncio.run(scenario())


@pytest.mark.usefixtures("by_name")
def test_two_honest_runs_of_one_study_at_the_same_time_are_not_two_stories():
    """All nodes signed both. The second run comes while a node of the first one still waits."""
    again, openings = make_members(STUDY, [4, 5, 6], "again", None)

    async def scenario() -> None:
        here = dealer()
        async with asyncio.timeout(60):
            first = asking(here, "node-0", request())
            await asyncio.sleep(0)
            later = request_of(again, openings, signed_members(STUDY, again))
            counts = await asyncio.gather(*(asking(here, each.name, later) for each in again))
        assert min(counts) > 1 and not first.done()
        first.cancel()

    asyncio.run(scenario())


@pytest.mark.usefixtures("by_name")
def test_an_attempt_that_failed_stays_in_memory_by_its_reason_alone():
    """An error that was raised has a traceback, whose frames have the attempt."""

    async def scenario() -> None:
        here = dealer()
        async with asyncio.timeout(60):
            first, second = (asking(here, name, request()) for name in ("node-0", "node-1"))
            while not here.running or next(iter(here.running.values())).waits_for("node-1"):
                await asyncio.sleep(0.01)
            second.cancel()
            ended = await asyncio.gather(first, second, return_exceptions=True)
            late = await asyncio.gather(asking(here, "node-2", request()), return_exceptions=True)
            for found in (ended[0], *late):
                assert isinstance(found, Refused) and found.blame["umpc-culprit"] == "node-1"
            del first, second, ended, late, found
            while here.attempts_in_use:  # the thread that derived it lets go of it last
                gc.collect()
                await asyncio.sleep(0.01)

    asyncio.run(scenario())


@pytest.mark.usefixtures("by_name")
def test_a_node_that_is_missing_is_named_before_the_others_give_up():
    study = STUDY.replaced(seconds_per_step=1)
    members, openings = make_members(study, [4, 5, 6])
    asked = codec.deal_request(study.encode(), members, openings, signed_members(study, members))

    async def scenario() -> None:
        here = dealer()
        async with asyncio.timeout(30):
            waiting = [asking(here, name, asked) for name in ("node-0", "node-2")]
            found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [error.blame["umpc-culprit"] for error in found] == ["node-1"] * 2

    asyncio.run(scenario())


@pytest.mark.usefixtures("by_name")
@pytest.mark.parametrize("came", [[], [pb.DealRequest(piece=pb.Piece(data=b"a", left=2))]])
def test_a_node_whose_request_ends_early_is_named(came):
    async def asked() -> AsyncIterator[pb.DealRequest]:
        for piece in came:
            yield piece

    async def scenario() -> None:
        with pytest.raises(Refused) as caught:
            await anext(dealer().Deal(asked(), Caller("node-1")))
        assert caught.value.blame["umpc-culprit"] == "node-1"

    asyncio.run(scenario())
