"""A small S3 server of this process: it lists and reads a bucket, and does what a test tells it.

It checks no signature. Tests with a real server are in tests/object_store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

BUCKET = "visits"


@dataclass
class SmallS3:
    """A bucket. before_read: called before each GET of an object. seen: keys of calls, or "".

    prefixes: of the listings.
    sends_more: a body goes on without end, and its length says so.
    ignores_conditions: answers in spite of If-Match, as some stores do.
    refusal: (status, code) of every answer, or None.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    before_read: Callable[[str], None] = lambda key: None
    ignores_conditions: bool = False
    gives_etags: bool = True
    sends_more: bool = False
    refusal: tuple[int, str] | None = None
    seen: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def etag(self, key: str) -> str:
        return f'"{hashlib.md5(self.objects[key]).hexdigest()}"' if self.gives_etags else ""

    def listing(self, prefix: str, delimiter: str) -> str:
        entries = []
        for key in sorted(self.objects):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix) or (delimiter and delimiter in rest):
                continue
            etag = f"<ETag>{self.etag(key)}</ETag>" if self.gives_etags else ""
            entries.append(
                f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                f"{etag}<Size>{len(self.objects[key])}</Size></Contents>"
            )
        return (
            '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>'
            f"{''.join(entries)}</ListBucketResult>"
        )


@contextmanager
def small_s3() -> Iterator[SmallS3]:
    """Serve a bucket without objects on this machine, until the context ends."""
    store = SmallS3()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            key = unquote(url.path).removeprefix(f"/{BUCKET}").removeprefix("/")
            store.seen.append(key)
            if store.refusal:
                self.refuse(*store.refusal)
            elif not url.path.startswith(f"/{BUCKET}"):
                self.refuse(404, "NoSuchBucket")
            elif not key:
                query = {name: values[0] for name, values in parse_qs(url.query).items()}
                store.prefixes.append(query.get("prefix", ""))
                found = store.listing(query.get("prefix", ""), query.get("delimiter", ""))
                self.answer(200, found.encode(), {})
            else:
                self.read(key)

        def read(self, key: str) -> None:
            store.before_read(key)
            condition = self.headers.get("If-Match")
            if not store.ignores_conditions and condition not in (None, store.etag(key)):
                self.refuse(412, "PreconditionFailed")
                return
            data = store.objects[key]
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            place = f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}"
            self.answer(
                206, data[first : last + 1], {"Content-Range": place, "ETag": store.etag(key)}
            )

        def refuse(self, status: int, code: str) -> None:
            self.answer(status, f"<Error><Code>{code}</Code></Error>".encode(), {})

        def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            headers |= {"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
            more = store.sends_more and "Content-Range" in headers
            length = 1 << 40 if more else len(body)
            for name, value in {**headers, "Content-Length": str(length)}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            with suppress(OSError):  # the reader has had enough
                while more:
                    self.wfile.write(bytes(1 << 16))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    store.port = server.server_port
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
