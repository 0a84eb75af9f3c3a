"""members.pem: a process checks the certificates of others ahead, and trusts nobody for it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization as form

from umpc.crypto import signing
from umpc.errors import CertificateError
from umpc.transport import certificates, credentials, members_file
from umpc.transport.authority import Authority, load_identity
from umpc.transport.credentials import verifier_of
from umpc.transport.files import write_public
from umpc.transport.members_file import FILE, check_members_ahead, write_members

NOW = datetime.now(UTC)


@pytest.fixture
def authority(tmp_path):
    return Authority.create(tmp_path / "authority", now=NOW - timedelta(days=500))


def issued(authority, folder, name, role="node", *, now=None):
    """Issue an identity, and return its certificate."""
    authority.issue(name, role, folder / name, now=now)
    return x509.load_pem_x509_certificate((folder / name / "cert.pem").read_bytes())


def der(cert):
    return cert.public_bytes(form.Encoding.DER)


def forget():
    """Empty the caches of checks, as they are in a process that has just started."""
    for cached in (
        certificates._issued,
        certificates.public_key_of,
        certificates.named_certificate,
        certificates._common_life,
        credentials._point,
        signing.read_point,
    ):
        cached.cache_clear()


def test_the_file_has_the_newest_certificate_of_each_member_that_counts(authority, tmp_path):
    issued(authority, tmp_path, "north", now=NOW - timedelta(days=9))
    north = issued(authority, tmp_path, "north", now=NOW - timedelta(days=2))
    dealer = issued(authority, tmp_path, "north-dealer", "dealer")
    void = issued(authority, tmp_path, "south")
    issued(authority, tmp_path, "long-gone", now=NOW - timedelta(days=400))
    authority.revoke({void.serial_number}, days=30)
    assert authority.write_members(tmp_path) == 2
    assert x509.load_pem_x509_certificates((tmp_path / FILE).read_bytes()) == [north, dealer]


def test_what_was_checked_ahead_is_not_computed_again(authority, tmp_path, monkeypatch):
    others = [issued(authority, tmp_path, f"node-{number}") for number in range(3)]
    authority.issue("own", "node", tmp_path / "own")
    write_members([tmp_path / "own"], others)
    identity = load_identity(tmp_path / "own")
    forget()
    assert check_members_ahead(identity) == 3
    checked = []
    monkeypatch.setattr(certificates, "is_signed_by", lambda cert, ca: checked.append(cert) or True)
    holders = [verifier_of(identity)(der(cert)) for cert in others]
    assert [holder.name for holder in holders] == ["node-0", "node-1", "node-2"] and not checked
    assert signing.read_point.cache_info().currsize == 3
    verifier_of(identity)(der(issued(authority, tmp_path, "late")))
    assert len(checked) == 1, "a certificate that is not in the file is checked when it is shown"


def test_a_certificate_that_was_checked_ahead_counts_no_longer_than_any_other(authority, tmp_path):
    south = issued(authority, tmp_path, "south")
    authority.issue("own", "node", tmp_path / "own")
    write_members([tmp_path / "own"], [south])
    identity = load_identity(tmp_path / "own")
    assert check_members_ahead(identity) == 1
    authority.revoke({south.serial_number}, days=30)
    authority.write_trust(tmp_path / "own")
    with pytest.raises(CertificateError, match="revoked"):
        verifier_of(identity)(der(south))


def test_a_stranger_in_the_file_is_no_member(authority, tmp_path, caplog):
    stranger = issued(Authority.create(tmp_path / "other"), tmp_path / "elsewhere", "mallory")
    north = issued(authority, tmp_path, "north")
    authority.issue("own", "node", tmp_path / "own")
    write_members([tmp_path / "own"], [stranger, north])
    identity = load_identity(tmp_path / "own")
    with caplog.at_level(logging.WARNING):
        assert check_members_ahead(identity) == 1
    assert "1 certificates do not count, the first because the certificate of node 'mallory'" in (
        caplog.text
    )
    assert "mallory" in caplog.text and "was not signed by our authority" in caplog.text
    with pytest.raises(CertificateError, match="was not signed by our authority"):
        verifier_of(identity)(der(stranger))


@pytest.mark.parametrize("content", [b"", b"no certificates", b"-----BEGIN CERTIFICATE-----\nAAAA"])
def test_a_damaged_file_is_left_out(authority, tmp_path, caplog, content):
    authority.issue("own", "node", tmp_path)
    write_public(tmp_path / FILE, content)
    with caplog.at_level(logging.WARNING):
        assert check_members_ahead(load_identity(tmp_path)) == 0
    assert f"{tmp_path / FILE} holds no certificates in PEM: ask the authority" in caplog.text


def test_a_file_of_any_length_is_not_read(authority, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(members_file, "MOST_BYTES", 100)
    north = issued(authority, tmp_path, "north")
    write_members([tmp_path / "north"], [north])
    assert check_members_ahead(load_identity(tmp_path / "north")) == 0
    assert "members.pem has more than 100 bytes" in caplog.text


def test_the_file_of_the_largest_study_is_read(authority, tmp_path):
    north = issued(authority, tmp_path, "north")
    write_members([tmp_path / "north"], [north] * 4096)
    assert (tmp_path / "north" / FILE).stat().st_size > 1 << 20
    assert check_members_ahead(load_identity(tmp_path / "north")) == 4096


@pytest.mark.parametrize("target", ["nowhere", "x" * 300, "members.pem", "."])
def test_a_file_that_cannot_be_read_stops_no_start(authority, tmp_path, caplog, target):
    authority.issue("own", "node", tmp_path)
    (tmp_path / FILE).symlink_to(target)
    assert check_members_ahead(load_identity(tmp_path)) == 0
    assert "It is left out" in caplog.text


def test_without_the_file_nothing_is_checked_ahead(authority, tmp_path):
    authority.issue("own", "node", tmp_path)
    assert check_members_ahead(load_identity(tmp_path)) == 0
