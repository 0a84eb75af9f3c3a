"""The bytes that the connections of this process have received, as the kernel counts them.

gRPC hands out whole messages only, and over a slow line one message takes a minute. The kernel
counts what came so far: TCP_INFO (tcp(7)), read over copies of this process's own sockets. Linux
only; elsewhere nothing is found, and whole messages count alone.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote

OWN_FILES = "/proc/self/fd"
BYTES_RECEIVED = 128
"""The place of `tcpi_bytes_received` in the kernel's `struct tcp_info`, since Linux 4.1."""
SIZE = BYTES_RECEIVED + 8
SURVEY_SECONDS = 0.5
"""Seconds for which a look at all connections stays good: half of the time between two beats."""

Address = tuple[str, int]
"""The other end of a connection: a numeric host in its shortest form, and a port."""


def received_bytes(peers: Iterable[Address]) -> int:
    """Return the bytes received over all connections with one of these other ends."""
    found = _received()
    return sum(found[peer] for peer in set(peers))


def _received() -> Counter[Address]:
    """The bytes received from each other end."""
    found: Counter[Address] = Counter()
    for file in _own_sockets():
        with contextlib.suppress(OSError, ValueError, struct.error), _copy(file) as copy:
            if copy.family in (socket.AF_INET, socket.AF_INET6):
                found[numeric(*copy.getpeername()[:2])] += _count(copy)
    return found


class SharedLook:
    """One look at all connections, for all who ask within a while.

    A process with N connections whose peers are silent would look at N sockets N times a second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked = -SURVEY_SECONDS
        self._found: Counter[Address] = Counter()

    def received_bytes(self, peers: Iterable[Address]) -> int:
        """Return what `received_bytes` does, as of at most SURVEY_SECONDS ago."""
        with self._lock:
            if time.monotonic() - self._looked >= SURVEY_SECONDS:
                self._found = _received()
                self._looked = time.monotonic()
            return sum(self._found[peer] for peer in set(peers))


SURVEY = SharedLook()
"""That of this process."""


@lru_cache(maxsize=1 << 14)
def numeric(host: str, port: int) -> Address:
    """Return an address whose host is written in its shortest form. Raises: ValueError."""
    address = ipaddress.ip_address(host.split("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address), port


def address_of(peer: str) -> list[Address]:
    """Return the address that gRPC gives for a caller, as in "ipv6:%5B::1%5D:7443".

    Returns: a list of one, or an empty one for a text of another form.
    """
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    try:
        return [numeric(host.strip("[]"), int(port))]
    except ValueError:
        return []


def _own_sockets() -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(OWN_FILES):
            with contextlib.suppress(OSError):
                if os.readlink(f"{OWN_FILES}/{name}").startswith("socket:"):
                    found.append(int(name))
    return found


def _copy(file: int) -> socket.socket:
    """Return a copy of a socket. The original may be closed meanwhile. Raises: OSError."""
    copy = os.dup(file)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise


def _count(copy: socket.socket) -> int:
    info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SIZE)
    (count,) = struct.unpack_from("=Q", info, BYTES_RECEIVED)
    return int(count)
