"""A certificate of somebody else: who is it of, and does it count now?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from umpc.errors import CertificateError
from umpc.transport.certificates import Revoked, load_key, public_key_of, verify_certificate

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def der_of(identity):
    return x509.load_pem_x509_certificate(identity.cert_pem).public_bytes(Encoding.DER)


def serial_of(identity):
    return x509.load_pem_x509_certificate(identity.cert_pem).serial_number


def test_a_certificate_of_our_authority_says_name_role_and_key(site):
    identity = site("b", "dealer", now=NOW)
    der = der_of(identity)
    assert verify_certificate(der, identity.ca_pem, now=NOW) == ("b", "dealer")
    key = x509.load_pem_x509_certificate(identity.cert_pem).public_key()
    assert public_key_of(der) == key


def test_a_certificate_of_another_authority_is_refused(site, other_authority):
    ours, theirs = site("a", now=NOW), site("b", signer=other_authority, now=NOW)
    with pytest.raises(CertificateError, match="'b' was not signed by our authority"):
        verify_certificate(der_of(theirs), ours.ca_pem, now=NOW)


def key_of(authority):
    return load_key(authority.list_path.with_name("ca-key.pem"))


def signed_like(identity, issuer, key, how):
    """The certificate of an identity, signed anew under an issuer's name."""
    old = x509.load_pem_x509_certificate(identity.cert_pem)
    new = x509.CertificateBuilder(
        issuer, old.subject, old.public_key(), old.serial_number, NOW, NOW + timedelta(days=9)
    )
    for each in old.extensions:
        new = new.add_extension(each.value, each.critical)
    return new.sign(key, how).public_bytes(Encoding.DER)


def test_the_authoritys_key_counts_and_not_the_name_of_an_issuer(site, authority, other_authority):
    identity = site("a", now=NOW)
    ours, theirs = authority.cert.subject, other_authority.cert.subject
    foreign = signed_like(identity, ours, key_of(other_authority), SHA256())
    with pytest.raises(CertificateError, match="'a' was not signed by our authority"):
        verify_certificate(foreign, identity.ca_pem, now=NOW)
    own = signed_like(identity, theirs, key_of(authority), SHA256())
    assert verify_certificate(own, identity.ca_pem, now=NOW) == ("a", "node")


@pytest.mark.parametrize("key", [ed25519.Ed25519PrivateKey.generate(), None])
def test_a_signature_of_another_kind_is_refused(site, authority, key):
    identity = site("a", now=NOW)
    how = SHA256() if key is None else None
    key = key or rsa.generate_private_key(65537, 2048)
    der = signed_like(identity, authority.cert.subject, key, how)
    with pytest.raises(CertificateError, match="'a' was not signed by our authority"):
        verify_certificate(der, identity.ca_pem, now=NOW)


def test_a_certificate_that_signed_itself_is_refused(site, authority):
    site("a", now=NOW)
    der = authority.cert.public_bytes(Encoding.DER)
    with pytest.raises(CertificateError, match="expected exactly"):
        verify_certificate(der, authority.ca_pem, now=NOW)


@pytest.mark.parametrize(("days", "reason"), [(91, "expired"), (-1, "not yet valid")])
def test_a_certificate_counts_only_between_its_dates(site, days, reason):
    identity = site("a", now=NOW)
    with pytest.raises(CertificateError, match=f"the certificate of node 'a' {reason}|is {reason}"):
        verify_certificate(der_of(identity), identity.ca_pem, now=NOW + timedelta(days=days))


def test_a_revoked_certificate_is_refused_with_its_name(site):
    old, new = site("a", now=NOW), site("a", now=NOW)
    revoked = Revoked(1, NOW, NOW + timedelta(days=30), {serial_of(old): NOW})
    with pytest.raises(CertificateError, match="certificate of node 'a' was revoked") as caught:
        verify_certificate(der_of(old), old.ca_pem, now=NOW, revoked=revoked)
    assert caught.value.culprit == "a"
    assert verify_certificate(der_of(new), old.ca_pem, now=NOW, revoked=revoked) == ("a", "node")


@pytest.mark.parametrize("der", [b"", b"hello", b"\x30\x03\x02\x01\x00", bytes(10_000)])
def test_bytes_that_are_no_certificate_are_refused(site, der):
    with pytest.raises(CertificateError, match="are none in DER"):
        verify_certificate(der, site("a", now=NOW).ca_pem, now=NOW)
