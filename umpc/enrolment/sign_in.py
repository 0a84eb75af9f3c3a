"""Sign-in: a coordinator's certificate for hours, against an ID token of its institution.

    coordinator$  umpc enrol sign-in …      key, request; the person signs in; ID token → authority
    authority$    umpc enrol listen --sign-in FILE    checks the token, and signs the request

The token's nonce is the digest of the request (`nonce_of`), so a token serves one request of one
key: whoever steals a token has no use of it. The authority's own file says which persons may sign
in, the name of each in certificates, and the studies that each may ask. docs/sign_in.md says what
each party gains by lying.

Source: OpenID Connect Core 1.0, 3.1.3.7; RFC 7636 (PKCE); RFC 8252, 7.3 (loopback redirect).
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import re
import secrets
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeGuard, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from umpc.enrolment.authority_side import EnrolmentOffice
from umpc.enrolment.texts import AdmissionText, Text, pem_of
from umpc.errors import CertificateError, ConfigError, PeerUnavailable
from umpc.local_server import LocalCall, LocalServer
from umpc.transport.certificates import SignedIn, check_name, clock, load_request, names_of
from umpc.transport.files import read_file, write_public

ALGORITHMS = ["RS256", "PS256", "ES256", "RS384", "PS384", "ES384", "RS512", "PS512", "ES512"]
"""Signatures by a private key. `none`, and HS* by a secret that others share, are refused."""
MOST_AGE = 600
"""Seconds for which a token counts after its issue, whatever later end it says."""
SKEW = 60
"""Seconds by which the clocks of institution and authority may differ."""
SECONDS = 6
"""Longest time of one question to an institution."""
MOST_BYTES = 1 << 20
AGAIN = "sign in again with `umpc enrol sign-in`"


class Person(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """name: in certificates. studies: the names of those that the person may ask."""

    name: str
    studies: list[str]


class Institution(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An institution whose sign-in counts.

    issuer: as its tokens write it, https. client: the audience of a token. people: by the claim
    `sub` of a token. hours: of a certificate. jwks: a file of its public keys; without one the
    authority fetches them from the issuer.
    """

    issuer: str
    client: str
    people: dict[str, Person]
    hours: float = 8
    jwks: str = ""


class _SignInFile(msgspec.Struct, forbid_unknown_fields=True):
    sign_in: dict[str, Institution]


@dataclass(frozen=True)
class SignInRequest(Text):
    """A coordinator asks for a certificate. csr: DER. token: its institution's ID token."""

    KIND = "signin"
    csr: bytes
    institution: str
    token: bytes


def nonce_of(csr: bytes) -> str:
    """The nonce that binds a token to one request. Args: csr: in DER."""
    return _base64(hashlib.sha256(b"umpc sign-in 1\0" + csr).digest())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


# --- the authority --------------------------------------------------------------------------------


class SignInOffice:
    """Signs the requests of persons who have signed in at their institution.

    Args:
        folder: the authority's. Each token that was used has a file in its folder `signed-in`.
        settings: a file with a table `[sign_in.INSTITUTION]` for each institution.

    Raises: ConfigError.
    """

    def __init__(self, folder: Path, settings: Path, now: Callable[[], datetime] = clock):
        self._folder = folder
        self._now = now
        try:
            found = tomllib.loads(read_file(settings, "correct --sign-in").decode())
            self._institutions = msgspec.convert(found, _SignInFile).sign_in
            for name, each in self._institutions.items():
                _check(name, each)
        except (ValueError, msgspec.ValidationError) as error:
            raise ConfigError(f"{settings}: {error}: see docs/sign_in.md") from None
        self._jwks = {
            name: settings.parent / each.jwks
            for name, each in self._institutions.items()
            if each.jwks
        }
        _jose("jwt")

    def admit(self, request: SignInRequest) -> AdmissionText:
        """Return a certificate for hours. A token counts once.

        Raises: CertificateError, whose culprit is the institution as the request names it;
            PeerUnavailable where the institution's keys cannot be fetched.
        """
        name = request.institution
        try:
            institution = self._institutions.get(name)
            if institution is None:
                raise CertificateError("this authority knows no such institution")
            subject = self._subject_of(name, institution, request)
            person = institution.people.get(subject)
            if person is None:
                raise CertificateError(
                    "the authority's list has no such person: ask its keeper to add "
                    f"{ascii(subject)[:200]}"
                )
            csr = pem_of(request.csr, "CERTIFICATE REQUEST")
            if names_of(load_request(csr)) != (person.name, "coordinator"):
                raise CertificateError(f"the person signs in as coordinator {person.name!r} only")
            self._use(request, f"{name} {subject!a} as {person.name!r}")
        except CertificateError as error:
            raise CertificateError(
                f"sign-in at institution {ascii(name)[:80]}: {error.message}", culprit=name
            ) from None
        office = EnrolmentOffice(self._folder, self._now)
        signed_in = SignedIn(subject, name, tuple(person.studies))
        return office.admit_signed_in(csr, person.name, institution.hours, signed_in)

    def _subject_of(self, name: str, institution: Institution, request: SignInRequest) -> str:
        """Return the person whom a token is about, after every check. Raises: CertificateError."""
        path = self._jwks.get(name)
        if path is not None:
            keys = _parsed(read_file(path, "restore it"), str(path))
        else:
            keys = fetch(discover(institution.issuer, "jwks_uri")["jwks_uri"])
        claims = _verified(request.token.decode("ascii", "replace"), keys)
        now = self._now().timestamp()
        begin, end, since = claims.get("iat"), claims.get("exp"), claims.get("nbf", 0)
        if not (_is_number(begin) and _is_number(end) and _is_number(since)):
            raise CertificateError(f"the token has no dates: {AGAIN}")
        if now > min(end + SKEW, begin + MOST_AGE):
            raise CertificateError(f"the token is too old: {AGAIN}")
        if max(begin, since) > now + SKEW:
            raise CertificateError("the token is of the future: compare the clocks of both sides")
        if claims.get("iss") != institution.issuer:
            raise CertificateError("the token is of another issuer than the authority expects")
        if claims.get("aud") not in (institution.client, [institution.client]):
            raise CertificateError("the token is for another program: its audience is not umpc's")
        if claims.get("azp", institution.client) != institution.client:
            raise CertificateError("the token was given to another program (azp)")
        if claims.get("nonce") != nonce_of(request.csr):
            raise CertificateError(f"the token is for another request (nonce): {AGAIN}")
        return str(claims.get("sub"))

    def _use(self, request: SignInRequest, line: str) -> None:
        """Note a token as used, before anything is signed. Raises: CertificateError."""
        signed = request.token.rpartition(b".")[0]  # a signature of ECDSA has two forms
        path = self._folder / "signed-in" / hashlib.sha256(signed).hexdigest()
        with EnrolmentOffice(self._folder).register.locked():
            if path.exists():
                raise CertificateError(f"the token was used before: {AGAIN}")
            write_public(path, f"{self._now():%FT%TZ} {line}\n".encode())


def _check(name: str, institution: Institution) -> None:
    if not 0 < institution.hours <= 24:
        raise ValueError(f"[sign_in.{name}] hours: expected more than 0, and at most 24")
    _secure(institution.issuer)
    for subject, person in institution.people.items():
        check_name(person.name, "coordinator")
        SignedIn(subject, name, tuple(person.studies)).uri()


def _verified(token: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return the claims of a token that one of the keys has signed. Raises: CertificateError."""
    jwt, jwk, errors = _jose("jwt"), _jose("jwk"), _jose("errors")
    try:
        header = json.loads(base64.urlsafe_b64decode(token.partition(".")[0] + "=="))
        known = [
            key
            for key in keys["keys"]
            if key["kty"] in ("RSA", "EC") and key.get("kid") and key["kid"] == header["kid"]
        ]
        if len(known) != 1:
            raise CertificateError("the token's key is none of the institution's (kid)")
        found = jwt.decode(token, jwk.import_key(known[0]), algorithms=ALGORITHMS)
        return cast(dict[str, Any], dict(found.claims))
    except (errors.JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise CertificateError(f"the token's signature is not the institution's: {AGAIN}") from None


def _jose(part: str) -> Any:
    try:
        return importlib.import_module(f"joserfc.{part}")
    except ImportError:
        raise ConfigError(
            "an authority with sign-in needs joserfc: install umpc with its extra `sign-in`"
        ) from None


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- questions to an institution ------------------------------------------------------------------


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


def discover(issuer: str, *parts: str) -> dict[str, Any]:
    """Return what an issuer says about itself, with these addresses in it.

    Raises: PeerUnavailable, CertificateError, ConfigError.
    """
    found = fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != issuer or not all(isinstance(found.get(p), str) for p in parts):
        raise CertificateError(f"{issuer} describes another issuer: correct the issuer's address")
    return found


def fetch(url: str, form: dict[str, str] | None = None) -> dict[str, Any]:
    """Get, or post, over TLS; return the object of JSON that comes.

    Raises: PeerUnavailable, CertificateError, ConfigError.
    """
    _secure(url)
    body = urlencode(form).encode() if form else None
    try:
        with urllib.request.build_opener(_Straight).open(url, body, SECONDS) as answer:
            return _parsed(answer.read(MOST_BYTES), url)
    except urllib.error.HTTPError as error:
        raise CertificateError(f"{url} refused (status {error.code}): {AGAIN}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise PeerUnavailable(
            f"the institution was expected at {url}, and the connection failed ({reason}): "
            "check its address, and the authorities of TLS that this machine trusts"
        ) from None


def _secure(url: str) -> None:
    if not re.fullmatch(r"https://[!-~]{1,500}", url):
        raise ConfigError(f"an address https://… of the institution was expected, not {url[:80]!a}")


def _parsed(content: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
        if isinstance(found, dict):
            return found
    except (ValueError, RecursionError):
        pass
    raise CertificateError(f"{what}: an object of JSON was expected: {AGAIN}")


# --- the coordinator ------------------------------------------------------------------------------


def token_for(
    csr: bytes, issuer: str, client: str, show: Callable[[str], None], *, seconds: float = 300
) -> bytes:
    """Let a person sign in with a browser, and return the ID token for one request.

    This is the authorization code flow with PKCE. The browser comes back to a port of this machine.

    Args: csr: in DER. show: takes the address that the person opens.
    Raises: PeerUnavailable, CertificateError, ConfigError.
    """
    found = discover(issuer, "authorization_endpoint", "token_endpoint")
    verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
    server = _Return(state)
    with server.served() as place:
        back = f"http://{place}/"
        question = {
            "response_type": "code",
            "client_id": client,
            "redirect_uri": back,
            "scope": "openid",
            "state": state,
            "nonce": nonce_of(csr),
            "code_challenge": _base64(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        _secure(found["authorization_endpoint"])
        show(f"{found['authorization_endpoint']}?{urlencode(question)}")
        if not server.came.wait(seconds):
            raise PeerUnavailable(f"nobody signed in within {seconds:g} s: {AGAIN}")
    if not server.code:
        raise CertificateError(f"the institution refused the sign-in: {AGAIN}")
    form = {
        "grant_type": "authorization_code",
        "code": server.code,
        "redirect_uri": back,
        "client_id": client,
        "code_verifier": verifier,
    }
    return str(fetch(found["token_endpoint"], form).get("id_token")).encode("ascii", "replace")


class _Return(LocalServer):
    """Where the browser comes back to. A call with another state is none of this sign-in."""

    def __init__(self, state: str):
        self.state = state
        self.code = ""
        self.came = threading.Event()
        super().__init__(("127.0.0.1", 0), _Returned)


class _Returned(LocalCall):
    server: _Return
    timeout = SECONDS

    def do_GET(self) -> None:
        """Take the code, once."""
        found = parse_qs(urlsplit(self.path).query)
        status = HTTPStatus.BAD_REQUEST
        if found.get("state") == [self.server.state] and not self.server.came.is_set():
            self.server.code = found.get("code", [""])[0]
            self.server.came.set()
            status = HTTPStatus.OK
        text = b"Go back to the terminal: umpc goes on there.\n"
        self.send(status, {"Content-Type": "text/plain"}, text)
