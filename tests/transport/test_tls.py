"""Mutual TLS 1.3 with a role in the certificate. The other side is Python's own ssl."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from transport_echo import serving

from umpc.errors import CertificateError
from umpc.transport.identity import Identity
from umpc.transport.tls import Peer, channel_credentials, grpc, peer_of

V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3

UNRESTRICTED = """
import sys, grpc, time
from concurrent import futures
cert, key = open(sys.argv[1], "rb").read(), open(sys.argv[2], "rb").read()
server = grpc.server(futures.ThreadPoolExecutor(1))
print(server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, cert)])), flush=True)
server.start()
time.sleep(60)
"""


def rsa_identity():
    """The refusal must not depend on the kind of key: TLS 1.2 has further suites for RSA."""
    key, now = rsa.generate_private_key(65537, 2048), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    names = x509.SubjectAlternativeName(
        [x509.DNSName("a.node.umpc"), x509.DNSName("any.node.umpc")]
    )
    start, end = now - timedelta(hours=1), now + timedelta(days=1)
    cert = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, start, end)
        .add_extension(names, False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    form = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return Identity("a", "node", cert, cert, key.private_bytes(*form), end)


def context_of(identity, version, tmp_path, kind):
    path = tmp_path / "both.pem"
    path.write_bytes(identity.cert_pem + identity.key_pem)
    context = ssl.SSLContext(kind)
    context.load_verify_locations(cadata=identity.ca_pem.decode())
    context.load_cert_chain(path)
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2"])
    return context


async def version_spoken(port, context):
    """The TLS version in which a server sends its first byte, or None if it refuses."""
    try:
        streams = asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="a.node.umpc"
        )
        reader, writer = await asyncio.wait_for(streams, 10)
    except OSError:  # ssl.SSLError is one
        return None
    first = await asyncio.wait_for(reader.read(1), 10)
    version = writer.get_extra_info("ssl_object").version()
    writer.close()
    return version if first else None


@pytest.fixture(params=["ECDSA", "RSA"])
def identity(request):
    return request.getfixturevalue("site")() if request.param == "ECDSA" else rsa_identity()


@pytest.mark.parametrize(("version", "spoken"), [(V12, None), (V13, "TLSv1.3")])
def test_our_server_speaks_tls_1_3_only(identity, version, spoken, tmp_path):
    async def scenario():
        async with serving(identity) as (address, _):
            context = context_of(identity, version, tmp_path, ssl.PROTOCOL_TLS_CLIENT)
            return await version_spoken(int(address.rpartition(":")[2]), context)

    assert asyncio.run(scenario()) == spoken


@pytest.mark.parametrize(("version", "spoken"), [(V12, None), (V13, "TLSv1.3")])
def test_our_client_speaks_tls_1_3_only(identity, version, spoken, tmp_path):
    async def scenario():
        seen = asyncio.get_running_loop().create_future()

        async def accepted(reader, writer):
            if not seen.done():
                seen.set_result(writer.get_extra_info("ssl_object").version())
            writer.close()

        context = context_of(identity, version, tmp_path, ssl.PROTOCOL_TLS_SERVER)
        server = await asyncio.start_server(accepted, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        options = [("grpc.ssl_target_name_override", "a.node.umpc")]
        async with (
            server,
            dial(
                f"127.0.0.1:{port}", channel_credentials(identity, identity.cert_pem), options
            ) as channel,
        ):
            failed = asyncio.create_task(connecting_failed(channel))
            await asyncio.wait({seen, failed}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
            assert seen.done() or failed.done(), "neither a handshake nor a refusal"
            failed.cancel()
            return seen.result() if seen.done() else None

    assert asyncio.run(scenario()) == spoken


async def connecting_failed(channel):
    while (
        state := channel.get_state(try_to_connect=True)
    ) is not grpc.ChannelConnectivity.TRANSIENT_FAILURE:
        await channel.wait_for_state_change(state)


def dial(address, credentials, options):
    return grpc.aio.secure_channel(address, credentials, options=options)


def test_without_our_cipher_list_grpc_would_accept_tls_1_2(site, tmp_path):
    """The power of the tests above: they do see a server that speaks TLS 1.2."""
    identity = site()
    (
        (tmp_path / "cert").write_bytes(identity.cert_pem),
        (tmp_path / "key").write_bytes(identity.key_pem),
    )
    command = [sys.executable, "-c", UNRESTRICTED, tmp_path / "cert", tmp_path / "key"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={}, text=True) as server:
        try:
            port = int(server.stdout.readline())
            context = context_of(identity, V12, tmp_path, ssl.PROTOCOL_TLS_CLIENT)
            assert asyncio.run(version_spoken(port, context)) == "TLSv1.2"
        finally:
            server.kill()


def test_grpc_imported_too_early_is_refused(site, tmp_path):
    site("a")
    program = (
        "import grpc, sys\nfrom umpc.errors import LocalProtocolError\n"
        "from umpc.transport.identity import load_identity\n"
        "from umpc.transport.tls import channel_credentials, server_credentials\n"
        "pin = lambda identity: channel_credentials(identity, identity.cert_pem)\n"
        "for make in (server_credentials, pin):\n"
        "    try: make(load_identity(sys.argv[1]))\n"
        "    except LocalProtocolError as error: print(error)\n"
    )
    command = [sys.executable, "-c", program, tmp_path / "a"]
    done = subprocess.run(command, capture_output=True, env={}, text=True, check=True)
    assert done.stdout.count("TLS 1.2 cannot be switched off") == 2


def test_the_authority_works_without_grpc():
    program = (
        "import umpc.transport.authority, umpc.transport.diagnose, sys; "
        "print('grpc' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


class Context:
    def __init__(self, **properties):
        self.auth_context = lambda: properties


def test_peer_of_reads_name_and_role(site):
    identity = site("b", "dealer")
    assert peer_of(Context(x509_pem_cert=[identity.cert_pem])) == Peer("b", "dealer")
    assert str(Peer("b", "dealer")) == "dealer 'b'"


@pytest.mark.parametrize("properties", [{}, {"x509_pem_cert": []}, {"x509_common_name": [b"a"]}])
def test_peer_of_refuses_a_caller_without_certificate(properties):
    with pytest.raises(CertificateError, match="without certificate"):
        peer_of(Context(**properties))


def test_peer_of_refuses_a_certificate_that_expired_during_the_connection(site):
    identity = site("b")
    context = Context(x509_pem_cert=[identity.cert_pem])
    peer_of(context, now=identity.not_after)
    with pytest.raises(CertificateError, match="certificate of node 'b' expired"):
        peer_of(context, now=identity.not_after + timedelta(seconds=1))


def test_peer_of_refuses_a_certificate_we_do_not_issue(authority):
    with pytest.raises(CertificateError, match="expected exactly"):
        peer_of(Context(x509_pem_cert=[authority.ca_pem]))
