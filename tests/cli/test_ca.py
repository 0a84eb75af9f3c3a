"""`umpc ca`, as an administrator types it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from umpc.cli.ca import ca
from umpc.errors import CertificateError, ConfigError
from umpc.transport.identity import load_identity


def run(*arguments):
    """Output of a command; its failure as the exception that `umpc` turns into an exit code."""
    result = CliRunner().invoke(
        ca, [str(a) for a in arguments], catch_exceptions=False, standalone_mode=False
    )
    return result.output


@pytest.fixture
def authority(tmp_path):
    run("init", tmp_path / "authority")
    return tmp_path / "authority"


def test_request_and_sign_make_an_identity(authority, tmp_path):
    site, out = tmp_path / "site", tmp_path / "out"
    said = run("request", "--name", "hospital-a", "--role", "node", site)
    assert f"{site / 'request.csr'}: send it" in said
    said = run(
        "sign",
        "--authority",
        authority,
        site / "request.csr",
        "--out",
        out / "cert.pem",
        "--days",
        7,
    )
    assert "name         hospital-a" in said and "role         node" in said
    for file in ("cert.pem", "ca.pem"):
        (site / file).write_bytes((out / file).read_bytes())
    assert load_identity(site, "node").name == "hospital-a"
    assert not (out / "key.pem").exists()


@pytest.mark.parametrize(("option", "value"), [("--name", "hospital-b"), ("--role", "dealer")])
def test_sign_refuses_what_was_not_asked_for(authority, tmp_path, option, value):
    run("request", "--name", "hospital-a", "--role", "node", tmp_path)
    with pytest.raises(CertificateError, match="the request asks for node 'hospital-a'"):
        run(
            "sign",
            "--authority",
            authority,
            tmp_path / "request.csr",
            option,
            value,
            "--out",
            tmp_path / "cert.pem",
        )
    assert not (tmp_path / "cert.pem").exists()


@pytest.mark.parametrize("out", ["ca.pem", "crl.pem", "key.pem"])
def test_sign_does_not_overwrite_a_key_or_an_authority(authority, tmp_path, out):
    run("request", "--name", "a", "--role", "node", tmp_path)
    before = (tmp_path / "key.pem").read_bytes()
    with pytest.raises(ConfigError, match="would overwrite"):
        run("sign", "--authority", authority, tmp_path / "request.csr", "--out", tmp_path / out)
    assert (tmp_path / "key.pem").read_bytes() == before


def test_sign_names_a_missing_request(authority, tmp_path):
    with pytest.raises(
        CertificateError, match=r"no\.csr is missing: a site's request\.csr was exp"
    ):
        run("sign", "--authority", authority, tmp_path / "no.csr", "--out", tmp_path / "cert.pem")


def test_issue_makes_everything_at_once(authority, tmp_path):
    run("issue", "--authority", authority, "--name", "d", "--role", "dealer", tmp_path / "d")
    assert load_identity(tmp_path / "d", "dealer").name == "d"


def test_show_gives_the_same_authority_for_everybody(authority, tmp_path):
    run("issue", "--authority", authority, "--name", "d", "--role", "dealer", tmp_path / "d")
    shown = [
        run("show", path)
        for path in (tmp_path / "d", tmp_path / "d/cert.pem", authority, authority / "ca.pem")
    ]
    authorities = {
        line for text in shown for line in text.splitlines() if line.startswith("authority")
    }
    assert len(authorities) == 1
    assert shown[0] == shown[1] and "role         dealer" in shown[0] and "valid until" in shown[0]
    assert "name" not in shown[2]


def test_show_never_takes_a_certificates_word_for_its_authority(authority, tmp_path):
    run("issue", "--authority", authority, "--name", "d", "--role", "dealer", tmp_path / "d")
    alone = tmp_path / "cert.pem"
    alone.write_bytes((tmp_path / "d/cert.pem").read_bytes())
    assert "as the certificate itself says: nothing here proves it" in run("show", alone)
    run("init", tmp_path / "other")
    (tmp_path / "d/ca.pem").write_bytes((tmp_path / "other/ca.pem").read_bytes())
    with pytest.raises(CertificateError, match="which did not sign the certificate beside it"):
        run("show", tmp_path / "d")
    assert "as the certificate itself says" in run("show", tmp_path / "d/cert.pem")


def test_show_of_an_empty_folder_says_what_is_missing(tmp_path):
    with pytest.raises(CertificateError, match=r"cert\.pem is missing"):
        run("show", tmp_path)


def test_no_command_prints_a_key(authority, tmp_path):
    key = (authority / "ca-key.pem").read_text().splitlines()[1]
    said = run("issue", "--authority", authority, "--name", "d", "--role", "dealer", tmp_path / "d")
    assert "PRIVATE" not in said and key not in said + run("show", authority)


@pytest.mark.parametrize(
    "command", sorted(name for name, each in ca.commands.items() if not each.hidden)
)
def test_every_command_has_an_example(command):
    assert f"umpc ca {command}" in run(command, "--help")


def test_revoke_by_name_serial_or_file_makes_a_list_for_every_site(authority, tmp_path):
    for name in ("a", "b", "c"):
        run("issue", "--authority", authority, "--name", name, "--role", "node", tmp_path / name)
    by_name = run("revoke", "--authority", authority, "a")
    assert "revoked      node 'a', valid until" in by_name
    assert f"give {authority / 'crl.pem'} to every site" in by_name
    shown = run("show", tmp_path / "b")
    serial = next(line.split()[1] for line in shown.splitlines() if line.startswith("serial"))
    run("revoke", "--authority", authority, serial)
    said = run("revoke", "--authority", authority, tmp_path / "c/cert.pem")
    assert "list         number 3" in said and "3 revoked" in said
    assert "3 revoked" in run("show", authority)
    with pytest.raises(ConfigError, match="'d' is no file, no serial number, and not the name"):
        run("revoke", "--authority", authority, "d")


def test_crl_renews_the_list_without_a_new_entry(authority):
    said = run("crl", "--authority", authority, "--days", 7)
    assert "list         number 1" in said and "0 revoked, next due" in said
    assert "number 2" in run("crl", "--authority", authority)


def test_crl_holds_the_lock_under_which_certificates_are_revoked(authority):
    """Otherwise a revocation between its look and its change would be lost."""
    (authority / "enrolments/lock").mkdir(parents=True)
    for command in (["crl"], ["revoke", "00" * 8]):
        with pytest.raises(CertificateError, match="lock"):
            run(*command, "--authority", authority)


def test_sign_returns_the_list_with_the_certificate(authority, tmp_path):
    run("crl", "--authority", authority)
    run("request", "--name", "a", "--role", "node", tmp_path / "a")
    csr, out = tmp_path / "a/request.csr", tmp_path / "out/cert.pem"
    said = run("sign", "--authority", authority, csr, "--out", out)
    assert str(tmp_path / "out/crl.pem") in said
    assert (tmp_path / "out/crl.pem").read_bytes() == (authority / "crl.pem").read_bytes()
