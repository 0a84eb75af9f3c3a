"""Every certificate says who its owner is, and every reason to refuse one is named."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from umpc.errors import CertificateError, ConfigError
from umpc.transport.authority import Authority, request
from umpc.transport.certificates import fingerprint, load_key, names_of
from umpc.transport.identity import load_identity

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def csr_of(name, dns, key=None):
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    if dns:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(d) for d in dns]), False
        )
    signed = builder.sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


GOOD_DNS = ["a.node.umpc", "any.node.umpc"]


def test_a_signed_request_becomes_the_identity_of_its_site(authority, tmp_path):
    path = request("hospital-a", "node", tmp_path / "site")
    cert = authority.sign(path.read_bytes(), name="hospital-a", role="node", days=30, now=NOW)
    (tmp_path / "site/cert.pem").write_bytes(cert)
    (tmp_path / "site/ca.pem").write_bytes(authority.ca_pem)
    identity = load_identity(tmp_path / "site", "node", now=NOW)
    assert (identity.name, identity.role) == ("hospital-a", "node")
    assert identity.not_after == NOW + timedelta(days=30)


def test_the_certificate_has_the_names_usages_and_key_we_promise(site):
    cert = x509.load_pem_x509_certificate(site("b", "dealer").cert_pem)
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    usage = cert.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert names.get_values_for_type(x509.DNSName) == ["b.dealer.umpc", "any.dealer.umpc"]
    assert set(usage) == {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH}
    assert isinstance(cert.public_key().curve, ec.SECP256R1)
    assert not cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_keys_are_for_their_owner_only_and_stay_where_they_were_made(authority, site, tmp_path):
    site("a")
    for key in (tmp_path / "authority/ca-key.pem", tmp_path / "a/key.pem"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert b"PRIVATE" not in (tmp_path / "a/request.csr").read_bytes()


def test_no_repr_shows_a_key(authority, site):
    identity = site("a")
    shown = repr(identity) + repr(authority)
    assert "PRIVATE" not in shown and identity.key_pem.decode()[40:80] not in shown


def test_the_default_life_is_90_days_and_never_beyond_the_authority(authority, tmp_path):
    csr = request("a", "node", tmp_path / "a").read_bytes()

    def until(**kw):
        return x509.load_pem_x509_certificate(
            authority.sign(csr, name="a", role="node", **kw)
        ).not_valid_after_utc

    assert until(now=NOW) == NOW + timedelta(days=90)
    assert until(now=NOW, days=36500) == authority.cert.not_valid_after_utc


def test_request_again_keeps_the_key(tmp_path):
    request("a", "node", tmp_path)
    before = (tmp_path / "key.pem").read_bytes()
    request("a", "node", tmp_path)
    assert (tmp_path / "key.pem").read_bytes() == before


def test_an_authority_is_never_overwritten(authority, tmp_path):
    before = (tmp_path / "authority/ca-key.pem").read_bytes()
    with pytest.raises(ConfigError, match="exists already"):
        Authority.create(tmp_path / "authority")
    assert (tmp_path / "authority/ca-key.pem").read_bytes() == before
    assert Authority.open(tmp_path / "authority").ca_pem == authority.ca_pem


def test_issue_does_not_turn_one_site_into_another(authority, site, tmp_path):
    site("a")
    with pytest.raises(ConfigError, match="is of node 'a'"):
        authority.issue("b", "node", tmp_path / "a")


def test_open_names_what_is_missing_or_does_not_match(authority, other_authority, tmp_path):
    with pytest.raises(CertificateError, match=r"ca.pem is missing: .*umpc ca init"):
        Authority.open(tmp_path / "nowhere")
    (tmp_path / "authority/ca-key.pem").write_bytes((tmp_path / "other/ca-key.pem").read_bytes())
    with pytest.raises(CertificateError, match=r"ca-key.pem is not the key of"):
        Authority.open(tmp_path / "authority")


@pytest.mark.parametrize("name", ["", "A", "a.b", "-a", "a-", "a" * 64, "any", "a b", "ä", "a\n"])
def test_a_name_that_is_no_dns_label_is_refused(name, tmp_path):
    with pytest.raises(ConfigError, match="cannot be the name"):
        request(name, "node", tmp_path)
    assert not (tmp_path / "key.pem").exists()


@pytest.mark.parametrize("name", ["a", "0", "a-b", "a" * 63])
def test_a_dns_label_is_a_name(name, tmp_path):
    assert request(name, "node", tmp_path).exists()


def test_an_unknown_role_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match="role 'admin' is unknown: expected one of node, dealer, shuffler, coord"
    ):
        request("a", "admin", tmp_path)


def test_a_certificate_of_no_days_is_refused(authority, tmp_path):
    with pytest.raises(ConfigError, match="expected at least 1"):
        authority.sign(csr_of("a", GOOD_DNS), name="a", role="node", days=0)


BAD_REQUESTS = {
    "another name": (
        lambda: csr_of("b", ["b.node.umpc", "any.node.umpc"]),
        "asks for node 'b', expected node 'a'",
    ),
    "another role": (
        lambda: csr_of("a", ["a.dealer.umpc", "any.dealer.umpc"]),
        "asks for dealer 'a'",
    ),
    "a name too many": (lambda: csr_of("a", [*GOOD_DNS, "b.node.umpc"]), "expected exactly"),
    "a name too few": (lambda: csr_of("a", GOOD_DNS[:1]), "expected exactly"),
    "no names": (lambda: csr_of("a", []), "expected exactly"),
    "CN and names differ": (lambda: csr_of("b", GOOD_DNS), "expected exactly"),
    "an RSA key": (
        lambda: csr_of("a", GOOD_DNS, rsa.generate_private_key(65537, 2048)),
        "not ECDSA P-256",
    ),
    "another curve": (
        lambda: csr_of("a", GOOD_DNS, ec.generate_private_key(ec.SECP384R1())),
        "not ECDSA P-256",
    ),
    "no request": (lambda: b"hello", "not a certificate request"),
}


@pytest.mark.parametrize("what", BAD_REQUESTS)
def test_a_bad_request_is_refused(what, authority):
    make, reason = BAD_REQUESTS[what]
    with pytest.raises(CertificateError, match=reason):
        authority.sign(make(), name="a", role="node")


def test_a_request_changed_on_its_way_is_refused(authority):
    """Somebody puts name b where the site signed name a."""
    der = x509.load_pem_x509_csr(csr_of("a", GOOD_DNS)).public_bytes(serialization.Encoding.DER)
    changed = der.replace(b"a.node.umpc", b"b.node.umpc")
    changed = changed.replace(b"\x06\x03\x55\x04\x03\x0c\x01a", b"\x06\x03\x55\x04\x03\x0c\x01b")
    csr = x509.load_der_x509_csr(changed)
    assert names_of(csr) == ("b", "node")
    with pytest.raises(CertificateError, match="signature is wrong"):
        authority.sign(csr.public_bytes(serialization.Encoding.PEM), name="b", role="node")


@pytest.mark.parametrize("file", ["ca.pem", "cert.pem", "key.pem"])
def test_a_missing_or_damaged_file_is_named(file, site, tmp_path):
    site("a")
    (tmp_path / "a" / file).write_text("nonsense")
    with pytest.raises(CertificateError, match=f"{file} is not"):
        load_identity(tmp_path / "a")
    (tmp_path / "a" / file).unlink()
    with pytest.raises(CertificateError, match=f"{file} is missing: .*umpc enrol join"):
        load_identity(tmp_path / "a")


def test_a_key_of_somebody_else_is_refused(site, tmp_path):
    site("a"), site("b")
    (tmp_path / "a/key.pem").write_bytes((tmp_path / "b/key.pem").read_bytes())
    with pytest.raises(CertificateError, match=r"key.pem is not the key of"):
        load_identity(tmp_path / "a")


def test_another_authority_is_named_by_its_fingerprint(site, other_authority, authority, tmp_path):
    site("a")
    (tmp_path / "a/ca.pem").write_bytes(other_authority.ca_pem)
    with pytest.raises(CertificateError, match="was not signed by") as caught:
        load_identity(tmp_path / "a")
    assert fingerprint(authority.cert) in caught.value.message
    assert fingerprint(other_authority.cert) in caught.value.message


def test_expired_and_not_yet_valid_are_told_apart_to_the_second(site, tmp_path):
    site("a", now=NOW)
    load_identity(tmp_path / "a", now=NOW + timedelta(days=90))
    with pytest.raises(CertificateError, match=r"cert.pem expired, at 2026-05-30 00:00 UTC"):
        load_identity(tmp_path / "a", now=NOW + timedelta(days=90, seconds=1))
    load_identity(tmp_path / "a", now=NOW - timedelta(minutes=5))
    with pytest.raises(CertificateError, match="not yet valid, only from 2026-02-28 23:55 UTC"):
        load_identity(tmp_path / "a", now=NOW - timedelta(minutes=5, seconds=1))


def test_an_expired_authority_signs_nothing(authority):
    with pytest.raises(CertificateError, match=r"ca.pem expired"):
        authority.sign(
            csr_of("a", GOOD_DNS), name="a", role="node", now=datetime(2035, 1, 1, tzinfo=UTC)
        )


def test_the_wrong_role_says_both(site, tmp_path):
    site("a", "dealer")
    with pytest.raises(CertificateError, match=r"role dealer .*expected role node"):
        load_identity(tmp_path / "a", "node")


def test_the_key_loads_only_from_a_p256_file(tmp_path):
    key = rsa.generate_private_key(65537, 2048)
    form = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (tmp_path / "key.pem").write_bytes(key.private_bytes(*form))
    (tmp_path / "key.pem").chmod(0o600)
    with pytest.raises(CertificateError, match="not an unencrypted ECDSA P-256 key"):
        load_key(tmp_path / "key.pem")
