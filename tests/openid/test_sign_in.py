"""A real OpenID Connect server, npm's certified `oidc-provider`: a person signs in, by commands.

`make test-sign-in` installs the server into this folder.
"""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from http.cookiejar import CookieJar
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlencode, urljoin

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec

from umpc.errors import CertificateError
from umpc.transport.authority import Authority
from umpc.transport.certificates import SignedIn, signed_in_of
from umpc.transport.identity import load_identity

HERE = Path(__file__).parent


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


@pytest.fixture
def issuer(tmp_path, monkeypatch) -> Iterator[str]:
    key, cert = make_tls(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    command = ["node", str(HERE / "server.mjs"), str(key), str(cert)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        yield server.stdout.readline().decode().strip()
        server.stdin.close()


def sign_in(url: str, cert: Path, person: str) -> str:
    """Do what a person does in a browser: sign in, and agree. Returns: the last page."""
    browser = urllib.request.build_opener(
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(cert))),
        urllib.request.HTTPCookieProcessor(CookieJar()),
    )
    page, fields = browser.open(url), {"prompt": "login", "login": person, "password": "x"}
    text = page.read().decode()
    while found := re.search(r'<form[^>]*action="([^"]+)"', text):
        form_url = urljoin(page.url, unescape(found[1]))
        page = browser.open(form_url, urlencode(fields).encode())
        text, fields = page.read().decode(), {"prompt": "consent"}
    return text


def umpc(folder: Path, *words: str, **streams) -> subprocess.Popen:
    command = Path(sys.executable).with_name("umpc")
    return subprocess.Popen([command, *words], cwd=folder, text=True, **streams)


@pytest.mark.timeout(120)
def test_a_person_signs_in_and_gets_a_certificate(tmp_path, issuer):
    Authority.create(tmp_path / "authority")
    (tmp_path / "institutions.toml").write_text(f"""
[sign_in.st-mary]
issuer = "{issuer}"
client = "umpc"
[sign_in.st-mary.people]
maria = {{ name = "alice", studies = ["age and crp"] }}
""")
    words = ("--listen", "127.0.0.1:0", "--sign-in", "institutions.toml")
    with umpc(tmp_path, "enrol", "listen", *words, stdout=subprocess.PIPE) as authority:
        address = authority.stdout.readline().rpartition(" ")[2].strip()
        try:
            code, said = ended(tmp_path, issuer, address, "mallory")
            assert code == CertificateError.exit_code and "no such person" in said
            code, said = ended(tmp_path, issuer, address, "maria")
            assert code == 0, said
        finally:
            authority.terminate()
    identity = load_identity(tmp_path / "coordinator", "coordinator")
    assert identity.name == "alice"
    assert signed_in_of(identity.certificate) == SignedIn("maria", "st-mary", ("age and crp",))
    assert len(list((tmp_path / "authority" / "signed-in").iterdir())) == 1


def ended(folder: Path, issuer: str, address: str, person: str) -> tuple[int, str]:
    """Sign in with the command. Returns: its exit code, and what it said."""
    words = ("--name", "alice", "--institution", "st-mary", "--issuer", issuer)
    words += ("--authority", address, "--ca", "authority/ca.pem")
    with umpc(folder, "enrol", "sign-in", *words, stderr=subprocess.PIPE) as command:
        command.stderr.readline()
        page = sign_in(command.stderr.readline().strip(), folder / "tls.pem", person)
        assert "Go back to the terminal" in page
        said = command.stderr.read()
    return command.returncode, said
