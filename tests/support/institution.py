"""An institution on loopback: it publishes its keys over TLS, and answers well or badly."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec


def make_tls(folder: Path) -> tuple[Path, Path]:
    """Make a key, and a certificate for 127.0.0.1 that signs itself. Returns: their paths."""
    key, name, now = ec.generate_private_key(ec.SECP256R1()), x509.Name([]), datetime.now(UTC)
    place = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(1))
    cert = builder.add_extension(place, critical=True).sign(key, hashes.SHA256())
    pem, plain = form.Encoding.PEM, form.NoEncryption()
    (folder / "tls.key").write_bytes(key.private_bytes(pem, form.PrivateFormat.PKCS8, plain))
    (folder / "tls.pem").write_bytes(cert.public_bytes(pem))
    return folder / "tls.key", folder / "tls.pem"


class Institution:
    """Its answers, and the questions that came.

    issuer: its address. keys: those that it publishes. status, body: of answers in place of the
    right ones. is_slow: bytes come one by one, without an end, until the caller hangs up.
    """

    def __init__(self, issuer: str, keys: list[dict[str, Any]]):
        self.issuer = issuer
        self.keys = keys
        self.status = 200
        self.body: bytes | None = None
        self.is_slow = False
        self.asked: list[str] = []

    def answer(self, path: str) -> bytes:
        self.asked.append(path)
        if self.body is not None:
            return self.body
        if path == "/keys":
            return json.dumps({"keys": self.keys}).encode()
        return json.dumps({"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}).encode()


@contextmanager
def institution_at(folder: Path, keys: list[dict[str, Any]]) -> Iterator[Institution]:
    """Serve an institution in the block. Its certificate is `folder / "tls.pem"`."""

    class Call(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = here.answer(self.path)
            self.send_response(here.status)
            self.end_headers()
            try:
                while here.is_slow:
                    self.wfile.write(b" ")
                    pause.wait(0.05)
            except OSError:
                return
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    pause = threading.Event()
    key, cert = make_tls(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Call)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    here = Institution(f"https://127.0.0.1:{server.server_port}", keys)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        here.is_slow = False
        server.shutdown()
        server.server_close()
        thread.join()
