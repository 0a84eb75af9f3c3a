"""Studies of people from end to end, over real processes: nothing is lost, and n counts once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.system.survey import LOUD, NAMES, Person, Survey, tau
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import (
    ApprovalPending,
    InsufficientBudget,
    MessageRefused,
    PeerLost,
    PeerUnavailable,
    PolicyRefused,
    StudyError,
    TooFewRecords,
    TransportError,
    UmpcError,
)
from umpc.mpc.fss.point import key_bytes
from umpc.protocols.registry import decode_study
from umpc.study.document import Study
from umpc.study.parts import Participant
from umpc.study.settings import HONEST, LYING_NODES

CLOSING_SECONDS = 8
"""Seconds until a study closes whose people do not all come; they send within these."""


@pytest.fixture
def survey(tmp_path: Path) -> Iterator[Callable[..., Survey]]:
    """Provide survey(places, …), whose processes are stopped after the test."""
    made: list[Survey] = []

    def make(places: int = 20, **terms: object) -> Survey:
        made.append(Survey(tmp_path, places, **terms))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.mark.parametrize(
    ("hub", "grade"), [(False, HONEST), (True, HONEST), (False, LYING_NODES), (True, LYING_NODES)]
)
def test_people_are_counted_once_and_each_finds_its_receipt(survey, hub, grade):
    lab = survey(20).start(hub=hub)
    study = lab.study(adversary=grade)
    lab.open(study)
    lab.fetch(study, lab.people)
    assert lab.send(study, lab.people) == []
    counted, rows = lab.count(study)
    lab.check_receipts(study, lab.people, rows)
    report = lab.run(counted)
    assert report.records == len(lab.people)
    assert report.estimate == pytest.approx(tau(lab.people), abs=1e-6)
    assert report.bytes_online == report.bytes_online_predicted
    assert report.bytes_offline == report.bytes_offline_predicted
    assert report.rounds == report.rounds_predicted
    # again: nothing is charged, and nobody needs the shares, which are gone
    again, same = lab.count(study)
    assert (again, same) == (counted, rows)
    assert lab.run(counted).estimate == report.estimate
    for name in NAMES:
        assert lab.spent(name) == 1
        assert {"opened", "counted", "charge", "release"} <= set(lab.events(name))
        assert not any(lab.shares(name)), "the release has left"
        said = lab.command("node", "doctor", "--config", str(lab.folder / f"{name}.toml")).stdout
        assert "people's door" in said and "this node runs and listens there" in said
        assert f"{name}-people: 0 studies with keys" in said


def opened(lab: Survey, **terms: object) -> Study:
    """A study that is open, and whose people have their boxes."""
    study = lab.study(**terms)
    lab.open(study)
    lab.fetch(study, lab.people)
    return study


def check_result(lab: Survey, study: Study, people: Sequence[Person]) -> None:
    """The study counts exactly these people, whose receipts all hold, and is charged once."""
    counted, rows = lab.count(study)
    lab.check_receipts(study, people, rows)
    report = lab.run(counted)
    assert report.records == len(rows) == len(people)
    assert report.estimate == pytest.approx(tau(people), abs=1e-6)
    assert [lab.spent(name) for name in NAMES] == [1, 1]


@pytest.mark.parametrize("failpoint", ["people-row-stored", "people-receipt-due"])
def test_no_receipt_is_lost_by_an_aggregator_that_dies_while_people_send(survey, failpoint):
    lab = survey(12).start()
    study = opened(lab)
    assert lab.send(study, lab.people[:6]) == []
    before = [dict(person.receipts) for person in lab.people[:6]]
    lab.restart("west", f"{failpoint}:kill")
    with pytest.raises(PeerLost):
        lab.send(study, lab.people[6:], ["west"])
    assert lab.has_died("west")
    with pytest.raises(PeerUnavailable):
        lab.send(study, lab.people[6:], ["west"])
    lab.restart("west")
    assert lab.send(study, lab.people) == []  # the same boxes, so the same receipts
    after = [{name: each[:32] for name, each in person.receipts.items()} for person in lab.people]
    assert after[:6] == [{name: each[:32] for name, each in row.items()} for row in before]
    check_result(lab, study, lab.people)


@pytest.mark.parametrize(
    "failpoint",
    ["people-closed", "people-signed", "people-part-added", "people-added", "after-charge"],
)
def test_an_aggregator_that_dies_after_closing_goes_on(survey, failpoint):
    lab = survey(12).start()
    study = opened(lab)
    assert lab.send(study, lab.people) == []
    lab.restart("east", f"{failpoint}:kill")
    with pytest.raises(TransportError):
        counted, _ = lab.count(study)
        lab.run(counted, returning=0)
    assert lab.has_died("east")
    lab.restart("east")
    check_result(lab, study, lab.people)


def died_in_a_run(lab: Survey, failpoint: str) -> tuple[Study, Study]:
    """A study of people, where aggregators may lie, in whose run one dies. It is there again.

    Returns: the study before and after people were counted.
    """
    study = opened(lab, adversary=LYING_NODES)
    assert lab.send(study, lab.people) == []
    counted, _ = lab.count(study)
    lab.restart("east", f"{failpoint}:kill")
    with pytest.raises(TransportError):
        lab.run(counted, returning=0)
    assert lab.has_died("east")
    lab.restart("east")
    return study, counted


@pytest.mark.parametrize("failpoint", ["check-opened", "after-total", "check-passed"])
def test_people_come_again_after_a_check_that_was_opened_and_has_not_passed(survey, failpoint):
    """A liar may have seen z, and with it α. So neither aggregator opens another check."""
    lab = survey(12).start()
    _, counted = died_in_a_run(lab, failpoint)
    for _ in range(2):
        with pytest.raises(StudyError, match="people must come again"):
            lab.run(counted, returning=0)
    assert [lab.spent(name) for name in NAMES] == [0, 0]


@pytest.mark.parametrize("failpoint", ["after-histogram", "during-total", "before-ready"])
def test_an_attempt_that_ends_before_its_check_or_after_it_is_repeated(survey, failpoint):
    lab = survey(12).start()
    study, _ = died_in_a_run(lab, failpoint)
    check_result(lab, study, lab.people)


@pytest.mark.parametrize("failpoint", ["people_dealt_block", "people_secret_stored"])
def test_a_dealer_that_dies_deals_on(survey, failpoint):
    lab = survey(12).start()
    study = lab.study()
    lab.restart("dealer", f"{failpoint}:kill")
    with pytest.raises(UmpcError):
        lab.open(study)
        lab.fetch(study, lab.people)
    assert lab.has_died("dealer")
    lab.restart("dealer")
    lab.open(study)
    lab.fetch(study, lab.people)
    assert lab.send(study, lab.people) == []
    check_result(lab, study, lab.people)


def test_keys_of_many_places_come_in_pieces_and_the_dealer_forgets_them(survey):
    """A block of 4,096 places is larger than a message at 2^20 cells."""
    lab = survey(4100, values=1024).start()
    study = lab.study()
    lab.open(study)
    sizes = {file.stat().st_size for file in lab.folder.glob("*-people/*.dealt")}
    assert sizes == {4100 * key_bytes(1 << 20)}
    assert len([*lab.folder.glob("*-people/*.dealt")]) == 2
    lab.open(study)  # again, with nothing to fetch
    assert [*lab.folder.glob("dealt/*.keys")] == []


def test_whoever_comes_at_one_aggregator_only_is_not_counted(survey):
    lab = survey(12).start()
    study = opened(lab, seconds=CLOSING_SECONDS)
    assert lab.send(study, lab.people[2:]) == []
    assert lab.send(study, lab.people[:1], ["west"]) == []
    lab.wait_until_closed(study)
    (late,) = lab.send(study, lab.people[1:2], ["east"])
    assert isinstance(late, MessageRefused)
    check_result(lab, study, lab.people[2:])


def test_nobody_closes_a_study_before_its_time(survey):
    lab = survey(12).start()
    study = opened(lab)
    assert lab.send(study, lab.people[2:]) == []
    with pytest.raises(StudyError, match="closes this study at"):
        lab.count(study)
    assert lab.send(study, lab.people) == []  # still open, and then all have come
    check_result(lab, study, lab.people)


SETTLING_SECONDS = 1
"""An aggregator that took a cut list for a whole one would have done so within this time."""


@pytest.mark.parametrize("end", ["cancel", "wait"], ids=["cancelled", "killed"])
def test_a_list_that_is_cut_is_not_taken_for_the_whole_one(survey, end):
    lab = survey(12).start()
    file = lab.file()

    def cut(call: str) -> None:
        """A coordinator's call to west, which ends in the middle of its list."""
        words = [str(file), str(lab.folder / "coordinator"), "west", call, end]
        command = [sys.executable, "-P", "-m", "tests.system.cut_line", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdout.readline() == "sent\n"
            time.sleep(SETTLING_SECONDS if end == "wait" else 0)
            process.kill()
        time.sleep(SETTLING_SECONDS)

    study = load_study_file(file).study("coordinator")
    cut("OpenPeople")
    assert [*lab.folder.glob("west-people/*")] != []
    assert [*lab.folder.glob("west-people/*.places")] == []
    lab.open(study)
    lab.fetch(study, lab.people)
    assert lab.send(study, lab.people) == []
    cut("CountPeople")
    check_result(lab, study, lab.people)


def test_no_study_is_opened_that_the_budget_cannot_pay(survey):
    lab = survey(4).start()
    dear = lab.study().replaced(epsilon=str(11 * LOUD))
    with pytest.raises(InsufficientBudget, match="11000000000"):
        lab.open(dear)
    assert [*lab.folder.glob("*-people/*.places")] == []
    assert [lab.spent(name) for name in NAMES] == [0, 0]
    lab.open(lab.study())


def test_no_study_is_opened_whose_delta_a_site_does_not_allow(survey):
    lab = survey(4).start(more="[policy]\nmax_delta = 0\n")
    with pytest.raises(PolicyRefused, match="delta"):
        lab.open(lab.study().replaced(adversary=LYING_NODES))
    assert [*lab.folder.glob("*-people/*.places")] == []
    lab.open(lab.study())


def test_too_few_people_give_no_result(survey):
    lab = survey(12, fewest=11).start()
    study = opened(lab, seconds=CLOSING_SECONDS)
    assert lab.send(study, lab.people[2:]) == []
    lab.wait_until_closed(study)
    for _ in range(2):
        with pytest.raises((MessageRefused, TooFewRecords), match="at least 11"):
            lab.count(study)
    assert [lab.spent(name) for name in NAMES] == [0, 0]


def test_only_the_studys_own_coordinator_may_call(survey):
    lab = survey(4).start()
    lab.deployment.authority.issue("stranger", "coordinator", lab.folder / "stranger")
    study = lab.study()
    with pytest.raises(StudyError, match="'stranger' called"):
        lab.open(study, "stranger")
    lab.open(study)
    lab.fetch(study, lab.people)
    assert lab.send(study, lab.people) == []
    with pytest.raises(StudyError, match="only the study's own coordinator"):
        lab.count(study, "stranger")
    assert "refusal" in lab.events("west") + lab.events("east")
    check_result(lab, study, lab.people)


def test_a_token_fits_one_study(survey):
    lab = survey(4).start()
    study = opened(lab)
    boxes = [person.boxes for person in lab.people]
    other = opened(lab, name="another")
    for person, former in zip(lab.people, boxes, strict=True):
        person.boxes, person.device_secret = former, os.urandom(32)
    refused = lab.send(other, lab.people)
    assert len(refused) == 8 and all("does not open" in each.message for each in refused)
    with pytest.raises(MessageRefused, match="another device"):
        lab.fetch(study, lab.people)
    assert lab.send(study, lab.people[:1], ["west"]) == []


def test_an_approval_of_the_survey_is_one_of_the_counted_study(survey):
    lab = survey(4).start(more="[policy]\napproval = true\n")
    study = lab.study()
    with pytest.raises(ApprovalPending) as caught:
        lab.open(study)
    assert caught.value.waiting == tuple(sorted(NAMES))
    for name in NAMES:
        config = str(lab.folder / f"{name}.toml")
        done = lab.command("approve", "accept", "--config", config, study.hash.hex()[:16])
        assert done.returncode == 0, done.stderr
    lab.open(study)
    lab.fetch(study, lab.people)
    assert lab.send(study, lab.people) == []
    check_result(lab, study, lab.people)


def test_a_sites_rules_hold_before_anybody_comes(survey):
    lab = survey(12, fewest=9).start(more="[policy]\nmin_records = 10\n")
    with pytest.raises(PolicyRefused, match="has a result from 9 on; raise fewest"):
        lab.open(lab.study())
    assert [*lab.folder.glob("*-people/*.places")] == []
    lab.open(lab.study(fewest=10))


def test_tables_and_people_do_not_mix(survey, tmp_path):
    lab = survey(4).start()
    table = tmp_path / "table.csv"
    table.write_text("one,other\n" + "1,2\n" * 30)
    lab.deployment.start_node("table", table, "5")
    lab.kill("dealer")
    lab.deployment.start_dealer()
    lab.served.update(lab.deployment.wait_until_ready())
    with pytest.raises(StudyError, match="deals for no studies of people"):
        lab.open(lab.study(name="no-door"))
    lab.restart("dealer")
    study = lab.study()
    nodes = (study.nodes[0], Participant("table", lab.served["table"].address))
    of_table = decode_study(study.replaced(nodes=nodes).encode())
    with pytest.raises(
        StudyError, match="table has a table, and this study needs messages of people"
    ):
        lab.open(of_table)
    with pytest.raises(StudyError, match="has messages of people, and no table"):
        lab.run(lab.grid_study())
