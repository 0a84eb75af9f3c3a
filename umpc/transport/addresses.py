"""Addresses of processes: their form, the way to them, and the certificate that one shows.

gRPC for Python shows a client no certificate of the server. `shown_certificate` makes a TLS
connection of its own to see it, and sends nothing over it.

*Proxy.* The HTTP proxy of a site's network, through which its processes dial a hub.

Many sites let nothing out but what their proxy forwards. Its address comes from the environment, as
other programs have it: `https_proxy`, and `no_proxy` for hosts that are dialled directly. The proxy
is asked for a tunnel (CONNECT, RFC 9110, section 9.3.6), and sees names and sizes only, because TLS
goes through the tunnel. It resolves the hub's name. Only hubs are dialled through a proxy.

*Listening.* The check that an address of this machine is free to listen on.

*Hub address.* The address of a process behind a hub, as a study names it: `hub:NAME@HOST:PORT`.

NAME is the name in the hub's certificate, HOST:PORT the address at which the hub listens. Every
member of the hub has this one address, and a process is found there by its own name and role.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import re
import socket
import ssl
from dataclasses import dataclass
from functools import cache, lru_cache
from urllib.parse import unquote, urlsplit

from umpc.errors import AddressInUse, ConfigError, PeerUnavailable
from umpc.transport.certificates import is_name


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
    context = tls_1_3()
    context.verify_mode = ssl.CERT_NONE
    return context


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


def tls_1_3() -> ssl.SSLContext:
    """Return settings of TLS 1.3 for a client that looks at names itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # `_check_theirs` does, and names the server that it found
    context.set_alpn_protocols(["h2"])
    return context


# --- proxy ----------------------------------------------------------------------------------------

VARIABLE = "https_proxy"
MOST_STATUS_BYTES = 16_384
Headers = list[tuple[str, str]]


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
            status, headers = _answer(plain)
            is_page = any("html" in each.lower() for each in _values(headers, "content-type"))
            if status[:1] != "2" or is_page:  # as RFC 9110 has it for CONNECT
                raise PeerUnavailable(
                    f"the proxy {self.place} opens no way to {host}:{port}: "
                    f"it answered {status!r}; {self._advice(status, headers)}"
                )
        except BaseException:
            plain.close()
            raise
        return plain

    def _advice(self, status: str, headers: Headers) -> str:
        """Return what to do where the proxy did not open a tunnel."""
        if status.startswith("407"):
            asked = _values(headers, "proxy-authenticate")
            offered = [value.split()[0] for value in asked if value]
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
        if status[:1] == "2":
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


def _answer(plain: socket.socket) -> tuple[str, Headers]:
    """Read a proxy's status, as in "403 Forbidden", and its headers; not a byte of what follows."""
    from http.client import HTTPException, parse_headers  # see `proxy_to`

    with plain.makefile("rb", buffering=0) as answer:
        first = answer.readline(MOST_STATUS_BYTES).decode("ascii", "replace")
        version, _, status = first.partition(" ")
        try:
            if version.startswith("HTTP/1."):
                found = parse_headers(answer).items()
                return _printable(status), [(key.lower(), _printable(text)) for key, text in found]
        except HTTPException:
            pass
    return "no HTTP answer", []


def _values(headers: Headers, name: str) -> list[str]:
    return [value for key, value in headers if key == name]


def _printable(text: str) -> str:
    """Return a text without what a terminal would not print."""
    return "".join(each for each in text if each.isprintable()).strip()[:80]


# --- listening ------------------------------------------------------------------------------------

SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


def refuse_if_taken(host: str, port: int, listen: str) -> None:
    """Check that all addresses of the host name are free. gRPC would be content with one.

    Raises: AddressInUse, ConfigError.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise ConfigError(
            f"cannot listen on {listen}: {error.strerror}; give an address of this machine"
        ) from None
    failures = [_failure(family, address) for family, _, _, _, address in found]
    if errno.EADDRINUSE in failures:
        raise AddressInUse(
            f"cannot listen on {listen}: another process does already; stop it "
            f"(`ss -ltnp 'sport = {port}'` shows which), or choose another port"
        )
    if all(failures):
        raise ConfigError(
            f"cannot listen on {listen}: {errno.errorcode[failures[0]]}; "
            "give an address of this machine, and a port above 1023"
        )


def _failure(family: int, address: SocketAddress) -> int:
    """Return 0, or the errno of binding there."""
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


# --- hub address ----------------------------------------------------------------------------------

PREFIX = "hub:"
FORM = re.compile(r"(hub:)?(?P<name>[^@]*)@(?P<address>.*)")


@dataclass(frozen=True)
class HubAddress:
    """A hub. name: in its certificate. address: its "host:port"."""

    name: str
    address: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.name}@{self.address}"


def is_behind_hub(address: str) -> bool:
    """Return whether a process with this address is reached through a hub."""
    return address.startswith(PREFIX)


@lru_cache(maxsize=256)  # all members of a hub have its address
def parse_hub(text: str) -> HubAddress:
    """Read `hub:NAME@HOST:PORT` or `NAME@HOST:PORT`. Raises: ConfigError."""
    found = FORM.fullmatch(text)
    if found is None or not is_name(found["name"]):
        raise ConfigError(
            f"the hub {text!r} is wrong: expected NAME@HOST:PORT, as in relay@hub.example.org:7443"
        )
    split_address(found["address"])
    return HubAddress(found["name"], found["address"])
