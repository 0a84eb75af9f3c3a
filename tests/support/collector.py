"""A collector of OpenTelemetry spans on this machine, which keeps what it gets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collected:
    """Everything that came. Args: address: HOST:PORT of the collector."""

    address: str
    paths: list[str] = field(default_factory=list)
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)

    def spans(self) -> dict[str, list[Span]]:
        """Return the spans of each process, by the process's name."""
        found: dict[str, list[Span]] = {}
        for request in self.requests:
            for each in request.resource_spans:
                about = {pair.key: pair.value.string_value for pair in each.resource.attributes}
                here = found.setdefault(about["service.instance.id"], [])
                here += [span for scope in each.scope_spans for span in scope.spans]
        return found

    def texts(self) -> str:
        """Return everything that came, as text."""
        return "\n".join(map(str, self.requests))


@contextmanager
def collector() -> Iterator[Collected]:
    """Run a collector inside the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.paths.append(self.path)
            got.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    got = Collected(f"127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def attributes(span: Span) -> dict[str, str]:
    """Return a span's attributes, which are texts."""
    return {pair.key: pair.value.string_value for pair in span.attributes}
