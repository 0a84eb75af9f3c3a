"""The server of the approvals' page, on the loopback address of this machine.

The checks that stand before the approvals' page, without a socket.

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

*Html.* The HTML of the approvals' page. Every text of it is escaped, because coordinators write
some.

*Style.* The style of the approvals' page: light and dark, wide and narrow.

The content of the approvals' page: texts and amounts, which the site's files give.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from umpc.errors import AddressInUse, UmpcError
from umpc.local_server import LocalCall, LocalServer
from umpc.reporting.page import BASE, document
from umpc.text_file import escape


@dataclass(frozen=True)
class WaitingStudy:
    """A study that waits for a person.

    hash: hexadecimal. facts: as `umpc approve show` prints them. fault: why the study cannot be
    read here, or ""; it can then be refused only.
    """

    hash: str
    name: str
    facts: tuple[tuple[str, str], ...]
    fault: str = ""


@dataclass(frozen=True)
class BudgetShares:
    """The budget's parts, of ε or of δ. Their sum is `total`."""

    name: str
    total: Fraction
    spent: Fraction
    reserved: Fraction
    left: Fraction


@dataclass(frozen=True)
class PastEvent:
    """One row of the audit trail. about: its study, or ""."""

    at: str
    event: str
    about: str
    note: str


@dataclass(frozen=True)
class PageContents:
    """All parts of the page. more: pending studies that have no room. faults: what failed."""

    site: str
    waiting: tuple[WaitingStudy, ...] = ()
    more: int = 0
    budgets: tuple[BudgetShares, ...] = ()
    history: tuple[PastEvent, ...] = ()
    faults: tuple[str, ...] = ()


# --- calls ----------------------------------------------------------------------------------------


MOST_REASON = 200
WIDTH = 1000
PARTS = ("spent", "reserved", "left")
WHOLE_ROWS = {"WARNING": "warn", "in short": "short"}
"""Headings of facts that stand alone over the others, without the heading."""


def render(contents: PageContents, notice: str = "") -> str:
    """Return the page. Args: notice: one line about the last decision, or ""."""
    return document(
        f"Node {contents.site}: studies that wait",
        STYLE,
        [
            f"<h1>Node {escape(contents.site)}</h1>",
            '<p class="quiet">Only this machine can open this page. <a href="./">Read it '
            "again</a></p>",
            *([f'<p role="status">{escape(notice)}</p>'] if notice else []),
            *(f'<p class="warn">{escape(fault)}</p>' for fault in contents.faults),
            *_waiting(contents),
            *_budget(contents.budgets),
            *_history(contents.history),
        ],
    )


def _waiting(contents: PageContents) -> Iterator[str]:
    number = len(contents.waiting) + contents.more
    yield f"<h2>Studies that wait: {number}</h2>"
    if not number:
        yield "<p>No study waits for a decision.</p>"
        return
    yield (
        '<p class="quiet">Text in quotes is the coordinator\'s own. The node has checked '
        "everything else.</p>"
    )
    for study in contents.waiting:
        yield _study(study)
    if contents.more:
        yield f"<p>{contents.more} more studies wait: decide on these first.</p>"


def _study(study: WaitingStudy) -> str:
    hidden = f'<input type="hidden" name="hash" value="{escape(study.hash)}">'
    form = f'<form method="post" action="decide">{hidden}'
    accept = f'{form}<button class="accept" name="decision" value="accept">Accept</button></form>'
    refuse = (
        f'{form}<button class="refuse" name="decision" value="reject">Refuse</button>'
        "<label>Reason, which the coordinator reads; it may stay empty"
        f'<input name="reason" maxlength="{MOST_REASON}" autocomplete="off"></label></form>'
    )
    fault = f'<p class="warn">{escape(study.fault)}</p>' if study.fault else ""
    shown = f"<h3>{escape(study.name)}</h3>{fault}<dl>{_facts(study.facts)}</dl>"
    buttons = f"{'' if study.fault else accept}{refuse}"
    return f'<article>{shown}<div class="decide">{buttons}</div></article>'


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    lines = []
    for heading, text in facts:
        if heading in WHOLE_ROWS:
            lines.append(f'<dd class="{WHOLE_ROWS[heading]}">{escape(text)}</dd>')
        else:
            lines.append(f"<dt>{escape(heading.strip())}</dt><dd>{escape(text)}</dd>")
    return "".join(lines)


def _budget(budgets: Iterable[BudgetShares]) -> Iterator[str]:
    yield "<h2>Budget of this site's data</h2>"
    for shares in budgets:
        yield f"<h3>{escape(shares.name)}: {_amount(shares.total)} in all</h3>"
        if shares.total:
            yield picture(shares)
        amounts = (
            f'<svg class="key" viewBox="0 0 20 20" aria-hidden="true">{_bar(part, 0, 20)}</svg>'
            f" {part} {_amount(getattr(shares, part))}"
            for part in PARTS
        )
        yield f"<p>{', '.join(amounts)}</p>"


def picture(shares: BudgetShares) -> str:
    """Return a bar of the parts of a budget above 0, as SVG. A part above 0 is always seen."""
    drawn, x = [], 0.0
    for part in PARTS:
        amount: Fraction = getattr(shares, part)
        width = float(WIDTH * amount / shares.total)
        if amount > 0:
            drawn.append(_bar(part, x, max(width, 3.0), f"{part} {_amount(amount)}"))
        x += width
    label = f"{shares.name}: {_amount(shares.spent)} of {_amount(shares.total)} spent"
    view = f'viewBox="0 0 {WIDTH} 20" preserveAspectRatio="none"'
    return f'<svg {view} role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'


def _bar(part: str, x: float, width: float, about: str = "") -> str:
    """Return one part of a bar. Its shape tells it from the others, and not only its colour."""
    y = 10 if part == "reserved" else 0
    place = f'x="{x:.2f}" y="{y}" width="{width:.2f}" height="{20 - y}"'
    return f'<rect class="{part}" {place}><title>{escape(about)}</title></rect>'


def _amount(value: Fraction) -> str:
    """Return an amount as it was written, or rounded if its fraction is long."""
    exact = str(value)
    return exact if len(exact) <= 12 else f"about {float(value):.6g}"


def _history(history: Iterable[PastEvent]) -> Iterator[str]:
    yield "<h2>History</h2>"
    yield (
        '<p class="quiet">The last rows of the audit trail. <code>umpc audit verify</code> '
        "verifies them.</p>"
    )
    rows = [
        f"<li><strong>{escape(each.event)}</strong> {escape(each.at)}"
        f'<br>{escape(each.about)}<br><span class="quiet">{escape(each.note)}</span></li>'
        for each in history
    ]
    yield (
        f'<ul class="history">{"".join(rows)}</ul>' if rows else "<p>Nothing has happened yet.</p>"
    )


# --- style ----------------------------------------------------------------------------------------

OWN = """
:root {
  --card: #f5f7f9; --spent: #a23b3b; --reserved: #b57d14; --left: #3b7a57;
  --warn: #8f1d1d; --warned: #fdeaea; --yes: #23613f; --no: #8f1d1d; --on: #fff;
}
@media (prefers-color-scheme: dark) { :root {
  --card: #1c232b; --spent: #e07b73; --reserved: #e0b860; --left: #6fbf92;
  --warn: #ffb4ab; --warned: #3b1a1a; --yes: #8fd6ae; --no: #ffb4ab; --on: #10151a;
} }
h3 { font-size: 1.1rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
a { color: inherit; }
article { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: 1rem; margin: 0 0 1rem; }
dl { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .2rem 1rem; margin: 0 0 1rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.warn { color: var(--warn); background: var(--warned); padding: .4rem .6rem; border-radius: .3rem;
  font-weight: 600; overflow-wrap: anywhere; }
dl .warn, dl .short { grid-column: 1 / -1; }
.short { font-size: 1.05rem; margin: 0 0 .6rem; overflow-wrap: anywhere; }
.decide { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: flex-start; }
.decide form + form { flex: 1 1 18rem; }
form { margin: .5rem 0; }
button, input { font: inherit; padding: .5rem 1rem; border-radius: .4rem; box-sizing: border-box; }
button { border: 0; color: var(--on); cursor: pointer; font-weight: 600; }
.accept { background: var(--yes); }
.refuse { background: var(--no); }
label { display: block; }
input { width: 100%; margin: .3rem 0; border: 1px solid var(--quiet); color: var(--ink);
  background: var(--paper); }
svg { width: 100%; height: 1.6rem; display: block; border-radius: .3rem; }
svg rect { stroke: var(--paper); stroke-width: 2px; vector-effect: non-scaling-stroke; }
.spent { fill: var(--spent); } .reserved { fill: var(--reserved); }
svg .left { fill: none; stroke: var(--left); }
svg.key { display: inline-block; width: 1.2rem; height: 1.2rem; vertical-align: -.2rem; }
ul { list-style: none; padding: 0; margin: .3rem 0; }
li { overflow-wrap: anywhere; }
.history li { border-bottom: 1px solid var(--line); padding: .4rem 0; }
@media (max-width: 600px) {
  dl { display: block; }
  dd { margin: 0 0 .5rem; }
  form > button { width: 100%; }
}
"""
STYLE = BASE + OWN

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
            call.body.decode("ascii"),
            strict_parsing=True,
            max_num_fields=3,
            errors="strict",
            keep_blank_values=True,
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
    """Whether a refusal has a reason of at most one line, and an acceptance has none."""
    reason = form["reason"]
    if form["decision"] == "accept":
        return not reason
    return reason.isprintable() and len(reason) <= MOST_REASON


def _refusal(status: HTTPStatus, sentence: str) -> PageAnswer:
    body = [f"<h1>{status.value} {status.phrase}</h1>", f"<p>{escape(sentence)}</p>"]
    return PageAnswer(status, document(status.phrase, STYLE, body))


# --- the server -----------------------------------------------------------------------------------


LOOPBACK = "127.0.0.1"
CALL_SECONDS = 10
MOST_CONNECTIONS = 64
"""Connections at the same time. A browser has six for a page, and uses each within a moment."""


@contextmanager
def served_page(
    read: Callable[[], PageContents], decide: Callable[[str, str, str], str], port: int = 0
) -> Iterator[ApprovalPage]:
    """Serve the page inside the block. Args: as of ApprovalPage; port: 0 takes any free one.

    Raises: AddressInUse.
    """
    try:
        server = _PageServer(port)
    except OSError as error:
        raise AddressInUse(
            f"--port {port}: {LOOPBACK} cannot be listened on there ({error.strerror}): choose "
            "another port"
        ) from None
    server.page = ApprovalPage(read, decide, f"{LOOPBACK}:{server.server_address[1]}")
    with server.served():
        yield server.page


class _PageServer(LocalServer):
    """A browser opens connections that it may never use, so each has its own thread."""

    page: ApprovalPage

    def __init__(self, port: int):
        self._lock = threading.Lock()
        self._open: dict[Any, None] = {}
        super().__init__((LOOPBACK, port), _PageCalls)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection. The oldest one ends where there are too many.

        Other users of this machine can open connections and send nothing. They would otherwise take
        a thread each, and in the end all files of this process.
        """
        with self._lock:
            self._open[request] = None
            oldest = next(iter(self._open)) if len(self._open) > MOST_CONNECTIONS else None
            if oldest is not None:
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """End a connection."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)


class _PageCalls(LocalCall):
    """One call over HTTP."""

    server: _PageServer
    timeout = CALL_SECONDS

    def do_GET(self) -> None:
        """Answer a call. A body longer than any form is cut, and then refused."""
        names = [name.lower() for name in self.headers]
        single = {name.lower(): value for name, value in self.headers.items()}
        twice = {name for name in names if names.count(name) > 1}
        headers = {name: value for name, value in single.items() if name not in twice}
        body = self.body(MOST_BODY + 1) if self.command == "POST" else b""
        answer = self.server.page.answer(PageCall(self.command, self.path, headers, body))
        self.send(answer.status, answer.headers, answer.text.encode())

    do_POST = do_GET
