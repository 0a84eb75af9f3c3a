"""The checks that stand before the approvals' page, without a socket.

| who | what stops them |
|---|---|
| another machine | the server listens on the loopback address only |
| another user of this machine | the token in the address: 256 random bits, new at each start |
| a web page in the administrator's browser, by its own name for this address | `Host` |
| a web page that sends a form here | the token, and `Origin` |
| a web page that shows this page in a frame | `Content-Security-Policy` |
| a coordinator, by the name of a study | every text is escaped, and no script may run |

A page may not learn the token from a link either: this page has no link to elsewhere, and sends its
address to no other origin.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs

from umpc.approval_page.contents import PageContents
from umpc.approval_page.html import MOST_REASON, STYLE, render
from umpc.errors import UmpcError
from umpc.reporting.page import document, escape

TOKEN_BYTES = 32
MOST_BODY = 4096
FORM = "application/x-www-form-urlencoded"
DECISIONS = ("accept", "reject")
STYLE_HASH = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",  # "no-referrer" would hide the origin of the own forms too
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Type": "text/html; charset=utf-8",
}


@dataclass(frozen=True)
class PageCall:
    """One call. headers: with names in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class PageAnswer:
    """The answer to a call. location: of a redirection, or ""."""

    status: HTTPStatus
    text: str = ""
    location: str = ""

    @property
    def headers(self) -> dict[str, str]:
        """The headers that every answer has, and the redirection's."""
        return {**HEADERS, "Location": self.location} if self.location else HEADERS


class ApprovalPage:
    """Answers calls. Any thread may call it.

    Args:
        read: returns what the page shows now.
        decide: is told a study's whole hash, one of DECISIONS and a reason, and returns a line.
        host: the only `Host` that is served, as "127.0.0.1:8080".
    """

    def __init__(
        self,
        read: Callable[[], PageContents],
        decide: Callable[[str, str, str], str],
        host: str,
    ):
        self._read = read
        self._decide = decide
        self._host = host
        self._token = secrets.token_urlsafe(TOKEN_BYTES)
        self._lock = threading.Lock()
        self._notice = ""

    def __repr__(self) -> str:
        return f"ApprovalPage({self._host}, token=<redacted>)"

    @property
    def address(self) -> str:
        """The page's address with its secret token."""
        return f"http://{self._host}/{self._token}/"

    def answer(self, call: PageCall) -> PageAnswer:
        """Return the answer to a call. Nothing is read or decided before all checks."""
        if call.headers.get("host") != self._host:
            return _refusal(HTTPStatus.MISDIRECTED_REQUEST, "Open the address that was printed.")
        token, _, rest = call.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return _refusal(HTTPStatus.NOT_FOUND, "Open the address that was printed.")
        if (call.method, rest) == ("GET", ""):
            return self._show()
        if (call.method, rest) == ("POST", "decide"):
            return self._receive(call)
        return _refusal(HTTPStatus.NOT_FOUND, "There is one page only.")

    def _show(self) -> PageAnswer:
        with self._lock:
            notice, self._notice = self._notice, ""
        return PageAnswer(HTTPStatus.OK, render(self._read(), notice))

    def _receive(self, call: PageCall) -> PageAnswer:
        origin = call.headers.get("origin")
        if origin != f"http://{self._host}":
            return _refusal(HTTPStatus.FORBIDDEN, "The form of this page was expected.")
        form = _form(call)
        if form is None:
            return _refusal(HTTPStatus.BAD_REQUEST, "The form of this page was expected.")
        try:
            with self._lock:
                self._notice = self._decide(form["hash"], form["decision"], form["reason"])
        except UmpcError as error:
            return _refusal(HTTPStatus.CONFLICT, error.message)
        return PageAnswer(HTTPStatus.SEE_OTHER, location="./")


def _form(call: PageCall) -> dict[str, str] | None:
    """Return a form's hash, decision and reason, or None if it is not one of this page."""
    kind = call.headers.get("content-type", "").partition(";")[0].strip()
    if kind != FORM or len(call.body) > MOST_BODY:
        return None
    try:
        found = parse_qs(
            call.body.decode("ascii"), strict_parsing=True, max_num_fields=3, errors="strict"
        )
    except ValueError:
        return None
    if any(len(values) != 1 for values in found.values()):
        return None
    form = {"reason": "", **{name: values[0] for name, values in found.items()}}
    if form.keys() != {"hash", "decision", "reason"} or form["decision"] not in DECISIONS:
        return None
    is_hash = len(form["hash"]) == 64 and set(form["hash"]) <= set("0123456789abcdef")
    return form if is_hash and _has_its_reason(form) else None


def _has_its_reason(form: Mapping[str, str]) -> bool:
    """Whether a refusal has a reason of one line, and an acceptance has none."""
    reason = form["reason"]
    if form["decision"] == "accept":
        return not reason
    return bool(reason.strip()) and reason.isprintable() and len(reason) <= MOST_REASON


def _refusal(status: HTTPStatus, sentence: str) -> PageAnswer:
    body = [f"<h1>{status.value} {status.phrase}</h1>", f"<p>{escape(sentence)}</p>"]
    return PageAnswer(status, document(status.phrase, STYLE, body))
