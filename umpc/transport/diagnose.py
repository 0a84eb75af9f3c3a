"""A look at a peer with the standard library: its certificate, and why it cannot be reached.

gRPC for Python shows a client no certificate of the server. `shown_certificate` makes a TLS
connection of its own to see it, and sends nothing over it.

gRPC reports a missing certificate, another authority, an expired certificate and plain text all as
"UNAVAILABLE: Socket closed". `explain` repeats the connection with the standard library alone:
name, TCP, TLS, certificates, one step after the other.

*Proxy.* The HTTP proxy of a site's network, through which its processes dial a hub.

Many sites let nothing out but what their proxy forwards. Its address comes from the environment, as
other programs have it: `https_proxy`, and `no_proxy` for hosts that are dialled directly. The proxy
is asked for a tunnel (CONNECT, RFC 9110, section 9.3.6), and sees names and sizes only, because TLS
goes through the tunnel. It resolves the hub's name. Only hubs are dialled through a proxy.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from umpc.errors import CertificateError, ConfigError, PeerUnavailable, UmpcError
from umpc.transport.certificates import renewal

if TYPE_CHECKING:
    from umpc.transport.identity import Identity

X509_V_FLAG_NO_CHECK_TIME = 0x200000
"""OpenSSL's flag to ignore the dates. An expired certificate can then still be read and named."""
DATE = "%Y-%m-%d %H:%M"


async def shown_certificate(address: str, timeout: float, role: str = "node") -> bytes | None:
    """Return the certificate (DER) that the server at an address shows, or None if it shows none.

    The server proves in the handshake that it has the key. Nothing else is verified here, and this
    side shows no certificate and sends nothing.

    Args: role: of the server. A hub may be behind a proxy.
    """
    host, port = split_address(address)
    proxy = proxy_to(role, host, port)
    try:
        async with asyncio.timeout(timeout):
            if proxy is None:
                _, writer = await asyncio.open_connection(host, port, ssl=_looking())
            else:
                plain = await asyncio.to_thread(proxy.tunnel, host, port, timeout)
                _, writer = await asyncio.open_connection(
                    sock=plain, ssl=_looking(), server_hostname=""
                )
    except (OSError, PeerUnavailable):  # ssl.SSLError and TimeoutError are among them
        return None
    try:
        shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(True)
        return shown
    finally:
        writer.transport.abort()


@cache
def _looking() -> ssl.SSLContext:
    """Return the settings of a look. They hold nothing of us, so all looks share them."""
    context = _tls_1_3()
    context.verify_mode = ssl.CERT_NONE
    return context


def explain(
    identity: Identity,
    name: str,
    role: str,
    address: str,
    timeout: float = 3,
    *,
    now: datetime | None = None,
) -> UmpcError:
    """Connect once more and return the error that says what is wrong. It is never raised.

    Returns: as `find_fault`, and PeerUnavailable if the connection works now.
    """
    fault = find_fault(identity, name, role, address, timeout, now=now)
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


def split_address(address: str) -> tuple[str, int]:
    """Return ("host", port) for "host:port" or "[ipv6]:port". Raises: ConfigError."""
    host, colon, port = address.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(
            f"address {address!r} is wrong: expected host:port, as in site-a.example.org:7443"
        )
    if ":" in host and not bracketed:
        raise ConfigError(
            f"address {address!r} is ambiguous: expected [ipv6]:port, as in [::1]:7443"
        )
    return host.strip("[]"), int(port)


def _check_own(identity: Identity, now: datetime) -> None:
    if now > identity.not_after:
        raise CertificateError(
            f"our own certificate ({identity.role} {identity.name!r}) expired, "
            f"at {identity.not_after:{DATE}} UTC: "
            f"{renewal(identity.name, identity.role)}",
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
        with context.wrap_socket(plain, server_hostname=f"{name}.{role}.umpc") as tls:
            theirs = tls.getpeercert() or {}
            _check_theirs(theirs, name, role, who, now)
            if identity.revoked is not None:
                identity.revoked.check(int(str(theirs["serialNumber"]), 16), name, role)
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


def _tls_1_3() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # `_check_theirs` does, and names the server that it found
    context.set_alpn_protocols(["h2"])
    return context


def _context(identity: Identity) -> ssl.SSLContext:
    context = _tls_1_3()
    context.verify_flags |= X509_V_FLAG_NO_CHECK_TIME
    context.load_verify_locations(cadata=identity.ca_pem.decode())
    with _as_file(identity.cert_pem + identity.key_pem) as path:
        context.load_cert_chain(path)
    return context


def _check_theirs(cert: dict[str, Any], name: str, role: str, who: str, now: datetime) -> None:
    """Check the peer's certificate, in the form of the `ssl` module. Raises: CertificateError."""
    names = [value for kind, value in cert.get("subjectAltName", ()) if kind == "DNS"]
    expected = f"{name}.{role}.umpc"
    if expected not in names:
        found = names[0] if names else "a nameless server"
        raise CertificateError(
            f"at the address of {who} is {found}, expected {expected}: "
            "check the address, or the name in the study"
        )
    since = _date(cert["notBefore"])
    until = _date(cert["notAfter"])
    if now > until:
        raise CertificateError(
            f"the certificate of {who} expired, at {until:{DATE}} UTC: let that site "
            f"{renewal(name, role)}"
        )
    if now < since:
        raise CertificateError(
            f"the certificate of {who} is not yet valid, only from {since:{DATE}} UTC "
            f"(now {now:{DATE}}): compare the clocks of both machines"
        )


def _date(text: str) -> datetime:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)


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
def _as_file(content: bytes) -> Iterator[str]:
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


# --- proxy ----------------------------------------------------------------------------------------

VARIABLE = "https_proxy"
MOST_ANSWER_BYTES = 16_384


@dataclass(frozen=True, repr=False)
class Proxy:
    """A proxy. url: for gRPC. place: its "host:port". user: "name:password", or empty."""

    url: str
    host: str
    port: int
    user: str

    @property
    def place(self) -> str:
        """The proxy's address, for messages. It holds no password."""
        return f"{self.host}:{self.port}"

    def tunnel(self, host: str, port: int, timeout: float) -> socket.socket:
        """Return a connection to a host through the proxy. Raises: PeerUnavailable, OSError."""
        plain = socket.create_connection((self.host, self.port), timeout)
        try:
            plain.sendall(self._request(host, port))
            answer = _answer(plain)
            if not _opens_tunnel(answer):
                raise PeerUnavailable(
                    f"the proxy {self.place} opens no way to {host}:{port}: "
                    f"it answered {_status(answer)!r}; {self._advice(answer)}"
                )
        except BaseException:
            plain.close()
            raise
        return plain

    def _advice(self, answer: bytes) -> str:
        """Return what to do where the proxy did not open a tunnel."""
        if _status(answer).startswith("407"):
            offered = [
                value.split()[0] for value in _headers(answer, "proxy-authenticate") if value
            ]
            if offered and "basic" not in map(str.lower, offered):
                return (
                    f"it takes a name by {', '.join(offered)} only, and umpc speaks Basic: ask the "
                    "site's network administrator"
                )
            if self.user:
                return (
                    f"it refuses the name and the password in {VARIABLE}: correct them, with other "
                    "characters than letters and digits as %21"
                )
            return f"it wants a name and a password: write {VARIABLE}=http://NAME:PASSWORD@{self.place}"
        if _status(answer)[:1] == "2":
            return (
                "and with a page, not with a tunnel, as a page for logging in does: ask the site's "
                "network administrator"
            )
        return "ask the site's network administrator to allow CONNECT to this port"

    def _request(self, host: str, port: int) -> bytes:
        place = _place(host, port)
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        if self.user:
            coded = base64.b64encode(self.user.encode()).decode()
            lines.append(f"Proxy-Authorization: Basic {coded}")
        return "\r\n".join([*lines, "", ""]).encode("ascii", "replace")


def proxy_to(role: str, host: str, port: int) -> Proxy | None:
    """Return the proxy for a connection, or None if it is direct. Raises: ConfigError.

    An entry of `no_proxy` is a host, or "host:port" for one port of it.
    """
    if role != "hub" or not any(name.lower() == VARIABLE for name in os.environ):
        return None
    from urllib import request  # with its parsers of mail it takes 2 MiB

    url = request.getproxies_environment().get("https", "")
    # The types of the standard library lack this function.
    passes_by = request.proxy_bypass_environment  # type: ignore[attr-defined]
    if not url or passes_by(host) or passes_by(_place(host, port)):
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        own = parts.port or 3128
    except ValueError:
        own = 0
    if parts.scheme != "http" or not parts.hostname or not own:
        raise ConfigError(
            f"the environment variable {VARIABLE} is wrong: expected http://host:port, as in "
            "http://proxy.example.org:3128"
        )
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    netloc = parts.netloc if parts.port else f"{parts.netloc.rstrip(':')}:{own}"
    return Proxy(f"http://{netloc}", parts.hostname, own, user)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _answer(plain: socket.socket) -> bytes:
    """Read the proxy's answer, up to its empty line, and not a byte of what follows."""
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        byte = plain.recv(1)
        if not byte or len(answer) > MOST_ANSWER_BYTES:
            break
        answer += byte
    return answer


def _opens_tunnel(answer: bytes) -> bool:
    """Whether an answer is a success without a page, as RFC 9110 has it for CONNECT."""
    is_page = any("html" in value.lower() for value in _headers(answer, "content-type"))
    return _status(answer)[:1] == "2" and not is_page


def _headers(answer: bytes, name: str) -> list[str]:
    """Return all values of a header, without what a terminal would not print."""
    found = []
    for line in answer.decode("ascii", "replace").split("\r\n")[1:]:
        key, _, value = line.partition(":")
        if key.strip().lower() == name:
            found.append("".join(each for each in value if each.isprintable()).strip()[:80])
    return found


def _status(answer: bytes) -> str:
    """Return the status of an answer, as in "403 Forbidden"."""
    first = answer.split(b"\r\n", 1)[0].decode("ascii", "replace")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1."):
        return "no HTTP answer"
    return "".join(each for each in status if each.isprintable())[:80]
