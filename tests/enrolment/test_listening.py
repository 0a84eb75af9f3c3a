"""The listening authority: what each side can do by lying, over real TLS on loopback."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import tomllib
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.ports import reserved_address
from umpc.enrolment import listener, site_side
from umpc.enrolment.authority_side import EnrolmentOffice
from umpc.enrolment.listener import (
    CALLS,
    FAILURES,
    MOST_OF_ONE_PLACE,
    MOST_PLACES,
    PATH,
    EnrolmentDesk,
    Visits,
    listening,
)
from umpc.enrolment.register import members_of, parse_members, to_toml
from umpc.enrolment.site_side import (
    HOST,
    EnrolmentAnswer,
    ListeningTls,
    ask,
    listening_tls,
    pinned_tls,
    wait_until_admitted,
)
from umpc.enrolment.texts import Invitation, Request
from umpc.errors import CertificateError, PeerUnavailable
from umpc.testing import lying
from umpc.transport.addresses import split_address
from umpc.transport.authority import Authority
from umpc.transport.certificates import clock, names_of, parse_certificate
from umpc.transport.identity import load_identity


class Consortium:
    """An authority that listens, and the invitations that name its address."""

    def __init__(self, folder: Path, address: str):
        self.folder = folder
        self.office = EnrolmentOffice(folder)
        self.address = address

    def invite(self, name: str, role: str = "node") -> Invitation:
        invitation = self.office.invite(name, role, address=self.address)
        return Invitation.decode(invitation.encode())

    def approve(self, name: str) -> None:
        waiting = self.office.waiting(name)
        self.office.approve(waiting, waiting.fingerprint)


@contextmanager
def authority_at(folder: Path, visits: Visits | None = None):
    Authority.create(folder)
    tls = listening_tls(folder)
    with listening(EnrolmentDesk(folder), tls.context, "127.0.0.1:0", visits=visits) as address:
        yield Consortium(folder, address)


@pytest.fixture
def consortium(tmp_path):
    with authority_at(tmp_path / "authority") as found:
        yield found


def join(folder: Path, invitation: Invitation, address: str = "n.org:7100") -> Request:
    return site_side.join(
        folder, invitation.name, invitation.role, invitation=invitation, address=address
    )


def test_a_site_asks_waits_and_gets_its_certificate_and_the_members(consortium, tmp_path, caplog):
    caplog.set_level("DEBUG")
    invitation = consortium.invite("north")
    request = join(tmp_path / "north", invitation)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            consortium.approve("north")

    answer = wait_until_admitted(lambda: ask(invitation, request), 1, pause=pause)
    assert len(pauses) == 2 and pauses[0] < pauses[1]
    identity = site_side.finish(tmp_path / "north", answer.admission)
    assert (identity.name, identity.role) == ("north", "node")
    assert [(each.name, each.address) for each in answer.members] == [("north", "n.org:7100")]
    # The same command after an interruption gets the same answer, and the code is gone.
    again = join(tmp_path / "north", invitation)
    assert again == request and ask(invitation, again) == answer
    assert invitation.code.hex() not in caplog.text and str(request.proof) not in caplog.text
    assert "fingerprint " + request.fingerprint in caplog.text
    assert list(consortium.folder.glob(".listening-*")) == []


def test_every_lie_of_a_site_is_refused_in_the_same_words(consortium, tmp_path):
    invitation = consortium.invite("north")
    request = join(tmp_path / "north", invitation)
    liars = {
        "wrong code": join(tmp_path / "a", replace(invitation, code=b"0" * 16)),
        "never invited": join(tmp_path / "b", replace(invitation, name="south")),
        "no proof": replace(request, proof=b""),
        "address altered": replace(request, address="evil.org:1"),
    }
    for lie, told in liars.items():
        with pytest.raises(CertificateError, match=r"refused: the request of .* does not prove"):
            ask(invitation, told)
        assert consortium.office.register.find("north", "node").state == "invited", lie
    other_key = replace(request, csr=liars["wrong code"].csr)
    with pytest.raises(CertificateError, match="does not prove"):
        ask(invitation, other_key)
    with pytest.raises(CertificateError, match="signature is wrong"):
        ask(invitation, replace(request, csr=request.csr[:-1] + bytes([request.csr[-1] ^ 1])))
    assert ask(invitation, request) == EnrolmentAnswer()
    assert consortium.office.register.find("south", "node") is None


def test_a_used_code_serves_one_key_and_the_person_is_warned(consortium, tmp_path):
    invitation = consortium.invite("north")
    owner, thief = join(tmp_path / "o", invitation), join(tmp_path / "t", invitation)
    assert ask(invitation, owner).admission is None
    shown = consortium.office.waiting("north")
    with pytest.raises(CertificateError, match="two requests with different keys"):
        ask(invitation, thief)
    with pytest.raises(CertificateError, match="has changed since it was shown"):
        consortium.office.approve(shown, shown.fingerprint)
    assert consortium.office.waiting("north").enrolment.rival
    consortium.approve("north")
    assert ask(invitation, owner).admission is not None
    for late in (thief, replace(owner, address="elsewhere:1")):
        with pytest.raises(CertificateError, match="does not prove"):
            ask(invitation, late)
    second = consortium.invite("south")
    asked = join(tmp_path / "s", second)
    ask(second, asked)
    consortium.office.decline(consortium.office.waiting("south").enrolment)
    with pytest.raises(CertificateError, match="declined the request"):
        ask(second, asked)


def test_nothing_is_sent_to_anybody_but_the_invitations_authority(consortium, tmp_path):
    """A relay that ends TLS with its own key, with a member's key, or with no TLS at all."""
    invitation = consortium.invite("north")
    request = join(tmp_path / "north", invitation)
    Authority.open(consortium.folder).issue("mallory", "node", tmp_path / "mallory")
    Authority.create(tmp_path / "other")
    identity = load_identity(tmp_path / "mallory")
    member = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    member.load_cert_chain(tmp_path / "mallory/cert.pem", tmp_path / "mallory/key.pem")
    for context in (listening_tls(tmp_path / "other").context, member):
        with relay(context) as (address, heard):
            moved = replace(invitation, address=address)
            with pytest.raises(CertificateError, match=r"somebody else answers .*Nothing was sent"):
                ask(moved, request)
        assert heard == []
    with pytest.raises(PeerUnavailable, match="umpc enrol listen"):
        ask(replace(invitation, address=reserved_address()), request)
    assert identity.name == "mallory"


@contextmanager
def relay(context: ssl.SSLContext):
    """A server that reads what a client sends after TLS."""
    heard: list[bytes] = []

    def serve() -> None:
        connection, _ = server.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as line:
                if content := line.recv(100):
                    heard.append(content)
        except OSError:
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}", heard
        thread.join()


def test_the_listeners_certificate_is_no_members(tmp_path):
    now = datetime(2026, 3, 1, tzinfo=UTC)
    authority = Authority.create(tmp_path, now=now)
    tls = listening_tls(tmp_path, now=now)
    assert isinstance(tls, ListeningTls) and tls.until == now + timedelta(days=30)
    assert authority.issued.all() == []
    key = authority.cert.public_key()
    cert = parse_certificate(authority.sign_listener(key, HOST, days=30, now=now), "it")
    with pytest.raises(CertificateError, match="has the names"):
        names_of(cert)


def test_malformed_calls_are_answered_in_one_line(consortium):
    invitation = consortium.invite("north")
    calls = {
        ("GET", PATH, b""): 501,
        ("POST", "/other", b"x"): 400,
        ("POST", PATH, b"x" * 20_000): 400,
        ("POST", PATH, b"\xff\x00"): 403,
        ("POST", PATH, invitation.encode().encode()): 403,
    }
    for (method, path, body), expected in calls.items():
        host, port = consortium.address.split(":")
        line = site_side.PinnedConnection(host, int(port), invitation.authority)
        line.request(method, path, body)
        assert line.getresponse().status == expected, (method, path)
        line.close()
    damaged = consortium.folder / "enrolments/node.north.json"
    damaged.write_text("{")
    request = Request(_csr(consortium.folder))
    with pytest.raises(PeerUnavailable, match="cannot answer now") as failed:
        ask(invitation, request)
    assert "enrolments" not in str(failed.value)


def _csr(folder: Path) -> bytes:
    return site_side.join(folder / "n", "north", "node").csr


def test_answers_of_a_broken_authority_are_refused(consortium):
    invitation = consortium.invite("north")
    member = {"name": "north", "role": "node", "address": "n:1"}
    wrong = [
        *(b"", b"[]", b"[" * 9999, b'{"state": "admitted", "members": []}'),
        b'{"state": "refused", "message": "a\\u001b[31m\\nb"}',
    ]
    for content in wrong:
        broken = lying("process", post=lambda *_, answer=content: (200, answer))
        with broken, pytest.raises(CertificateError) as failed:
            ask(invitation, Request(b""))
        assert str(failed.value).isprintable()
    for lie in ({"address": 'x"y'}, {"role": "king"}, {"name": "A"}, {"more": "1"}):
        with pytest.raises(CertificateError, match="list of members is malformed"):
            parse_members([{**member, **lie}])
    for found in (None, [1], [member] * 10_001):
        with pytest.raises(CertificateError, match="list of members is malformed"):
            parse_members(found)


def test_a_site_waits_through_a_restart_and_gives_up_in_time():
    away = PeerUnavailable("away")
    answers = iter([EnrolmentAnswer(), away, away, EnrolmentAnswer()])

    def question() -> EnrolmentAnswer:
        found = next(answers, EnrolmentAnswer())
        if isinstance(found, PeerUnavailable):
            raise found
        return found

    at = [0.0]
    with pytest.raises(PeerUnavailable, match="has not decided within 1 hours"):
        wait_until_admitted(
            question, 1, pause=lambda s: at.__setitem__(0, at[0] + s), now=lambda: at[0]
        )
    assert 3500 < at[0] <= 3600
    answers = iter([away])
    with pytest.raises(PeerUnavailable, match="away"):  # at the first question: say so at once
        wait_until_admitted(question, 1)


@pytest.mark.parametrize("says_header", [False, True])
def test_a_caller_who_sends_no_request_in_time_is_hung_up_on(limit, consortium, says_header):
    limit(listener, REQUEST_SECONDS=0.5)
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(split_address(consortium.address), timeout=10) as silent:
        if says_header:
            silent = anybody.wrap_socket(silent)
            silent.sendall(f"POST {PATH} HTTP/1.1\r\nContent-Length: 900\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError, ssl.SSLError):  # TLS may call it an error
            assert silent.recv(1) == b""
        silent.close()


def test_limits_are_of_a_place_and_pass_with_time():
    visits = Visits()
    for _ in range(MOST_OF_ONE_PLACE):
        assert visits.enter("10.0.0.1", 0)
    assert not visits.enter("10.0.0.1", 0) and visits.enter("10.0.0.2", 0)
    visits.leave("10.0.0.1")
    assert visits.enter("::ffff:10.0.0.1", 0)
    for _ in range(CALLS):
        assert visits.enter("2001:db8::1", 0)
        visits.leave("2001:db8::1")
    assert not visits.enter("2001:db8::2%eth0", 59) and visits.enter("2001:db8:1::1", 59)
    assert not visits.enter("2001:db8:0:ffff::1", 59), "one connection has many networks of 64 bits"
    assert visits.enter("2001:db8::1", 60)
    for _ in range(FAILURES):
        visits.failed("10.0.0.9", 0)
    assert not visits.may_try("10.0.0.9", 3599) and visits.may_try("10.0.0.9", 3600)


def test_the_place_that_was_quiet_longest_is_forgotten_where_there_are_too_many():
    visits = Visits()
    for _ in range(FAILURES):
        visits.failed("10.0.0.9", 0)
    others = [f"11.0.{number >> 8}.{number & 255}" for number in range(MOST_PLACES)]
    for each in others[1:]:
        visits.failed(each, 0)
    assert not visits.may_try("10.0.0.9", 1)
    for each in others:
        visits.failed(each, 0)
    assert visits.may_try("10.0.0.9", 1)


def test_no_code_of_a_place_that_fails_often_is_looked_at(tmp_path):
    visits = Visits()
    with authority_at(tmp_path / "authority", visits) as consortium:
        invitation = consortium.invite("north")
        request = join(tmp_path / "north", invitation)
        for _ in range(FAILURES):
            with pytest.raises(CertificateError, match="does not prove"):
                ask(invitation, replace(request, proof=b"0"))
        with pytest.raises(CertificateError, match=r"too many wrong codes .* wait an hour"):
            ask(invitation, request)
        assert consortium.office.register.find("north", "node").state == "invited"


def test_members_are_told_as_a_study_file_names_them(consortium, tmp_path):
    for name, role in (("north", "node"), ("south", "node"), ("d", "dealer"), ("c", "coordinator")):
        invitation = consortium.invite(name, role)
        ask(invitation, join(tmp_path / name, invitation, "" if name == "south" else f"{name}:1"))
        consortium.approve(name)
    consortium.office.authority.issue("old", "node", tmp_path / "old")
    consortium.office.authority.revoke(consortium.office.authority.issued.find("old"))
    text = to_toml(members_of(consortium.folder), clock())
    assert tomllib.loads(text) == {
        "nodes": [{"name": "north", "address": "north:1"}],
        "dealer": {"name": "d", "address": "d:1"},
    }
    assert "# coordinator 'c', c:1" in text and "# node 'south', without an address" in text
    assert "'old'" not in text


def test_a_renewal_without_an_address_keeps_the_former_one_and_so_does_one_that_waits(
    consortium, tmp_path
):
    def told() -> str:
        return members_of(consortium.folder)[0].address

    office, site = consortium.office, tmp_path / "north"
    ask(consortium.invite("north"), join(site, consortium.invite("north"), "north:1"))
    consortium.approve("north")
    for address, expected in (("", "north:1"), ("moved:2", "moved:2"), ("", "moved:2")):
        former = told()
        entry = office.receive(site_side.join(site, "north", "node", address=address))
        assert told() == former, "a request that waits changes nothing"
        office.approve(office.view(entry), office.view(entry).fingerprint)
        assert told() == expected
    office.invite("north", "node")
    assert told() == "moved:2", "an invitation changes nothing"
    office.decline(office.receive(site_side.join(site, "north", "node", address="other:3")))
    assert told() == "moved:2", "nor does a request that was declined"


def test_the_site_trusts_no_other_authority(tmp_path):
    Authority.create(tmp_path)
    context = pinned_tls(EnrolmentOffice(tmp_path).invite("n", "node").authority)
    assert context.check_hostname and context.verify_mode == ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1
    assert context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert http.client.HTTPSConnection is site_side.PinnedConnection.__mro__[1]
