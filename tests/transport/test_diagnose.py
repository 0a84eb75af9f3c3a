"""umpc.transport.diagnose: the reasons for a failed connection, found without grpc.

test_channels.py has the certificates.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
from transport_echo import serving

from tests.support.ports import reserved_address
from umpc.errors import CertificateError, ConfigError, PeerUnavailable
from umpc.transport.addresses import split_address
from umpc.transport.diagnose import explain, find_fault


@contextlib.contextmanager
def answering(behaviour):
    """A TCP server that does `behaviour(connection)` once; yields its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = threading.Event()

        def run():
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                behaviour(connection, done)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        done.set()
        thread.join(10)


def speaks_http(connection, done):
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def says_nothing(connection, done):
    done.wait(10)


def closes(connection, done):
    connection.recv(1000)


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (speaks_http, "does not speak TLS .*check that the port"),
        (closes, "does not speak TLS .*check that the port"),
        (says_nothing, "accepts connections but does not answer"),
    ],
)
def test_what_is_not_tls_is_said_to_be_none(site, behaviour, reason):
    with answering(behaviour) as address:
        error = explain(site("b"), "a", "node", address, 1)
    assert type(error) is PeerUnavailable
    assert re.search(reason, error.message) and address in error.message
    assert error.culprit == "a"


def test_tls_1_2_is_told_apart(site, tmp_path):
    identity = site("a")
    (tmp_path / "both.pem").write_bytes(identity.cert_pem + identity.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    def old(connection, done):
        context.wrap_socket(connection, server_side=True)

    with answering(old) as address:
        error = explain(site("b"), "a", "node", address)
    assert type(error) is PeerUnavailable and "does not speak TLS 1.3" in error.message


def test_a_name_that_does_not_resolve(site):
    error = explain(site("b"), "a", "node", "no-such-host.invalid:7443")
    assert (
        type(error) is PeerUnavailable
        and "'no-such-host.invalid' does not resolve" in error.message
    )


def test_a_closed_port(site):
    error = explain(site("b"), "a", "node", reserved_address())
    assert type(error) is PeerUnavailable and "connection refused" in error.message


def test_a_full_backlog_is_a_time_out(site):
    """Nobody accepts: the kernel drops the handshake, as a firewall would."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        error = explain(site("b"), "a", "node", f"127.0.0.1:{listener.getsockname()[1]}", 0.5)
    assert type(error) is PeerUnavailable and "no answer in 0.5 s" in error.message


def at_server(server, client, look=explain, **options):
    async def scenario():
        async with serving(server) as (address, _):
            return await asyncio.to_thread(look, client, "a", "node", address, **options)

    return asyncio.run(scenario())


def test_a_connection_that_works_is_said_to_work(site):
    error = at_server(site("a"), site("b"))
    assert type(error) is PeerUnavailable and "answers now" in error.message


def test_a_server_that_is_not_yet_valid(site):
    server, client = site("a"), site("b")
    error = at_server(server, client, find_fault, now=datetime.now(UTC) - timedelta(days=1))
    assert type(error) is CertificateError and "is not yet valid, only from" in error.message


def test_a_certificate_that_the_server_refuses_without_knowing_ours_is_no_secret(
    site, other_authority
):
    error = at_server(site("a", signer=other_authority), site("b"))
    assert type(error) is CertificateError and "our authority did not sign" in error.message
    assert "PRIVATE" not in error.message + error.detail


@pytest.mark.parametrize("in_memory", [True, False])
def test_no_file_descriptor_and_no_key_file_is_left(site, tmp_path, monkeypatch, in_memory):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create")
    client, before = site("b"), len(os.listdir("/proc/self/fd"))
    with answering(closes) as address:
        assert "does not speak TLS" in explain(client, "a", "node", address).message
    assert len(os.listdir("/proc/self/fd")) == before
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("a.example:7443", "a.example", 7443), ("[::1]:1", "::1", 1), ("127.0.0.1:0", "127.0.0.1", 0)],
)
def test_an_address_is_split(address, host, port):
    assert split_address(address) == (host, port)


@pytest.mark.parametrize(
    "address", ["", "a", ":1", "a:", "a:b", "a:65536", "::1:7443", "a:-1", "a:٣"]
)
def test_a_wrong_address_is_refused_with_an_example(address):
    with pytest.raises(ConfigError, match=r"expected .* as in"):
        split_address(address)
