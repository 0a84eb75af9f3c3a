"""umpc.transport.identity: signing with a site's own files, and whose certificates count."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from umpc.crypto.signing import as_of_now, is_signature
from umpc.errors import CertificateError, RemoteProtocolError
from umpc.study.attempt import check_member, sign_member
from umpc.study.sizes import Member
from umpc.testing import lying
from umpc.transport.authority import Authority
from umpc.transport.certificates import Revoked
from umpc.transport.identity import (
    Identity,
    credentials_of,
    load_identity,
    verifier_at_any_date,
    verifier_of,
)

STUDY = bytes(32)
MEMBER = Member("north", 5, b"c" * 32, b"k" * 32)
LONG_AGO = datetime.now(UTC) - timedelta(days=400)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Issue an identity: site(name, role, authority, now)."""
    authorities: dict[str, Authority] = {}

    def issue(name="north", role="node", authority="ours", now=None) -> Identity:
        if authority not in authorities:
            folder = tmp_path_factory.mktemp(authority)
            authorities[authority] = Authority.create(folder, now=LONG_AGO)
        folder = tmp_path_factory.mktemp(name)
        authorities[authority].issue(name, role, folder, now=now)
        return load_identity(folder, now=now)

    return issue


def checked(identity: Identity, signer: Identity, member: Member = MEMBER) -> bytes:
    """Check, as `identity`, a member that `signer` signed and the coordinator passed on."""
    told = sign_member(STUDY, member, credentials_of(signer))
    verify = verifier_of(identity)
    return check_member(STUDY, told, verify, "coordinator", "agree")


def test_a_node_signs_with_the_key_of_its_certificate(site):
    north, south = site(), site("south")
    key = checked(south, north)
    assert is_signature(key, b"statement", credentials_of(north).sign(b"statement"))
    assert not is_signature(key, b"statement", credentials_of(south).sign(b"statement"))


def test_a_certificate_of_another_authority_blames_the_process_that_passed_it_on(site):
    with pytest.raises(CertificateError, match="not signed by our authority") as caught:
        checked(site("south"), site(authority="theirs"))
    assert (caught.value.culprit, caught.value.step) == ("coordinator", "agree")


def test_bytes_that_are_no_certificate_blame_the_process_that_passed_them_on(site):
    south = site("south")
    told = replace(sign_member(STUDY, MEMBER, credentials_of(site())), certificate=b"none")
    with pytest.raises(CertificateError) as caught:
        check_member(STUDY, told, verifier_of(south), "coordinator", "agree")
    assert caught.value.culprit == "coordinator"


@pytest.mark.parametrize(
    "name, role", [("north", "dealer"), ("north", "coordinator"), ("x", "node")]
)
def test_a_certificate_of_another_name_or_role_is_no_members(site, name, role):
    with pytest.raises(RemoteProtocolError, match=f"of the {role} '{name}'") as caught:
        checked(site("south"), site(name, role))
    assert caught.value.culprit == "coordinator"


def test_an_expired_certificate_blames_its_holder(site):
    old = site(now=LONG_AGO)
    with pytest.raises(CertificateError, match="expired") as caught:
        checked(site("south"), old)
    assert caught.value.culprit == "north"


def test_a_revoked_certificate_blames_its_holder_at_once(site):
    north, south = site(), site("south")
    now = datetime.now(UTC)
    serial = x509.load_pem_x509_certificate(north.cert_pem).serial_number
    checked(south, north)
    listed = Revoked(1, now, now + timedelta(days=1), {serial: now})
    with pytest.raises(CertificateError, match="revoked") as caught:
        checked(replace(south, revoked=listed, source=None), north)
    assert caught.value.culprit == "north"


def test_shufflers_take_members_of_an_earlier_run_whose_certificates_have_ended(site):
    old, shuffler = site(now=LONG_AGO), site("shuffler", "shuffler")
    told = sign_member(STUDY, MEMBER, credentials_of(old))
    check_member(STUDY, told, verifier_at_any_date(shuffler.ca_pem), "north", "prepare")
    foreign = sign_member(STUDY, MEMBER, credentials_of(site(authority="theirs")))
    with pytest.raises(CertificateError):
        check_member(STUDY, foreign, verifier_at_any_date(shuffler.ca_pem), "north", "prepare")


def test_a_check_as_of_now_reads_neither_the_folder_nor_the_clock_again(site):
    north, south = site(), site("south")
    looks = []

    def look(honest, folder):
        looks.append(folder)
        return honest(folder)

    with lying("process", latest=look):
        verify = as_of_now(verifier_of(south))
        with lying("machine", clock=lambda _: LONG_AGO):
            assert [verify(north.pair[0]).name for _ in range(3)] == ["north"] * 3
            assert len(looks) == 1
            with pytest.raises(CertificateError, match="not yet valid"):
                verifier_of(south)(north.pair[0])
            assert len(looks) == 2


def test_a_check_as_of_now_refuses_what_counted_before_or_will_count_later(site):
    old, north, south = site(now=LONG_AGO), site(), site("south")
    with pytest.raises(CertificateError, match="expired"):
        as_of_now(verifier_of(south))(old.pair[0])
    past = lying("machine", clock=lambda _: LONG_AGO)
    with past, pytest.raises(CertificateError, match="not yet valid"):
        as_of_now(verifier_of(south))(north.pair[0])
