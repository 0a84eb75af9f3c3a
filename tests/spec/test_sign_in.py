"""A coordinator's certificate for hours: its URI, and a node's check of a proposal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from tests.spec.replaying import replay_tests
from umpc.transport.certificates import SignedIn, signed_in_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def uri(person, institution, studies):
    return SignedIn(person, institution, tuple(each.hex() for each in studies)).uri()


def propose(uri, study, coordinator):
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(1))
    cert = builder.add_extension(names, critical=True).sign(key, hashes.SHA256())
    who = signed_in_of(cert)
    who.check(study, coordinator)
    return [who.person, who.institution]


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "sign_in", {"uri": uri, "propose": propose}
)
