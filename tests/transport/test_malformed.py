"""Bytes that anybody may send: a certificate, request, key or list is used, or refused by name.

Every input below must end in a CertificateError or ConfigError of one line, and in nothing else.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from umpc.errors import CertificateError, ConfigError
from umpc.transport.authority import Authority, request
from umpc.transport.certificates import (
    load_certificate,
    load_request,
    names_of,
    parse_certificate,
    parse_key,
    public_key_of,
    verify_certificate,
)
from umpc.transport.files import MAX_BYTES
from umpc.transport.identity import load_identity
from umpc.transport.revocation import parse_revoked
from umpc.transport.tls import peer_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
LABELS = {
    "certificate": "CERTIFICATE",
    "request": "CERTIFICATE REQUEST",
    "key": "PRIVATE KEY",
    "list": "X509 CRL",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("malformed")
    authority = Authority.create(folder / "authority", now=NOW)
    authority.issue("a", "node", folder / "a", now=NOW)
    authority.revoke({12345}, now=NOW)
    return folder


@pytest.fixture(scope="module")
def authority(folder):
    return Authority.open(folder / "authority")


@pytest.fixture(scope="module")
def good(folder):
    """A valid certificate, request, key and list, in DER."""
    key = serialization.load_pem_private_key((folder / "a/key.pem").read_bytes(), None)
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        "certificate": x509.load_pem_x509_certificate(
            (folder / "a/cert.pem").read_bytes()
        ).public_bytes(DER),
        "request": x509.load_pem_x509_csr((folder / "a/request.csr").read_bytes()).public_bytes(
            DER
        ),
        "key": key.private_bytes(DER, *form),
        "list": x509.load_pem_x509_crl((folder / "authority/crl.pem").read_bytes()).public_bytes(
            DER
        ),
    }


class Caller:
    def __init__(self, pem):
        self.auth_context = lambda: {"x509_pem_cert": [pem]}


def in_pem(kind, der):
    from base64 import encodebytes

    label = LABELS[kind].encode()
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (label, encodebytes(der), label)


def readers(authority):
    """Everything that umpc does with the bytes of each kind."""

    def verified(der):
        verify_certificate(der, authority.ca_pem, now=NOW)

    def signed(der):
        csr = in_pem("request", der)
        name, role = names_of(load_request(csr))
        authority.sign(csr, name=name, role=role, now=NOW)

    return {
        "certificate": [
            verified,
            public_key_of,
            lambda der: parse_certificate(in_pem("certificate", der), "cert.pem"),
            lambda der: peer_of(Caller(in_pem("certificate", der)), now=NOW),
            # The authority's own certificate, in place of somebody else's.
            lambda der: parse_revoked(b"", in_pem("certificate", der), "crl.pem"),
        ],
        "request": [signed],
        "key": [lambda der: parse_key(in_pem("key", der), "key.pem")],
        "list": [lambda der: parse_revoked(in_pem("list", der), authority.ca_pem, "crl.pem")],
    }


def typed(read, content):
    """Whether the bytes were accepted. Any exception of another type fails the test."""
    try:
        read(content)
    except (CertificateError, ConfigError) as error:
        assert "\n" not in error.message and len(error.message) < 600
        return False
    return True


@st.composite
def changes(draw):
    """A function that flips, cuts, inserts or repeats a few bytes."""
    edits = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["flip", "set", "cut", "insert", "end"]),
                st.integers(0, 2000),
                st.integers(1, 255),
            ),
            min_size=1,
            max_size=4,
        )
    )

    def change(content):
        changed = bytearray(content)
        for kind, place, value in edits:
            place %= max(1, len(changed))
            if kind == "end":
                del changed[place:]
            elif kind == "cut":
                del changed[place : place + 1 + value % 8]
            elif kind == "insert":
                changed[place:place] = bytes([value])
            elif changed:
                changed[place] = value if kind == "set" else changed[place] ^ value
        return bytes(changed)

    return change


pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")

MANY = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize("kind", sorted(LABELS))
@MANY
@given(change=changes())
def test_a_changed_input_is_never_an_untyped_failure(kind, change, good, authority):
    content = change(good[kind])
    for read in readers(authority)[kind]:
        accepted = typed(read, content)
        if content != good[kind] and kind in ("request", "list"):
            assert not accepted or _means_the_same(kind, content, good[kind])


def _means_the_same(kind, changed, original):
    """The authority's or the site's own signature covers all but the signature's own encoding."""
    load = {"request": x509.load_der_x509_csr, "list": x509.load_der_x509_crl}[kind]
    part = {"request": "tbs_certrequest_bytes", "list": "tbs_certlist_bytes"}[kind]
    return getattr(load(changed), part) == getattr(load(original), part)


@pytest.mark.parametrize("kind", sorted(LABELS))
def test_every_single_flipped_bit_is_typed(kind, good, authority):
    """All bytes, one bit each: what a random search could miss."""
    for place in range(len(good[kind])):
        changed = bytearray(good[kind])
        changed[place] ^= 1 << place % 8
        for read in readers(authority)[kind]:
            typed(read, bytes(changed))


def test_the_unchanged_inputs_are_accepted(good, authority):
    for kind, content in good.items():
        for read in readers(authority)[kind][:3]:
            assert typed(read, content), kind


@MANY
@given(content=st.binary(max_size=300))
def test_garbage_is_refused_by_every_reader(content, authority):
    for kind, all_readers in readers(authority).items():
        for read in all_readers:
            assert not typed(read, content), kind
    assert not typed(load_request, content)
    assert not typed(lambda pem: parse_certificate(pem, "cert.pem"), content)
    assert not typed(lambda pem: parse_revoked(pem, authority.ca_pem, "crl.pem"), content)


# ---- inputs that are well formed and still not ours -------------------------------------------


def _name(text="a"):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _names(*dns):
    return x509.SubjectAlternativeName([x509.DNSName(name) for name in dns])


OURS = _names("a.node.umpc", "any.node.umpc")


def _certificate(key, *, names=OURS, signer=None, start=NOW, days=1, common="a"):
    builder = x509.CertificateBuilder(
        _name(common), _name(common), key.public_key(), 7, start, start + timedelta(days=days)
    ).add_extension(names, False)
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(signer or key, algorithm)


FOREIGN_KEYS = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "secp256k1": lambda: ec.generate_private_key(ec.SECP256K1()),
}


@pytest.mark.parametrize("kind", FOREIGN_KEYS)
def test_a_key_of_another_kind_is_refused_everywhere(kind, folder):
    authority, key = Authority.open(folder / "authority"), FOREIGN_KEYS[kind]()
    cert = _certificate(key)
    with pytest.raises(CertificateError, match="not ECDSA P-256"):
        verify_certificate(cert.public_bytes(DER), authority.ca_pem, now=NOW)
    algorithm = None if kind == "Ed25519" else hashes.SHA256()
    csr = x509.CertificateSigningRequestBuilder(_name()).add_extension(OURS, False)
    content = csr.sign(key, algorithm).public_bytes(PEM)
    with pytest.raises(CertificateError, match="not ECDSA P-256"):
        authority.sign(content, name="a", role="node", now=NOW)
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with pytest.raises(CertificateError, match="not an unencrypted ECDSA P-256 key"):
        parse_key(key.private_bytes(PEM, *form), "key.pem")


@pytest.mark.parametrize(
    "names",
    [
        x509.SubjectAlternativeName([x509.RFC822Name("a@example.org")]),
        x509.SubjectAlternativeName([x509.UniformResourceIdentifier("umpc://a")]),
        _names("a.node.umpc"),
        _names("a\n.node.umpc", "any.node.umpc"),
        _names(*["a.node.umpc", "any.node.umpc"] * 40),
    ],
)
def test_other_names_are_refused_in_one_short_line(names, folder):
    key = ec.generate_private_key(ec.SECP256R1())
    cert = _certificate(key, names=names)
    with pytest.raises(CertificateError, match="expected exactly") as caught:
        names_of(cert)
    assert "\n" not in caught.value.message and len(caught.value.message) < 700


SIGNED = "umpc:signed-in?person=p&institution=i"


@pytest.mark.parametrize(
    ("uris", "reason"),
    [
        (["umpc:signed-in?"], "sign-in in a certificate is malformed"),
        (["umpc:signed-in?person=p"], "sign-in in a certificate is malformed"),
        ([f"{SIGNED}&study=a"], "sign-in in a certificate is malformed"),
        ([f"{SIGNED}&node=n"], "sign-in in a certificate is malformed"),
        ([SIGNED, SIGNED], "sign-in in a certificate is malformed"),
        ([SIGNED, "umpc://a"], "expected exactly"),
        ([SIGNED], "expected exactly"),
    ],
)
def test_a_sign_in_of_another_form_or_of_another_role_is_refused(uris, reason, folder):
    """It is for coordinators; a node's certificate has none."""
    role = "node" if uris == [SIGNED] else "coordinator"
    own = [x509.DNSName(f"{name}.{role}.umpc") for name in ("a", "any")]
    names = [*own, *map(x509.UniformResourceIdentifier, uris)]
    cert = _certificate(
        ec.generate_private_key(ec.SECP256R1()), names=x509.SubjectAlternativeName(names)
    )
    with pytest.raises(CertificateError, match=reason):
        names_of(cert)


def test_the_name_any_is_refused():
    key = ec.generate_private_key(ec.SECP256R1())
    cert = _certificate(key, names=_names("any.node.umpc", "any.node.umpc"), common="any")
    with pytest.raises(CertificateError, match="expected exactly"):
        names_of(cert)


def test_another_version_is_refused_by_name(good, folder):
    """cryptography raises InvalidVersion for it, which is no ValueError."""
    changed = good["certificate"].replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x7f", 1)
    with pytest.raises(x509.InvalidVersion):
        x509.load_der_x509_certificate(changed)
    with pytest.raises(CertificateError, match="are none in DER"):
        verify_certificate(changed, (folder / "a/ca.pem").read_bytes(), now=NOW)
    changed = good["request"].replace(b"\x02\x01\x00", b"\x02\x01\x05", 1)
    with pytest.raises(CertificateError, match="not a certificate request in PEM"):
        load_request(in_pem("request", changed))


# ---- files ---------------------------------------------------------------------------------


@pytest.fixture
def site(folder, tmp_path):
    authority = Authority.open(folder / "authority")
    authority.issue("a", "node", tmp_path / "site")
    authority.revoke(set())
    (tmp_path / "site/crl.pem").write_bytes(authority.list_path.read_bytes())
    return tmp_path / "site"


FILES = ["ca.pem", "cert.pem", "key.pem", "crl.pem"]


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_a_folder_is_refused_by_name(site, file):
    (site / file).unlink()
    (site / file).mkdir()
    with pytest.raises(CertificateError, match=f"{file} is not a file"):
        load_identity(site)


@pytest.mark.parametrize("file", FILES)
def test_a_pipe_is_refused_and_not_waited_for(site, file):
    (site / file).unlink()
    os.mkfifo(site / file)
    with pytest.raises(CertificateError, match=f"{file} is not a file"):
        load_identity(site)


@pytest.mark.parametrize("file", FILES)
def test_a_huge_file_is_refused_and_not_read_whole(site, file):
    with (site / file).open("wb") as huge:
        huge.truncate(1 << 40)
    with pytest.raises(CertificateError, match=f"{file} has more than {MAX_BYTES} bytes"):
        load_identity(site)


@pytest.mark.parametrize("file", FILES)
def test_an_unreadable_file_is_refused_by_name(site, file, monkeypatch):
    def refuse(path, *arguments, **options):
        if path.name == file:
            raise PermissionError(13, "Permission denied")
        return original(path, *arguments, **options)

    original = Path.open
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CertificateError, match=rf"{file} cannot be read \(Permission denied\)"):
        load_identity(site)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("length", [0, 1, 28, 200])
def test_a_cut_off_file_is_refused_by_name(site, file, length):
    (site / file).write_bytes((site / file).read_bytes()[:length])
    with pytest.raises(CertificateError, match=file):
        load_identity(site)


def test_the_der_form_of_a_file_is_refused_by_name(site, good):
    (site / "cert.pem").write_bytes(good["certificate"])
    with pytest.raises(CertificateError, match=r"cert\.pem is not a certificate in PEM"):
        load_certificate(site / "cert.pem")


@pytest.mark.parametrize("write", ["sign", "request", "revoke", "create"])
def test_a_full_disk_is_typed_and_leaves_nothing_half_written(write, folder, tmp_path, monkeypatch):
    authority = Authority.create(tmp_path / "authority")
    csr = request("b", "node", tmp_path / "b").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    before = sorted(tmp_path.rglob("*.pem"))
    monkeypatch.setattr(os, "fsync", full)
    actions = {
        "sign": lambda: authority.sign(csr, name="b", role="node"),
        "request": lambda: request("c", "node", tmp_path / "c"),
        "revoke": lambda: authority.revoke({1}),
        "create": lambda: Authority.create(tmp_path / "new"),
    }
    with pytest.raises(CertificateError, match=r"cannot be written \(No space left on device\)"):
        actions[write]()
    assert sorted(tmp_path.rglob("*.pem")) == before
    assert not list(tmp_path.rglob("*.draft"))
