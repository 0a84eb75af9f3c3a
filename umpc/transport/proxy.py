"""The HTTP proxy of a site's network, through which its processes dial a hub.

Many sites let nothing out but what their proxy forwards. Its address comes from the environment, as
other programs have it: `https_proxy`, and `no_proxy` for hosts that are dialled directly. The proxy
is asked for a tunnel (CONNECT, RFC 9110, section 9.3.6), and sees names and sizes only, because TLS
goes through the tunnel. It resolves the hub's name. Only hubs are dialled through a proxy.
"""

from __future__ import annotations

import base64
import os
import socket
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from umpc.errors import ConfigError, PeerUnavailable

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
