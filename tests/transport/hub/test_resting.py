"""Sessions that rest between two calls: what the next call takes, and what ends them."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from pathlib import Path

import pytest
from cryptography import x509
from transport_echo import CHAT

sys.path.insert(0, str(Path(__file__).parent))
from behind_hub import echo_behind, hub_of, run

from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.hub import resting, routes, serving
from umpc.transport.hub import session as sessions
from umpc.transport.kept import KeptConnections
from umpc.transport.stream import RpcStream, as_received
from umpc.transport.tls import grpc


class Pair:
    """Two members of a hub: b calls a. opened: the handshakes that b began."""

    def __init__(self, hub, caller):
        self.hub, self.caller = hub, caller
        self.kept = KeptConnections()
        self.opened = 0
        self.watch()

    def watch(self) -> None:
        self.hub.relay.mangle = self._count

    def _count(self, envelope):
        self.opened += envelope.kind == pb.HUB_OPEN
        return [envelope]

    async def begun(self) -> RpcStream:
        """Return the stream of a call that has begun."""
        stream = RpcStream("a", "prepare", as_received)
        await stream.connect(self.caller, "node", self.hub.address, kept=self.kept)
        stream.begin(stream.channel.stream_stream(CHAT)())
        return stream

    async def chat(self, *said: bytes, keep: bool = True, writes_on: bool = False) -> int:
        """Hold one conversation, and return the number of handshakes so far."""
        stream = await self.begun()
        for each in said:
            await stream.write(each)
            assert await stream.next("prepare") == each
        if writes_on:  # the echo of this comes when the call is over
            await stream.write(b"late" * 1000)
        await stream.close(keep=keep)
        await self.both_idle(keep)
        return self.opened

    async def both_idle(self, keep: bool) -> None:
        """Wait until both ends know that the call is over."""
        while not all(each.is_idle for each in self.ends()) or bool(self.ends()) != keep:
            await asyncio.sleep(0.01)

    def ends(self):
        links = [link for link in routes._here().values() if link.identity.name in "ab"]
        return [session for link in links for session in link.sessions.values()]


@contextlib.asynccontextmanager
async def pair_of(site):
    async with hub_of(site("relay", "hub")) as hub:
        caller = site("b")
        async with echo_behind(hub, site("a")), echo_behind(hub, caller):
            yield Pair(hub, caller)


def test_the_next_call_takes_the_session_of_one_that_ended_well(site):
    async def scenario():
        async with pair_of(site) as pair:
            assert await pair.chat(b"one", writes_on=True) == 1
            assert await pair.chat(b"two", b"three") == 1
            assert await pair.chat(b"four", keep=False) == 1
            assert await pair.chat(b"five") == 2

    run(scenario())


def test_the_hub_sees_the_same_envelopes_without_the_handshake(site):
    """docs/privacy.md, "Timing": what a call over a resting session shows to the hub."""

    calls: list[list[tuple[str, int, int]]] = []

    async def scenario():
        async with pair_of(site) as pair:
            seen: list[tuple[bool, int, int]] = []

            def note(envelope):
                seen.append((envelope.target.name, envelope.kind, len(envelope.body)))
                return [envelope]

            pair.hub.relay.mangle = note
            for _ in range(3):
                await pair.chat(b"one", b"three")
                calls.append([*seen])
                seen.clear()

    run(scenario())
    first, *rested = calls
    handshake = [each for each in first if each[1] in (pb.HUB_OPEN, pb.HUB_ACCEPT)]
    assert [kind for _, kind, _ in handshake] == [pb.HUB_OPEN, pb.HUB_ACCEPT]
    for again in rested:
        assert again == [each for each in first if each not in handshake]


def test_a_call_that_the_called_side_ended_leaves_its_session_too(site):
    async def scenario():
        async with pair_of(site) as pair:
            for said in (b"one", b"two"):
                stream = await pair.begun()
                await stream.write(said)
                assert await stream.next("prepare") == said
                await stream.finish(5)  # the echo ends when its caller writes no more
                await stream.close(keep=True)
                await pair.both_idle(True)
            assert pair.opened == 1

    run(scenario())


def test_nobody_writes_to_or_reads_from_a_call_that_is_over(site, monkeypatch):
    contexts = []

    class Kept(serving.HubContext):
        def __init__(self, session):
            super().__init__(session)
            contexts.append(self)

    monkeypatch.setattr(serving, "HubContext", Kept)

    async def scenario():
        async with pair_of(site) as pair:
            former = await pair.begun()
            await former.write(b"one")
            assert await former.next("prepare") == b"one"
            await former.close(keep=True)
            await pair.both_idle(True)
            stream = await pair.begun()
            await stream.write(b"new")
            with pytest.raises(grpc.aio.BaseError):
                await contexts[0].write(b"former")
            assert await contexts[0].read() is grpc.aio.EOF
            with pytest.raises(asyncio.InvalidStateError):
                await former._writer.call.write(b"former")
            with pytest.raises(grpc.aio.AioRpcError):
                await former._writer.call.read()
            assert await stream.next("prepare") == b"new"
            assert stream._writer.call._session is former._writer.call._session and pair.opened == 1
            await stream.close()

    run(scenario())


def test_two_calls_at_once_have_two_sessions(site):
    async def scenario():
        async with pair_of(site) as pair:
            await asyncio.gather(pair.chat(b"one"), pair.chat(b"two"))
            await asyncio.gather(pair.chat(b"three"), pair.chat(b"four"))
            assert pair.opened == 2

    run(scenario())


def test_a_resting_session_outlives_the_hub_and_not_its_peer(site):
    async def scenario():
        async with hub_of(site("relay", "hub")) as hub:
            caller, called = site("b"), site("a")
            async with echo_behind(hub, caller):
                async with echo_behind(hub, called):
                    pair = Pair(hub, caller)
                    await pair.chat(b"one")
                    await hub.stop()
                    await hub.start()
                    pair.watch()
                    while not all(each.is_usable for each in pair.ends()):
                        await asyncio.sleep(0.01)
                    assert await pair.chat(b"two") == 1
                async with echo_behind(hub, called):
                    while len(pair.ends()) > 0:
                        await asyncio.sleep(0.01)
                    assert await pair.chat(b"three") == 2

    run(scenario())


@pytest.mark.parametrize("limit", ["KEPT_SECONDS", "KEY_SECONDS"])
def test_a_session_ends_with_its_time(site, monkeypatch, limit):
    async def scenario():
        async with pair_of(site) as pair:
            await pair.chat(b"one")
            monkeypatch.setattr(resting, limit, -1.0)
            if limit == "KEPT_SECONDS":
                while pair.ends():
                    await asyncio.sleep(0.01)
            assert await pair.chat(b"two", keep=False) == 2

    run(scenario())


def test_the_called_side_ends_a_session_that_its_caller_forgot(site, monkeypatch):
    async def scenario():
        async with pair_of(site) as pair:
            await pair.chat(b"one")
            monkeypatch.setattr(sessions, "RESTING_SECONDS", 0.0)
            while pair.ends():  # the caller hears of it
                await asyncio.sleep(0.01)
            assert await pair.chat(b"two") == 2

    run(scenario())


def test_no_more_sessions_rest_than_the_process_has_room_for(site, monkeypatch):
    monkeypatch.setattr(resting, "MOST_RESTING", resting.RestingSessions._in_process)

    async def scenario():
        async with pair_of(site) as pair:
            stream = await pair.begun()
            await stream.write(b"one")
            await stream.next("prepare")
            await stream.close(keep=True)
            while pair.ends():
                await asyncio.sleep(0.01)

    run(scenario())


def test_a_renewed_or_revoked_certificate_ends_resting_sessions(site, authority, tmp_path):
    def renew(name: str) -> None:
        authority.issue(name, "node", tmp_path / "renewed" / name)
        for file in ("key.pem", "cert.pem"):
            shutil.copy(tmp_path / "renewed" / name / file, tmp_path / name / file)

    async def scenario():
        async with pair_of(site) as pair:
            former = x509.load_pem_x509_certificate((tmp_path / "a" / "cert.pem").read_bytes())
            await pair.chat(b"one")
            renew("b")
            assert await pair.chat(b"two") == 2
            renew("a")
            authority.revoke({former.serial_number})
            shutil.copy(authority.list_path, tmp_path / "b" / "crl.pem")
            assert await pair.chat(b"three") == 3

    run(scenario())
