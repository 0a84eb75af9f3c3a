"""The local port of a process: `/metrics` for Prometheus, `/healthz` for a probe.

It listens on this machine only, and answers callers that name this machine: a page of the web whose
name points here reads nothing. Each call has a few seconds in all, and few are served at once, so
slow callers take little. A failure of this port ends no study.

*Grpc health.* The standard health service of gRPC, on a process's own port.

Only processes with a certificate of the same authority may ask, as for every other call. It answers
SERVING from the start to the beginning of the end.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from socketserver import ThreadingMixIn
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from umpc.errors import AddressInUse, ConfigError, UmpcError
from umpc.transport.addresses import split_address
from umpc.transport.certificates import ROLES
from umpc.transport.tls import grpc

CALL_SECONDS = 5
"""Longest time of a whole call."""
MOST_AT_ONCE = 8
DEFAULT_PORTS = {"--metrics": 9464, "--traces": 4318}
WELL = "ok"


@contextmanager
def monitored(address: str, registry: CollectorRegistry, fault: Callable[[], str]) -> Iterator[str]:
    """Serve the port inside the block, and yield its address. An empty address serves nothing.

    Args: fault: returns why the process cannot serve studies, or "" if it can.
    Raises: ConfigError if the address is not of this machine alone; AddressInUse.
    """
    if not address:
        yield ""
        return
    server = _bind(address, _handler(registry, fault))
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield f"{server.server_address[0]!s}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _bind(address: str, handler: type[BaseHTTPRequestHandler]) -> HTTPServer:
    host, port = local_address("--metrics", address)
    try:
        return _LocalServer((host, port), handler)
    except OSError:
        raise AddressInUse(
            f"--metrics {address}: another process listens there. Choose another port"
        ) from None


def local_address(option: str, address: str) -> tuple[str, int]:
    """Return host and port of an IPv4 address of this machine alone. Raises: ConfigError."""
    host, port = split_address(address)
    host = "127.0.0.1" if host == "localhost" else host
    if not _is_local(host) or ":" in host:
        raise ConfigError(
            f"{option} {address}: an address of this machine alone was expected, such as "
            f"127.0.0.1:{DEFAULT_PORTS[option]}. Let a collector on this machine send it on"
        )
    return host, port


def _is_local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _LocalServer(ThreadingMixIn, HTTPServer):
    """One thread for each call, of which there are few."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]):
        self._room = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__(address, handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether there is room for one more call."""
        return self._room.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one call in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write nothing for a caller that breaks off."""


def _names_this_machine(host: str) -> bool:
    """Whether a call's `Host` is an address of this machine, with or without a port.

    A browser always sends one; a probe of HTTP/1.0 may send none.
    """
    name = (host.rpartition(":")[0] if ":" in host else host).lower()
    return name in ("", "localhost") or _is_local(name)


def _handler(registry: CollectorRegistry, fault: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    one_by_one = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        """Answers GET of the two paths."""

        server_version = "umpc"
        sys_version = ""

        def setup(self) -> None:
            """Begin a call, with a limit on its time."""
            super().setup()
            self._limit = threading.Timer(CALL_SECONDS, self._hang_up)
            self._limit.daemon = True
            self._limit.start()

        def finish(self) -> None:
            """End a call."""
            self._limit.cancel()
            super().finish()

        def _hang_up(self) -> None:
            with suppress(OSError):
                self.request.shutdown(socket.SHUT_RDWR)

        def do_GET(self) -> None:
            """Answer one call."""
            if not _names_this_machine(self.headers.get("Host", "")):
                self._answer(403, "text/plain; charset=utf-8", b"call 127.0.0.1 by its address\n")
            elif self.path == "/metrics":
                with one_by_one:
                    content = generate_latest(registry)
                self._answer(200, CONTENT_TYPE_LATEST, content)
            elif self.path == "/healthz":
                with one_by_one:
                    reason = fault()
                text = f"{reason or WELL}\n".encode()
                self._answer(503 if reason else 200, "text/plain; charset=utf-8", text)
            else:
                self._answer(404, "text/plain; charset=utf-8", b"/metrics or /healthz\n")

        def _answer(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Leave the process's log to studies."""

    return Handler


def first_fault(*checks: Callable[[], object]) -> Callable[[], str]:
    """Return a function that says why one of these checks fails: only the class of its error."""

    def fault() -> str:
        for check in checks:
            try:
                check()
            except UmpcError as error:
                return f"{type(error).__name__}: see the process's log"
        return ""

    return fault


# --- grpc health ----------------------------------------------------------------------------------

ALLOWED = {"/grpc.health.v1.Health/Check": frozenset(ROLES)}


class Health:
    """The service of one server. Args: server: one that has not started."""

    def __init__(self, server: grpc.aio.Server):
        # Here, because `tls` must be the first to import gRPC.
        from grpc_health.v1 import health_pb2_grpc
        from grpc_health.v1._async import HealthServicer

        self._servicer: Any = HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def ending(self) -> None:
        """Answer NOT_SERVING from now on, until the server stops."""
        await self._servicer.enter_graceful_shutdown()
