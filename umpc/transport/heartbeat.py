"""The heartbeat of a connection: each end beats every second, and hears when the other end stops.

| the other process | is noticed by | within |
|---|---|---|
| died | its kernel, which closes the connection | at once |
| was stopped, hangs, or is behind a cut line | silence: no beat, no data | 9 s |

The beats are messages of a call of their own, so they pass data that wait for their reader. The
event loop sends them. So they stop where Python hangs although gRPC's own threads still answer,
and gRPC's own pings are not used. Beats may wait behind data on a slow line. Data that arrive
therefore count as life, also those of a message that is not yet complete.

Silence is counted in beats of this process. While it does not run itself, no silence grows. Where
more threads than two a processor wait for this machine, silence grows more slowly, down to a
quarter: a peer on the same machine may wait longer than this process.

The call begins with the call that it belongs to, and its first beat leaves before any data. A
server whose caller does not begin to beat within the same limit of silence cancels the caller's
calls, as if it had stopped beating.

    client                              server
    Beat(stream of empty messages) -->
                                    <-- a stream of empty messages
    silence: `RpcStream` is lost        silence: all calls of the connection are cancelled

*Received.* The bytes that the connections of this process have received, as the kernel counts them.

gRPC hands out whole messages only, and over a slow line one message takes a minute. The kernel
counts what came so far: TCP_INFO (tcp(7)), read over copies of this process's own sockets. Linux
only; elsewhere nothing is found, and whole messages count alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from umpc.transport.addresses import split_address
from umpc.transport.patience import cancelled, processor_share
from umpc.transport.tls import grpc, read

log = logging.getLogger("umpc.transport")
BEAT_SECONDS = 1.0
SILENT_SECONDS = 8.0
"""The silence after which a process counts as stopped."""
SUSPECT_SECONDS = 2.0
"""The silence after which the kernel is asked whether data arrive."""
DATA_BYTES = 512
"""Bytes between two beats that are data.

gRPC's own threads answer for a process that hangs. Their answers to a beat take fewer than 100.
"""
METHOD = "/umpc.v1.Life/Beat"
BEATEN = frozenset(
    {
        "/umpc.v1.Node/Study",
        *(f"/umpc.v1.Node/{call}People" for call in ("Open", "List", "Count", "Sum")),
        "/umpc.v1.Dealer/Deal",
        "/umpc.v1.Dealer/Answer",
        "/umpc.v1.Dealer/OpenPeople",
        "/umpc.v1.Dealer/PeopleKeys",
        "/umpc.v1.Shuffler/Deliver",
        "/umpc.v1.Shuffler/Collect",
    }
)
"""The methods beside which their callers beat (`RpcStream`)."""
ENDED = "its heartbeat ended"
"""The reason where the other end hung up. A caller does so before it ends its other calls."""
BROKEN = (grpc.aio.AioRpcError, grpc.aio.BaseError, asyncio.InvalidStateError)
"""The exceptions that gRPC raises at a write or a half-close on a broken stream."""

Count = Callable[[], Awaitable[int]]
"""Returns the bytes that the kernel has received from the other end so far."""


class Silence:
    """The silence of one peer, in seconds in which this process ran itself."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self._counted: int | None = None

    @property
    def is_suspect(self) -> bool:
        return self.seconds >= SUSPECT_SECONDS

    @property
    def is_over(self) -> bool:
        """The peer counts as stopped."""
        return self.seconds >= SILENT_SECONDS

    def heard(self) -> None:
        """Take note of a beat."""
        self.seconds = 0.0
        self._counted = None

    def passed(self, seconds: float) -> None:
        """Take note of time between two beats of ours, without that by which ours was late."""
        self.seconds += seconds

    def counted(self, received: int) -> None:
        """Take note of the bytes received so far. Data since the last look are life."""
        before, self._counted = self._counted, received
        if before is not None and received - before >= DATA_BYTES:
            self.seconds = 0.0


async def beat(
    stream: Any, count: Count, silent: float = 0.0, writing: asyncio.Task[None] | None = None
) -> str:
    """Beat until the other end has stopped. Returns: the reason, for a log.

    Args: silent: seconds of silence before the first beat. writing: a first beat that may still be
        on its way; gRPC ends a call that writes twice at once.
    """
    silence = Silence(silent)
    listening = asyncio.create_task(_listen(stream, silence))
    try:
        while not silence.is_over:
            if writing is None or writing.done():
                writing = asyncio.create_task(_write(stream))
            await asyncio.wait({listening}, timeout=BEAT_SECONDS)
            if listening.done():
                return ENDED
            silence.passed(BEAT_SECONDS * processor_share())
            if silence.is_suspect:
                silence.counted(await count())
        return f"nothing came from it for {SILENT_SECONDS:g} s"
    finally:
        await cancelled(listening, *filter(None, [writing]))


async def _listen(stream: Any, silence: Silence) -> None:
    with contextlib.suppress(*BROKEN):
        while await read(stream) is not None:
            silence.heard()


async def _write(stream: Any) -> None:
    with contextlib.suppress(*BROKEN):
        await stream.write(b"")


# --- the end that calls


async def beat_to(channel: grpc.aio.Channel, address: str, begun: asyncio.Event) -> str:
    """Beat to the server of a channel until it has stopped. Returns: the reason, for a log.

    Args: begun: is set when the first beat has left. On a slow line it would wait behind a large
        message, and the server would be silent, because it beats only to whom it has heard.
    """
    make: Any = channel.stream_stream
    call = make(METHOD)()
    known: list[Address] = []

    async def count() -> int:
        if not known:
            known.extend(await asyncio.to_thread(_numeric_addresses, address))
        return await asyncio.to_thread(SURVEY.received_bytes, known)

    try:
        first = asyncio.create_task(_write(call))
        await asyncio.wait({first}, timeout=BEAT_SECONDS)
        begun.set()
        return await beat(call, count, writing=first)
    finally:
        call.cancel()


def _numeric_addresses(address: str) -> list[Address]:
    with contextlib.suppress(OSError, ValueError):
        return [numeric(*found[4][:2]) for found in socket.getaddrinfo(*split_address(address))]
    return []


# --- the end that is called


def _received_from(peer: str) -> Count:
    """The count of bytes from a caller. Args: peer: as gRPC names it."""
    addresses = address_of(peer)
    return lambda: asyncio.to_thread(SURVEY.received_bytes, addresses)


class _Unheard:
    """The end of a caller that has not begun to beat."""

    async def read(self) -> Any:
        await asyncio.Event().wait()

    async def write(self, message: bytes, /) -> None:
        """There is nobody to write to."""


class Calls:
    """The calls that a server is answering, by connection, and the answer to heartbeats.

    Args: beaten: the methods beside which a caller must beat; by default none.
    """

    def __init__(self, beaten: Collection[str] = ()) -> None:
        self.tasks: defaultdict[str, set[asyncio.Task[Any]]] = defaultdict(set)
        self._beaten = beaten
        self.beating: set[str] = set()
        self.due: dict[str, asyncio.TimerHandle | asyncio.Task[None]] = {}
        """Timers and tasks that wait for the first beat of a connection."""

    @contextlib.contextmanager
    def running(self, peer: str, method: str = "") -> Iterator[None]:
        """Let the current task end with its connection. Args: peer: as gRPC names it."""
        task = asyncio.current_task()
        if task is None:
            yield
            return
        self.tasks[peer].add(task)
        if method in self._beaten and peer not in self.beating and peer not in self.due:
            later = asyncio.get_running_loop().call_later
            self.due[peer] = later(BEAT_SECONDS, self._await_beat, peer)
        try:
            yield
        finally:
            self.tasks[peer].discard(task)
            if not self.tasks[peer]:
                del self.tasks[peer]
                self._heard(peer)

    def _await_beat(self, peer: str) -> None:
        self.due[peer] = asyncio.create_task(self._watch_unheard(peer))

    async def _watch_unheard(self, peer: str) -> None:
        """Cancel all calls of a caller that does not begin to beat, unless data arrive."""
        self._give_up(peer, await beat(_Unheard(), _received_from(peer), BEAT_SECONDS))

    def _heard(self, peer: str) -> None:
        """Wait no more for a first beat: it came, or the calls have ended."""
        if (due := self.due.pop(peer, None)) is not None:
            due.cancel()

    async def answer(self, requests: object, context: Any) -> None:
        """Beat to a caller; cancel all its calls when it has stopped."""
        peer = context.peer()
        self._heard(peer)
        self.beating.add(peer)
        try:
            reason = await beat(context, _received_from(peer))
        finally:
            self.beating.discard(peer)
        if reason != ENDED:
            self._give_up(peer, reason)
        await context.abort(grpc.StatusCode.ABORTED, reason)

    def _give_up(self, peer: str, reason: str) -> None:
        if self.cancel(peer):
            log.info("the calls of %s are given up: %s", peer, reason)

    def cancel(self, peer: str) -> bool:
        """Cancel all calls of a connection, as gRPC does when it breaks. Returns: if any ran."""
        tasks = list(self.tasks.get(peer, ()))
        for task in tasks:
            task.cancel()
        return bool(tasks)

    def handler(self) -> grpc.GenericRpcHandler[Any, Any]:
        """Return the handler of the heartbeat's method."""
        method = grpc.stream_stream_rpc_method_handler(self.answer)
        service, _, name = METHOD[1:].partition("/")
        return grpc.method_handlers_generic_handler(service, {name: method})


# --- received -------------------------------------------------------------------------------------

OWN_FILES = "/proc/self/fd"
BYTES_RECEIVED = 128
"""The place of `tcpi_bytes_received` in the kernel's `struct tcp_info`, since Linux 4.1."""
SIZE = BYTES_RECEIVED + 8
SURVEY_SECONDS = 0.5
"""Seconds for which a look at all connections stays good: half of the time between two beats."""

Address = tuple[str, int]
"""The other end of a connection: a numeric host in its shortest form, and a port."""


def _received() -> Counter[Address]:
    """The bytes received from each other end."""
    found: Counter[Address] = Counter()
    for file in own_sockets():
        with contextlib.suppress(OSError, ValueError, struct.error), copy_of(file) as copy:
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
        """Return the bytes received from all of these other ends, at most SURVEY_SECONDS ago."""
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


def own_sockets() -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(OWN_FILES):
            with contextlib.suppress(OSError):
                if os.readlink(f"{OWN_FILES}/{name}").startswith("socket:"):
                    found.append(int(name))
    return found


def copy_of(file: int) -> socket.socket:
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
