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
            status = _status(_answer(plain))
        except BaseException:
            plain.close()
            raise
        if status[:1] != "2":
            plain.close()
            raise PeerUnavailable(
                f"the proxy {self.place} opens no way to {host}:{port}: it answered {status!r}; "
                "ask the site's network administrator to allow CONNECT to this port"
            )
        return plain

    def _request(self, host: str, port: int) -> bytes:
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        if self.user:
            coded = base64.b64encode(self.user.encode()).decode()
            lines.append(f"Proxy-Authorization: Basic {coded}")
        return "\r\n".join([*lines, "", ""]).encode("ascii", "replace")


def proxy_to(role: str, host: str) -> Proxy | None:
    """Return the proxy for a connection, or None if it is direct. Raises: ConfigError."""
    if role != "hub" or not any(name.lower() == VARIABLE for name in os.environ):
        return None
    from urllib import request  # with its parsers of mail it takes 2 MiB

    url = request.getproxies_environment().get("https", "")
    # The types of the standard library lack this function.
    passes_by: bool = request.proxy_bypass_environment(host)  # type: ignore[attr-defined]
    if not url or passes_by:
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port or 3128
    except ValueError:
        port = 0
    if parts.scheme != "http" or not parts.hostname or not port:
        raise ConfigError(
            f"the environment variable {VARIABLE} is wrong: expected http://host:port, as in "
            "http://proxy.example.org:3128"
        )
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    netloc = parts.netloc if parts.port else f"{parts.netloc.rstrip(':')}:{port}"
    return Proxy(f"http://{netloc}", parts.hostname, port, user)


def _answer(plain: socket.socket) -> bytes:
    """Read the proxy's answer, up to its empty line, and not a byte of what follows."""
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        byte = plain.recv(1)
        if not byte or len(answer) > MOST_ANSWER_BYTES:
            break
        answer += byte
    return answer


def _status(answer: bytes) -> str:
    """Return the status of an answer, as in "403 Forbidden"."""
    first = answer.split(b"\r\n", 1)[0].decode("ascii", "replace")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1."):
        return "no HTTP answer"
    return "".join(each for each in status if each.isprintable())[:80]
