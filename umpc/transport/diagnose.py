"""A look at a peer with the standard library: why it cannot be reached, in one sentence.

gRPC reports a missing certificate, another authority, an expired certificate and plain text all as
"UNAVAILABLE: Socket closed". `explain` repeats the connection with the standard library alone:
name, TCP, TLS, certificates, one step after the other.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cryptography import x509

from umpc.errors import CertificateError, PeerUnavailable, UmpcError
from umpc.transport.addresses import Proxy, proxy_to, split_address, tls_1_3
from umpc.transport.certificates import (
    alternative_names_in,
    check_validity,
    host_name,
    parse_certificate,
    renewal,
)

if TYPE_CHECKING:
    from umpc.transport.identity import Identity

X509_V_FLAG_NO_CHECK_TIME = 0x200000
"""OpenSSL's flag to ignore the dates. An expired certificate can then still be read and named."""
DATE = "%Y-%m-%d %H:%M"


def explain(
    identity: Identity, name: str, role: str, address: str, timeout: float = 3
) -> UmpcError:
    """Connect once more and return the error that says what is wrong. It is never raised.

    Returns: as `find_fault`, and PeerUnavailable if the connection works now.
    """
    fault = find_fault(identity, name, role, address, timeout)
    return fault or PeerUnavailable(
        f"{role} {name!r} at {address} answers now, but did not answer in time before: try again",
        culprit=name,
    )


def find_fault(
    identity: Identity,
    name: str,
    role: str,
    address: str,
    timeout: float = 3,
    *,
    now: datetime | None = None,
) -> UmpcError | None:
    """Connect once more and return what is wrong, or None if the connection works.

    Returns: CertificateError if a certificate of either side is the reason, ConfigError for an
        address of a wrong form, PeerUnavailable otherwise.
    """
    now = now or datetime.now(UTC)
    try:
        _check_own(identity, now)
        proxy = proxy_to(role, *split_address(address))
        with _tcp(f"{role} {name!r}", address, timeout, proxy) as plain:
            through = f"{address} through the proxy {proxy.place}" if proxy else address
            _tls(identity, name, role, through, plain, now)
    except UmpcError as error:
        error.culprit = error.culprit or name
        return error
    return None


def _check_own(identity: Identity, now: datetime) -> None:
    if now > identity.not_after:
        raise CertificateError(
            f"our own certificate ({identity.role} {identity.name!r}) expired, "
            f"at {identity.not_after:{DATE}} UTC: "
            f"{renewal(identity.certificate)}",
            culprit=identity.name,
        )


def _tcp(who: str, address: str, timeout: float, proxy: Proxy | None) -> socket.socket:
    host, port = target = split_address(address)
    if proxy is not None:
        who, address = f"{who} through the proxy", proxy.place
        host, port = proxy.host, proxy.port
    try:
        if proxy is not None:
            return proxy.tunnel(*target, timeout)
        return socket.create_connection(target, timeout)
    except socket.gaierror as error:
        why = (
            f"the name {host!r} does not resolve ({error.strerror}): check the address and the DNS"
        )
    except ConnectionRefusedError:
        why = "connection refused: start it there, or check the port"
    except TimeoutError:
        why = (
            f"no answer in {timeout:g} s: check that it runs and that no firewall drops port {port}"
        )
    except OSError as error:
        why = f"{error.strerror}: check the network and the address"
    raise PeerUnavailable(f"{who} at {address} cannot be reached, {why}")


def _tls(
    identity: Identity, name: str, role: str, address: str, plain: socket.socket, now: datetime
) -> None:
    who = f"{role} {name!r} at {address}"
    context = _context(identity)
    try:
        with context.wrap_socket(plain, server_hostname=host_name(name, role)) as tls:
            pem = ssl.DER_cert_to_PEM_cert(tls.getpeercert(True) or b"")
            theirs = parse_certificate(pem.encode(), f"the certificate of {who}")
            _check_theirs(theirs, name, role, who, now)
            if identity.revoked is not None:
                identity.revoked.check(theirs.serial_number, name, role)
            _check_accepted(tls, identity, who)
    except ssl.SSLCertVerificationError as error:
        raise CertificateError(
            f"{who} shows a certificate that our authority did not sign ({error.verify_message}): "
            "compare the issuer fingerprints of both sides with `umpc ca show`"
        ) from None
    except TimeoutError:
        raise PeerUnavailable(
            f"{who} accepts connections but does not answer: stopped, overloaded or not umpc; "
            "look there"
        ) from None
    except OSError as error:
        raise _handshake_error(error, who) from None


def _context(identity: Identity) -> ssl.SSLContext:
    context = tls_1_3()
    context.verify_flags |= X509_V_FLAG_NO_CHECK_TIME
    context.load_verify_locations(cadata=identity.ca_pem.decode())
    if identity.key_pem:  # a person has none
        with as_file(identity.cert_pem + identity.key_pem) as path:
            context.load_cert_chain(path)
    return context


def _check_theirs(cert: x509.Certificate, name: str, role: str, who: str, now: datetime) -> None:
    """Check the peer's certificate. Raises: CertificateError."""
    names = alternative_names_in(cert).get_values_for_type(x509.DNSName)
    expected = host_name(name, role)
    if expected not in names:
        found = names[0] if names else "a nameless server"
        raise CertificateError(
            f"at the address of {who} is {found}, expected {expected}: "
            "check the address, or the name in the study"
        )
    how = f"let that site {renewal(cert)}"
    check_validity(cert, f"the certificate of {who}", now, how)


def _check_accepted(tls: ssl.SSLSocket, identity: Identity, who: str) -> None:
    """Wait for the peer's verdict on our certificate. Raises: CertificateError if it refuses.

    In TLS 1.3 the verdict comes after the handshake: an alert, or HTTP/2's SETTINGS.
    """
    try:
        if tls.recv(1):
            return
        why = "closed the connection"
    except ssl.SSLError as error:
        why = _reason(error)
    except ConnectionResetError:
        why = "reset the connection"
    raise CertificateError(
        f"{who} refused our certificate ({identity.role} {identity.name!r}): {why}; "
        "look into its log, compare the clocks of both machines, and the authorities of both sides "
        "with `umpc ca show`"
    )


def _handshake_error(error: OSError, who: str) -> UmpcError:
    if isinstance(error, ssl.SSLError):
        reason = _reason(error)
    else:
        reason = error.strerror or "connection closed"
    if "protocol version" in reason or "unsupported protocol" in reason:
        return PeerUnavailable(
            f"{who} does not speak TLS 1.3 ({reason}): it is not umpc, or something is in between"
        )
    return PeerUnavailable(
        f"what answers for {who} does not speak TLS ({reason}): check that the port is the one of "
        "umpc, and that no web server, proxy or page for logging in answers in its place"
    )


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "connection closed").lower().replace("_", " ")


@contextlib.contextmanager
def as_file(content: bytes) -> Iterator[str]:
    """Yield a path from which `ssl` can read our key.

    The content is in memory where the system can do this, and otherwise in a file that only its
    owner can read.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("umpc")
        path = f"/proc/self/fd/{descriptor}"
    else:
        descriptor, path = tempfile.mkstemp()
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield path
    finally:
        os.close(descriptor)
        if not path.startswith("/proc/self/"):
            os.unlink(path)
