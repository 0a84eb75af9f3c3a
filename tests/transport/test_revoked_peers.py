"""Revocation and renewal over real loopback connections: nothing restarts."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil

import pytest
from cryptography import x509
from transport_echo import CALL, CHAT, serving

from umpc.errors import CertificateError
from umpc.transport.addresses import shown_certificate
from umpc.transport.connections import connect
from umpc.transport.diagnose import explain
from umpc.transport.status import error_of
from umpc.transport.tls import channel_credentials, grpc


@pytest.fixture
def revoke(authority, tmp_path):
    """revoke(identity, at="x"): revoke a certificate, and give the list to the site x."""

    def tell(identity, *, at):
        serial = x509.load_pem_x509_certificate(identity.cert_pem).serial_number
        authority.revoke({serial})
        shutil.copy(authority.list_path, tmp_path / at / "crl.pem")

    return tell


async def call(channel):
    return await channel.unary_unary(CALL)(b"hello", timeout=10)


def test_a_server_refuses_the_next_call_of_a_revoked_client(site, revoke):
    """The connection was open before, and stays open: the call is refused, not the handshake."""

    async def scenario():
        server, client, other = site("a"), site("b"), site("c")
        async with serving(server) as (address, echo):
            channel = await connect(client, "a", "node", address, 15)
            assert await call(channel) == b"b.node hello"
            revoke(client, at="a")
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call(channel)
            await channel.close()
            channel = await connect(other, "a", "node", address, 15)
            assert await call(channel) == b"c.node hello"
            await channel.close()
            return caught.value, echo.ran

    refusal, ran = asyncio.run(scenario())
    assert refusal.code() is grpc.StatusCode.UNAUTHENTICATED
    assert "the certificate of node 'b' was revoked" in refusal.details()
    assert ran == ["call", "call"]
    error = error_of(refusal, "a", "hello", "b")
    assert isinstance(error, CertificateError) and error.culprit == "b"


def test_a_call_that_began_before_goes_on_to_its_end(site, revoke):
    """A study that had begun is not cut, as privacy.md says."""

    async def scenario():
        server, client = site("a"), site("b")
        async with serving(server) as (address, _):
            channel = await connect(client, "a", "node", address, 15)
            chat = channel.stream_stream(CHAT)(timeout=10)
            await chat.write(b"1")
            assert await chat.read() == b"1"
            revoke(client, at="a")
            await chat.write(b"2")
            assert await chat.read() == b"2"
            await channel.close()

    asyncio.run(scenario())


def test_a_client_refuses_a_revoked_server_before_it_says_anything(site, revoke):
    async def scenario():
        server, client = site("a"), site("b")
        async with serving(server) as (address, echo):
            await (await connect(client, "a", "node", address, 15)).close()
            revoke(server, at="b")
            with pytest.raises(CertificateError, match="of node 'a' was revoked") as caught:
                await connect(client, "a", "node", address, 15)
            assert echo.ran == []
            told = await asyncio.to_thread(explain, client.latest(), "a", "node", address)
            return caught.value, told

    error, told = asyncio.run(scenario())
    assert error.culprit == "a"
    assert "of node 'a' was revoked" in told.message and told.culprit == "a"


def test_a_channel_trusts_only_the_certificate_that_was_looked_at(site):
    """The attack: the look goes to the renewed server, the channel to the owner of a stolen key."""

    async def scenario():
        thief = dataclasses.replace(site("a"), source=None)  # whatever happens to its folder
        renewed, client = site("a"), site("b")
        assert thief.cert_pem != renewed.cert_pem
        async with serving(thief) as (address, echo):
            states = []
            for pinned in (renewed, thief):
                credentials = channel_credentials(client, pinned.cert_pem)
                options = [("grpc.ssl_target_name_override", "a.node.umpc")]
                async with grpc.aio.secure_channel(address, credentials, options=options) as to:
                    try:
                        await call(to)
                        states.append("answered")
                    except grpc.aio.AioRpcError as error:
                        states.append(error.code())
            return states, echo.ran

    states, ran = asyncio.run(scenario())
    assert states == [grpc.StatusCode.UNAVAILABLE, "answered"], "the second shows the test's power"
    assert ran == ["call"]


def test_a_renewed_certificate_is_used_by_both_sides_without_a_restart(site, authority, tmp_path):
    async def scenario():
        server, client = site("a"), site("b")
        async with serving(server) as (address, _):
            before = await shown_certificate(address, 5)
            await (await connect(client, "a", "node", address, 15)).close()
            for name in "ab":
                (tmp_path / name / "key.pem").unlink()
                authority.issue(name, "node", tmp_path / name)
            after = await shown_certificate(address, 5)
            channel = await connect(client, "a", "node", address, 15)
            answer = await call(channel)
            await channel.close()
            return before, after, answer

    before, after, answer = asyncio.run(scenario())
    assert before != after and answer == b"b.node hello"
    renewed = x509.load_pem_x509_certificate((tmp_path / "a/cert.pem").read_bytes())
    assert x509.load_der_x509_certificate(after) == renewed


def test_the_old_certificate_revoked_and_a_new_one_renewed_all_is_well(site, revoke, tmp_path):
    async def scenario():
        server, client = site("a"), site("b")
        async with serving(server) as (address, _):
            revoke(server, at="b")
            (tmp_path / "a/key.pem").unlink()
            site("a")
            channel = await connect(client, "a", "node", address, 15)
            answer = await call(channel)
            await channel.close()
            return answer

    assert asyncio.run(scenario()) == b"b.node hello"


def test_a_look_at_no_server_shows_nothing(site):
    async def scenario():
        async with serving(site("a")) as (address, _):
            pass
        return await shown_certificate(address, 2)

    assert asyncio.run(scenario()) is None
