"""The identity of a running process follows its folder, and never to something unusable."""

from __future__ import annotations

import logging
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from umpc.errors import CertificateError
from umpc.transport.identity import load_identity

LOGGER = "umpc.identity"


@pytest.fixture
def running(site):
    """The identity of a process that runs."""
    return site("a")


@pytest.fixture
def folder(tmp_path, running):
    return tmp_path / "a"


def put(folder, **files):
    for name, content in files.items():
        (folder / f"{name}.pem").write_bytes(content)


def list_of(authority, *identities):
    serials = {x509.load_pem_x509_certificate(i.cert_pem).serial_number for i in identities}
    authority.revoke(serials)
    return authority.list_path.read_bytes()


def test_without_a_change_it_is_the_same_snapshot(running):
    assert running.latest() is running


def test_a_renewed_certificate_is_used(running, folder, authority):
    authority.issue("a", "node", folder, days=7)
    assert running.latest().cert_pem == (folder / "cert.pem").read_bytes() != running.cert_pem
    assert running.latest().latest().not_after < running.not_after


def test_a_renewed_key_is_used_when_both_files_are_there(running, folder, authority, caplog):
    authority.issue("a", "node", folder / "new")
    shutil.copy(folder / "new/cert.pem", folder / "cert.pem")
    assert running.latest().cert_pem == running.cert_pem
    assert "is not the key of" in caplog.text and "former certificate stays in use" in caplog.text
    shutil.copy(folder / "new/key.pem", folder / "key.pem")
    renewed = running.latest()
    assert (renewed.cert_pem, renewed.key_pem) == (
        (folder / "new/cert.pem").read_bytes(),
        (folder / "new/key.pem").read_bytes(),
    )


def test_a_half_written_certificate_is_not_used(running, folder, caplog):
    put(folder, cert=running.cert_pem[:300])
    assert running.latest() is running
    assert "cert.pem is not a certificate" in caplog.text
    caplog.clear()
    assert running.latest() is running and caplog.text == "", "one warning for one change"


@pytest.mark.parametrize("file", ["ca.pem", "cert.pem", "key.pem"])
def test_a_deleted_file_changes_nothing(running, folder, file, caplog):
    (folder / file).unlink()
    assert running.latest() is running
    assert f"{file} is missing" in caplog.text


def test_a_certificate_of_another_name_or_role_is_not_used(running, folder, authority, caplog):
    for name, role in (("b", "node"), ("a", "dealer")):
        authority.issue(name, role, folder / role)
        put(folder, **{f: (folder / role / f"{f}.pem").read_bytes() for f in ("cert", "key")})
        assert running.latest() is running
        assert f"is now of {role} '{name}', but this is node 'a'" in caplog.text


def test_another_authority_needs_a_restart(running, folder, other_authority, caplog):
    other_authority.issue("a", "node", folder / "new")
    for file in ("ca.pem", "cert.pem", "key.pem"):
        shutil.copy(folder / "new" / file, folder / file)
    assert running.latest() is running
    assert "is now of another authority: restart" in caplog.text


def test_an_expired_certificate_does_not_replace_a_valid_one(running, folder, authority, caplog):
    authority.issue("a", "node", folder, now=datetime.now(UTC) - timedelta(days=100))
    assert running.latest() is running
    assert "cert.pem expired" in caplog.text


def test_a_list_counts_as_soon_as_it_is_there(running, folder, authority, site):
    assert running.revoked is None
    content = list_of(authority, site("b"))
    put(folder, crl=content)
    assert running.latest().revoked.number == 1
    assert load_identity(folder).revoked == running.latest().revoked
    put(folder, crl=list_of(authority, site("c")))
    assert len(running.latest().revoked.serials) == 2


def unusable_lists(authority, other_authority, site):
    other_authority.revoke(set())
    older = list_of(authority, site("b"))
    newer = list_of(authority, site("c"))
    return newer, {
        "an older list": (older, "is an older list"),
        "another authority": (other_authority.list_path.read_bytes(), "was not signed by our"),
        "half a list": (newer[:200], "is not a list of revoked certificates"),
        "nothing": (b"", "is not a list of revoked certificates"),
    }


def test_an_unusable_list_does_not_replace_the_former_one(
    running, folder, authority, other_authority, site, caplog
):
    good, bad = unusable_lists(authority, other_authority, site)
    put(folder, crl=good)
    held = running.latest().revoked
    for content, reason in bad.values():
        put(folder, crl=content)
        caplog.clear()
        assert running.latest().revoked == held
        assert reason in caplog.text and "former list of revoked" in caplog.text.lower()
    (folder / "crl.pem").unlink()
    assert running.latest().revoked == held and "crl.pem is gone" in caplog.text


def test_an_unusable_list_stops_a_start(folder, running):
    put(folder, crl=b"nonsense")
    with pytest.raises(CertificateError, match="is not a list of revoked certificates in PEM"):
        load_identity(folder)
    (folder / "crl.pem").unlink()
    (folder / "crl.pem").mkdir()
    with pytest.raises(CertificateError, match=r"crl\.pem is not a file"):
        load_identity(folder)


def test_a_process_whose_own_certificate_is_revoked_says_so(running, folder, authority, caplog):
    put(folder, crl=list_of(authority, running))
    with caplog.at_level(logging.ERROR, LOGGER):
        assert running.latest().cert_pem == running.cert_pem
    assert "the certificate of this process (node 'a') is revoked" in caplog.text
    with pytest.raises(CertificateError, match="of this process") as caught:
        load_identity(folder)
    assert caught.value.culprit == "a"


def test_no_snapshot_shows_the_key(running, folder, authority):
    authority.issue("a", "node", folder)
    assert "PRIVATE" not in repr(running.latest())
