"""The commands of people over real processes: the demo, and somebody who votes a thousand times."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.forked import Forked
from tests.system.survey import NAMES, Survey, checked, tau
from umpc.api.study import run_now
from umpc.cli.people import make_tokens
from umpc.deployment.processes import UMPC, stop
from umpc.errors import MessageRefused
from umpc.people.device import in_batches, read_counted
from umpc.people.messages import row
from umpc.protocols.people.terms import messages_of

PEOPLE = 200
VOTES = 1000


def demo(folder: Path, *options: str, protocol: str = "people") -> subprocess.CompletedProcess:
    arguments = [*UMPC, "demo", "--protocol", protocol, "--keep", str(folder), *options]
    pipe = subprocess.PIPE
    with Forked(arguments, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            output, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            stop([process])
            raise
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)


def test_a_demo_of_people_is_the_oracle_and_a_receipt_is_found(tmp_path):
    folder = tmp_path / "kept"
    ended = demo(folder, "--people", str(PEOPLE), "--epsilon", "1000000000", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["estimate"] == pytest.approx(report["quantised"], abs=1e-9)
    assert report["records"] == PEOPLE and report["edges"] == PEOPLE * (PEOPLE - 1) // 2
    found = "counted: all 1 receipts are on the list of aggregator-1 and aggregator-2"
    assert found in ended.stderr
    lines = (folder / "receipts.json").read_text().splitlines()
    receipts = [json.loads(line) for line in lines]
    assert len({each["place"] for each in receipts}) == PEOPLE
    counted = read_counted(folder / "study.counted.csv")
    assert counted == {row(each["place"], bytes.fromhex(each["receipt"])) for each in receipts}


@pytest.mark.parametrize("grade", ["honest", "lying_nodes"])
def test_a_demo_of_linked_rows_is_the_oracle_and_each_site_has_its_own_columns(tmp_path, grade):
    folder = tmp_path / "kept"
    options = ("--linked", "mean texture", "--adversary", grade, "--epsilon", "1000000000")
    ended = demo(folder, *options, "--format", "json", protocol="linked")
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["estimate"] == pytest.approx(report["quantised"], abs=1e-9)
    assert report["records"] == 569 and report["protocol"] == "linked"
    for name, column in (("site-1", "mean texture"), ("site-2", "mean radius")):
        head = (folder / f"{name}.csv").read_text().splitlines()[0]
        assert head == f"key of the row,{column}"
        assert "WARNING" not in (folder / f"{name}.log").read_text()


@pytest.mark.parametrize("options", [("--people", "1"), ("--people", "many"), ("--hub",)])
def test_a_demo_of_people_that_cannot_be_is_refused_before_a_process_starts(tmp_path, options):
    ended = demo(tmp_path / "kept", *options)
    assert ended.returncode == 20 and "starting" not in ended.stderr


@pytest.fixture
def lab(tmp_path) -> Iterator[Survey]:
    survey = Survey(tmp_path, 6)
    yield survey
    survey.stop()


def test_somebody_who_votes_a_thousand_times_has_one_vote(lab):
    study = lab.start().study()
    lab.open(study)
    lab.fetch(study, lab.people)
    assert lab.send(study, lab.people) == []
    survey, voter = messages_of(study), lab.people[0]
    first = voter.values
    answers = run_now(_votes(lab, study, voter))
    assert len(answers) == len(NAMES) * VOTES
    for each in answers:
        assert isinstance(each, MessageRefused) and "has sent another message" in each.message
    voter.values = first
    counted, rows = lab.count(study)
    assert [int.from_bytes(each[:8], "little") for each in rows] == list(range(survey.places))
    assert lab.run(counted).estimate == pytest.approx(tau(lab.people), abs=1e-6)


async def _votes(lab: Survey, study, voter) -> list:
    """Many other messages of a person, each with its own nonce, to both aggregators."""
    survey = messages_of(study)
    async with await lab.door("dealer") as dealer:
        (sealed,) = await dealer.secrets(survey.hash, [voter.ask(survey)])
    boxes = []
    for vote in range(VOTES):
        voter.values = (vote % 8, vote // 8 % 8)
        voter.make_boxes(study, checked(sealed), lab.keys)
        boxes.append(voter.boxes)
    answers = []
    for side, name in enumerate(NAMES):
        async with await lab.door(name) as door:
            for some in in_batches(boxes):
                sent = [(voter.place, both[side]) for both in some]
                answers += await door.submit(survey.hash, sent)
    return answers


def test_the_commands_lead_from_tokens_to_a_receipt_on_the_list(lab):
    """Each person uses a command of its own, as people do, and then finds itself counted."""
    keys = lab.folder / "people.keys"
    keys.unlink()
    make_tokens(2, lab.folder / "tokens.txt", keys)
    # the third one has made its key itself
    key = str(lab.folder / "device.key")
    with keys.open("a") as file:
        file.write(lab.command("people", "enrol", key).stdout)
    lab.start()
    file = lab.file(enrolled=True)
    doors = [part for name, at in lab.doors.items() for part in ("--door", f"{name}={at}")]
    invitation = str(lab.folder / "invitation.json")
    told = lab.command("people", "open", str(file), "--into", invitation, *doors)
    assert told.returncode == 0 and "3 places" in told.stdout, told.stderr
    early = lab.command("study", "run", str(file), "--quiet")
    assert early.returncode == 10 and "0 have. Ask again then" in early.stderr, early.stderr
    tokens = (lab.folder / "tokens.txt").read_text().split()
    shown = [*(("--token", each) for each in tokens), ("--key", key, "--place", "2")]
    killed = (
        "people",
        "submit",
        "--yes",
        invitation,
        *shown[0],
        "--device",
        str(lab.folder / "0.device"),
    )
    environment = {**os.environ, "UMPC_FAILPOINT": "boxes-on-disk:kill"}
    ended = subprocess.run([*UMPC, *killed, "one=0", "other=0"], env=environment, cwd=lab.folder)
    assert ended.returncode == -signal.SIGKILL
    changed = lab.command(*killed, "one=7", "other=0")
    assert changed.returncode == 61 and "has answered with another value" in changed.stderr
    for place, who in enumerate(shown):
        own = ("--device", str(lab.folder / f"{place}.device"))
        receipt = str(lab.folder / f"{place}.json")
        answer = (*who, *own, "--receipts", receipt, f"one={place}", f"other={place}")
        sent = lab.command("people", "submit", "--yes", invitation, *answer)
        assert sent.returncode == 0, sent.stderr
        waiting = lab.command("people", "check", invitation, receipt)
        assert waiting.returncode == 61, waiting.stderr
    other = lab.command(
        *("people", "submit", "--yes", invitation, "--token", tokens[0], "one=1", "other=7"),
        *("--device", str(lab.folder / "other.device")),
        *("--receipts", str(lab.folder / "other.json")),
    )
    assert other.returncode == 61 and "another device has fetched" in other.stderr
    ran = lab.command("study", "run", str(file), "--quiet", "--format", "json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["estimate"] == pytest.approx(1, abs=1e-6)
    listed = ("--counted", str(file.with_suffix(".counted.csv")))
    for place in range(3):
        receipt = str(lab.folder / f"{place}.json")
        for where in ((), listed):
            found = lab.command("people", "check", invitation, receipt, *where)
            assert found.returncode == 0 and "counted: all 1 receipts" in found.stdout
