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
from html import unescape
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode, urljoin

import pytest

from tests.support.institution import make_tls
from umpc.errors import CertificateError
from umpc.transport.authority import Authority
from umpc.transport.certificates import SignedIn, signed_in_of
from umpc.transport.identity import load_identity

STUDY = 64 * "a"
HERE = Path(__file__).parent


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


@pytest.mark.timeout(300)
def test_a_person_signs_in_and_gets_a_certificate(tmp_path, issuer):
    Authority.create(tmp_path / "authority")
    (tmp_path / "institutions.toml").write_text(f"""
[sign_in.st-mary]
issuer = "{issuer}"
client = "umpc"
[sign_in.st-mary.people]
maria = {{ name = "alice", studies = ["{STUDY}"] }}
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
    assert signed_in_of(identity.certificate) == SignedIn("maria", "st-mary", (STUDY,))
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
