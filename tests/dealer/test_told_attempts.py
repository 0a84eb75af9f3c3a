"""A dealer that is asked by the attempt's id checks what one node tells, and deals for no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.dealer.test_server import Caller, Refused, by_name, dealer
from tests.support.signed import signed, signed_members
from tests.support.studies import KENDALL, make_members, make_study
from umpc.dealer import server, told_requests
from umpc.proto import frame_codec, member_codec
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.study.statements import attempt_id

STUDY = make_study(KENDALL, 3, noise="distributed", members_checked=1)
MEMBERS, OPENINGS = make_members(STUDY, [4, 5, 6], "told")
FORMER, FORMER_OPENINGS = make_members(STUDY, [4, 5, 6], "a former run, ended after agree")
NAMES = [node.name for node in STUDY.nodes]
__all__ = ["by_name"]  # a fixture


def id_of(members, openings) -> bytes:
    return attempt_id(STUDY, members, openings)


def body_of(members, openings, signatures=None) -> bytes:
    signatures = signatures or signed_members(STUDY, members)
    whole = member_codec.deal_request(STUDY.encode(), members, openings, signatures)
    return whole.SerializeToString()


ATTEMPT = id_of(MEMBERS, OPENINGS)
GOOD = pb.DealPiece(attempt=ATTEMPT, piece=body_of(MEMBERS, OPENINGS))
ASKED = pb.DealRequest(attempt=ATTEMPT)


async def call(
    here: server.DealerServer, name: str, request: pb.DealRequest, tells: pb.DealPiece = GOOD
) -> int:
    """A node that asks, tells if it is asked, and counts the frames of its material."""
    frames = 0
    async for frame in here.Deal(request, Caller(name)):
        if frame.ByteSize():
            frames += len(frame_codec.decode_frames(frame))
            continue

        await tell(here, name, tells)
    return frames


async def tell(here: server.DealerServer, name: str, piece: pb.DealPiece) -> None:
    async def pieces() -> AsyncIterator[pb.DealPiece]:
        yield piece

    async for _ in here.Tell(pieces(), Caller(name)):
        pass


@pytest.mark.usefixtures("by_name")
def test_one_node_tells_and_all_get_the_material_of_an_attempt_derived_once(monkeypatch):
    calls, derive = [], server.attempt_of

    def counting(*facts):
        calls.append(facts)
        return derive(*facts)

    monkeypatch.setattr(server, "attempt_of", counting)

    async def scenario() -> list[int]:
        here = dealer()
        async with asyncio.timeout(60):
            return await asyncio.gather(*(call(here, name, ASKED) for name in NAMES))

    assert min(asyncio.run(scenario())) > 1 and len(calls) == 1


def _lies() -> dict[str, bytes]:
    key = [*MEMBERS[:2], signed(STUDY, MEMBERS[2], public_key=bytes(32))]
    made_up = [*MEMBERS[:2], replace(MEMBERS[2], signature=bytes(64))]
    signatures = signed_members(STUDY, MEMBERS)
    return {
        "a former run": body_of(FORMER, FORMER_OPENINGS),
        "another key, which its node signed": body_of(key, OPENINGS),
        "a member that nobody signed": body_of(made_up, OPENINGS),
        "a signature that is none": body_of(MEMBERS, OPENINGS, [*signatures[:2], bytes(64)]),
        "an opening that does not fit": body_of(MEMBERS, [*OPENINGS[:2], bytes(32)]),
        "an opening too few": body_of(MEMBERS, OPENINGS[:2]),
        "bytes that are none": b"\xff" * 40,
        "nothing": b"",
    }


LIES = _lies()


@pytest.mark.usefixtures("by_name")
@pytest.mark.parametrize("lie", LIES)
def test_a_node_that_tells_another_attempt_is_refused_and_the_next_one_is_asked(lie, monkeypatch):
    """The next one is asked at once: nobody waits TELL_SECONDS for a liar."""
    monkeypatch.setattr(told_requests, "TELL_SECONDS", 3600)

    async def scenario() -> None:
        here = dealer()
        async with asyncio.timeout(60):
            wrong = pb.DealPiece(attempt=ATTEMPT, piece=LIES[lie])
            liar = asyncio.create_task(call(here, NAMES[1], ASKED, wrong))
            await asyncio.sleep(0)
            honest = [asyncio.create_task(call(here, name, ASKED)) for name in NAMES[::2]]
            with pytest.raises(Refused) as refused:
                await liar
            assert refused.value.blame["umpc-culprit"] == NAMES[1]
            with pytest.raises(Refused, match="not asked for"):  # it is not heard again
                await tell(here, NAMES[1], wrong)
            again = asyncio.create_task(call(here, NAMES[1], ASKED))
            assert min(await asyncio.gather(again, *honest)) > 1

    asyncio.run(scenario())


@pytest.mark.usefixtures("by_name")
def test_a_liar_cannot_have_another_attempt_dealt_under_an_id():
    """It names the attempt that it tells, and beside it, as a digest, the one of the others."""

    async def scenario() -> None:
        here = dealer()
        former = id_of(FORMER, FORMER_OPENINGS)
        both = pb.DealRequest(digest=ATTEMPT, attempt=former)
        with pytest.raises(Refused) as refused:
            await call(here, NAMES[1], both)
        assert refused.value.blame["umpc-culprit"] == NAMES[1]
        piece = pb.DealPiece(digest=ATTEMPT, attempt=former, piece=b"x")
        async with asyncio.timeout(60):
            with pytest.raises(Refused) as refused:
                await call(here, NAMES[1], ASKED, piece)
        assert refused.value.blame["umpc-culprit"] == NAMES[1]

    asyncio.run(scenario())


@pytest.mark.usefixtures("by_name")
def test_who_asks_for_the_id_as_if_it_were_a_digest_disturbs_nobody():
    async def scenario() -> None:
        here = dealer()
        async with asyncio.timeout(60):
            silent = here.Deal(pb.DealRequest(digest=ATTEMPT), Caller("outsider"))
            await anext(silent)
            found = await asyncio.gather(*(call(here, name, ASKED) for name in NAMES))
            assert min(found) > 1
            await silent.aclose()

    asyncio.run(scenario())


@pytest.mark.usefixtures("by_name")
def test_a_study_with_lists_is_not_asked_for_by_an_id():
    study = STUDY.replaced(members_checked=0)
    members, openings = make_members(study, [4, 5, 6], "listed")
    name = attempt_id(study, members, openings)
    signatures = signed_members(study, members)
    body = member_codec.deal_request(study.encode(), members, openings, signatures)
    piece = pb.DealPiece(attempt=name, piece=body.SerializeToString())

    async def scenario() -> None:
        with pytest.raises(Refused):
            await call(dealer(), NAMES[0], pb.DealRequest(attempt=name), piece)

    asyncio.run(scenario())
