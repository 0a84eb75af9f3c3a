"""umpc.dealer.server: what it does once for all nodes that ask."""

from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace

import pytest

from tests.support.studies import KENDALL, make_members, make_study
from umpc.dealer import server
from umpc.errors import RemoteProtocolError
from umpc.proto import codec
from umpc.proto.v1 import umpc_pb2 as pb

STUDY = make_study(KENDALL, 3)
MEMBERS, OPENINGS = make_members(STUDY, [4, 5, 6], "members", None)


@pytest.fixture
def derived(monkeypatch) -> list:
    """One entry for every attempt that was derived."""
    calls, derive = [], server.attempt_of

    def counting(study, members, openings):
        calls.append(openings)
        return derive(study, members, openings)

    monkeypatch.setattr(server, "attempt_of", counting)
    return calls


def request(openings=OPENINGS) -> pb.DealRequest:
    members = [codec.encode_member(member) for member in MEMBERS]
    return pb.DealRequest(study=STUDY.encode(), members=members, openings=list(openings))


def dealer() -> server.DealerServer:
    return server.DealerServer(SimpleNamespace(name=STUDY.dealer.name), lambda error: None)


def test_an_attempt_is_derived_once_for_all_its_nodes_and_forgotten_with_them(derived):
    async def scenario() -> None:
        here = dealer()
        attempts = list(await asyncio.gather(*(here._derived(request()) for _ in MEMBERS)))
        attempts.append(await here._derived(request()))
        assert all(attempt is attempts[0] for attempt in attempts) and len(derived) == 1
        attempts.clear()
        async with asyncio.timeout(10):
            while here._attempts or here._deriving:  # the thread that derived it lets go of it last
                gc.collect()
                await asyncio.sleep(0.01)
        await here._derived(request())
        assert len(derived) == 2

    asyncio.run(scenario())


def test_other_openings_are_another_attempt_and_wrong_ones_are_refused_to_each(derived):
    async def scenario() -> None:
        here, swapped = dealer(), [OPENINGS[1], OPENINGS[0], *OPENINGS[2:]]
        good, *refused = await asyncio.gather(
            *(here._derived(request(openings)) for openings in (OPENINGS, swapped, swapped)),
            return_exceptions=True,
        )
        assert good.members == tuple(MEMBERS) and len(derived) == 2
        for error in refused:
            assert isinstance(error, RemoteProtocolError) and error.culprit == MEMBERS[0].name
        with pytest.raises(RemoteProtocolError):
            await here._derived(request(swapped))

    asyncio.run(scenario())


def test_its_memory_does_not_grow_with_attempts_that_have_ended(monkeypatch):
    """It remembers the last few, and every one that still runs."""
    monkeypatch.setattr(server, "REMEMBERED", 5)
    here = dealer()
    here._running[b"runs"] = here._dealt[b"runs"] = None
    for number in range(20):
        attempt = SimpleNamespace(id=bytes([number]), study=STUDY)
        here._dealt[attempt.id] = None
        here._ended(attempt, None)
        assert list(here._dealt)[1:] == [bytes([n]) for n in range(number + 1)][-5:]
    assert b"runs" in here._dealt


def test_a_node_that_goes_away_meanwhile_takes_nothing_from_the_others(derived):
    async def scenario() -> None:
        here = dealer()
        first, second = (asyncio.create_task(here._derived(request())) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).members == tuple(MEMBERS) and len(derived) == 1

    asyncio.run(scenario())
