"""The public door: anybody may call it, at a bounded cost, and trusts it by the authority alone."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.support.ports import reserved_address
from umpc.errors import (
    CertificateError,
    EncodingError,
    LedgerError,
    LocalProtocolError,
    MessageRefused,
    PeerUnavailable,
    UmpcError,
)
from umpc.testing import limited
from umpc.transport import people_door
from umpc.transport.addresses import split_address
from umpc.transport.connections import connect
from umpc.transport.identity import nobody
from umpc.transport.people_door import (
    MOST_AT_ONCE,
    MOST_STREAMS,
    Behind,
    Budget,
    Door,
    PublicDoor,
    door,
    network_of,
)
from umpc.transport.tls import grpc

HASH = b"h" * 32


def echoed(study: bytes, boxes) -> list[bytes | MessageRefused]:
    """An aggregator that refuses the boxes of odd places."""
    return [MessageRefused("no") if place % 2 else box for place, box in boxes]


@contextlib.asynccontextmanager
async def opened(identity, most=10**6, **behind) -> AsyncIterator[str]:
    parts = Behind(**{"submit": echoed, **behind})
    server = PublicDoor(identity, parts, reserved_address(), most)
    address = await server.start()
    try:
        yield address
    finally:
        await server.stop(0)


def at_door(identity, scenario: Callable[[Door], Awaitable[None]], **given) -> None:
    """Run a scenario with a device's end of a door."""

    async def main() -> None:
        async with (
            asyncio.timeout(60),
            opened(identity, **given) as address,
            await door(address, identity.ca_pem, "north", "node", 10) as device,
        ):
            await scenario(device)

    asyncio.run(main())


def test_each_box_has_its_own_answer(identity):
    async def scenario(device: Door) -> None:
        taken, refused = await device.submit(HASH, [(2, b"two"), (3, b"three")])
        assert taken == b"two"
        assert isinstance(refused, MessageRefused)
        assert refused.message == "north: no"
        assert refused.culprit == "north"

    at_door(identity, scenario)


def test_a_list_comes_in_parts(identity):
    parts = [bytes([part]) * 10**6 for part in range(5)]

    async def scenario(device: Door) -> None:
        assert [part async for part in device.counted(HASH)] == parts

    at_door(identity, scenario, counted=lambda study: iter(parts if study == HASH else []))


def test_lists_have_a_bound_and_take_no_thread_of_studies(identity, limit):
    """A list that nobody reads holds its place, and leaves it when its call ends."""
    limit(people_door, MOST_LISTS=1)
    threads = set()

    def parts(study: bytes):
        while True:
            threads.add(threading.current_thread().name)
            yield bytes(10**6)

    async def scenario(device: Door) -> None:
        unread = device.counted(HASH)
        assert len(await anext(unread)) == 10**6
        with pytest.raises(MessageRefused, match="too many people read lists"):
            await anext(device.counted(HASH))
        assert await device.submit(HASH, [(2, b"two")]) == [b"two"]
        await unread.aclose()
        while True:  # the server learns of it a moment later
            with contextlib.suppress(MessageRefused):
                again = device.counted(HASH)
                assert len(await anext(again)) == 10**6
                break
        await again.aclose()
        assert {name.partition("_")[0] for name in threads} == {"people"}

    at_door(identity, scenario, counted=parts)


def test_a_list_leaves_no_faster_than_boxes_come(identity):
    """Each part costs 256 boxes, so the third one waits."""

    async def scenario(device: Door) -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()
        assert [part async for part in device.counted(HASH)] == [b"part"] * 3
        assert clock() - begun > 0.9

    at_door(identity, scenario, most=300, counted=lambda study: iter([b"part"] * 3))


@pytest.mark.parametrize("kind", [MessageRefused, LocalProtocolError, OSError])
def test_failures_are_typed_and_the_door_stays_open(identity, kind, caplog):
    def fails(study: bytes, boxes) -> list[bytes | MessageRefused]:
        raise kind("what went wrong")

    async def scenario(device: Door) -> None:
        for _ in range(2):
            with pytest.raises(UmpcError) as caught:
                await device.submit(HASH, [(0, b"")])
            assert type(caught.value) is (LocalProtocolError if kind is OSError else kind)
            assert ("what went wrong" in caught.value.message) == (kind is not OSError)

    at_door(identity, scenario, submit=fails)
    told = [record for record in caplog.records if record.name == "umpc.people"]
    assert len(told) == (kind is not MessageRefused), "a fault of the server is told, once"


def test_secrets_are_not_an_aggregators(identity):
    async def scenario(device: Door) -> None:
        with pytest.raises(MessageRefused, match="secrets come from the dealer"):
            await device.secrets(HASH, [(0, b"d" * 32, b"s" * 64)])
        with pytest.raises(MessageRefused):
            _ = [part async for part in device.counted(HASH)]

    at_door(identity, scenario)


def test_a_device_trusts_one_name_of_one_authority(identity, other_authority, site, tmp_path):
    async def scenario() -> None:
        async with opened(identity) as address:
            for ca_pem, name, role in (
                ((tmp_path / "other" / "ca.pem").read_bytes(), "north", "node"),
                (identity.ca_pem, "south", "node"),
                (identity.ca_pem, "north", "dealer"),
            ):
                with pytest.raises(CertificateError):
                    await door(address, ca_pem, name, role, 5)
        with pytest.raises(PeerUnavailable):
            await door(address, identity.ca_pem, "north", "node", 1)

    asyncio.run(scenario())


def test_only_tls_1_3(identity):
    def handshake(address: str, version: ssl.TLSVersion) -> str | None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = context.maximum_version = version
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        with socket.create_connection(split_address(address)) as plain:
            return context.wrap_socket(plain).version()

    async def scenario() -> None:
        async with opened(identity) as address:
            newest, former = ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2
            assert await asyncio.to_thread(handshake, address, newest) == "TLSv1.3"
            with pytest.raises(ssl.SSLError):
                await asyncio.to_thread(handshake, address, former)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"x" * 1_000_000, grpc.StatusCode.RESOURCE_EXHAUSTED, "larger"),
        (b"\xff" * 100, grpc.StatusCode.INVALID_ARGUMENT, EncodingError.__name__),
        (b"\x12\0" * (MOST_AT_ONCE + 1), grpc.StatusCode.FAILED_PRECONDITION, "at most 256"),
    ],
)
def test_what_is_no_message_is_refused(identity, data, code, words):
    asked = []

    async def scenario() -> None:
        async with opened(identity, submit=lambda *given: asked.append(given)) as address:
            channel = await connect(nobody(identity.ca_pem), "north", "node", address, 10)
            try:
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await channel.unary_unary("/umpc.v1.People/Submit")(data)
                with pytest.raises(grpc.aio.AioRpcError) as other:
                    await channel.unary_unary("/umpc.v1.Node/Study")(b"")
            finally:
                await channel.close(None)
            assert caught.value.code() is code
            assert words in caught.value.details()
            assert other.value.code() is grpc.StatusCode.UNIMPLEMENTED

    asyncio.run(scenario())
    assert asked == []


def test_all_addresses_together_have_a_limit(identity):
    async def scenario() -> None:
        with limited(people_door, MOST_IN_ALL=1):
            async with opened(identity) as address:
                channel = await connect(nobody(identity.ca_pem), "north", "node", address, 10)
                try:
                    submit = channel.unary_unary("/umpc.v1.People/Submit")
                    await submit(b"\x12\0" * MOST_AT_ONCE)
                    with pytest.raises(grpc.aio.AioRpcError) as caught:
                        await submit(b"")
                finally:
                    await channel.close(None)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "all addresses" in caught.value.details()

    asyncio.run(scenario())


def test_a_sweep_that_fails_is_told_with_its_detail_and_comes_again(identity, caplog):
    again = threading.Event()
    failures: list[Exception] = [LedgerError("no", detail="disk full"), OSError("lost")]

    def sweep() -> None:
        if failures:
            raise failures.pop(0)
        again.set()

    async def scenario() -> None:
        with limited(people_door, SWEEP_SECONDS=0.01):
            async with opened(identity, sweep=sweep):
                assert await asyncio.to_thread(again.wait, 20)

    asyncio.run(scenario())
    assert "disk full" in caplog.text and "lost" in caplog.text


def test_a_device_waits_until_its_address_may_send_again(identity):
    """Whatever becomes of boxes, they count: the second message waits for most of a second."""

    async def scenario(device: Door) -> None:
        clock = asyncio.get_running_loop().time
        begun = clock()
        for _ in range(3):
            answers = await device.submit(HASH, [(1, b"")] * 100)
            assert all(isinstance(answer, MessageRefused) for answer in answers)
        assert clock() - begun > 0.9

    at_door(identity, scenario, most=100)


def test_a_budget_is_of_one_address_and_grows_back():
    now = [0.0]
    budget = Budget(100, lambda: now[0])
    one, other = "ipv4:192.0.2.1:5", "ipv4:192.0.2.2:5"
    assert budget.take(one, 256)  # a large message leaves a debt
    assert not budget.take(one, 1)
    assert not budget.take("ipv4:192.0.2.1:6", 1), "another port is not another address"
    assert budget.take(other, 1)
    now[0] = 1.5
    assert not budget.take(one, 1)
    now[0] = 1.6
    assert budget.take(one, 1)


@pytest.mark.parametrize(
    ("peer", "network"),
    [
        ("ipv4:192.0.2.1:50", "192.0.2.1"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:50", "2001:db8:1:2::/64"),
        ("ipv6:[::ffff:192.0.2.1]:50", "192.0.2.1"),
        ("ipv6:%5Bfe80::1%25eth0%5D:50", "fe80::/64"),
    ],
)
def test_an_address_of_a_caller(peer, network):
    assert network_of(peer) == network


def test_a_slow_caller_holds_nobody_up(identity):
    """Whole connections that never finish a request: others are answered at once."""

    async def scenario() -> None:
        async with opened(identity) as address:
            slow = [
                await connect(nobody(identity.ca_pem), "north", "node", address, 10)
                for _ in range(8)
            ]
            calls = [
                channel.stream_unary("/umpc.v1.People/Submit")()
                for channel in slow
                for _ in range(MOST_STREAMS - 1)
            ]
            for channel in slow:  # when it is answered, those before it have begun
                await channel.unary_unary("/umpc.v1.People/Submit")(b"")
            async with await door(address, identity.ca_pem, "north", "node", 10) as device:
                assert await device.submit(HASH, [(0, b"x")]) == [b"x"]
            for call in calls:
                call.cancel()
            for channel in slow:
                await channel.close(None)

    asyncio.run(scenario())


def test_silent_connections_have_a_bound(identity, limit):
    """Above it a connection is closed at once, so the process keeps files for its studies."""
    limit(people_door, MOST_CONNECTIONS=4)

    def closed(each: socket.socket) -> bool:
        with contextlib.suppress(ConnectionResetError):
            return each.recv(1) == b""
        return True

    async def scenario() -> None:
        async with opened(identity) as address:
            silent = [socket.create_connection(split_address(address)) for _ in range(12)]
            for each in silent[4:]:
                assert await asyncio.to_thread(closed, each)
            silent[0].setblocking(False)
            with pytest.raises(BlockingIOError):  # it has the time of a handshake
                silent[0].recv(1)
            for each in silent:
                each.close()
            async with await door(address, identity.ca_pem, "north", "node", 10) as device:
                assert await device.submit(HASH, [(0, b"x")]) == [b"x"]

    asyncio.run(scenario())


def test_a_renewed_certificate_is_shown_to_new_callers(identity, authority, tmp_path):
    async def scenario() -> None:
        async with (
            opened(identity) as address,
            await door(address, identity.ca_pem, "north", "node", 10) as before,
        ):
            authority.issue("north", "node", tmp_path / "new")
            for name in ("key.pem", "cert.pem"):
                (tmp_path / "new" / name).replace(tmp_path / "north" / name)
            async with await door(address, identity.ca_pem, "north", "node", 10) as after:
                assert await after.submit(HASH, [(0, b"x")]) == [b"x"]
            assert await before.submit(HASH, [(0, b"x")]) == [b"x"]

    asyncio.run(scenario())
