"""Members of one host process reach each other without the hub, with the same calls."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from transport_echo import ALLOWED, CALL, CHAT, DEALERS_ONLY, WATCH, Echo

sys.path.insert(0, str(Path(__file__).parent))
from behind_hub import hub_of, run

from umpc.cli import many
from umpc.errors import CertificateError
from umpc.transport.channels import MAX_MESSAGE
from umpc.transport.dialling import connect
from umpc.transport.hub import inside, numbering, serving
from umpc.transport.hub.address import parse_hub
from umpc.transport.hub.serving import ServerBehindHub
from umpc.transport.tls import grpc


@contextlib.asynccontextmanager
async def hosted(hub, *identities, inside=True):
    """Run an echo for each identity in this process. Yields: them, and the kinds relayed."""
    relayed = []

    def note(envelope):
        relayed.append(envelope)
        return [envelope]

    hub.relay.mangle = note
    echoes, servers = [], []
    for identity in identities:
        echo = Echo()
        server = ServerBehindHub(identity, ALLOWED, parse_hub(hub.address), inside=inside)
        server.add_generic_rpc_handlers((echo.handler(),))
        await server.start()
        echoes.append(echo)
        servers.append(server)
    try:
        yield echoes, relayed
    finally:
        for server in servers:
            await server.stop(0)


def test_calls_inside_a_process_do_what_calls_through_the_hub_do(site):
    async def scenario(is_inside):
        async with (
            hub_of(site("relay", "hub")) as hub,
            hosted(hub, site("a"), site("b"), inside=is_inside) as ((echo, _), relayed),
        ):
            channel = await connect(site("b"), "a", "node", hub.address, 5)
            assert await channel.unary_unary(CALL)(b"hi", timeout=5) == b"b.node hi"
            watch = channel.unary_stream(WATCH)(b"once")
            assert await watch.read() == b"once" and await watch.read() is grpc.aio.EOF
            with pytest.raises(grpc.aio.AioRpcError, match="does not let node 'b'") as caught:
                await channel.unary_unary(DEALERS_ONLY)(b"", timeout=5)
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            chat = channel.stream_stream(CHAT)()
            sizes = (0, 1, MAX_MESSAGE, MAX_MESSAGE, MAX_MESSAGE, 7)
            writer = asyncio.create_task(_write_all(chat, sizes))
            assert [len(await chat.read()) for _ in sizes] == list(sizes)
            await writer
            await chat.done_writing()
            assert await chat.read() is grpc.aio.EOF and chat.done()
            again = channel.stream_stream(CHAT)()
            await again.write(b"x")
            assert await again.read() == b"x"
            echo.ended.clear()
            again.cancel()
            await echo.ended.wait()
            await channel.close()
            assert echo.ran == ["call", "watch", "chat", "chat"]
            assert bool(relayed) is not is_inside

    run(scenario(is_inside=True))
    run(scenario(is_inside=False))


async def _write_all(chat, sizes):
    for size in sizes:
        await chat.write(bytes(size))


def test_a_reader_that_stops_holds_its_writer_back(site):
    async def scenario():
        session = await way_inside(site("b"), site("a")).open_session("node", "a")
        other = session._joined
        half = bytes(numbering.WINDOW // 2)
        await session.write(half)
        second = asyncio.create_task(session.write(half))
        await asyncio.sleep(0)
        assert not second.done()
        assert await other.read() == half
        await second
        third = asyncio.create_task(session.write(half))
        await asyncio.sleep(0)
        other.close()
        with pytest.raises(EOFError):
            await third

    run(scenario())


def test_a_certificate_that_does_not_count_is_refused_inside_too(site, other_authority):
    async def scenario():
        own, foreign = site("b"), site("c", signer=other_authority)
        for caller, called, name in ((own, foreign, "c"), (foreign, own, "b"), (own, own, "d")):
            with pytest.raises(CertificateError):
                await way_inside(caller, called).open_session("node", name)

    run(scenario())


def test_a_process_of_many_members_hosts_them(site, monkeypatch):
    class Stop(Exception):
        pass

    def opened(identity, allowed, hub, *, inside):
        raise Stop(hub.name, inside)

    monkeypatch.setattr(serving, "ServerBehindHub", opened)
    place = parse_hub("hub:relay@127.0.0.1:1")
    own = SimpleNamespace(place=place, identity=site("b"))
    with pytest.raises(Stop) as caught:
        asyncio.run(many._serve_all([own], None, False, contextlib.ExitStack()))
    assert caught.value.args == ("relay", True)


def way_inside(caller, called):
    hub = parse_hub("hub:relay@127.0.0.1:1")
    return inside.WayInside(caller, ServerBehindHub(called, ALLOWED, hub, inside=True))
