"""The server of the approvals' page, on the loopback address of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any

from umpc.approval_page.calls import MOST_BODY, ApprovalPage, PageAnswer, PageCall
from umpc.approval_page.contents import PageContents
from umpc.errors import AddressInUse

LOOPBACK = "127.0.0.1"
CALL_SECONDS = 10
MOST_CONNECTIONS = 64
"""Connections at the same time. A browser has six for a page, and uses each within a moment."""
END_SECONDS = 0.1
"""Longest time until the server notices that it shall end."""


@contextmanager
def served_page(
    read: Callable[[], PageContents], decide: Callable[[str, str, str], str], port: int = 0
) -> Iterator[ApprovalPage]:
    """Serve the page inside the block. Args: as of ApprovalPage; port: 0 takes any free one.

    Raises: AddressInUse.
    """
    try:
        server = _PageServer((LOOPBACK, port), _PageHandler)
    except OSError as error:
        raise AddressInUse(
            f"--port {port}: {LOOPBACK} cannot be listened on there ({error.strerror}): choose "
            "another port"
        ) from None
    server.page = ApprovalPage(read, decide, f"{LOOPBACK}:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(END_SECONDS,), daemon=True)
    thread.start()
    try:
        yield server.page
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _PageServer(ThreadingMixIn, TCPServer):
    """A browser opens connections that it may never use, so each has its own thread."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    page: ApprovalPage

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]):
        self._lock = threading.Lock()
        self._open: dict[Any, None] = {}
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection. The oldest one ends where there are too many.

        Other users of this machine can open connections and send nothing. They would otherwise take
        a thread each, and in the end all files of this process.
        """
        with self._lock:
            self._open[request] = None
            oldest = next(iter(self._open)) if len(self._open) > MOST_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Write nothing for a browser that breaks off."""


class _PageHandler(BaseHTTPRequestHandler):
    """One call over HTTP."""

    server: _PageServer
    timeout = CALL_SECONDS
    server_version = "umpc"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a call without a body."""
        self._send(self.server.page.answer(self._call(b"")))

    def do_POST(self) -> None:
        """Answer a call with a body. A longer one than any form is cut, and then refused."""
        length = self.headers.get("Content-Length", "")
        size = int(length) if length.isdecimal() and len(length) < 9 else 0
        self._send(self.server.page.answer(self._call(self.rfile.read(min(size, MOST_BODY + 1)))))

    def _call(self, body: bytes) -> PageCall:
        names = [name.lower() for name in self.headers]
        single = {name.lower(): value for name, value in self.headers.items()}
        twice = {name for name in names if names.count(name) > 1}
        headers = {name: value for name, value in single.items() if name not in twice}
        return PageCall(self.command, self.path, headers, body)

    def _send(self, answer: PageAnswer) -> None:
        content = answer.text.encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Write no line: an address holds the token."""
