"""A small HTTP server in threads of this process: one thread for each call.

The approvals' page, the listening authority and the port of metrics are such servers. Each adds its
own limits for callers that stay silent.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

END_SECONDS = 0.1
"""Longest time until a server notices that it shall end."""


class LocalServer(ThreadingMixIn, TCPServer):
    """One thread for each call."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve inside the block, and yield HOST:PORT."""
        thread = threading.Thread(target=self.serve_forever, args=(END_SECONDS,), daemon=True)
        thread.start()
        host, port = self.server_address[:2]
        try:
            yield f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"
        finally:
            self.shutdown()
            self.server_close()
            thread.join()

    def enter(self, address: str) -> bool:
        """Whether a call from this address may go on. This runs before TLS, and takes no time."""
        return True

    def leave(self, address: str) -> None:
        """Take note of the end of a call that went on."""

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether a call may go on."""
        return self.enter(client_address[0])

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one call in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.leave(client_address[0])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write nothing for a caller that breaks off, or speaks no TLS."""


class LocalCall(BaseHTTPRequestHandler):
    """One call, whose answer says nothing of this machine."""

    server_version = "umpc"
    sys_version = ""

    def body(self, most: int) -> bytes:
        """Return what came with a call, cut after `most` bytes."""
        length = self.headers.get("Content-Length", "")
        size = int(length) if length.isdecimal() and len(length) < 9 else 0
        return self.rfile.read(min(size, most))

    def send(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Answer the call."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Write no line for each call: an address may hold a token, and the log is for studies."""


def hang_up_after(seconds: float, line: socket.socket) -> threading.Timer:
    """Return a running timer that ends a connection."""

    def hang_up() -> None:
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    limit = threading.Timer(seconds, hang_up)
    limit.daemon = True
    limit.start()
    return limit
