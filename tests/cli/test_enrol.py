"""`umpc enrol` and `umpc ca list`, as two administrators type them."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from umpc.cli.main import umpc
from umpc.enrolment.register import Register, RequestReceiver
from umpc.enrolment.texts import Request
from umpc.errors import CertificateError, ConfigError
from umpc.node.config import load_node_config
from umpc.transport.addresses import parse_hub
from umpc.transport.certificates import load_key
from umpc.transport.identity import load_identity


def run(*arguments, answer=None):
    """Return what a command prints to standard output and to standard error."""
    words = [str(each) for each in arguments]
    ended = CliRunner().invoke(
        umpc, words, input=answer, catch_exceptions=False, standalone_mode=False
    )
    return ended.stdout, ended.stderr


@pytest.fixture
def authority(tmp_path):
    run("ca", "init", tmp_path / "authority")
    return tmp_path / "authority"


def test_two_administrators_enrol_a_node(authority, tmp_path):
    site = tmp_path / "north"
    site.mkdir()
    (site / "data.csv").write_text("age\n1\n")
    invitation, told = run("enrol", "invite", "north", "--authority", authority)
    assert "administrator of node 'north' only" in told
    own = ("--folder", site)
    more = ("--table", site / "data.csv", "--epsilon", "1/3", "--listen", "127.0.0.1:0")
    request, told = run("enrol", "join", invitation.strip(), *own, *more, "--address", "n.org:7100")
    read = next(line for line in told.splitlines() if line.startswith("fingerprint"))
    (tmp_path / "request").write_text(request)
    for shown in (site / "site/request.csr", tmp_path / "request"):
        assert read in run("ca", "show", shown)[0]
    listed, _ = run("ca", "list", "--authority", authority)
    assert listed.splitlines()[1].startswith("invited  node  north")

    from_file = ("enrol", "approve", tmp_path / "request", "--authority", authority)
    with pytest.raises(CertificateError, match=r"'north' was not approved.* Nothing was signed"):
        run(*from_file, answer="n\n")
    with pytest.raises(click.UsageError, match=r"y or n was expected .* give --fingerprint"):
        run(*from_file, answer="")
    assert "asked" in run("ca", "list", "--authority", authority)[0]
    admission, shown = run("enrol", "approve", "north", "--authority", authority, answer="y\n")
    assert read in shown and "proven by its one-time code" in shown and "n.org:7100" in shown
    said, _ = run("enrol", "finish", "-", *own, answer=admission)
    assert f"umpc node start --config {site / 'node.toml'}" in said
    listed, _ = run("ca", "list", "--authority", authority)
    assert listed.splitlines()[1].startswith("valid  node  north") and "n.org:7100" in listed

    config = load_node_config(site / "node.toml")
    assert (config.name, str(config.epsilon), config.listen) == ("north", "1/3", "127.0.0.1:0")
    assert config.source.path == site / "data.csv" and config.policy.approval is True
    assert load_identity(config.identity, "node").name == "north"
    assert "a person must accept each study" in told
    trial = ("--name", "trial", "--folder", tmp_path / "trial", "--open")
    told = run("enrol", "join", *trial)[1]
    assert "no person is asked" in told
    assert "\n# approval = true" in (tmp_path / "trial/node.toml").read_text()
    before = (site / "node.toml").read_text()
    _, told = run("enrol", "join", "--name", "north", *own, "--epsilon", "9")
    assert "stays as it is" in told and (site / "node.toml").read_text() == before
    run("ca", "revoke", "--authority", authority, "north")
    assert run("ca", "list", "--authority", authority)[0].splitlines()[1].startswith("revoked")


def test_a_revoked_name_is_admitted_again_with_a_warning_at_every_way(authority, tmp_path):
    own, here = ("--folder", tmp_path), ("--authority", authority)

    def admitted() -> str:
        request, _ = run("enrol", "join", "--name", "north", *own)
        return run("enrol", "approve", request, *here, answer="y\n")[1]

    assert "WARNING" not in admitted() + admitted()
    run("ca", "revoke", *here, "north")
    (tmp_path / "site/key.pem").rename(tmp_path / "key.revoked.pem")
    told = admitted()
    assert "WARNING      the former certificate of 'north' was revoked" in told
    assert "WARNING" not in admitted(), "it is a member again, and this renews its certificate"
    run("ca", "revoke", *here, "north")
    run("ca", "request", "--name", "north", "--role", "node", tmp_path / "new")
    asked = (tmp_path / "new/request.csr", "--out", tmp_path / "new/cert.pem")
    assert (
        "WARNING      the former certificate of 'north' was revoked"
        in run("ca", "sign", *here, *asked)[1]
    )


def test_other_roles_finish_without_naming_their_role_and_a_lost_admission_is_printed_again(
    authority, tmp_path
):
    own, here = ("--folder", tmp_path / "s"), ("--authority", authority)
    invitation, _ = run("enrol", "invite", "a", "--role", "dealer", *here)
    request, _ = run("enrol", "join", invitation, *own)
    admission, _ = run("enrol", "approve", request, *here, answer="y\n")
    again, told = run("enrol", "approve", request, *here)
    assert again == admission and "was admitted before, and nothing is signed now" in told
    assert "dealer" in run("enrol", "finish", again, *own)[0]
    assert load_identity(tmp_path / "s/dealer", "dealer").name == "a"
    with pytest.raises(CertificateError, match=r"site/key\.pem is missing: run .*umpc enrol join"):
        run("enrol", "finish", again, *own, "--role", "node")
    run("ca", "revoke", *here, "a", "--role", "dealer")
    with pytest.raises(CertificateError, match="invite the site again"):
        run("enrol", "approve", request, *here)


def test_a_hub_is_a_member_and_the_others_join_behind_it(authority, tmp_path):
    here, relay = ("--authority", authority), ("--folder", tmp_path / "relay")

    def admitted(name, role, *own):
        invitation, _ = run("enrol", "invite", name, "--role", role, *here)
        request, _ = run("enrol", "join", invitation, *own)
        admission, _ = run("enrol", "approve", request, *here, answer="y\n")
        return run("enrol", "finish", admission, *own[:2])[0]

    said = admitted("relay", "hub", *relay, "--address", "hub.org:7443")
    identity = tmp_path / "relay/hub"
    assert f"umpc hub start --identity {identity} --listen 0.0.0.0:7443" in said
    assert load_identity(identity, "hub").name == "relay"
    told = run("enrol", "members", *here)[0]
    assert "# hub 'relay', relay@hub.org:7443\n" in told
    hub = re.search(r"# hub .*, (.*)", told)[1]
    (tmp_path / "north").mkdir()
    (tmp_path / "north/data.csv").write_text("age\n1\n")
    for name, role in (("north", "node"), ("dealer", "dealer")):
        admitted(name, role, "--folder", tmp_path / name, "--hub", hub)
    config = load_node_config(tmp_path / "north/node.toml")
    assert config.hub == parse_hub(hub)
    told = tomllib.loads(run("enrol", "members", *here)[0])
    assert told["nodes"] == [{"name": "north", "address": f"hub:{hub}"}]
    assert told["dealer"] == {"name": "dealer", "address": f"hub:{hub}"}
    for other in (("--address", "n.org:1"), ("--listen", "0.0.0.0:1")):
        with pytest.raises(click.UsageError, match="--hub excludes --address and --listen"):
            run("enrol", "join", "--name", "n", "--folder", tmp_path / "n", "--hub", hub, *other)
    with pytest.raises(ConfigError, match="expected NAME@HOST:PORT"):
        run("enrol", "join", "--name", "n", "--folder", tmp_path / "n", "--hub", "hub.org:7443")
    assert not (tmp_path / "n").exists()


def test_no_text_is_to_be_sent_to_a_site_that_waits_on_the_line(authority, tmp_path):
    here = ("--authority", authority)
    invitation, _ = run("enrol", "invite", "north", *here, "--address", "a.org:7101")
    request, _ = run("enrol", "join", invitation, "--folder", tmp_path / "s", "--offline")
    asked = Request.decode(request)
    RequestReceiver(Register(authority / "enrolments")).answer(asked)
    text, told = run("enrol", "approve", "north", *here, answer="y\n")
    assert text == "" and "'north' waits for this, and fetches it by itself" in told
    answer = RequestReceiver(Register(authority / "enrolments")).answer(asked)
    assert run("enrol", "approve", request, *here)[0].strip() == answer.admission


def test_a_mistake_is_found_before_anything_is_written(authority, tmp_path):
    invitation, _ = run("enrol", "invite", "d", "--role", "dealer", "--authority", authority)
    with pytest.raises(ConfigError, match="there is no such file"):
        run("enrol", "join", invitation, "--folder", tmp_path / "s", "--table", tmp_path / "no.csv")
    assert not (tmp_path / "s").exists()
    with pytest.raises(CertificateError, match="give the text itself, or the file that holds it"):
        run("enrol", "join", tmp_path / "no.invitation")
    run("enrol", "join", invitation, "--folder", tmp_path / "s")
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == ["dealer"]


def keys_of_other_kinds():
    """Yield the words of the refusal, and a key in PEM."""
    secret = form.BestAvailableEncryption(b"passphrase")
    forms = (form.PrivateFormat.PKCS8, form.PrivateFormat.TraditionalOpenSSL)
    key = ec.generate_private_key(ec.SECP256R1())
    for each in forms:
        yield "is encrypted, .*openssl pkey", key.private_bytes(form.Encoding.PEM, each, secret)
    other = rsa.generate_private_key(65537, 2048)
    for each in forms:
        pem = other.private_bytes(form.Encoding.PEM, each, form.NoEncryption())
        yield "but an RSA key: move it away, make a new key", pem


def test_keys_that_others_read_or_of_other_kinds_are_refused(authority, tmp_path):
    run("ca", "issue", "--authority", authority, "--name", "a", "--role", "node", tmp_path / "a")
    key = tmp_path / "a/key.pem"
    for mode in (0o644, 0o640, 0o604, 0o602):
        key.chmod(mode)
        with pytest.raises(CertificateError, match=f"{mode:03o}, 600 was expected.*chmod 600"):
            load_identity(tmp_path / "a")
    key.chmod(0o600)
    load_identity(tmp_path / "a")
    (authority / "ca-key.pem").chmod(0o644)
    with pytest.raises(CertificateError, match=r"ca-key\.pem is a secret key that others can read"):
        run("enrol", "invite", "north", "--authority", authority)
    for words, pem in keys_of_other_kinds():
        key.write_bytes(pem)
        with pytest.raises(CertificateError, match=words):
            load_key(key)
        with pytest.raises(CertificateError, match=words):
            load_identity(tmp_path / "a")


def test_a_key_of_root_may_be_readable_for_its_group(monkeypatch, tmp_path):
    from umpc.transport import files

    path = tmp_path / "key.pem"
    path.touch(0o600)
    path.chmod(0o640)
    found = list(path.stat())
    found[4] = 0  # the owner
    monkeypatch.setattr(Path, "stat", lambda self: os.stat_result(found))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    files.check_private(path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(CertificateError, match="others can read"):
        files.check_private(path)
