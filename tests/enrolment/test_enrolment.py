"""Invite, join, approve, finish: what is trusted, and every lie on the way."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from umpc.enrolment import site_side
from umpc.enrolment.authority_side import EnrolmentOffice
from umpc.enrolment.register import ADMITTED, ASKED, DECLINED, RequestReceiver
from umpc.enrolment.texts import AdmissionText, Invitation, Request
from umpc.errors import CertificateError, ConfigError
from umpc.testing import lying
from umpc.transport.authority import Authority
from umpc.transport.certificates import fingerprint, issuer_fingerprint, load_certificate
from umpc.transport.identity import load_identity

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def office(tmp_path) -> EnrolmentOffice:
    Authority.create(tmp_path / "authority", now=NOW)
    return EnrolmentOffice(tmp_path / "authority", now=lambda: NOW)


def join(folder, name="north", role="node", **options) -> Request:
    return site_side.join(folder, name, role, now=lambda: NOW, **options)


def admit(office, request) -> AdmissionText:
    waiting = office.view(office.receive(request))
    return office.approve(waiting, request.fingerprint)


def finish(folder, admission, **options):
    return site_side.finish(folder, admission, now=lambda: NOW, **options)


def test_an_invitation_leads_to_an_identity_whose_key_stayed(office, tmp_path):
    invitation = office.invite("north", "node")
    travelled = Invitation.decode(invitation.encode())
    site = tmp_path / "site"
    request = Request.decode(join(site, invitation=travelled, address="n:1").encode())
    answer = AdmissionText.decode(admit(office, request).encode())
    identity = finish(site, answer)
    assert (identity.name, identity.role) == ("north", "node")
    assert identity == load_identity(site, "node", now=NOW)
    secret = "".join((site / "key.pem").read_text().splitlines()[1:-1])
    texts = [invitation.encode(), request.encode(), answer.encode()]
    everything = "".join(texts) + "".join(
        path.read_text() for path in (tmp_path / "authority").rglob("*") if path.is_file()
    )
    assert secret[48:88] not in everything
    entry = office.register.find("north", "node")
    assert (entry.state, entry.proven, entry.code) == (ADMITTED, True, "")
    assert invitation.code.hex() not in repr(invitation) + repr(entry)


def test_without_an_invitation_the_authority_must_be_compared(office, tmp_path):
    site = tmp_path / "site"
    answer = admit(office, join(site))
    own = fingerprint(office.authority.cert)
    with pytest.raises(CertificateError, match="which no invitation has named: compare"):
        finish(site, answer)
    with pytest.raises(CertificateError, match="another fingerprint was given"):
        finish(site, answer, expected="00" + own[2:])
    assert sorted(path.name for path in site.iterdir()) == ["key.pem", "request.csr"]
    spoken = " ".join(re.findall("....", own.upper()))
    assert issuer_fingerprint(finish(site, answer, expected=spoken).certificate) == own


def test_an_authority_that_writes_anothers_digits_into_its_certificate_is_refused(office, tmp_path):
    """Somebody between a site and its authority sees the request, and answers in its place."""
    site, digits = tmp_path / "site", fingerprint(office.authority.cert)
    with lying("process", key_digest=lambda honest, key: bytes.fromhex(digits)):
        Authority.create(tmp_path / "evil", now=NOW)
        answer = admit(EnrolmentOffice(tmp_path / "evil", now=lambda: NOW), join(site))
    forged = load_certificate(tmp_path / "evil" / "ca.pem")
    kind = x509.SubjectKeyIdentifier
    assert forged.extensions.get_extension_for_class(kind).value.digest.hex() == digits
    with pytest.raises(CertificateError, match="another fingerprint was given"):
        finish(site, answer, expected=digits)
    assert sorted(path.name for path in site.iterdir()) == ["key.pem", "request.csr"]


def test_a_request_that_came_in_time_waits_for_its_decision_as_long_as_it_takes(tmp_path):
    at = [NOW]
    Authority.create(tmp_path / "authority", now=NOW)
    office = EnrolmentOffice(tmp_path / "authority", now=lambda: at[0])
    invitation = office.invite("north", "node", days=1)
    receiver = RequestReceiver(office.register, now=lambda: at[0])

    def ask(folder: str) -> Request:
        return site_side.join(
            tmp_path / folder, "north", "node", invitation=invitation, now=lambda: at[0]
        )

    assert receiver.answer(ask("site")).state == ASKED
    at[0] += timedelta(days=1, seconds=1)
    late = ask("site")
    assert receiver.answer(late).state == ASKED
    with pytest.raises(CertificateError, match="ended at"):
        ask("another")
    office.approve(office.waiting("north"), late.fingerprint)
    assert receiver.answer(ask("site")).state == ADMITTED


def test_a_changed_bit_of_any_text_is_refused(office, tmp_path):
    request = join(tmp_path / "site", invitation=(invitation := office.invite("north", "node")))
    for given in (invitation, request, admit(office, request)):
        text = given.encode()
        assert type(given).decode(f" {text[:50]}\n  {text[50:]}\n") == given
        for at in range(0, len(text), 37):
            changed = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
            with pytest.raises(CertificateError, match="text of an "):
                type(given).decode(changed)
        with pytest.raises(CertificateError):
            type(given).decode(text[:-1])
    with pytest.raises(CertificateError, match="the text of an invitation came"):
        Request.decode(invitation.encode())


def test_content_of_another_shape_is_refused():
    for content in (
        "[]",
        "{}",
        '{"csr": 1, "address": "", "proof": ""}',
        '{"csr": "é"}',
        "[" * 999,
    ):
        from umpc.enrolment import texts

        body = "umpc-request-1." + texts.base64_text(content.encode())
        with pytest.raises(CertificateError, match="malformed"):
            Request.decode(f"{body}.{texts.check_of(body)}")
    for hostile in (Request(b"no csr"), Request(b"", address="a\nb")):
        with pytest.raises(CertificateError):
            _ = hostile.fingerprint


def test_the_code_binds_one_key_once_and_in_time(office, tmp_path):
    invitation = office.invite("north", "node", days=3)
    thief, owner = (
        join(tmp_path / "t", invitation=invitation),
        join(tmp_path / "o", invitation=invitation),
    )
    unproven = join(tmp_path / "u")
    with pytest.raises(CertificateError, match="does not prove the code"):
        RequestReceiver(office.register).answer(unproven)
    with pytest.raises(CertificateError, match="does not prove the code"):
        office.receive(unproven.proven_by(b"0" * 16))
    assert office.receive(owner).proven
    assert office.receive(owner).state == ASKED  # again, and nothing changes
    with pytest.raises(CertificateError, match="two requests with different keys"):
        office.receive(thief)
    moved = Request(owner.csr, "elsewhere:1", owner.proof)
    with pytest.raises(CertificateError, match="does not prove the code"):
        office.receive(moved)  # the proof covers the address
    later = EnrolmentOffice(tmp_path / "authority", now=lambda: NOW + timedelta(days=4))
    fresh = office.invite("south", "node", days=3)
    late = join(tmp_path / "s", "south", invitation=fresh)
    with pytest.raises(CertificateError, match="does not prove the code"):
        later.receive(late)
    with pytest.raises(CertificateError, match="ended at 2026-03-04"):
        site_side.join(
            tmp_path / "x", "south", "node", invitation=fresh, now=lambda: NOW + timedelta(days=4)
        )


def test_a_new_invitation_ends_the_former_one(office, tmp_path):
    former = office.invite("north", "node")
    office.invite("north", "node")
    with pytest.raises(CertificateError, match="does not prove the code"):
        office.receive(join(tmp_path / "s", invitation=former))


def test_an_approval_takes_the_fingerprint_of_the_key_that_is_signed(office, tmp_path):
    request, other = join(tmp_path / "a"), join(tmp_path / "b")
    waiting = office.view(office.receive(request))
    with pytest.raises(CertificateError, match="another one was given"):
        office.approve(waiting, other.fingerprint)
    with pytest.raises(CertificateError, match="another one was given"):
        office.approve(waiting, "")
    assert office.authority.issued.all() == []
    assert office.waiting("north") == waiting
    office.approve(waiting, request.fingerprint.upper().replace(" ", ":"))
    with pytest.raises(ConfigError, match="no request of 'north' waits"):
        office.waiting("north")
    newer = office.view(office.receive(other))
    assert newer.former == ("2026-05-30",)  # the former key still has a certificate
    office.decline(newer.enrolment)
    assert office.register.find("north", "node").state == DECLINED


def test_an_admission_for_another_key_or_authority_changes_nothing(office, tmp_path):
    site, other = tmp_path / "site", tmp_path / "other"
    joined = join(site, invitation=office.invite("north", "node"))
    before = {path.name: path.read_bytes() for path in site.iterdir()}
    foreign = EnrolmentOffice(_folder(tmp_path / "foreign"), now=lambda: NOW)
    answers = {
        "with another key": admit(office, join(other, "south")),
        "the text is of another one": admit(foreign, joined.__class__(joined.csr)),
    }
    answers["was not signed by"] = AdmissionText(
        answers["the text is of another one"].cert, answers["with another key"].authority
    )
    for words, answer in answers.items():
        with pytest.raises(CertificateError, match=words):
            finish(site, answer)
        assert {path.name: path.read_bytes() for path in site.iterdir()} == before
    with pytest.raises(CertificateError, match="join the other consortium with another --folder"):
        join(site, invitation=foreign.invite("north", "node"))


def _folder(folder):
    Authority.create(folder, now=NOW)
    return folder


def test_a_renewal_keeps_the_key_and_brings_the_list(office, tmp_path):
    site = tmp_path / "site"
    finish(site, admit(office, join(site)), expected=fingerprint(office.authority.cert))
    first = load_certificate(site / "cert.pem")
    office.authority.revoke({12345678901234567890}, now=NOW)
    finish(site, admit(office, join(site)))
    second = load_certificate(site / "cert.pem")
    assert first.serial_number != second.serial_number
    assert first.public_key() == second.public_key()
    assert load_identity(site, now=NOW).revoked.number == 1
    old = admit(office, join(site))
    office.authority.revoke({22345678901234567890}, now=NOW)
    finish(site, admit(office, join(site)))
    finish(site, old)  # an older list does not replace the one in use
    assert load_identity(site, now=NOW).revoked.number == 2


def test_a_damaged_record_is_named(office, tmp_path):
    office.invite("north", "node")
    path = tmp_path / "authority/enrolments/node.north.json"
    assert path.stat().st_mode & 0o777 == 0o600
    for content in ("{", "[]", json.dumps({"name": "north"}), path.read_text().replace("inv", "x")):
        path.write_text(content)
        with pytest.raises(CertificateError, match="is not the record of an enrolment: restore"):
            list(office.register.all())
