"""Sign-in: each lie about a token is refused, and the certificate says who may ask what."""

from __future__ import annotations

import base64
import hmac
import json
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import padding
from joserfc import jws, jwt
from joserfc.jwk import ECKey, RSAKey

from tests.support.institution import institution_at
from umpc.cli.main import umpc
from umpc.enrolment import sign_in, site_side
from umpc.enrolment.listener import FAILURES, EnrolmentDesk, listening
from umpc.enrolment.sign_in import (
    KEPT_SECONDS,
    PAUSE_SECONDS,
    SignInOffice,
    SignInRequest,
    nonce_of,
    token_for,
)
from umpc.enrolment.site_side import ask, listening_tls
from umpc.enrolment.texts import Invitation
from umpc.errors import CertificateError, ConfigError, PeerUnavailable, StudyError
from umpc.testing import limited
from umpc.transport.authority import Authority
from umpc.transport.certificates import Revoked, SignedIn, clock, parse_certificate, signed_in_of
from umpc.transport.identity import Identity, due, load_identity
from umpc.transport.tls import peer_of

ISSUER = "https://login.st-mary.example"
STUDY, OTHER = bytes(range(32)), bytes(32)
KEY = RSAKey.generate_key(2048, {"kid": "k1"})
SETTINGS = f"""
[sign_in.st-mary]
issuer = "{ISSUER}"
client = "umpc"
hours = 2
jwks = "keys.json"
[sign_in.st-mary.people]
sub-1 = {{ name = "alice", studies = ["{STUDY.hex()}"] }}

[sign_in.st-john]
issuer = "https://login.st-john.example"
client = "umpc"
jwks = "other.json"
[sign_in.st-john.people]
sub-1 = {{ name = "bob", studies = [] }}
"""


class Place:
    """An authority with sign-in, and a coordinator that has made its request."""

    def __init__(self, folder: Path):
        self.authority = Authority.create(folder / "authority")
        self.settings = folder / "sign_in.toml"
        self.settings.write_text(SETTINGS)
        (folder / "keys.json").write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}))
        other = ECKey.generate_key("P-256", {"kid": "k1"})
        (folder / "other.json").write_text(json.dumps({"keys": [other.as_dict(private=False)]}))
        self.folder = folder
        self.office = SignInOffice(folder / "authority", self.settings)
        self.der = self.authority.cert.public_bytes(form.Encoding.DER)
        self.csr = self.request("alice")
        self.issuer, self.now = ISSUER, clock()

    def request(self, name: str) -> bytes:
        return site_side.sign_in_request(self.folder / name, name, self.der)

    def claims(self, **changes: object) -> dict[str, object]:
        now = int(self.now.timestamp())
        usual = {
            "iss": self.issuer,
            "aud": "umpc",
            "sub": "sub-1",
            "iat": now,
            "auth_time": now,
            "exp": now + 300,
            "nonce": nonce_of(self.csr),
        }
        return {key: value for key, value in (usual | changes).items() if value is not None}

    def asking(self, token: str, institution: str = "st-mary") -> SignInRequest:
        return SignInRequest(self.csr, institution, token.encode())


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def signed(claims: dict[str, object], key=KEY, alg: str = "RS256", **header: object) -> str:
    shown = {"alg": alg, "kid": "k1"} | header
    return jwt.encode({k: v for k, v in shown.items() if v is not None}, claims, key, [alg])


def test_a_person_gets_a_certificate_for_hours_that_names_the_studies(place):
    admission = place.office.admit(place.asking(signed(place.claims())))
    identity = site_side.finish(place.folder / "alice", admission)
    assert (identity.name, identity.role) == ("alice", "coordinator")
    assert 1.9 * 3600 < identity.not_after.timestamp() - time.time() <= 2 * 3600
    who = signed_in_of(identity.certificate)
    assert who == SignedIn("sub-1", "st-mary", (STUDY.hex(),))
    who.check(STUDY, "alice")
    with pytest.raises(StudyError, match=r"'sub-1' of 'st-mary'.*may ask other studies.*0{64}"):
        who.check(OTHER, "alice")


def test_a_header_may_say_more_than_umpc_knows_but_not_that_it_must_be_known(place):
    claims = json.dumps(place.claims()).encode()
    rules = jws.JWSRegistry(algorithms=["RS256"], strict_check_header=False)
    header = {"alg": "RS256", "kid": "k1", "realm": "staff"}
    with_more = jws.serialize_compact(header, claims, KEY, registry=rules)
    body = ".".join(
        base64.urlsafe_b64encode(part).decode().rstrip("=")
        for part in (json.dumps(header | {"crit": ["realm"]}).encode(), claims)
    )
    proof = KEY.private_key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256())
    must = f"{body}.{base64.urlsafe_b64encode(proof).decode().rstrip('=')}"
    with pytest.raises(CertificateError, match="signature is not"):
        place.office.admit(place.asking(must))
    assert place.office.admit(place.asking(with_more))


def test_it_works_over_the_listening_authority_and_only_where_it_is_set_up(place):
    folder, token = place.folder / "authority", signed(place.claims())
    tls = listening_tls(folder)
    with listening(EnrolmentDesk(folder), tls.context, "127.0.0.1:0") as address:
        at = Invitation("alice", "coordinator", place.der, b"", "", address)
        with pytest.raises(CertificateError, match="the text of an signin came"):
            ask(at, place.asking(token))
    with listening(EnrolmentDesk(folder, place.office), tls.context, "127.0.0.1:0") as address:
        at = Invitation("alice", "coordinator", place.der, b"", "", address)
        answer = ask(at, place.asking(token))
        assert site_side.finish(place.folder / "alice", answer.admission).name == "alice"
        with pytest.raises(CertificateError, match="was used before"):
            ask(at, place.asking(token))


def hmac_by_public_key(place: Place) -> str:
    """The attack on libraries that take a public key for a shared secret."""
    body = beginning(place, "HS256")
    mac = hmac.digest(KEY.as_pem(private=False), body.encode(), "sha256")
    return f"{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def unsigned(place: Place) -> str:
    return f"{beginning(place, 'none')}."


def beginning(place: Place, alg: str) -> str:
    parts = [{"alg": alg, "kid": "k1"}, place.claims()]
    body = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return ".".join(body)


def altered(place: Place) -> str:
    head, _, signature = signed(place.claims()).split(".")
    claims = json.dumps(place.claims(sub="sub-2")).encode()
    return ".".join([head, base64.urlsafe_b64encode(claims).decode().rstrip("="), signature])


NOW = time.time()
LIES = {
    "none": (unsigned, "signature is not"),
    "HS256 by the public key": (hmac_by_public_key, "signature is not"),
    "altered": (altered, "signature is not"),
    "no token": (lambda p: "nonsense", "else than an ID token"),
    "another key of this kid": (
        lambda p: signed(p.claims(), RSAKey.generate_key(2048)),
        "signature is not",
    ),
    "unknown kid": (lambda p: signed(p.claims(), kid="k2"), "none of the institution's"),
    "no kid": (lambda p: signed(p.claims(), kid=None), "none of the institution's"),
    "an access token": (lambda p: signed(p.claims(), typ="at+jwt"), "no ID token"),
    "a list": (
        lambda p: jws.serialize_compact({"alg": "RS256", "kid": "k1"}, b"[1]", KEY),
        "else than an ID token",
    ),
    "other issuer": (lambda p: signed(p.claims(iss="https://x")), "another issuer"),
    "other audience": (lambda p: signed(p.claims(aud="mail")), "audience"),
    "two audiences": (lambda p: signed(p.claims(aud=["umpc", "mail"])), "audience"),
    "no audience": (lambda p: signed(p.claims(aud=None)), "audience"),
    "other azp": (lambda p: signed(p.claims(azp="mail")), "azp"),
    "other nonce": (lambda p: signed(p.claims(nonce=nonce_of(b"another"))), "nonce"),
    "no nonce": (lambda p: signed(p.claims(nonce=None)), "nonce"),
    "expired": (lambda p: signed(p.claims(exp=NOW - 3600)), "too old"),
    "issued long ago": (lambda p: signed(p.claims(iat=NOW - 3600)), "too old"),
    "no end": (lambda p: signed(p.claims(exp=None)), "lacks a date"),
    "no begin": (lambda p: signed(p.claims(iat=None)), "lacks a date"),
    "a date in words": (lambda p: signed(p.claims(nbf="now")), "lacks a date"),
    "no number as end": (lambda p: signed(p.claims(exp=float("nan"))), "lacks a date"),
    "no end ever": (lambda p: signed(p.claims(exp=10**400)), "lacks a date"),
    "an old sign-in": (lambda p: signed(p.claims(auth_time=NOW - 3600)), "too long ago"),
    "a sign-in without a date": (lambda p: signed(p.claims(auth_time=None)), "auth_time"),
    "a later sign-in": (lambda p: signed(p.claims(auth_time=NOW + 3600)), "future"),
    "not yet": (lambda p: signed(p.claims(nbf=NOW + 86400)), "future"),
    "of the future": (lambda p: signed(p.claims(iat=NOW + 86400, exp=NOW + 90000)), "future"),
    "a stranger": (lambda p: signed(p.claims(sub="sub-2")), "no such person.*'sub-2'"),
    "no person": (lambda p: signed(p.claims(sub=None)), "no such person"),
    "a list of persons": (lambda p: signed(p.claims(sub=["sub-1"])), "no such person"),
}


@pytest.mark.parametrize("lie", LIES)
def test_each_lie_of_a_token_is_refused_and_names_the_institution(place, lie):
    make, reason = LIES[lie]
    with pytest.raises(CertificateError, match=reason) as refused:
        place.office.admit(place.asking(make(place)))
    assert refused.value.culprit == "st-mary" and "\n" not in refused.value.message
    assert not list((place.folder / "authority").glob("issued/*"))


def test_a_used_token_a_stolen_one_and_another_institution_are_refused(place):
    token = signed(place.claims())
    place.office.admit(place.asking(token))
    with pytest.raises(CertificateError, match="used before"):
        place.office.admit(place.asking(token))
    stolen = SignInRequest(place.request("alice"), "st-mary", signed(place.claims()).encode())
    with pytest.raises(CertificateError, match="another request"):
        place.office.admit(stolen)
    for institution in ("st-john", "nowhere"):
        with pytest.raises(CertificateError, match=institution):
            place.office.admit(place.asking(signed(place.claims()), institution))
    place.csr = place.request("mallory")
    with pytest.raises(CertificateError, match="coordinator 'alice' only"):
        place.office.admit(place.asking(signed(place.claims())))


@pytest.mark.parametrize(
    ("former", "later", "reason"),
    [
        (ISSUER, "http://login", "https"),
        ("hours = 2", "hours = 200", "at most 24"),
        ('name = "alice"', 'name = "any"', "cannot be the name"),
        ('client = "umpc"', 'clients = "umpc"', "clients"),
        (STUDY.hex(), "age and crp", "matching regex"),
        (f'"{STUDY.hex()}"', ",".join([json.dumps(STUDY.hex())] * 100), "fill"),
        ('name = "bob"', 'name = "alice"', "no other person"),
        ("sub-1 =", '"" =', "no other person"),
        ("[sign_in.st-mary]", "[sign_in.st-mary", "sign_in.toml"),
    ],
)
def test_a_file_that_is_wrong_is_refused_at_the_start(place, former, later, reason):
    place.settings.write_text(SETTINGS.replace(former, later, 1))
    with pytest.raises(ConfigError, match=reason):
        SignInOffice(place.folder / "authority", place.settings)


# --- the institution ------------------------------------------------------------------------------


@pytest.fixture
def fetching(place, tmp_path, monkeypatch):
    """Provide an institution that publishes its key, and an authority that fetches it."""
    (tmp_path / "st-mary").mkdir()
    with institution_at(tmp_path / "st-mary", [KEY.as_dict(private=False)]) as institution:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "st-mary/tls.pem"))
        text = SETTINGS.replace('jwks = "keys.json"\n', "").replace(ISSUER, institution.issuer)
        place.settings.write_text(text)
        place.issuer = institution.issuer
        place.office = SignInOffice(place.folder / "authority", place.settings, lambda: place.now)
        yield institution


def test_strangers_make_the_authority_ask_nothing_and_its_keys_are_kept(place, fetching):
    for claims in ({"aud": "mail"}, {"nonce": "x"}, {"exp": 1}, {"auth_time": 1}):
        with pytest.raises(CertificateError):
            place.office.admit(place.asking(signed(place.claims(**claims))))
    with pytest.raises(CertificateError, match="else than an ID token"):
        place.office.admit(place.asking("nonsense"))
    assert fetching.asked == []
    for _ in range(3):
        place.csr = place.request("alice")
        place.office.admit(place.asking(signed(place.claims())))
        place.now += timedelta(seconds=60)
    assert fetching.asked == ["/.well-known/openid-configuration", "/keys"]
    place.now += timedelta(seconds=KEPT_SECONDS)
    fetching.keys = []
    with pytest.raises(CertificateError, match=r"none of the institution's \(kid\)"):
        place.office.admit(place.asking(signed(place.claims())))
    assert fetching.asked[3:] == ["/keys"], "a key that the institution withdrew counts no more"


def test_a_new_key_is_fetched_and_an_invented_one_costs_one_question_in_a_while(place, fetching):
    place.office.admit(place.asking(signed(place.claims())))
    place.csr = place.request("alice")
    for _ in range(5):
        with pytest.raises(CertificateError, match="none of the institution's"):
            place.office.admit(place.asking(signed(place.claims(), kid="invented")))
    assert len(fetching.asked) == 2
    place.now += timedelta(seconds=PAUSE_SECONDS + 1)
    fetching.keys = [KEY.as_dict(private=False) | {"kid": "k2"}]
    place.office.admit(place.asking(signed(place.claims(), kid="k2")))
    assert len(fetching.asked) == 4


def test_who_invents_a_key_takes_no_keys_away_while_the_institution_fails(place, fetching):
    place.office.admit(place.asking(signed(place.claims())))
    place.now += timedelta(seconds=PAUSE_SECONDS + 1)
    place.csr, fetching.status = place.request("alice"), 500
    with pytest.raises(PeerUnavailable):
        place.office.admit(place.asking(signed(place.claims(), kid="invented")))
    place.office.admit(place.asking(signed(place.claims())))
    place.now += timedelta(seconds=KEPT_SECONDS)
    place.csr = place.request("alice")
    with pytest.raises(PeerUnavailable):
        place.office.admit(place.asking(signed(place.claims())))


def test_an_address_of_the_institution_keeps_its_own_question(place, fetching):
    own = {"authorization_endpoint": "https://x/in?tenant=1", "token_endpoint": "https://x/t"}
    fetching.body = json.dumps({"issuer": fetching.issuer} | own).encode()
    shown: list[str] = []
    with pytest.raises(PeerUnavailable, match="nobody signed in"):
        token_for(place.csr, fetching.issuer, "umpc", shown.append, seconds=0)
    assert shown[0].startswith("https://x/in?tenant=1&response_type=code&client_id=umpc&")


FAULTS = {
    "an error": {"status": 500},
    "no JSON": {"body": b"<html>"},
    "another issuer": {"body": b'{"issuer": "https://x", "jwks_uri": "https://x"}'},
    "no keys": {"keys": [{"kid": "k1", "kty": "RSA"}]},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_institution_is_not_the_callers(place, fetching, fault):
    for name, value in FAULTS[fault].items():
        setattr(fetching, name, value)
    for _ in range(2):
        with pytest.raises(PeerUnavailable) as failed:
            place.office.admit(place.asking(signed(place.claims())))
        assert failed.value.culprit is None
    assert len(fetching.asked) == (2 if fault == "no keys" else 1)


def test_however_often_the_institution_fails_its_people_may_still_call(place, fetching):
    fetching.status = 500
    folder, token = place.folder / "authority", signed(place.claims())
    tls = listening_tls(folder)
    with listening(EnrolmentDesk(folder, place.office), tls.context, "127.0.0.1:0") as address:
        at = Invitation("alice", "coordinator", place.der, b"", "", address)
        for _ in range(FAILURES + 1):
            with pytest.raises(PeerUnavailable, match="cannot answer now"):
                ask(at, place.asking(token))
        fetching.status, place.now = 200, place.now + timedelta(seconds=PAUSE_SECONDS + 1)
        assert ask(at, place.asking(token)).admission is not None


def test_one_bad_person_locks_nobody_out_who_has_the_same_address(place, caplog):
    """Forged tokens, tokens of a person that nobody listed, another name, and wrong codes."""
    folder, tls = place.folder / "authority", listening_tls(place.folder / "authority")
    stranger = RSAKey.generate_key(2048)
    bad = [signed(place.claims(), stranger), signed(place.claims(sub="sub-2")), "nonsense"]
    code = site_side.join(place.folder / "n", "north", "node").proven_by(bytes(16))
    with listening(EnrolmentDesk(folder, place.office), tls.context, "127.0.0.1:0") as address:
        at = Invitation("alice", "coordinator", place.der, b"", "", address)
        for request in [*(place.asking(token) for token in bad), code]:
            for _ in range(FAILURES + 1):
                with pytest.raises(CertificateError, match="the authority refused"):
                    ask(at, request)
        with pytest.raises(CertificateError, match="too many wrong codes"):
            ask(at, code)
        assert ask(at, place.asking(signed(place.claims()))).admission is not None
    lines = [each for each in caplog.messages if "refused a request" in each]
    assert len(lines) == 2 * FAILURES, "no more of a place in an hour, of sign-ins and of codes"


def test_an_institution_whose_bytes_come_one_by_one_is_left(place, fetching):
    fetching.is_slow = True  # without an end, so without the limit this test has none
    with limited(sign_in, SECONDS=0.3), pytest.raises(PeerUnavailable):
        place.office.admit(place.asking(signed(place.claims())))


def test_an_institution_that_is_away_blames_nobody(place):
    place.issuer = "https://127.0.0.1:1"
    text = SETTINGS.replace('jwks = "keys.json"\n', "").replace(ISSUER, place.issuer)
    place.settings.write_text(text)
    with pytest.raises(PeerUnavailable, match="connection failed"):
        place.office.admit(place.asking(signed(place.claims())))


# --- a person who may no more ---------------------------------------------------------------------


def admitted(place: Place, name: str = "alice", **claims: object) -> Identity:
    place.csr = place.request(name)
    admission = place.office.admit(place.asking(signed(place.claims(**claims))))
    return site_side.finish(place.folder / name, admission, now=lambda: place.now)


def test_the_file_counts_as_it_is_at_each_sign_in(place):
    assert signed_in_of(admitted(place).certificate).studies == (STUDY.hex(),)
    place.settings.write_text(SETTINGS.replace(STUDY.hex(), OTHER.hex()))
    assert signed_in_of(admitted(place).certificate).studies == (OTHER.hex(),)
    place.settings.write_text(SETTINGS.replace("sub-1 =", "sub-9 =", 1))
    with pytest.raises(CertificateError, match="no such person"):
        admitted(place)
    place.settings.write_text("nonsense")
    with pytest.raises(ConfigError, match=r"sign_in\.toml"):
        admitted(place)


@pytest.mark.parametrize("kind", ["for hours", "usual"])
def test_a_revocation_lasts_until_the_keeper_readmits(place, kind):
    if kind == "usual":
        place.authority.issue("alice", "coordinator", place.folder / "alice")
    else:
        admitted(place)
    serials = place.authority.issued.find("alice")
    place.authority.revoke(serials)
    (place.folder / "alice/key.pem").unlink()
    for _ in range(2):
        with pytest.raises(CertificateError, match=r"'alice' was revoked.* may readmit") as refused:
            admitted(place)
    assert refused.value.culprit == "st-mary"
    assert place.authority.issued.find("alice") == serials
    before, after = clock() - timedelta(hours=1), clock() + timedelta(minutes=1)
    for time_, is_in in ((before, False), (after, True)):
        readmitted = f'name = "alice", readmitted = {time_:%FT%TZ}'
        place.settings.write_text(SETTINGS.replace('name = "alice"', readmitted))
        if is_in:
            assert admitted(place).name == "alice"
            return
        with pytest.raises(CertificateError, match="was revoked"):
            admitted(place)


def test_who_was_readmitted_may_be_revoked_again(place):
    """Also before another sign-in, when all that the keeper can name is revoked already."""
    admitted(place)
    serials = place.authority.issued.find("alice")
    place.authority.revoke(serials)
    (place.folder / "alice/key.pem").unlink()
    readmitted = f'name = "alice", readmitted = {clock() + timedelta(minutes=1):%FT%TZ}'
    place.settings.write_text(SETTINGS.replace('name = "alice"', readmitted))
    place.authority.revoke(serials, now=clock() + timedelta(minutes=2))
    with pytest.raises(CertificateError, match="'alice' was revoked"):
        admitted(place)


def test_a_second_revocation_counts_from_its_own_time(place):
    """Revoked, readmitted, signed in, and revoked again: the first readmission is over."""

    def readmit(time_: datetime) -> None:
        readmitted = f'name = "alice", readmitted = {time_:%FT%TZ}'
        place.settings.write_text(SETTINGS.replace('name = "alice"', readmitted))

    def revoke(time_: datetime) -> Revoked:
        (place.folder / "alice/key.pem").unlink()
        return place.authority.revoke(place.authority.issued.find("alice"), now=time_)

    first, second = (clock().replace(microsecond=0) + timedelta(minutes=n) for n in (1, 3))
    one = admitted(place).certificate.serial_number
    revoke(first)
    readmit(first + timedelta(minutes=1))
    two = admitted(place).certificate.serial_number
    assert dict(revoke(second).serials) == {one: first, two: second}
    with pytest.raises(CertificateError, match=f"was revoked, at {second:%F %R}"):
        admitted(place)
    readmit(second + timedelta(minutes=1))
    assert admitted(place).name == "alice"


def test_a_revoked_key_gets_nothing_and_its_token_is_not_used_up(place):
    admitted(place)
    place.authority.revoke(place.authority.issued.find("alice"))
    readmitted = f'name = "alice", readmitted = {clock() + timedelta(minutes=1):%FT%TZ}'
    place.settings.write_text(SETTINGS.replace('name = "alice"', readmitted))
    place.csr = place.request("alice")
    token = signed(place.claims())
    for _ in range(2):  # not "used before"
        with pytest.raises(CertificateError, match="the key of a revoked certificate") as refused:
            place.office.admit(place.asking(token))
    assert refused.value.culprit == "alice"
    assert len((place.folder / "authority/signed-in/alice").read_text().splitlines()) == 1
    assert token not in repr(place.asking(token))


def test_the_authority_forgets_what_has_ended_but_not_what_was_revoked(place):
    place.office = SignInOffice(place.folder / "authority", place.settings, lambda: place.now)
    place.authority.issue("carol", "coordinator", place.folder / "carol")
    revoked = admitted(place)
    place.authority.revoke(place.authority.issued.find("alice"))
    (place.folder / "alice/key.pem").unlink()
    readmitted = f'name = "alice", readmitted = {clock() + timedelta(minutes=1):%FT%TZ}'
    place.settings.write_text(SETTINGS.replace('name = "alice"', readmitted))
    for _ in range(4):
        place.now += timedelta(hours=3)
        last = admitted(place)
    kept = {cert.serial_number for cert in place.authority.issued.all() if signed_in_of(cert)}
    assert kept == {revoked.certificate.serial_number, last.certificate.serial_number}
    assert place.authority.issued.find("carol")
    assert len((place.folder / "authority/signed-in/alice").read_text().splitlines()) == 5


def test_a_certificate_that_is_forgotten_meanwhile_stands_in_nobodys_way(place):
    """The listening authority forgets while commands read. Any other loss is told."""
    serial = admitted(place).certificate.serial_number
    (ended,) = (place.folder / "authority/issued").glob(f"{serial:040x}.*.pem")
    ended.unlink()
    ended.symlink_to("gone")  # a name that was read, and a file that is not there any more
    assert place.authority.issued.all() == place.authority.issued.of(serial) == []
    ended.rename(ended.with_name(f"{serial:040x}.pem"))
    with pytest.raises(CertificateError, match="restore the authority's folder"):
        place.authority.issued.all()


def test_nothing_leads_to_a_certificate_without_limit_and_the_keeper_is_warned(place):
    identity = admitted(place)
    later = identity.not_after + timedelta(minutes=1)
    assert due(identity) == []
    (sentence,) = due(identity, later)
    with pytest.raises(CertificateError, match="expired") as expired:
        load_identity(place.folder / "alice", now=later)

    class Call:
        certificate = identity.certificate.public_bytes(form.Encoding.DER)

    assert peer_of(Call, now=identity.not_after).signed_in is not None
    with pytest.raises(CertificateError, match="expired") as refused:
        peer_of(Call, now=later)
    place.authority.revoke({identity.certificate.serial_number})
    place.authority.write_trust(place.folder / "alice")
    with pytest.raises(CertificateError, match="is revoked") as revoked:
        load_identity(place.folder / "alice")
    texts = [each.value.message for each in (expired, refused, revoked)]
    for text in (sentence, *texts):
        assert "umpc enrol sign-in" in text and "enrol join" not in text
    (place.folder / "alice/key.pem").unlink()
    here = ["--authority", str(place.folder / "authority")]
    for name, role, is_warned in (
        ("alice", "coordinator", True),
        ("alice", "node", False),
        ("carol", "coordinator", False),
    ):
        folder = place.folder / f"{role}-{name}"
        asked = site_side.join(folder, name, role)
        by_text = ["enrol", "approve", asked.encode(), *here, "--fingerprint", asked.fingerprint]
        by_file = ["ca", "sign", str(folder / "request.csr"), *here, "--out", str(folder / "c.pem")]
        for command in (by_text, by_file):
            ended = CliRunner().invoke(umpc, command, catch_exceptions=False, standalone_mode=False)
            warnings = [line for line in ended.stderr.splitlines() if "limit of studies" in line]
            assert len(warnings) == is_warned and (not is_warned or "WARNING" in warnings[0])


def test_a_certificate_of_the_former_kind_has_no_sign_in(place):
    place.authority.issue("carol", "coordinator", place.folder / "carol")
    pem = (place.folder / "carol" / "cert.pem").read_bytes()
    assert signed_in_of(parse_certificate(pem, "carol")) is None
