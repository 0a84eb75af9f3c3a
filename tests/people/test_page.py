"""The page for people without a browser: what it serves, relays, bounds, and how it fails."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.people import people_study, with_terms
from tests.support.people_doors import PLACES, TOKENS, aggregators
from tests.support.people_page import (
    QUESTION,
    SERVER,
    PageDoors,
    in_thread,
    page_doors,
    people_page,
)
from umpc.api.study import run_now
from umpc.deployment.processes import UMPC
from umpc.errors import AddressInUse, ConfigError, StudyError
from umpc.people import messages
from umpc.people.device import check_invitation
from umpc.people_page import server
from umpc.people_page.contents import contents_of, read_texts
from umpc.people_page.server import renewed_context
from umpc.study.parts import FieldBins
from umpc.study.settings import HONEST, LYING_NODES


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    return aggregators(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def doors(identities):
    return page_doors(identities)


@pytest.fixture
def served(doors):
    with in_thread(people_page(doors)) as address:
        yield address


UNCHECKED = ssl.create_default_context()
UNCHECKED.check_hostname, UNCHECKED.verify_mode = False, ssl.CERT_NONE


def fetch(address, body=None, headers=None):
    """Status, headers and body of a call."""
    data = json.dumps(body).encode() if isinstance(body, list) else body
    request = urllib.request.Request(address, data, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10, context=UNCHECKED) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def told(address, body=None, **options):
    """Status and JSON of a call."""
    status, _, data = fetch(address, body, **options)
    return status, json.loads(data)


def in_base64(data):
    return base64.b64encode(data).decode()


class Browser:
    """A person's device over the page, with the functions of umpc."""

    def __init__(self, address, doors, place):
        self.address, self.survey, self.place = address, doors.survey, place
        self.seed, self.own = TOKENS[place][0], os.urandom(32)
        self.keys = [each.box_key for each in doors.invitation().aggregators]

    def fetch_secret(self):
        device, signature = messages.secret_request(self.survey, self.place, self.seed, self.own)
        return told(f"{self.address}relay/2", [self.place, in_base64(device), in_base64(signature)])

    def boxes(self, cell):
        sealed = base64.b64decode(self.fetch_secret()[1]["data"])
        secret = messages.open_secret(self.survey, self.place, self.own, sealed)
        number = (cell - messages.offset(self.survey, self.place, secret)) % self.survey.cells
        nonce = os.urandom(32)
        secrets = [os.urandom(32), os.urandom(32)]
        return messages.make_boxes(
            self.survey, self.keys, self.place, number, nonce, self.seed, secrets
        )[1]

    def send(self, side, box):
        return told(f"{self.address}relay/{side}", [self.place, in_base64(box)])


# --- what it serves -------------------------------------------------------------------------------


def test_one_digest_fixes_the_whole_program(served):
    _, headers, page = fetch(served)
    named = dict(re.findall(r'(page\.(?:js|css))" integrity="sha256-([^"]+)"', page.decode()))
    (named["study.json"],) = re.findall(r'data-study="sha256-([^"]+)"', page.decode())
    for name in ("page.js", "page.css", "study.json"):
        _, _, data = fetch(served + name)
        assert named[name] == in_base64(hashlib.sha256(data).digest())
    policy = headers["Content-Security-Policy"]
    assert '<form id="answer" autocomplete="off"' in page.decode(), "no answer in saved forms"
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


def test_the_printed_digest_is_that_of_the_page_and_of_its_keys(doors, identities):
    """Whoever has the invitation and the texts makes the same one, and other keys another one."""

    def code(invitation):
        found = contents_of(check_invitation(invitation), SERVER, read_texts(None))
        assert hashlib.sha256(found.files["/"][0]).hexdigest() == found.code
        return found.code

    own = doors.invitation().encode()
    assert code(own) == code(own)
    assert code(own) != code(PageDoors(doors.study, identities).invitation().encode())


def test_the_program_asks_nobody_else_and_writes_no_markup(served):
    for name in ("", "page.js", "page.css"):
        text = fetch(served + name)[2].decode()
        for each in ("http:", "https:", "innerHTML", "eval(", "localStorage", "document.write"):
            assert each not in text


def test_a_browser_gets_the_study_and_the_invitation(served, doors):
    shown = told(f"{served}study.json")[1]
    assert shown["texts"]["de"]["question"] == QUESTION and shown["server"] == SERVER
    assert base64.b64decode(shown["hash"]) == doors.survey.hash
    assert shown["cells"] == doors.survey.cells == 36
    assert [each["cuts"] for each in shown["fields"]] == [[18, 40, 65], [4, 10], None]
    invited = check_invitation(fetch(f"{served}invitation.json")[2])
    assert invited.study == doors.study


@pytest.mark.parametrize("name", ["node-0", "node-1", "coordinator"])
def test_where_aggregators_may_lie_none_of_them_serves_the_page(doors, name):
    """Nor does the coordinator: each may lie there, and whoever serves a page can read."""
    assert people_page(doors, server=name)
    liars = PageDoors(doors.study.replaced(adversary="lying_nodes"), doors.identities)
    assert people_page(liars, server="dealer"), "the grade trusts the dealer"
    with pytest.raises(StudyError, match=f"{name} serves the page, .* let somebody else serve it"):
        people_page(liars, server=name)


def test_whoever_serves_the_page_has_a_name(doors):
    with pytest.raises(ConfigError, match="--served-by"):
        people_page(doors, server=" ")


def test_enrolments_have_no_page(doors):
    doors = PageDoors(with_terms(doors.study, enrolled=True), doors.identities)
    with pytest.raises(StudyError, match="umpc people submit --key"):
        people_page(doors)


# --- what it relays -------------------------------------------------------------------------------


def test_a_message_reaches_both_aggregators_and_is_found_on_their_lists(served, doors):
    person = Browser(served, doors, 7)
    boxes = person.boxes(11)
    for side, box in enumerate(boxes):
        status, reply = person.send(side, box)
        assert status == 200 and person.send(side, box)[1]["data"][:42] == reply["data"][:42]
    assert doors.cell(7) == 11
    assert list(dict.fromkeys(doors.connected)) == ["dealer dealer", "node node-0", "node node-1"]
    assert told(f"{served}counted/0/7")[1]["kind"] == "uncounted"
    doors.is_counted = True
    for side in (0, 1):
        row = base64.b64decode(told(f"{served}counted/{side}/7")[1]["data"])
        assert row == messages.row(7, doors.opened[side][7].receipt)
        for other in (0, 6, 8, 599):
            assert told(f"{served}counted/{side}/{other}") == (200, {"data": ""})


def test_a_used_token_and_one_of_another_study_are_told(served, doors):
    first, second = Browser(served, doors, 3), Browser(served, doors, 3)
    boxes = first.boxes(1)
    assert second.fetch_secret()[1]["kind"] == "used"
    other = first.boxes(2)
    assert "data" in first.send(0, boxes[0])[1]
    assert first.send(0, other[0])[1]["kind"] == "used"
    stranger = Browser(served, doors, 4)
    stranger.seed = TOKENS[5][0]
    assert stranger.fetch_secret()[1]["kind"] == "foreign"
    assert doors.opened[0].keys() == {3}


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("the study is not open yet: node-0 has not confirmed the dealer's keys", "shut"),
        ("this dealer has no such study of people, or it has closed: check", "shut"),
        ("node-0 takes messages for this study from 1 to 2, and this one came at 3", "shut"),
        ("node-0 takes no message for this study, which is closed here", "shut"),
        ("the study has places from 0 to 9, and a request for place 10 came", "foreign"),
        ("something new", "refused"),
    ],
)
def test_what_a_door_refuses_has_a_text_of_the_page(served, doors, words, kind):
    doors.refusing["dealer"] = words
    status, reply = Browser(served, doors, 1).fetch_secret()
    assert (status, reply["kind"]) == (200, kind)
    assert words in reply["detail"]
    assert kind in read_texts(None)["en"]


def test_one_that_is_down_is_named_and_asked_anew(served, doors):
    person = Browser(served, doors, 2)
    boxes = person.boxes(5)
    doors.down = {"node-1"}
    assert "data" in person.send(0, boxes[0])[1]
    for _ in range(2):
        assert person.send(1, boxes[1]) == (503, {"kind": "down", "name": "node-1"})
    doors.down = set()
    assert "data" in person.send(1, boxes[1])[1]
    assert doors.cell(2) == 5


def test_one_that_is_silent_holds_up_no_list_of_the_other(doors):
    doors.is_counted = True
    asked, may_end = threading.Event(), threading.Event()

    async def connect(address, ca, name, role):
        if name == "node-0":
            asked.set()
            await asyncio.to_thread(may_end.wait, 30)
        return await doors.connect(address, ca, name, role)

    page = people_page(doors, connect=connect)
    with in_thread(page) as address, ThreadPoolExecutor() as pool:
        waiting = pool.submit(told, f"{address}counted/0/1")
        assert asked.wait(10)
        assert told(f"{address}counted/1/1") == (200, {"data": ""})
        assert not waiting.done()
        doors.down = {"node-0"}
        may_end.set()
        assert waiting.result() == (503, {"kind": "down", "name": "node-0"})
        doors.down = set()
        assert told(f"{address}counted/0/1") == (200, {"data": ""}), "a failure is not kept"


# --- what it bounds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("relay/2", b"x" * 2000, 413),
        ("relay/2", b"no JSON", 400),
        ("relay/2", [1, ""], 400),
        ("relay/0", [1, "", ""], 400),
        ("relay/0", [-1, ""], 400),
        ("relay/0", [1 << 32, ""], 400),
        ("relay/3", [1, ""], 404),
        ("counted/0/../../etc", None, 404),
        ("page.html", None, 404),
        ("relay/2", None, 405),
    ],
)
def test_other_calls_are_refused(served, doors, path, body, status):
    assert fetch(served + path, body)[0] == status
    assert doors.connected == []


def test_an_address_that_asks_too_often_waits(doors, limit):
    limit(server, MOST_PER_SECOND=5)
    with in_thread(people_page(doors)) as address:
        found = [told(f"{address}study.json") for _ in range(20)]
        assert {status for status, _ in found} == {200, 429}
        assert {said["kind"] for status, said in found if status == 429} == {"busy"}


@pytest.mark.parametrize("behind", [True, False])
def test_behind_a_proxy_each_caller_has_its_own_bound(doors, limit, tmp_path, behind):
    limit(server, MOST_PER_SECOND=3)
    certificate(tmp_path / "tls", "page")
    with in_thread(people_page(doors), tls=None if behind else tmp_path / "tls") as address:
        # the last address is the proxy's word; whoever writes others before it gains nothing
        callers = [{"X-Forwarded-For": f"9.9.9.{k}, 10.0.0.{k // 2}"} for k in range(40)]
        found = [fetch(address, headers=each)[0] for each in callers]
        assert (429 in found) == (not behind)
        one = [{"X-Forwarded-For": f"9.9.9.{k}, 10.1.1.1"} for k in range(40)]
        assert 429 in [fetch(address, headers=each)[0] for each in one]


def test_a_proxy_that_writes_a_line_of_its_own_is_believed(doors, limit):
    limit(server, MOST_PER_SECOND=3)
    with in_thread(people_page(doors)) as address:
        found = []
        for k in range(40):
            line = http.client.HTTPConnection(*_host(address), timeout=10)
            line.putrequest("GET", "/")
            for caller in (f"9.9.9.{k}", "10.1.1.1"):
                line.putheader("X-Forwarded-For", caller)
            line.endheaders()
            found.append(line.getresponse().status)
            line.close()
        assert 429 in found


def test_a_connection_that_says_nothing_ends(doors, limit):
    limit(server, SILENT_SECONDS=0.8)
    with in_thread(people_page(doors)) as address:
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as line:
            line.sendall(b"POST /relay/2 HTTP/1.1\r\nHost: x\r\n")
            began = time.monotonic()
            assert line.recv(1) == b""
            assert time.monotonic() - began > 0.4
        assert fetch(address)[0] == 200


def test_no_log_names_a_caller(doors, caplog, capfd):
    class Broken:
        async def __aenter__(self):
            raise RuntimeError("a defect")

        async def __aexit__(self, *_):
            pass

    async def connect(*_):
        return Broken()

    with in_thread(people_page(doors, connect=connect)) as address:
        assert fetch(f"{address}relay/0", [1, ""])[0] == 500
        with socket.create_connection(tuple(_host(address)), timeout=10) as line:
            line.sendall(b"\x00\xff nothing like HTTP\r\n\r\n")
            line.recv(100)
    written = caplog.text + "".join(capfd.readouterr())
    assert "a request of the page was not answered" in written
    assert "127.0.0.1" not in written


def _host(address):
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    return host, int(port)


def test_an_address_that_is_taken_is_named(doors):
    with in_thread(people_page(doors)) as address:
        runner = people_page(doors)

        async def serve():
            async with runner.served(address.removeprefix("http://").rstrip("/"), None):
                pass

        with pytest.raises(AddressInUse, match="another process does already"):
            run_now(serve())


# --- texts ----------------------------------------------------------------------------------------


def test_an_organiser_changes_texts_and_adds_a_language(tmp_path):
    own = tmp_path / "own.json"
    own.write_text('{"de": {"question": "Wie alt?"}, "fr": {"answer": "Votre réponse"}}')
    found = read_texts(own)
    usual = read_texts(None)
    assert found["de"] == {**usual["de"], "question": "Wie alt?"}
    assert found["fr"] == {**usual["en"], "answer": "Votre réponse"}
    assert usual["en"].keys() == usual["de"].keys()


def test_every_text_that_the_page_names_is_there(served):
    known = read_texts(None)["en"].keys()
    named = set(re.findall(r'data-t="([^"]+)"', fetch(served)[2].decode()))
    program = fetch(f"{served}page.js")[2].decode()
    for call in ("fault", "say", "saying"):
        named |= set(re.findall(call + r'\((?:"\w+", |\$\("\w+"\), |\w+, )?"(\w+)"', program))
    named |= {f"promise {each}" for each in (1, 2, HONEST, LYING_NODES, 4, 5)}
    named |= {*server.KINDS, "busy", "down", "offline", "refused", "counted", "point"}
    named -= {"a", "b", "button", "h2", "li", "option", "p", "span"}
    assert named and named <= known


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"en": {"question": 1}}', '{"en": "x"}'])
def test_other_texts_are_refused(tmp_path, text):
    own = tmp_path / "own.json"
    own.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(str(own))):
        read_texts(own)


# --- the certificate ------------------------------------------------------------------------------


def certificate(folder, name):
    """Write a self-signed certificate and its key, as certbot names them."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    folder.mkdir(exist_ok=True)
    (folder / "privkey.pem").write_bytes(key.private_bytes(form, *plain))
    (folder / "fullchain.pem").write_bytes(made.public_bytes(form))
    return made.public_bytes(serialization.Encoding.DER)


def shown(address):
    """The certificate that the page shows now."""
    host, port = address.removeprefix("https://").rstrip("/").split(":")
    with (
        socket.create_connection((host, int(port)), timeout=10) as plain,
        UNCHECKED.wrap_socket(plain) as line,
    ):
        return line.getpeercert(True)


def test_a_renewed_certificate_counts_without_a_restart(doors, tmp_path):
    folder = tmp_path / "tls"
    first = certificate(folder, "first")
    with in_thread(people_page(doors), tls=folder) as address:
        assert address.startswith("https://") and shown(address) == first
        second = certificate(folder, "second")
        assert shown(address) == second != first
        (folder / "fullchain.pem").write_text("half of it")
        assert shown(address) == second, "the former one stays"
        shutil.rmtree(folder)
        assert shown(address) == second
        third = certificate(folder, "third")
        assert shown(address) == third


def test_one_file_may_have_certificate_and_key(tmp_path):
    certificate(tmp_path / "tls", "one")
    both = tmp_path / "both.pem"
    parts = [(tmp_path / "tls" / name).read_text() for name in ("privkey.pem", "fullchain.pem")]
    both.write_text("".join(parts))
    assert renewed_context(both)


@pytest.mark.parametrize("is_there", [True, False])
def test_no_certificate_is_told(tmp_path, is_there):
    path = tmp_path / "tls.pem"
    if is_there:
        path.write_text("none")
    with pytest.raises(ConfigError, match=r"--tls: .*tls\.pem"):
        renewed_context(path)


# --- the command ----------------------------------------------------------------------------------


def test_the_command_says_address_and_digest_and_ends_at_a_signal(doors, tmp_path):
    invitation = tmp_path / "invitation.json"
    invitation.write_bytes(doors.invitation().encode())
    own = tmp_path / "own.json"
    own.write_text('{"en": {"question": "How old are you?"}}')
    options = ["--served-by", "A trust", "--listen", "127.0.0.1:0", "--texts", str(own)]
    command = [*UMPC, "people", "page", str(invitation), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            ready = process.stdout.readline().split()
            digest = process.stdout.readline().split()[-1]
            assert ready[0] == "ready:" and process.stdout.readline().startswith("authority ")
            assert hashlib.sha256(fetch(ready[1])[2]).hexdigest() == digest
            assert told(f"{ready[1]}study.json")[1]["texts"]["en"]["question"] == "How old are you?"
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_bins_of_a_field_with_decimals_are_in_its_steps(doors):
    bins = (FieldBins("income", cuts=("0.5", "9.5")),)
    doors = PageDoors(doors.study.replaced(bins=bins), doors.identities)
    with in_thread(people_page(doors)) as address:
        fields = told(f"{address}study.json")[1]["fields"]
    assert [each["cuts"] for each in fields] == [None, [1, 19], None]


def test_a_cell_that_no_browser_can_make_has_no_page(doors):
    """The axis has a bit of a field: neither a sum nor a product."""
    study = people_study("abs((a.x < 2)*a.y - (b.x < 2)*b.y)")
    wrong = PageDoors(with_terms(study, places=PLACES), doors.identities)
    with pytest.raises(StudyError, match="only sums and products of fields"):
        people_page(wrong)
