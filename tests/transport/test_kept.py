"""umpc.transport.kept over loopback with TLS: when a connection serves a second run."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass

import pytest
from cryptography import x509

from tests.transport.talk import TALK, Bytes, serving
from umpc.errors import PeerUnavailable
from umpc.transport import kept as kept_module
from umpc.transport.authority import load_identity
from umpc.transport.heartbeat import answers_beat
from umpc.transport.kept import KEPT_AT_MOST, KEPT_SECONDS, LOOK_AFTER, KeptConnections
from umpc.transport.stream import RpcStream, as_received


@dataclass
class Clock:
    """Seconds that a test lets pass."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


async def say_connection(context) -> None:
    """Send the name of the connection, which is the caller's port, and wait for the end."""
    await context.write(context.peer().encode())
    await asyncio.Event().wait()


async def opened(identity, address: str, kept: KeptConnections | None) -> tuple[Bytes, bytes]:
    """A stream to the server `north`, and the name of its connection."""
    stream: Bytes = RpcStream("north", "connect", as_received)
    await stream.connect(identity, "node", address, kept=kept)
    stream.begin(stream.channel.stream_stream(TALK)())
    return stream, await stream.next("talk", 30)


async def used(identity, address: str, kept: KeptConnections | None, *, keep: bool = True) -> bytes:
    """Run one stream to its end. Returns: the name of its connection."""
    stream, name = await opened(identity, address, kept)
    await stream.close(keep=keep)
    return name


def run(scenario, identity, handler=say_connection) -> None:
    async def main() -> None:
        async with asyncio.timeout(60), serving(identity, handler) as (address, server):
            await scenario(address, server)

    asyncio.run(main())


def test_only_a_run_that_ended_well_gives_its_connection_to_the_next_one(identity):
    async def scenario(address, server) -> None:
        kept = KeptConnections()
        first = await used(identity, address, kept)
        assert await used(identity, address, kept) == first and len(kept) == 1
        assert await used(identity, address, kept, keep=False) == first and len(kept) == 0
        second = await used(identity, address, kept)
        assert second != first
        # A place of its own: without one, or in another one, a run has a connection of its own.
        assert await used(identity, address, None) != second
        assert await used(identity, address, KeptConnections()) != second

        stream, name = await opened(identity, address, kept)
        assert name == second
        stream.violation("did what it must not")
        await stream.close(keep=True)
        assert len(kept) == 0
        await kept.close()

    run(scenario, identity)


def test_two_runs_at_once_have_two_connections_and_few_are_kept(identity, monkeypatch):
    monkeypatch.setattr(kept_module, "KEPT_AT_MOST", 2)

    async def scenario(address, server) -> None:
        kept = KeptConnections()
        streams = [await opened(identity, address, kept) for _ in range(3)]
        assert len({name for _, name in streams}) == 3
        for stream, _ in streams:
            await stream.close(keep=True)
        assert len(kept) == 2 < KEPT_AT_MOST
        assert await used(identity, address, kept) == streams[-1][1]
        await kept.close()
        assert len(kept) == 0

    run(scenario, identity)


def test_a_connection_ends_with_its_time_and_with_a_peer_that_does_not_answer(
    identity, monkeypatch
):
    async def never(channel, seconds) -> bool:
        return False

    async def scenario(address, server) -> None:
        clock = Clock()
        kept = KeptConnections(clock)
        first = await used(identity, address, kept)
        clock.now += LOOK_AFTER + 1
        assert await used(identity, address, kept) == first  # it answered a beat

        monkeypatch.setattr(kept_module, "answers_beat", never)
        assert await used(identity, address, kept) == first  # it was used a moment before
        clock.now += LOOK_AFTER + 1
        second = await used(identity, address, kept)
        assert second != first
        clock.now += KEPT_SECONDS + 1
        assert await used(identity, address, kept) != second
        await kept.close()

    run(scenario, identity)


def test_a_server_that_has_ended_is_called_anew_and_then_not_found(identity):
    """The error is that of a new connection: no run has begun with the server that is gone."""

    async def scenario(address, server) -> None:
        kept = KeptConnections()
        await used(identity, address, kept)
        await server.stop(0)
        while kept_module._is_ready(kept._unused[0].lease):
            await asyncio.sleep(0)  # until the kernel has told
        with pytest.raises(PeerUnavailable):
            await kept.take(identity, "north", "node", address, 0.2, 0.2)

    run(scenario, identity)


def test_a_renewed_or_revoked_certificate_ends_kept_connections(site, authority, tmp_path):
    server, client = site("north"), site("b")

    async def scenario(address, _) -> None:
        kept = KeptConnections()
        first = await used(client, address, kept)
        authority.issue("b", "node", tmp_path / "renewed")
        for name in ("key.pem", "cert.pem"):
            shutil.copy(tmp_path / "renewed" / name, tmp_path / "b" / name)
        second = await used(client, address, kept)
        assert second != first and await used(client, address, kept) == second

        # The server gets a new certificate, and the former one is revoked.
        former = x509.load_pem_x509_certificate(server.cert_pem).serial_number
        authority.issue("north", "node", tmp_path / "again")
        for name in ("key.pem", "cert.pem"):
            shutil.copy(tmp_path / "again" / name, tmp_path / "north" / name)
        assert load_identity(tmp_path / "north").cert_pem != server.cert_pem
        authority.revoke({former})
        shutil.copy(authority.list_path, tmp_path / "b" / "crl.pem")
        assert await used(client, address, kept) != second
        await kept.close()

    run(scenario, server)


def test_the_end_of_the_event_loop_closes_what_is_kept(identity):
    left = []

    async def scenario(address, server) -> None:
        kept = KeptConnections()
        await used(identity, address, kept)
        assert len(kept) == 1
        left.append(kept)

    run(scenario, identity)
    assert len(left[0]) == 0


def test_a_beat_is_answered_by_a_server_and_not_by_a_closed_one(identity):
    async def scenario(address, server) -> None:
        kept = KeptConnections()
        lease = await kept.take(identity, "north", "node", address, 30, 30)
        assert await answers_beat(lease.connection.channel, 30)
        await server.stop(0)
        assert not await answers_beat(lease.connection.channel, 30)
        await kept.give_back(lease, keep=False)

    run(scenario, identity)
