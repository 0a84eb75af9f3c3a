"""The approvals' page in a real browser: a person accepts, refuses, and another site tries to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import msgspec
import pytest
from playwright.sync_api import Browser, Page

from tests.chromium.test_report_page import (
    SCHEMES,
    WIDTHS,
    check_marks,
    is_dark,
    keep,
    looks,
    serious,
)
from tests.chromium.watched_page import watched_page
from tests.cli.test_approve import OWN, TAU, Site
from umpc.approval_page.server import served_page
from umpc.cli.node_page import contents, decider
from umpc.node.approvals import ACCEPTED, PENDING, REJECTED
from umpc.node.audit.trail import AuditRow, AuditTrail
from umpc.node.budget.ledger import Ledger

DECISIONS = ("Accept", "Refuse")
HOSTILE = msgspec.structs.replace(OWN, name="<script>document.title='taken'</script>" + "x" * 90)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A node with a budget, a history, and three studies that wait."""
    found = Site(tmp_path)
    (tmp_path / "north-ledger.sqlite.key").unlink()
    ledger = tmp_path / "north-ledger.sqlite"
    with Ledger(ledger, "t", Fraction(5), Fraction(1, 10**9)):
        pass
    row = AuditRow("release", study="ab" * 32, name="gini", coordinator="c", epsilon="1/3")
    AuditTrail(ledger).append(row, AuditRow("refusal", name="x", note="PolicyRefused in propose"))
    found.ask(TAU, OWN, HOSTILE)
    return found


@contextmanager
def opened(browser: Browser, site: Site, width: int, scheme: str = "light") -> Iterator[Page]:
    """The page, which may ask for no other address."""
    with watched_page(browser, width, scheme) as (page, asked):
        with served_page(lambda: contents(site.config), decider(site.config)) as served:
            page.goto(served.address)
            yield page
        assert asked and all(url.startswith(served.address) for url in asked)


def state(site: Site, study) -> str:
    return site.approvals.find(study.hash.hex()).state


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_the_screen_and_is_dark_or_light(browser, site, tmp_path, width, scheme):
    with opened(browser, site, width, scheme) as page:
        folded = looks(page)
        heading = [text for text in folded["texts"] if text["text"] == "Node north"]
        assert is_dark({"texts": heading}) == (scheme == "dark")  # a button has its own ground
        shown = {text["text"] for text in folded["texts"] if text["visible"]}
        assert {"Node north", "Studies that wait: 3", "History", "epsilon: 5 in all"} <= shown
        assert all(text["visible"] for text in folded["texts"])
        assert page.get_by_text("If you accept, 'coordinator' learns").first.is_visible()
        assert serious(page) == []
        bars = page.locator("svg[role=img] rect").all()
        heights = [bar.bounding_box()["height"] for bar in bars]
        assert heights and min(heights) > 10
        check_marks(page, ".spent, .reserved, .left")
        keep(page, tmp_path / "approvals.html", f"{width}-{scheme}")


def test_a_person_accepts_one_study_and_refuses_another(browser, site):
    with opened(browser, site, WIDTHS[0]) as page:
        page.locator("article", has_text=TAU.hash.hex()).get_by_text("Accept", exact=True).click()
        assert "accepted: 'tau'" in page.locator("[role=status]").inner_text()
        card = page.locator("article", has_text=OWN.hash.hex())
        near = [card.get_by_role("button", name=name).bounding_box() for name in DECISIONS]
        assert abs(near[0]["y"] - near[1]["y"]) < 80, "refuse is as near as accept"
        card.get_by_role("textbox").fill("the board has not agreed")
        card.get_by_role("button", name="Refuse").click()
        assert "rejected: 'own'" in page.locator("[role=status]").inner_text()
        assert "the board has not agreed" in page.locator(".history").inner_text()
        assert "Studies that wait: 1" in page.locator("h2").first.inner_text()
        assert page.title() == "Node north: studies that wait", "no script of a study runs"
    states = [state(site, study) for study in (TAU, OWN, HOSTILE)]
    assert states == [ACCEPTED, REJECTED, PENDING]


def test_another_page_that_knows_the_address_can_neither_decide_nor_show_it(browser, site):
    """The attacker's page sends the form and shows the page in a frame, token and all."""
    with served_page(lambda: contents(site.config), decider(site.config)) as served:
        target = f"{served.address}decide"
        fields = {"hash": TAU.hash.hex(), "decision": "accept"}
        inputs = "".join(f'<input name="{name}" value="{each}">' for name, each in fields.items())
        evil = (
            f'<iframe src="{served.address}"></iframe>'
            f'<form method="post" action="{target}">{inputs}<button>x</button></form>'
        )
        with attacker(evil) as address:
            page = browser.new_page()
            page.goto(address)
            assert all("Studies that wait" not in frame.content() for frame in page.frames)
            with page.expect_navigation():
                page.get_by_role("button").click()
            assert page.url == target and "403" in page.locator("h1").inner_text()
            page.close()
    assert state(site, TAU) == PENDING


@contextmanager
def attacker(content: str) -> Iterator[str]:
    class Evil(BaseHTTPRequestHandler):
        """Another web page, of another origin."""

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Evil)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
