"""Who reaches whom, over real loopback connections; every refusal names its reason."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from conftest import LONG_AGO
from transport_echo import ALLOWED, CALL, CHAT, DEALERS_ONLY, NOT_LISTED, WATCH, serving

from tests.support.ports import reserved_address
from umpc.errors import AddressInUse, CertificateError, ConfigError, PeerUnavailable
from umpc.testing import lying
from umpc.transport.connections import MAX_FRAME, MAX_MESSAGE, bind, connect, make_server
from umpc.transport.tls import grpc

CODES = grpc.StatusCode


def refusal(client, server, name="a", role="node"):
    """The error of `connect` when `client` dials `name`, `role` at the address of `server`."""

    async def scenario():
        async with serving(server) as (address, echo):
            start = time.monotonic()
            with pytest.raises((CertificateError, PeerUnavailable)) as caught:
                await connect(client, name, role, address, 15)
            assert time.monotonic() - start < 10, "a wrong certificate is not worth waiting for"
            assert echo.ran == []
            return caught.value

    return asyncio.run(scenario())


def code_of(client, server, method, request=b"x", kind="unary_unary"):
    """Status of one call, and what the server's handlers saw."""

    async def scenario():
        async with serving(server) as (address, echo):
            channel = await connect(client, server.name, server.role, address, 15)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                call = getattr(channel, kind)(method)
                await (
                    call(request, timeout=10) if kind == "unary_unary" else call(timeout=10).read()
                )
            await channel.close()
            return caught.value, echo.ran

    return asyncio.run(scenario())


def test_the_right_identities_reach_each_other(site):
    async def scenario():
        async with serving(site("a")) as (address, _):
            channel = await connect(site("c", "coordinator"), "a", "node", address, 15)
            reply = await channel.unary_unary(CALL)(b"hello", timeout=10)
            chat = channel.stream_stream(CHAT)(timeout=10)
            await chat.write(b"1")
            first = await chat.read()
            await chat.done_writing()
            watched = [part async for part in channel.unary_stream(WATCH)(b"2", timeout=10)]
            await channel.close()
            return reply, first, watched

    assert asyncio.run(scenario()) == (b"c.coordinator hello", b"1", [b"2"])


def test_any_name_of_a_role_can_be_dialled(site):
    async def scenario():
        async with serving(site("a")) as (address, _):
            await (await connect(site("b"), "any", "node", address, 15)).close()
            with pytest.raises(
                CertificateError, match=re.escape("is a.node.umpc, expected any.dealer.umpc")
            ):
                await connect(site("b"), "any", "dealer", address, 15)

    asyncio.run(scenario())


def test_a_server_that_comes_late_is_waited_for(site):
    async def scenario():
        address = reserved_address()
        waiting = asyncio.create_task(connect(site("b"), "a", "node", address, 20))
        await asyncio.sleep(1)
        assert not waiting.done()
        async with serving(site("a"), address):
            await (await waiting).close()

    asyncio.run(scenario())


@contextmanager
def late(times: int) -> Iterator[list[str]]:
    """Let the first looks at a server come too late, although the server answers."""
    looks = []

    async def slow(honest, address: str, *more: object) -> bytes | None:
        looks.append(address)
        return None if len(looks) <= times else await honest(address, *more)

    with lying("process", shown_certificate=slow):
        yield looks


def test_a_late_connection_is_tried_again_while_the_peer_answers(site):
    async def scenario():
        async with serving(site("a")) as (address, _):
            await (await connect(site("b"), "a", "node", address, 15)).close()

    with late(times=3) as looks:
        asyncio.run(scenario())
    assert len(looks) == 4


def test_a_late_connection_is_given_up_after_its_time(site):
    async def scenario():
        async with serving(site("a")) as (address, _):
            with pytest.raises(PeerUnavailable, match="answers now, but did not answer in time"):
                await connect(site("b"), "a", "node", address, 0.1, patience=0.5)

    with late(times=99) as looks:
        asyncio.run(scenario())
    assert looks


def test_a_late_connection_to_nobody_is_not_tried_again(site):
    address = reserved_address()
    with late(times=99) as looks, pytest.raises(PeerUnavailable, match="connection refused"):
        asyncio.run(connect(site("b"), "a", "node", address, 0.1, patience=600))
    assert looks


def test_an_absent_server_is_reported_in_time(site):
    address = reserved_address()
    start = time.monotonic()
    with pytest.raises(
        PeerUnavailable, match=f"node 'a' at {address} cannot be reached, connection refused"
    ) as caught:
        asyncio.run(connect(site("b"), "a", "node", address, 1))
    assert 1 <= time.monotonic() - start < 5
    assert caught.value.culprit == "a"


def test_a_server_of_another_authority_is_refused(site, other_authority):
    error = refusal(site("b"), site("a", signer=other_authority))
    assert (
        isinstance(error, CertificateError) and "that our authority did not sign" in error.message
    )


def test_a_client_that_only_the_server_distrusts_is_refused(site, other_authority):
    """The client trusts the server's authority, but its own certificate is of another one."""
    server, stranger = site("a"), site("b", signer=other_authority)
    error = refusal(dataclasses.replace(stranger, ca_pem=server.ca_pem, source=None), server)
    assert (
        isinstance(error, CertificateError)
        and "refused our certificate (node 'b')" in error.message
    )


def test_an_expired_server_is_refused(site):
    error = refusal(site("b"), site("a", now=LONG_AGO))
    assert isinstance(error, CertificateError)
    assert re.search("certificate of node 'a' at .* expired, at 2020-07-30", error.message)


def test_an_expired_client_is_refused_here_and_by_the_server(site):
    client, server = site("b", now=LONG_AGO), site("a")
    assert (
        "our own certificate (node 'b') expired, at 2020-07-30" in refusal(client, server).message
    )
    wrong_clock = dataclasses.replace(
        client, not_after=server.not_after + timedelta(days=1), source=None
    )
    error = refusal(wrong_clock, server)
    assert (
        isinstance(error, CertificateError)
        and "refused our certificate (node 'b')" in error.message
        and "compare the clocks of both machines" in error.message
    )


def test_a_server_of_the_wrong_role_is_refused(site):
    error = refusal(site("b"), site("a", "dealer"))
    assert isinstance(error, CertificateError)
    assert "is a.dealer.umpc, expected a.node.umpc" in error.message


def test_a_server_of_the_wrong_name_is_refused(site):
    error = refusal(site("b"), site("c"))
    assert isinstance(error, CertificateError)
    assert "is c.node.umpc, expected a.node.umpc" in error.message


@pytest.mark.parametrize("kind", ["plaintext", "without certificate"])
def test_a_client_without_certificate_reaches_nothing(site, kind):
    async def scenario():
        server = site("a")
        async with serving(server) as (address, echo):
            if kind == "plaintext":
                channel = grpc.aio.insecure_channel(address)
            else:
                options = [("grpc.ssl_target_name_override", "a.node.umpc")]
                credentials = grpc.ssl_channel_credentials(server.ca_pem)
                channel = grpc.aio.secure_channel(address, credentials, options=options)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await channel.unary_unary(CALL)(b"x", timeout=5)
            await channel.close()
            return caught.value.code(), echo.ran

    assert asyncio.run(scenario()) == (CODES.UNAVAILABLE, [])


def test_a_method_of_another_role_is_denied(site):
    error, ran = code_of(site("b"), site("a"), DEALERS_ONLY)
    assert (error.code(), ran) == (CODES.PERMISSION_DENIED, [])
    assert error.details() == f"node 'a' does not let node 'b' call {DEALERS_ONLY}"


@pytest.mark.parametrize(
    "method", [NOT_LISTED, "/umpc.test.Echo/Absent", "/grpc.health.v1.Health/Check"]
)
@pytest.mark.parametrize("kind", ["unary_unary", "stream_stream"])
def test_a_method_that_is_not_listed_is_denied_to_everybody(site, method, kind):
    error, ran = code_of(site("b", "dealer"), site("a"), method, kind=kind)
    assert (error.code(), ran) == (CODES.PERMISSION_DENIED, [])


@pytest.mark.parametrize(("method", "kind"), [(CALL, "unary_unary"), (CHAT, "stream_stream")])
def test_every_kind_of_method_is_guarded(site, method, kind):
    error, ran = code_of(site("b", "dealer"), site("a"), method, kind=kind)
    assert (error.code(), ran) == (CODES.PERMISSION_DENIED, [])


@pytest.mark.parametrize(
    ("size", "code"), [(MAX_FRAME, None), (MAX_MESSAGE + 1, CODES.RESOURCE_EXHAUSTED)]
)
def test_a_message_is_a_frame_and_no_more(site, size, code):
    async def scenario():
        async with serving(site("a")) as (address, _):
            channel = await connect(site("b"), "a", "node", address, 15)
            try:
                await channel.unary_unary(CALL)(bytes(size), timeout=10)
            except grpc.aio.AioRpcError as error:
                return error.code()
            finally:
                await channel.close()

    assert asyncio.run(scenario()) is code


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_in_use_is_refused(site, host):
    async def scenario():
        identity = site("a")
        async with serving(identity) as (address, _):
            listen = f"{host}:{address.rpartition(':')[2]}"
            with pytest.raises(
                AddressInUse, match=f"cannot listen on {listen}: another process .*choose another"
            ):
                await bind(make_server(identity, ALLOWED), identity, listen)

    asyncio.run(scenario())


def test_a_port_taken_at_the_last_moment_is_refused_by_grpc_itself(site):
    """Without `grpc.so_reuseport` = 0 both servers would get a share of the calls."""

    async def scenario():
        identity = site("a")
        async with serving(identity) as (address, _):
            with (
                lying("process", refuse_if_taken=lambda *address: None),
                pytest.raises(AddressInUse, match="just taken"),
            ):
                await bind(make_server(identity, ALLOWED), identity, address)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "listen", ["192.0.2.1:7443", "no-such-host.invalid:7443", "localhost", "::1:7443", "a:x"]
)
def test_an_address_that_is_not_ours_is_refused(site, listen):
    async def scenario():
        await bind(make_server(site("a"), ALLOWED), site("a"), listen)

    with pytest.raises(ConfigError, match=re.escape(listen)):
        asyncio.run(scenario())


def test_a_client_that_writes_late_still_hears_why_it_was_refused(site):
    """gRPC drops the status of a call that ends while its client writes."""

    async def scenario():
        async with serving(site("a"), allowed={}) as (address, _):
            channel = await connect(site("b"), "a", "node", address, 15)
            codes = set()
            for wait in range(40):
                call = channel.stream_stream(CHAT)()
                await asyncio.sleep(wait * 1e-4)
                time.sleep(2e-3)  # a status that came by now is not read yet
                await call.write(b"x")
                codes.add(await call.code())
            await channel.close()
            return codes

    assert asyncio.run(scenario()) == {CODES.PERMISSION_DENIED}
