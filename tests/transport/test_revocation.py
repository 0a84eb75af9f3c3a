"""The signed list of revoked certificates: what it says, and which lists are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from umpc.errors import CertificateError, ConfigError
from umpc.transport.authority import Authority, request
from umpc.transport.certificates import Revoked
from umpc.transport.identity import load_revoked
from umpc.transport.revocation import check_follows, parse_revoked, sign_revoked

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


def serial_of(identity):
    return x509.load_pem_x509_certificate(identity.cert_pem).serial_number


def test_a_list_says_what_was_revoked_and_when(authority, site):
    first, second = serial_of(site("a")), serial_of(site("b"))
    authority.revoke({first}, now=NOW)
    revoked = authority.revoke({second}, days=7, now=LATER)
    read = load_revoked(authority.list_path, authority.ca_pem)
    assert read == revoked
    assert dict(read.serials) == {first: NOW, second: LATER}
    assert (read.number, read.made, read.next_update) == (2, LATER, LATER + timedelta(days=7))


def test_a_certificate_stays_revoked_since_its_first_list(authority, site):
    serial = serial_of(site("a"))
    authority.revoke({serial}, now=NOW)
    assert authority.revoke({serial}, now=LATER).serials[serial] == NOW
    assert authority.revoke(set(), now=LATER).serials[serial] == NOW


def test_the_authority_knows_the_last_revocation_beside_the_first(authority, site):
    first, second = serial_of(site("a")), serial_of(site("b"))
    authority.revoke({first, second}, now=NOW)
    assert authority.last_revocation("a", "node") == NOW
    authority.revoke({first}, now=LATER)
    assert authority.last_revocation("a", "node") == LATER
    assert authority.last_revocation("b", "node") == NOW
    assert authority.last_revocation("c", "node") is None


def test_no_list_is_none(authority):
    assert load_revoked(authority.list_path, authority.ca_pem) is None


def test_a_list_of_another_authority_is_refused(authority, other_authority):
    other_authority.revoke(set(), now=NOW)
    with pytest.raises(CertificateError, match="was not signed by our authority"):
        load_revoked(other_authority.list_path, authority.ca_pem)


def test_a_changed_list_is_refused(authority, site):
    """Somebody puts another serial number into a signed list."""
    serial = serial_of(site("a"))
    authority.revoke({serial}, now=NOW)
    crl = x509.load_pem_x509_crl(authority.list_path.read_bytes())
    der = crl.public_bytes(serialization.Encoding.DER)
    length = (serial.bit_length() + 7) // 8
    old = serial.to_bytes(length, "big")
    changed = der.replace(old, (serial ^ 1).to_bytes(length, "big"))
    assert changed != der
    content = x509.load_der_x509_crl(changed).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(CertificateError, match="or was changed"):
        parse_revoked(content, authority.ca_pem, "crl.pem")


def _signed_by(authority, *, number=True, part=False):
    key = serialization.load_pem_private_key(
        (authority.list_path.parent / "ca-key.pem").read_bytes(), None
    )
    builder = x509.CertificateRevocationListBuilder(authority.cert.subject, NOW, LATER)
    if number:
        builder = builder.add_extension(x509.CRLNumber(3), False)
    if part:
        builder = builder.add_extension(x509.DeltaCRLIndicator(2), True)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.mark.parametrize("kind", [{"number": False}, {"part": True}])
def test_a_list_without_a_number_and_a_part_of_a_list_are_refused(authority, kind):
    with pytest.raises(CertificateError, match="of a kind that umpc does not make"):
        parse_revoked(_signed_by(authority, **kind), authority.ca_pem, "crl.pem")
    assert parse_revoked(_signed_by(authority), authority.ca_pem, "crl.pem").number == 3


def test_an_older_list_and_a_list_that_lost_entries_do_not_follow():
    due = NOW + timedelta(days=30)
    former = Revoked(5, NOW, due, {7: NOW})
    check_follows(Revoked(6, LATER, due, {7: NOW, 8: LATER}), former, "crl.pem")
    check_follows(former, former, "crl.pem")
    check_follows(former, None, "crl.pem")
    with pytest.raises(CertificateError, match=r"older list \(number 4, .*\(number 5"):
        check_follows(Revoked(4, LATER, due, {7: NOW}), former, "crl.pem")
    with pytest.raises(CertificateError, match="older list"):
        check_follows(Revoked(5, NOW - timedelta(1), due, {7: NOW}), former, "crl.pem")
    with pytest.raises(CertificateError, match="lacks 1 certificates"):
        check_follows(Revoked(6, LATER, due, {8: NOW}), former, "crl.pem")


def test_the_authority_signs_nothing_for_the_key_of_a_revoked_certificate(authority, tmp_path):
    """Whoever stole the key would have the key of the new certificate too."""
    authority.issue("a", "node", tmp_path / "a")
    authority.revoke(authority.issued.find("a"))
    csr = request("a", "node", tmp_path / "a").read_bytes()
    with pytest.raises(CertificateError, match="is for the key of a revoked certificate"):
        authority.sign(csr, name="a", role="node")
    (tmp_path / "a/key.pem").unlink()
    csr = request("a", "node", tmp_path / "a").read_bytes()
    assert authority.sign(csr, name="a", role="node")


def test_a_name_stands_for_all_its_certificates_and_needs_a_role_if_it_has_two(authority, tmp_path):
    authority.issue("a", "node", tmp_path / "a")
    authority.issue("a", "node", tmp_path / "a")
    authority.issue("b", "node", tmp_path / "b")
    assert len(authority.issued.find("a")) == 2
    authority.issue("a", "dealer", tmp_path / "d")
    with pytest.raises(ConfigError, match="name of a dealer and of a node: give --role"):
        authority.issued.find("a")
    assert len(authority.issued.find("a", "dealer")) == 1


def test_a_serial_number_stands_for_itself_also_without_a_record(authority, site):
    serial = serial_of(site("a"))
    assert authority.issued.find(f"{serial:x}") == {serial}
    assert authority.issued.find("0123:4567:89AB:CDEF") == {0x123456789ABCDEF}
    with pytest.raises(ConfigError, match="is no file, no serial number, and not the name"):
        authority.issued.find("nobody")


def test_a_certificate_without_a_record_is_revoked_by_its_file(
    authority, other_authority, site, tmp_path
):
    """An authority of umpc 0.2.0 kept no record."""
    identity = site("a")
    for path in (authority.list_path.parent / "issued").iterdir():
        path.unlink()
    with pytest.raises(ConfigError):
        authority.issued.find("a")
    cert = tmp_path / "a/cert.pem"
    assert authority.adopt(cert) == serial_of(identity)
    assert authority.issued.find("a") == {serial_of(identity)}
    with pytest.raises(CertificateError, match="this authority did not sign it"):
        other_authority.adopt(cert)


def test_a_list_survives_the_opening_of_the_authority_and_travels_with_ca_pem(
    authority, site, tmp_path
):
    authority.revoke({serial_of(site("a"))})
    again = Authority.open(tmp_path / "authority")
    assert again.revoked() == authority.revoked()
    again.issue("c", "node", tmp_path / "c")
    assert (tmp_path / "c/crl.pem").read_bytes() == authority.list_path.read_bytes()


def test_a_list_needs_days(authority):
    for days in (0, 10**9):
        with pytest.raises(ConfigError, match="expected 1 to 3650"):
            authority.revoke(set(), days=days)


def test_a_list_with_our_name_and_another_key_is_refused(authority):
    stranger = ec.generate_private_key(ec.SECP256R1())
    revoked = Revoked(1, NOW, LATER, {})
    content = sign_revoked(revoked, authority.cert, stranger)
    with pytest.raises(CertificateError, match="was not signed by our authority"):
        parse_revoked(content, authority.ca_pem, "crl.pem")
