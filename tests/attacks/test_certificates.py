"""Bad certificates and requests end in typed errors, whatever their bytes are."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from umpc.errors import CertificateError, UmpcError
from umpc.transport.authority import Authority, request
from umpc.transport.certificates import load_certificate

LINE = "a bad certificate or request raises an untyped error"


@pytest.mark.attack(LINE, "both", "refused: a typed error for every byte")
def test_no_changed_byte_of_a_request_raises_anything_else(tmp_path):
    authority = Authority.create(tmp_path / "authority")
    good = x509.load_pem_x509_csr(request("north", "node", tmp_path / "north").read_bytes())
    der = good.public_bytes(serialization.Encoding.DER)
    unchanged = as_pem(der, "CERTIFICATE REQUEST")
    assert authority.sign(unchanged, name="north", role="node"), "the changes alone are refused"
    for place in range(0, len(der), 2):
        for bit in (0, 7):
            changed = der[:place] + bytes([der[place] ^ 1 << bit]) + der[place + 1 :]
            with pytest.raises(UmpcError):
                authority.sign(as_pem(changed, "CERTIFICATE REQUEST"), name="north", role="node")


@pytest.mark.attack(LINE, "both", "refused: a typed error for every byte")
def test_no_changed_byte_of_a_certificate_raises_anything_else(tmp_path):
    authority = Authority.create(tmp_path / "authority")
    authority.issue("north", "node", tmp_path / "north")
    path = tmp_path / "north" / "cert.pem"
    der = x509.load_pem_x509_certificate(path.read_bytes()).public_bytes(serialization.Encoding.DER)
    path.write_bytes(as_pem(der, "CERTIFICATE"))
    assert load_certificate(path), "the changes alone are refused"
    places, refused = range(0, len(der), 2), 0
    for place in places:
        changed = der[:place] + bytes([der[place] ^ 0x80]) + der[place + 1 :]
        path.write_bytes(as_pem(changed, "CERTIFICATE"))
        try:
            load_certificate(path)
        except CertificateError:
            refused += 1
    assert 0 < refused <= len(places)


def as_pem(der: bytes, what: str) -> bytes:
    import base64

    body = base64.encodebytes(der).decode()
    return f"-----BEGIN {what}-----\n{body}-----END {what}-----\n".encode()
