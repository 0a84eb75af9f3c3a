"""Calls through a hub: they do what gRPC's do, and outlive a hub that is started again."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from pathlib import Path

import pytest
from cryptography import x509
from transport_echo import CALL, CHAT, DEALERS_ONLY, NOT_LISTED, WATCH

sys.path.insert(0, str(Path(__file__).parent))
from behind_hub import Hub, echo_behind, hub_of, run

from tests.support.studies import make_study
from umpc.cli.doctor import NamedPeer, check_network
from umpc.coordinator.links import Losses
from umpc.errors import (
    CertificateError,
    PeerLost,
    PeerUnavailable,
    UmpcError,
)
from umpc.hub import server
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.addresses import parse_hub
from umpc.transport.connections import MAX_MESSAGE
from umpc.transport.hub import connection, numbering, routes, session
from umpc.transport.hub.connection import ask_status
from umpc.transport.stream import RpcStream, as_received, connect
from umpc.transport.tls import grpc


def test_a_call_has_its_reply_its_status_and_its_caller(site):
    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")) as echo:
            channel = await connect(site("b"), "a", "node", hub.address, 5)
            assert await channel.unary_unary(CALL)(b"hi", timeout=5) == b"b.node hi"
            watch = channel.unary_stream(WATCH)(b"once")
            assert await watch.read() == b"once" and await watch.read() is grpc.aio.EOF
            for method, words in ((DEALERS_ONLY, "does not let node 'b'"), (NOT_LISTED, "let")):
                with pytest.raises(grpc.aio.AioRpcError, match=words) as caught:
                    await channel.unary_unary(method)(b"", timeout=5)
                assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            assert echo.ran == ["call", "watch"]
            await channel.close()
            assert [key[:2] for key in hub.relay.seats] == [("node", "a")], "b said farewell"
            reply = await ask_status(site("b"), parse_hub(hub.address), 5)
            assert ("node", "a", True) in [(s.role, s.name, s.listens) for s in reply.seats]

    run(scenario())


def test_a_caller_knows_the_certificate_that_its_peer_showed(site):
    """Evidence of a lie takes the dealer's."""

    async def scenario():
        own = site("a")
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, own):
            stream = RpcStream("a", "connect", as_received)
            await stream.connect(site("b"), "node", hub.address)
            assert stream.certificate == own.pair[0]
            await stream.close()

    run(scenario())


def test_a_stream_carries_messages_of_every_size_both_ways_and_ends(site):
    sizes = (0, 1, numbering.PART_BYTES, numbering.PART_BYTES + 1, MAX_MESSAGE, 7)

    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")) as echo:
            channel = await connect(site("b"), "a", "node", hub.address, 5)
            chat = channel.stream_stream(CHAT)()
            for size in sizes:
                await chat.write(bytes(size))
            for size in sizes:
                assert len(await chat.read()) == size
            await chat.done_writing()
            assert await chat.read() is grpc.aio.EOF and chat.done()
            again = channel.stream_stream(CHAT)()
            await again.write(b"x")
            assert await again.read() == b"x"
            echo.ended.clear()
            again.cancel()
            await echo.ended.wait()
            await channel.close()

    run(scenario())


def test_who_is_not_there_or_is_another_is_named(site, limit):
    limit(connection, DIAL_SECONDS=0.5)

    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")):
            with pytest.raises(PeerUnavailable, match="node 'c' is not connected"):
                await connect(site("b"), "c", "node", hub.address, 0.3)
            with pytest.raises(CertificateError, match=r"is relay\.hub\.umpc"):
                await connect(site("d"), "a", "node", hub.address.replace("relay", "other"), 5)
            await hub.stop()
            with pytest.raises(PeerUnavailable, match="hub 'relay'"):
                await connect(site("e"), "a", "node", hub.address, 0.3)

    run(scenario())


def test_who_is_there_and_slow_is_waited_for(site, limit):
    limit(session, OPEN_SECONDS=1.0)

    async def scenario():
        answers = []

        def slow(envelope):
            answers.append(envelope.kind == pb.HUB_ACCEPT)
            return [] if answers == [False, True] else [envelope]

        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("c")):
            hub.relay.mangle = slow
            channel = await connect(site("b"), "c", "node", hub.address, 0.01)
            assert sum(answers) == 2, "the first answer was lost, and nobody was blamed"
            await channel.close()

    run(scenario())


LONG = 3600.0
"""Seconds that a caller would wait: a test that does not end at once fails by its own limit."""


def test_a_wait_ends_at_once_for_who_never_came_and_for_who_has_left(site):
    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("b")):
            hub.is_young = True
            for _ in range(2):
                async with echo_behind(hub, site("a"), farewell=5):
                    await (await connect(site("b"), "a", "node", hub.address, LONG)).close()
                with pytest.raises(PeerUnavailable, match="node 'a' is not connected") as caught:
                    await connect(site("b"), "a", "node", hub.address, LONG)
                assert caught.value.culprit == "a"
            hub.is_young = False
            for name in ("a", "c"):
                with pytest.raises(PeerUnavailable, match=f"node '{name}' is not connected"):
                    await connect(site("b"), name, "node", hub.address, LONG)

    run(scenario())


def test_a_wait_ends_as_soon_as_the_hub_expects_the_peer_no_longer(site):
    """A young hub expects everybody; and each process for the grace time after a break."""

    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("b")):
            hub.is_young = True
            opened = watched(hub)
            waiting = asyncio.create_task(connect(site("b"), "a", "node", hub.address, LONG))
            await opened(2)
            assert not waiting.done(), "it is asked for again"
            hub.is_young = False
            with pytest.raises(PeerUnavailable, match="node 'a' is not connected"):
                await waiting

    run(scenario())


def watched(hub):
    """Return a coroutine that waits until so many openings came to a hub."""
    came = asyncio.Event()
    count = 0

    def counted(envelope):
        nonlocal count
        count += envelope.kind == pb.HUB_OPEN
        came.set()
        return [envelope]

    async def until(number):
        while count < number:
            came.clear()
            await came.wait()

    hub.relay.mangle = counted
    return until


@pytest.mark.parametrize(("grace", "is_young"), [(0, False), (30, True)])
def test_a_hub_is_young_for_its_grace_time(site, grace, is_young):
    assert server.HubServer(site("relay", "hub"), grace).is_young() is is_young


def test_a_process_whose_connection_broke_is_waited_for_within_the_grace(site, limit):
    # it comes back later than a caller waits at most
    limit(connection, FIRST_PAUSE=1.0)
    limit(connection, TICK_SECONDS=0.01)

    async def scenario():
        hub = Hub(site("relay", "hub"))
        await hub.start()
        async with echo_behind(hub, site("a")):
            (link_a,) = routes.links_here().values()
            await link_a.connection.joined(5)
            link_a.connection.silent = 100.0  # the hub said nothing for so long: it dials again
            while hub.relay.seats:
                await asyncio.sleep(0.01)
            channel = await connect(site("b"), "a", "node", hub.address, 0.05)
            await channel.close()
            limit(connection, FIRST_PAUSE=600.0)  # it does not come back now
            (seat,) = [each for each in hub.relay.seats.values() if each.key[1] == "a"]
            while seat.key in hub.relay.seats:
                link_a.connection.silent = 100.0
                await asyncio.sleep(0.01)
            hub.relay.expire(seat)
            with pytest.raises(PeerUnavailable, match="node 'a' is not connected"):
                await connect(site("b"), "a", "node", hub.address, 0.05)
        await hub.stop()

    run(scenario())


def test_after_a_start_of_the_hub_nobody_counts_as_absent_yet(site):
    async def scenario():
        hub = Hub(site("relay", "hub"))
        await hub.start()
        async with echo_behind(hub, site("b")):
            (link_b,) = routes.links_here().values()
            await hub.stop()
            while link_b.is_up:
                await asyncio.sleep(0.01)
            await hub.start()
            await link_b.connection.joined(10)
            opened = watched(hub)
            dialling = asyncio.create_task(connect(site("b"), "a", "node", hub.address, 0.05))
            await opened(3)
            assert not dialling.done(), "it may come back within the grace time"
            async with echo_behind(hub, site("a")):
                await (await dialling).close()
        await hub.stop()

    run(scenario())


def test_an_opening_waits_for_the_hub_for_its_grace_time(site):
    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("b")):
            hub.is_young = True
            (link_b,) = routes.links_here().values()
            opened = watched(hub)
            dialling = asyncio.create_task(connect(site("b"), "a", "node", hub.address, LONG))
            await opened(1)
            await hub.stop()
            while link_b.is_up:
                await asyncio.sleep(0.01)
            assert not dialling.done(), "the hub has its grace time"
            link_b.connection.down = hub.grace + 1.0
            with pytest.raises(UmpcError, match="relay") as caught:
                await dialling
            assert caught.value.culprit == "relay"
            await hub.start()

    run(scenario())


def test_a_member_that_breaks_the_form_is_told_and_loses_its_connection(site):
    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("b")):
            (link_b,) = routes.links_here().values()
            target = pb.HubMember(role="node", name="a")
            link_b.refuse(pb.HubEnvelope(target=target, session=b"short"))
            while link_b.is_up:
                await asyncio.sleep(0.01)
            assert "b sent an envelope of a wrong form" in link_b.connection.why.message
            await link_b.connection.joined(30)
            for _ in range(connection.MOST_CONTROL + 9):
                link_b.refuse(pb.HubEnvelope(target=target, session=bytes(16)))
            assert len(link_b.connection.waiting) <= connection.MOST_CONTROL

    run(scenario())


def test_a_member_whose_certificate_is_revoked_loses_its_connection_and_nobody_else(
    site, authority, tmp_path, limit
):
    limit(server, PULSE_SECONDS=0.05)
    limit(server, SILENT_SECONDS=1e9)

    async def scenario():
        relay, a, b, c = site("relay", "hub"), site("a"), site("b"), site("c")
        async with hub_of(relay, grace=1) as hub, echo_behind(hub, a), echo_behind(hub, c):
            links = {link.identity.name: link for link in routes.links_here().values()}
            stream = RpcStream("a", "prepare", as_received)
            await stream.connect(b, "node", hub.address)
            stream.begin(stream.channel.stream_stream(CHAT)())
            await stream.write(b"x")
            assert await stream.next("prepare") == b"x"
            authority.revoke({x509.load_pem_x509_certificate(a.cert_pem).serial_number})
            shutil.copy(authority.list_path, tmp_path / "relay" / "crl.pem")
            with pytest.raises(PeerLost, match="a went away") as caught:
                await stream.next("open")
            assert caught.value.culprit == "a"
            while not isinstance(links["a"].connection.why, CertificateError):
                await asyncio.sleep(0.01)
            assert "the certificate of node 'a' was revoked" in links["a"].connection.why.message
            channel = await connect(b, "c", "node", hub.address, 5)
            assert await channel.unary_unary(CALL)(b"hi", timeout=5) == b"b.node hi"
            with pytest.raises(PeerUnavailable, match="node 'a' is not connected"):
                await connect(b, "a", "node", hub.address, LONG)
            await channel.close()
            await stream.close()

    run(scenario())


def test_a_hub_that_says_everybody_left_gets_no_more_losses_than_the_study_allows(site):
    """It can leave out may_miss nodes of its choice, as a coordinator can, and no further one."""
    losses = Losses(make_study(nodes=4, may_miss=1))
    shown: list[UmpcError] = []

    async def lost(hub, caller, name: str) -> UmpcError:
        stream = RpcStream(name, "evaluate", as_received)
        await stream.connect(caller, "node", hub.address)
        stream.begin(stream.channel.stream_stream(CHAT)())
        await stream.write(b"x")
        assert await stream.next("evaluate") == b"x"
        (seat,) = [each for each in hub.relay.seats.values() if each.key[1] == name]
        hub.relay.leave(seat, for_good=True)  # a lie: its process is still connected
        await stream.write(b"y")
        with pytest.raises(PeerLost) as caught:
            await stream.next("evaluate")
        await stream.close()
        return caught.value

    async def scenario():
        nodes = [site(f"node-{number}") for number in range(2)]
        caller = site("coordinator", "coordinator")
        async with hub_of(site("relay", "hub")) as hub, contextlib.AsyncExitStack() as running:
            for node in nodes:
                await running.enter_async_context(echo_behind(hub, node))
            shown.extend([await lost(hub, caller, node.name) for node in nodes])

    run(scenario())
    assert [error.culprit for error in shown] == ["node-0", "node-1"]
    assert losses.after(shown[0]).names_missing == ("node-0",)
    with pytest.raises(PeerLost, match="without at most 1 of its nodes"):
        losses.after(shown[1])


def test_a_writer_waits_for_a_slow_reader(site):
    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")):
            channel = await connect(site("b"), "a", "node", hub.address, 5)
            chat = channel.stream_stream(CHAT)()
            written = 0

            async def write():
                nonlocal written
                for _ in range(30):
                    await chat.write(bytes(numbering.PART_BYTES))
                    written += 1

            writing = asyncio.create_task(write())
            await chat.read()
            await asyncio.wait({writing}, timeout=0.3)
            assert written * numbering.PART_BYTES <= 2 * numbering.WINDOW + 4 * numbering.PART_BYTES
            for _ in range(29):
                await chat.read()
            await writing
            await channel.close()

    run(scenario())


def test_a_write_that_is_cancelled_within_its_message_cancels_the_call_as_in_grpc(site):
    """The next message would be taken for the rest of it."""

    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")) as echo:
            channel = await connect(site("b"), "a", "node", hub.address, 5)
            chat = channel.stream_stream(CHAT)()

            async def write():
                while True:
                    await chat.write(bytes(3 * numbering.PART_BYTES))

            writing = asyncio.create_task(write())
            await asyncio.wait({writing}, timeout=0.5)
            writing.cancel()
            await asyncio.wait({writing})
            assert chat.done()
            with pytest.raises(asyncio.InvalidStateError):
                await chat.write(b"next")
            await echo.ended.wait()
            await channel.close()

    run(scenario())


def test_a_hub_that_is_started_again_costs_no_message(site):
    async def scenario():
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")):
            channel = await connect(site("b"), "a", "node", hub.address, 5)
            chat = channel.stream_stream(CHAT)()

            async def write():
                for i in range(400):
                    await chat.write(i.to_bytes(4, "big") * 500)

            writing = asyncio.create_task(write())
            for i in range(400):
                if i in (30, 200):
                    await hub.stop()
                    await hub.start()
                assert await chat.read() == i.to_bytes(4, "big") * 500
            await writing
            await channel.close()

    run(scenario())


def test_a_peer_or_a_hub_that_stays_away_is_lost_after_the_grace(site):
    async def scenario():
        async with hub_of(site("relay", "hub"), grace=1) as hub:
            async with echo_behind(hub, site("a")):
                stream = RpcStream("a", "prepare", as_received)
                await stream.connect(site("b"), "node", hub.address)
                stream.begin(stream.channel.stream_stream(CHAT)())
                await stream.write(b"x")
                assert await stream.next("prepare") == b"x"
                await hub.stop()
                with pytest.raises(PeerLost, match=r"did not come back within \d+ s") as caught:
                    await stream.next("open")
                assert caught.value.culprit == "relay"
                await hub.start()
                stream = RpcStream("a", "prepare", as_received)
                await stream.connect(site("b"), "node", hub.address)
                stream.begin(stream.channel.stream_stream(CHAT)())
                await stream.write(b"x")
                await stream.next("prepare")
            with pytest.raises(PeerLost, match="a went away") as caught:
                await stream.next("open")
            assert caught.value.culprit == "a"

    run(scenario())


def test_the_doctor_checks_the_hub_and_a_peer_behind_it(site):
    async def scenario():
        own = site("b")
        async with hub_of(site("relay", "hub")) as hub, echo_behind(hub, site("a")):
            peers = [NamedPeer("node", "a", hub.address)]
            found = await check_network(parse_hub(hub.address), own, peers)
            assert "this node is not connected" in str(found[0]) and found[0].error is None
            assert [each.check for each in found[:3]] == ["hub", "hub status", "peer"]
            assert "does not let node 'b' call" in str(found[2].error)  # an echo greets nobody
            found = await check_network(parse_hub(hub.address), site("a2"), ())
            assert found[0].error is None
        found = await check_network(parse_hub(hub.address), own, ())
        assert isinstance(found[0].error, PeerUnavailable)

    run(scenario())
