"""Sign-in: a coordinator's certificate for hours, against an ID token of its institution.

    coordinator$  umpc enrol sign-in …      key, request; the person signs in; ID token → authority
    authority$    umpc enrol listen --sign-in FILE    checks the token, and signs the request

The token's nonce is the digest of the request (`nonce_of`), so a token serves one request of one
key: whoever steals a token has no use of it. The authority's own file says which persons may sign
in, the name of each in certificates, and the hashes of the studies that each may ask.
docs/sign_in.md says what each party gains by lying.

Source: OpenID Connect Core 1.0, 3.1.3.7; RFC 7636 (PKCE); RFC 8252, 7.3 (loopback redirect).
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import importlib
import re
import secrets
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, TypeGuard, cast
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from umpc.decoding import convert
from umpc.enrolment.authority_side import EnrolmentOffice
from umpc.enrolment.texts import AdmissionText, Text, json_object, pem_of
from umpc.errors import CertificateError, ConfigError, PeerUnavailable
from umpc.local_server import LocalCall, LocalServer, hang_up_after
from umpc.transport.certificates import SignedIn, check_name, clock, load_request, names_of
from umpc.transport.files import read_file, write_public

ALGORITHMS = ["RS256", "PS256", "ES256", "RS384", "PS384", "ES384", "RS512", "PS512", "ES512"]
"""Signatures by a private key. `none`, and HS* by a secret that others share, are refused."""
MOST_AGE = 600
"""Seconds for which a token counts after its issue, and the person's own sign-in before it."""
SKEW = 60
"""Seconds by which the clocks of institution and authority may differ."""
SECONDS = 6
"""Longest time of one question to an institution, from its connection to its last byte."""
KEPT_SECONDS = 600
"""How long fetched keys count."""
PAUSE_SECONDS = 30
"""Shortest time between two questions to an institution for its keys."""
MOST_BYTES = 1 << 20
MOST_LINES = 300
"""Sign-ins of one person that are remembered."""
AGAIN = "sign in again with `umpc enrol sign-in`"


class SignInPerson(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One who may sign in.

    name: in certificates. studies: the hashes of those that the person may ask, as
    `umpc study check` prints them. readmitted: a revocation up to this time no longer counts.
    """

    name: str
    studies: list[Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]]
    readmitted: Annotated[datetime, msgspec.Meta(tz=True)] = datetime.min.replace(tzinfo=UTC)


class Institution(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An institution whose sign-in counts.

    issuer: as its tokens write it, https. client: the audience of a token. people: by the claim
    `sub` of a token. hours: of a certificate. jwks: a file of its public keys; without one the
    authority fetches them from the issuer.
    """

    issuer: str
    client: str
    people: dict[str, SignInPerson]
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
    token: bytes = field(repr=False)


def nonce_of(csr: bytes) -> str:
    """The nonce that binds a token to one request. Args: csr: in DER."""
    return _base64(hashlib.sha256(b"umpc sign-in 1\0" + csr).digest())


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


# --- the authority --------------------------------------------------------------------------------


class SignInOffice:
    """Signs the requests of persons who have signed in at their institution.

    Args:
        folder: the authority's. Its folder `signed-in` has a file for each coordinator's name.
        settings: a file with a table `[sign_in.INSTITUTION]` for each institution. It is read at
            each sign-in.

    Raises: ConfigError.
    """

    def __init__(self, folder: Path, settings: Path, now: Callable[[], datetime] = clock):
        self._folder = folder
        self._settings = settings
        self._now = now
        self._keys: dict[str, FetchedKeys] = {}
        self._institutions()
        _jose("jwt")

    def admit(self, request: SignInRequest) -> AdmissionText:
        """Return a certificate for hours. A token counts once.

        Raises: CertificateError, whose culprit is the institution as the request names it;
            PeerUnavailable where the institution's keys cannot be had; ConfigError.
        """
        name, token = request.institution, request.token.decode("ascii", "replace")
        institution = self._institutions().get(name)
        with _blaming(name):
            if institution is None:
                raise CertificateError("this authority knows no such institution")
            # before a question to the institution; the signature is still to be checked
            self._check(institution, _part(token, 1), request.csr)
            kid = _part(token, 0).get("kid")
        keys = self._keys_of(institution, kid)
        with _blaming(name):
            claims = _verified(token, keys, kid)
            self._check(institution, claims, request.csr)
            subject = claims.get("sub")
            if not isinstance(subject, str) or subject not in institution.people:
                raise CertificateError(
                    "the authority's list has no such person: ask its keeper to add "
                    f"{ascii(subject)[:200]}"
                )
            person = institution.people[subject]
            csr = pem_of(request.csr, "CERTIFICATE REQUEST")
            if names_of(load_request(csr)) != (person.name, "coordinator"):
                raise CertificateError(f"the person signs in as coordinator {person.name!r} only")
        who = SignedIn(subject, name, tuple(person.studies))
        return self._signed(csr, token, person, institution.hours, who)

    def _institutions(self) -> dict[str, Institution]:
        """Return what the file says now. Raises: ConfigError."""
        try:
            found = tomllib.loads(read_file(self._settings, "correct --sign-in").decode())
            institutions = convert(found, _SignInFile).sign_in
            names: set[str] = set()
            for name, each in institutions.items():
                _check_institution(name, each, names)
        except (ValueError, msgspec.ValidationError) as error:
            raise ConfigError(f"{self._settings}: {error}: see docs/sign_in.md") from None
        return institutions

    def _keys_of(self, institution: Institution, kid: object) -> dict[str, Any]:
        """Return the public keys of an institution. Raises: PeerUnavailable, CertificateError."""
        if institution.jwks:
            path = self._settings.parent / institution.jwks
            return _parsed(read_file(path, "restore it"), str(path))
        known = self._keys.setdefault(institution.issuer, FetchedKeys(institution.issuer))
        return known.those_with(kid, self._now().timestamp())

    def _check(self, institution: Institution, claims: dict[str, Any], csr: bytes) -> None:
        """Check what a token says of itself. Raises: CertificateError."""
        now = self._now().timestamp()
        begin, end, since = claims.get("iat"), claims.get("exp"), claims.get("nbf", 0)
        entered = claims.get("auth_time")
        if not (_is_time(begin) and _is_time(end) and _is_time(since) and _is_time(entered)):
            raise CertificateError(
                "the token lacks a date (iat, exp, auth_time): the institution must say when the "
                "person signed in (max_age)"
            )
        if now > min(end + SKEW, begin + MOST_AGE):
            raise CertificateError(f"the token is too old: {AGAIN}")
        if now > entered + MOST_AGE:
            raise CertificateError(f"the person signed in there too long ago (auth_time): {AGAIN}")
        if max(begin, since, entered) > now + SKEW:
            raise CertificateError("the token is of the future: compare the clocks of both sides")
        if claims.get("iss") != institution.issuer:
            raise CertificateError("the token is of another issuer than the authority expects")
        if claims.get("aud") not in (institution.client, [institution.client]):
            raise CertificateError("the token is for another program: its audience is not umpc's")
        if claims.get("azp", institution.client) != institution.client:
            raise CertificateError("the token was given to another program (azp)")
        if claims.get("nonce") != nonce_of(csr):
            raise CertificateError(f"the token is for another request (nonce): {AGAIN}")

    def _signed(
        self, csr: bytes, token: str, person: SignInPerson, hours: float, who: SignedIn
    ) -> AdmissionText:
        """Sign a request, and note its token before the certificate leaves.

        Raises: CertificateError, with the institution as culprit where the token was used, or where
            a certificate of this name was revoked.
        """
        office = EnrolmentOffice(self._folder, self._now)
        path = office.authority.signed_in / person.name
        # a signature of ECDSA has two forms, so it is left out
        digest = hashlib.sha256(token.rpartition(".")[0].encode()).hexdigest()
        with office.register.locked():
            former = read_file(path, "restore it").splitlines() if path.exists() else []
            revoked = office.authority.last_revocation(person.name, "coordinator")
            with _blaming(who.institution):
                if any(digest.encode() in line for line in former):
                    raise CertificateError(f"the token was used before: {AGAIN}")
                if revoked is not None and revoked > person.readmitted:
                    raise CertificateError(
                        f"a certificate of coordinator {person.name!r} was revoked, at "
                        f"{revoked:%F %R} UTC: ask the authority's keeper, who may readmit you"
                    )
            admission = office.admit_signed_in(csr, person.name, hours, who)
            line = f"{self._now():%FT%TZ} {who.institution} {who.person!a} {digest}".encode()
            write_public(path, b"\n".join([*former[1 - MOST_LINES :], line, b""]))
        return admission


def _check_institution(name: str, institution: Institution, names: set[str]) -> None:
    """Args: names: of coordinators so far. Raises: ValueError, ConfigError."""
    if not 0 < institution.hours <= 24:
        raise ValueError(f"[sign_in.{name}] hours: expected more than 0, and at most 24")
    _secure(institution.issuer)
    for subject, person in institution.people.items():
        check_name(person.name, "coordinator")
        if not subject or person.name in names:
            raise ValueError(
                f"[sign_in.{name}.people] {subject!r}: a `sub` with a name that no other person "
                f"has was expected, not {person.name!r}"
            )
        names.add(person.name)
        SignedIn(subject, name, tuple(person.studies)).uri()


@contextmanager
def _blaming(institution: str) -> Iterator[None]:
    """Name the institution, as a request does, in a refusal that this request is to blame for."""
    try:
        yield
    except CertificateError as error:
        raise CertificateError(
            f"sign-in at institution {ascii(institution)[:80]}: {error.message}",
            culprit=institution,
        ) from None


class FetchedKeys:
    """The public keys that an issuer publishes, kept for a while. Any thread may ask.

    However often strangers call, the issuer gets one question in `PAUSE_SECONDS`, and one thread
    waits for its answer.
    """

    def __init__(self, issuer: str):
        self._issuer = issuer
        self._lock = threading.Lock()
        self._asked = self._came = -float("inf")
        self._found: dict[str, Any] | None = None

    def those_with(self, kid: object, now: float) -> dict[str, Any]:
        """Return all keys, fetched anew if they are old, or if none has this id.

        Args: now: in seconds. Raises: PeerUnavailable.
        """
        if not self._lock.acquire(timeout=SECONDS):
            raise PeerUnavailable(f"{self._issuer} lets others wait for its keys: {AGAIN}")
        try:
            if now - self._came > KEPT_SECONDS:
                self._found = None
            is_known = self._found is not None and _of_kid(self._found, kid)
            if not is_known and now - self._asked > PAUSE_SECONDS:
                self._asked = now
                # if it fails, the former keys stay: anybody can invent an id
                self._found, self._came = self._fetched(), now
            return self._last()
        finally:
            self._lock.release()

    def _last(self) -> dict[str, Any]:
        if self._found is None:
            raise PeerUnavailable(f"the keys of {self._issuer} could not be had lately: {AGAIN}")
        return self._found

    def _fetched(self) -> dict[str, Any]:
        try:
            return fetch(discover(self._issuer, "jwks_uri")["jwks_uri"])
        except CertificateError as error:  # the caller has no part in it
            raise PeerUnavailable(error.message) from None


def _of_kid(keys: dict[str, Any], kid: object) -> list[dict[str, Any]]:
    """Return the keys for signatures with this id."""
    listed = keys.get("keys")
    return [
        key
        for key in (listed if isinstance(listed, list) else [])
        if isinstance(key, dict)
        and kid
        and key.get("kid") == kid
        and key.get("kty") in ("RSA", "EC")
        and key.get("use", "sig") == "sig"
    ]


def _verified(token: str, keys: dict[str, Any], kid: object) -> dict[str, Any]:
    """Return the claims of a token that one of the keys has signed.

    Raises: CertificateError; PeerUnavailable where the published key is damaged.
    """
    jwt, jwk, errors = _jose("jwt"), _jose("jwk"), _jose("errors")
    # an unknown word in the header is refused under `crit` only (RFC 7515, 4)
    rules = _jose("jws").JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
    known = _of_kid(keys, kid)
    if len(known) != 1:
        raise CertificateError("the token's key is none of the institution's (kid)")
    try:
        key = jwk.import_key(known[0])
    except (errors.JoseError, ValueError, TypeError, KeyError):
        raise PeerUnavailable(f"the institution's key {kid!a} is damaged: tell it") from None
    try:
        found = jwt.decode(token, key, registry=rules)
        if str(found.header.get("typ", "JWT")).upper() == "JWT":
            return cast(dict[str, Any], dict(found.claims))
    except (errors.JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise CertificateError(f"the token's signature is not the institution's: {AGAIN}") from None
    raise CertificateError(f"the institution signed it, and it is no ID token (typ): {AGAIN}")


def _part(token: str, place: int) -> dict[str, Any]:
    """Return a part of a token, which anybody may have written. Raises: CertificateError."""
    try:
        content = base64.urlsafe_b64decode(token.split(".")[place] + "==")
    except (ValueError, IndexError):
        content = b""
    return json_object(content, f"something else than an ID token came: {AGAIN}")


def _jose(part: str) -> Any:
    try:
        return importlib.import_module(f"joserfc.{part}")
    except ImportError:
        raise ConfigError(
            "an authority with sign-in needs joserfc: install umpc with its extra `sign-in`"
        ) from None


def _is_time(value: object) -> TypeGuard[float]:
    """Whether a value is seconds since 1970; NaN is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < 1e11


# --- questions to an institution ------------------------------------------------------------------


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse."""


class _Limited(http.client.HTTPConnection):
    """A connection that ends after `SECONDS`, however slowly its bytes come."""

    def connect(self) -> None:
        """Connect. TLS begins within the limit."""
        super().connect()
        hang_up_after(SECONDS, self.sock.dup())


class _LimitedTls(http.client.HTTPSConnection, _Limited):
    pass


class _InTime(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> Any:
        """Open a limited connection."""
        return self.do_open(_LimitedTls, req)


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
        with urllib.request.build_opener(_Straight, _InTime).open(url, body, SECONDS) as answer:
            return _parsed(answer.read(MOST_BYTES), url)
    except urllib.error.HTTPError as error:
        raise CertificateError(f"{url} refused (status {error.code}): {AGAIN}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise PeerUnavailable(
            f"the institution was expected at {url}, and the connection failed ({reason}): "
            "check its address, and the authorities of TLS that this machine trusts"
        ) from None


def _secure(url: str) -> None:
    if not re.fullmatch(r"https://[!-~]{1,500}", url):
        raise ConfigError(f"an address https://… of the institution was expected, not {url[:80]!a}")


def _parsed(content: bytes, what: str) -> dict[str, Any]:
    return json_object(content, f"{what}: an object of JSON was expected: {AGAIN}")


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
            "max_age": "300",
            "code_challenge": _base64(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        _secure(found["authorization_endpoint"])
        more = "&" if "?" in found["authorization_endpoint"] else "?"
        show(f"{found['authorization_endpoint']}{more}{urlencode(question)}")
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
    token = fetch(found["token_endpoint"], form).get("id_token")
    if not isinstance(token, str):
        raise CertificateError(f"the institution gave no ID token: {AGAIN}")
    return token.encode("ascii", "replace")


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
