"""umpc.crypto.signing: signatures of 64 bytes, and credentials in memory."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import given
from hypothesis import strategies as some

from umpc.crypto.signing import (
    ORDER,
    MemoryAuthority,
    in_der,
    is_signature,
    verify_nobody,
)
from umpc.errors import CertificateError, LocalProtocolError

HERE = MemoryAuthority("here")
NODE = HERE.credentials("north")
KEY = HERE.verify(NODE.certificate).key
STATEMENT = hashlib.sha256(b"statement").digest()


def test_what_the_holder_signed_is_a_signature_of_this_statement_only():
    signature = NODE.sign(STATEMENT)
    assert len(signature) == 64 and is_signature(KEY, STATEMENT, signature)
    assert not is_signature(KEY, STATEMENT + b"x", signature)
    other = HERE.verify(HERE.credentials("south").certificate).key
    assert not is_signature(other, STATEMENT, signature)


@pytest.mark.parametrize("byte", range(0, 64, 7))
def test_a_changed_signature_is_none(byte):
    signature = bytearray(NODE.sign(STATEMENT))
    signature[byte] ^= 1
    assert not is_signature(KEY, STATEMENT, bytes(signature))


def test_impossible_numbers_are_no_signature():
    order = ORDER.to_bytes(32, "big")
    for signature in (b"", bytes(63), bytes(64), bytes(65), order + order, b"\xff" * 64):
        assert not is_signature(KEY, STATEMENT, signature)


NUMBERS = some.integers(0, 2**256 - 1) | some.integers(0, 256).map(lambda bits: (1 << bits) - 1)


@given(NUMBERS, NUMBERS)
def test_a_signature_in_der_is_that_of_the_library(r, s):
    assert in_der(r.to_bytes(32, "big") + s.to_bytes(32, "big")) == encode_dss_signature(r, s)


def test_a_memory_authority_knows_its_own_certificates_only():
    holder = HERE.verify(NODE.certificate)
    assert (holder.name, holder.role) == ("north", "node")
    assert HERE.credentials("north") is NODE
    assert HERE.credentials("north", "dealer").certificate != NODE.certificate
    with pytest.raises(CertificateError):
        MemoryAuthority("elsewhere").verify(NODE.certificate)


def test_credentials_show_neither_key_nor_certificate():
    assert repr(NODE) == "Credentials(name='north')"


def test_an_estimate_has_no_certificates():
    with pytest.raises(LocalProtocolError):
        verify_nobody(NODE.certificate)
