"""Sign-in: each lie about a token is refused, and the certificate says who may ask what."""

from __future__ import annotations

import base64
import hmac
import json
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as form
from joserfc import jws, jwt
from joserfc.jwk import ECKey, RSAKey

from umpc.enrolment import site_side
from umpc.enrolment.listener import EnrolmentDesk, listening
from umpc.enrolment.sign_in import SignInOffice, SignInRequest, nonce_of
from umpc.enrolment.site_side import ask, listening_tls
from umpc.enrolment.texts import Invitation
from umpc.errors import CertificateError, ConfigError, PeerUnavailable, StudyError
from umpc.transport.authority import Authority
from umpc.transport.certificates import SignedIn, parse_certificate, signed_in_of

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

    def request(self, name: str) -> bytes:
        return site_side.sign_in_request(self.folder / name, name, self.der)

    def claims(self, **changes: object) -> dict[str, object]:
        now = int(time.time())
        usual = {
            "iss": ISSUER,
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


def test_an_institution_that_is_away_blames_nobody(place):
    text = SETTINGS.replace('jwks = "keys.json"\n', "").replace(ISSUER, "https://127.0.0.1:1")
    place.settings.write_text(text)
    office = SignInOffice(place.folder / "authority", place.settings)
    with pytest.raises(PeerUnavailable, match="connection failed"):
        office.admit(place.asking(signed(place.claims())))


def test_a_certificate_of_the_former_kind_has_no_sign_in(place):
    place.authority.issue("carol", "coordinator", place.folder / "carol")
    pem = (place.folder / "carol" / "cert.pem").read_bytes()
    assert signed_in_of(parse_certificate(pem, "carol")) is None
