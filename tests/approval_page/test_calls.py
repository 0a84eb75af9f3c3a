"""The checks before the approvals' page answers, each alone, and hostile texts of a study."""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
import socket
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from umpc.approval_page import server
from umpc.approval_page.server import (
    FORM,
    HEADERS,
    LOOPBACK,
    MOST_BODY,
    STYLE,
    ApprovalPage,
    BudgetShares,
    PageCall,
    PageContents,
    PastEvent,
    WaitingStudy,
    render,
    served_page,
)
from umpc.errors import AddressInUse, ApprovalError

HOST = "127.0.0.1:8765"
ORIGIN = f"http://{HOST}"
HASH = "ab" * 32
HOSTILE = """</td><script>alert(1)</script><img src=x onerror=y>"'&<form action=//evil>"""
CONTENTS = PageContents(
    site="north",
    waiting=(
        WaitingStudy(HASH, "tau", (("epsilon", "3/10"), ("WARNING", "RAW RECORDS: all"))),
        WaitingStudy("cd" * 32, "old", (), "another version"),
    ),
    budgets=(
        BudgetShares("epsilon", Fraction(5), Fraction(1), Fraction(1, 2), Fraction(7, 2)),
        BudgetShares("delta", *[Fraction(0)] * 4),
    ),
    history=(PastEvent("2026-03-01T09:00:00+00:00", "release", "'tau' of c", "noisy sum"),),
)


class Decisions:
    """The decision, and the page that asks."""

    def __init__(self, contents: PageContents = CONTENTS):
        self.made: list[tuple[str, str, str]] = []
        self.reads = 0
        self.contents = contents
        self.page = ApprovalPage(self.read, self.decide, HOST)

    def read(self) -> PageContents:
        self.reads += 1
        return self.contents

    def decide(self, digits: str, decision: str, reason: str) -> str:
        self.made.append((digits, decision, reason))
        if digits != HASH:
            raise ApprovalError(f"no study <b>{digits}</b>")
        return f"done: {decision} <b>"

    def get(self, path: str | None = None, **headers: str):
        path = self.path if path is None else path
        return self.page.answer(PageCall("GET", path, {"host": HOST, **headers}))

    @property
    def path(self) -> str:
        return self.page.address.removeprefix(ORIGIN)

    def post(self, *, body: bytes | None = None, path: str = "decide", **changes: str | None):
        sent = urlencode({"hash": HASH, "decision": "accept"}).encode() if body is None else body
        headers = {"host": HOST, "origin": ORIGIN, "content-type": FORM}
        for name, value in changes.items():
            headers[name.replace("_", "-")] = value
        given = {name: value for name, value in headers.items() if value is not None}
        return self.page.answer(PageCall("POST", self.path + path, given, sent))


@pytest.fixture
def site() -> Decisions:
    return Decisions()


def form(**fields: str) -> bytes:
    return urlencode({"hash": HASH, **fields}).encode()


def test_the_administrator_reads_accepts_and_refuses(site):
    shown = site.get()
    assert shown.status == 200 and "RAW RECORDS: all" in shown.text
    answer = site.post()
    assert (answer.status, answer.headers["Location"]) == (303, "./")
    assert site.post(body=form(decision="reject", reason="not agreed")).status == 303
    assert site.made == [(HASH, "accept", ""), (HASH, "reject", "not agreed")]
    assert site.post(body=form(decision="reject", reason="")).status == 303, "it needs no reason"
    assert "done: reject &lt;b&gt;" in site.get().text
    assert "done:" not in site.get().text  # once
    answer = site.post(body=urlencode({"hash": "00" * 32, "decision": "accept"}).encode())
    assert answer.status == 409 and "no study &lt;b&gt;" in answer.text


def test_without_the_token_there_is_nothing(site):
    token = site.path.strip("/")
    assert len(base64.urlsafe_b64decode(token + "=")) == 32
    assert token not in repr(site.page) and token != Decisions().path.strip("/")
    for path in ("/", "", "/x/", f"/{token[:-1]}/", f"/{token.swapcase()}/", f"/{token}é/"):
        assert site.get(path).status == 404, path
        call = PageCall("POST", f"{path}decide", {"host": HOST, "origin": ORIGIN}, form())
        assert site.page.answer(call).status == 404
    for path in (f"/{token}/decide", f"/{token}/../", f"/{token}/x", f"/{token}//"):
        assert site.get(path).status == 404, path
    assert site.page.answer(PageCall("PUT", site.path, {"host": HOST})).status == 404
    assert site.reads == 0 and site.made == []


def test_another_host_is_refused_although_it_knows_the_token(site):
    for host in ("evil.org", "evil.org:8765", "localhost:8765", "127.0.0.1", "127.0.0.1:1", ""):
        assert site.get(host=host).status == 421, host
        assert site.post(host=host).status == 421
    assert site.page.answer(PageCall("GET", site.path)).status == 421
    assert site.reads == 0 and site.made == []


def test_a_form_of_another_page_is_refused_although_it_knows_the_token(site):
    for origin in (None, "null", "http://evil.org", "https://127.0.0.1:8765", f"{ORIGIN}.evil.org"):
        assert site.post(origin=origin).status == 403, origin
    assert site.made == []


def test_only_the_pages_own_form_is_read(site):
    wrong = [
        *(b"", b"x", b"\xff", form(), form(decision="maybe"), form(decision="accept", more="1")),
        form(decision="accept", reason="why"),
        *(form(decision="reject", reason=text) for text in ("a\nb", "\u202e", "x" * 201)),
        form(decision="accept") + b"&decision=reject",
        form(decision="reject", reason="%ff").replace(b"%25ff", b"%ff"),
        urlencode({"hash": HASH[:12], "decision": "accept"}).encode(),
        urlencode({"hash": HASH.upper(), "decision": "accept"}).encode(),
        form(decision="reject", reason="y") + b"&" * MOST_BODY,
    ]
    for body in wrong:
        assert site.post(body=body).status == 400, body
    for kind in ("text/plain", "multipart/form-data", "application/json", None):
        assert site.post(content_type=kind).status == 400
    assert site.post(path="other").status == 404
    assert site.made == []
    assert site.post(content_type=f"{FORM}; charset=UTF-8").status == 303


class Seen(HTMLParser):
    """All tags with their attributes, and the text."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def test_hostile_texts_stay_texts():
    study = WaitingStudy(HOSTILE, HOSTILE, ((HOSTILE, HOSTILE), ("WARNING", HOSTILE)), HOSTILE)
    event = PastEvent(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    shares = replace(CONTENTS.budgets[0], name=HOSTILE)
    told = PageContents(
        HOSTILE, (study, replace(study, fault="")), 3, (shares,), (event,), (HOSTILE,)
    )
    mild = PageContents(
        "s", (WaitingStudy("h", "n", (("a", "b"), ("WARNING", "w")), "f"),) * 1
        + (WaitingStudy("h", "n", (("a", "b"), ("WARNING", "w"))),),
        3, (replace(shares, name="e"),), (PastEvent("a", "b", "c", "d"),), ("f",)
    )  # fmt: skip
    hostile, plain = Seen(render(told, HOSTILE)), Seen(render(mild, "n"))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert [list(found) for _, found in hostile.tags] == [list(found) for _, found in plain.tags]
    assert hostile.text.count(HOSTILE) >= 12


def test_nothing_is_loaded_from_elsewhere_and_no_script_runs(site):
    text = site.get().text
    tags = Seen(text).tags
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in tags}
    names = {name for _, found in tags for name in found}
    assert not {name for name in names if name.startswith("on")} and "style" not in names
    addresses = {found.get("href") or found.get("action") for _, found in tags} - {None}
    assert addresses == {"./", "decide"}
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and f"style-src 'sha256-{digest}'" in policy
    assert "frame-ancestors 'none'" in policy and "form-action 'self'" in policy
    assert style == STYLE and "url(" not in STYLE and "@import" not in STYLE


def test_a_study_that_cannot_be_read_can_be_refused_only():
    readable, unreadable = (render(replace(CONTENTS, waiting=(each,))) for each in CONTENTS.waiting)
    assert 'value="accept"' in readable and 'value="reject"' in readable
    assert 'value="accept"' not in unreadable and 'value="reject"' in unreadable


def test_the_budgets_picture_has_the_amounts_as_widths():
    text = render(CONTENTS)
    place = r'<rect class="(\w+)" x="([\d.]+)" y="(\d+)" width="([\d.]+)"'
    bars = re.findall(place, text.partition("</svg>")[0])
    assert bars == [
        ("spent", "0.00", "0", "200.00"),
        ("reserved", "200.00", "10", "100.00"),  # half as high: it needs no colour to be seen
        ("left", "300.00", "0", "700.00"),
    ]
    assert text.count('<svg viewBox="0 0 1000') == 1  # none for a delta of 0
    assert "spent 1, reserved 1/2, left 7/2" in " ".join(Seen(text).text.split())
    thin = replace(CONTENTS.budgets[0], spent=Fraction(1, 10**6), reserved=Fraction(0))
    drawn = render(replace(CONTENTS, budgets=(thin,))).partition("</svg>")[0]
    assert 'class="spent" x="0.00" y="0" width="3.00"' in drawn and 'class="reserved"' not in drawn


def test_the_server_listens_on_this_machine_only_and_checks_each_call():
    site = Decisions()
    with served_page(site.read, site.decide) as page:
        host, port = page.address.split("/")[2].split(":")
        assert host == LOOPBACK == "127.0.0.1"
        path = "/" + "/".join(page.address.split("/")[3:])
        own = f"{host}:{port}"

        def call(method: str, where: str, body: bytes | None = None, *headers: tuple[str, str]):
            line = http.client.HTTPConnection(host, int(port))
            line.putrequest(method, where, skip_host=True)
            for name, value in (*headers, ("Content-Length", str(len(body or b"")))):
                line.putheader(name, value)
            line.endheaders(body)
            answer = line.getresponse()
            content = answer.read().decode()
            line.close()
            return answer, content

        shown, text = call("GET", path, None, ("Host", own))
        assert shown.status == 200 and "tau" in text
        assert {name: shown.headers[name] for name in HEADERS} == HEADERS
        assert call("GET", path)[0].status == 421
        for two in ((own, "evil.org"), ("evil.org", own)):
            assert call("GET", path, None, *(("Host", each) for each in two))[0].status == 421
        assert call("GET", "/", None, ("Host", own))[0].status == 404
        assert call("DELETE", path, None, ("Host", own))[0].status == 501
        sent = form(decision="accept")
        mine = (("Host", own), ("Content-Type", FORM))
        assert call("POST", path + "decide", sent, *mine)[0].status == 403
        done, _ = call("POST", path + "decide", sent, *mine, ("Origin", f"http://{own}"))
        assert (done.status, done.headers["Location"]) == (303, "./")
        assert site.made == [(HASH, "accept", "")]
        second = served_page(site.read, site.decide, int(port))
        with pytest.raises(AddressInUse, match="choose another port"):
            second.__enter__()


def test_many_connections_that_send_nothing_end_and_the_page_answers(limit):
    site = Decisions()
    limit(server, MOST_CONNECTIONS=4)
    with served_page(site.read, site.decide) as page, ExitStack() as silent:
        _, _, host, token, _ = page.address.split("/")
        name, port = host.split(":")
        before = threading.active_count()
        lines = [
            silent.enter_context(socket.create_connection((name, int(port)), timeout=20))
            for _ in range(40)
        ]
        connection = http.client.HTTPConnection(name, int(port), timeout=20)
        connection.request("GET", f"/{token}/")
        assert connection.getresponse().status == 200
        connection.close()
        assert lines[0].recv(1) == b"", "the oldest one is ended"
        deadline = time.monotonic() + 20
        while threading.active_count() > before + 5:
            assert time.monotonic() < deadline
            time.sleep(0.01)
