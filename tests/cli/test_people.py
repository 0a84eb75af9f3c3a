"""`umpc people`: files that are made and refused, and what a person is told."""

from __future__ import annotations

import base64
import csv
import re
import stat

import pytest
from click.testing import CliRunner

from tests.support.people import people_study, with_terms
from tests.support.people_doors import PLACES, TOKENS, Doors, aggregators
from umpc.cli.main import umpc
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import (
    CertificateError,
    ConfigError,
    EncodingError,
    MessageRefused,
    NotNumeric,
    OutOfBounds,
    StudyError,
    UnknownField,
)
from umpc.people import messages
from umpc.people.device import Device, Receipt, check_invitation, write_counted
from umpc.people.places import place_key, read_keys, read_token, token_text
from umpc.protocols.people.terms import terms_of
from umpc.transport.authority import Authority
from umpc.transport.certificates import fingerprint, parse_certificate
from umpc.transport.identity import credentials_of

STUDY = """
name = "ages"
protocol = "people"
statistic = "kendall_tau"
columns = ["x", "y"]
epsilon = 1
identity = "coordinator"
[people]
keys = "people.keys"
opens = "2026-01-01T00:00:00Z"
closes = "2026-01-02T00:00:00Z"
[dealer]
name = "dealer"
address = "here:1"
[[fields]]
name = "x"
lower = 0
upper = 3
whole = true
[[fields]]
name = "y"
lower = 0
upper = 3
whole = true
[[aggregators]]
name = "node-0"
address = "here:2"
[[aggregators]]
name = "node-1"
address = "here:3"
"""


def run(*arguments, told=None):
    return CliRunner().invoke(umpc, ["people", *map(str, arguments)], input=told)


def refused(error, words, *arguments):
    ended = run(*arguments)
    assert isinstance(ended.exception, error), ended
    assert words in ended.exception.message and "\n" not in ended.exception.message


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


# --- invite and enrol -----------------------------------------------------------------------------


def test_each_token_has_its_key_in_the_list_that_the_study_names(folder):
    assert run("invite", "study.toml", "--count", 300, "--tokens", "tokens.txt").exit_code == 0
    tokens = (folder / "tokens.txt").read_text().splitlines()
    keys = list(read_keys(folder / "people.keys"))
    assert len(tokens) == len(set(tokens)) == 300
    for place, (line, key) in enumerate(zip(tokens, keys, strict=True)):
        own, seed = read_token(line)
        assert own == place and place_key(seed) == key
    assert stat.S_IMODE((folder / "tokens.txt").stat().st_mode) == 0o600
    assert terms_of(load_study_file(folder / "study.toml").study("coordinator")).places == 300


@pytest.mark.parametrize("name", ["tokens.txt", "people.keys"])
def test_nothing_is_overwritten(folder, name):
    (folder / name).write_text("mine")
    asked = ("invite", "study.toml", "--count", 3, "--tokens", "tokens.txt")
    refused(ConfigError, f"{name} exists already", *asked)
    assert {each.name for each in folder.iterdir()} == {"study.toml", name}
    assert (folder / name).read_text() == "mine"


def test_a_folder_that_is_not_there_gets_no_half_of_a_list(folder):
    asked = ("invite", "study.toml", "--count", 3, "--tokens", "nowhere/tokens.txt")
    refused(ConfigError, "cannot be written (No such file or directory)", *asked)
    assert not (folder / "people.keys").exists()


def test_a_study_without_a_list_of_keys(folder):
    (folder / "study.toml").write_text(STUDY.replace('keys = "people.keys"', ""))
    asked = ("invite", "study.toml", "--count", 3, "--tokens", "tokens.txt")
    refused(StudyError, 'write keys = "people.keys" there', *asked)


def test_a_device_makes_its_key_once_and_prints_the_public_half(folder):
    ended = run("enrol", "device.key")
    seed = base64.b64decode((folder / "device.key").read_text())
    assert base64.b64decode(ended.stdout) == place_key(seed)
    assert stat.S_IMODE((folder / "device.key").stat().st_mode) == 0o600
    refused(ConfigError, "device.key exists already", "enrol", "device.key")
    (folder / "people.keys").write_text(ended.stdout)
    assert list(read_keys(folder / "people.keys")) == [place_key(seed)], "a line of the list"


# --- open -----------------------------------------------------------------------------------------


def test_a_door_for_each_of_the_three(folder):
    run("invite", "study.toml", "--count", 3, "--tokens", "tokens.txt")
    (folder / "coordinator").mkdir()
    refused(CertificateError, "is missing", "open", "study.toml", "--into", "invitation.json")
    aggregators(folder / "made")
    identity = folder / "coordinator"
    identity.rmdir()
    Authority.open(folder / "made" / "ca").issue("coordinator", "coordinator", identity)
    asked = ("open", "study.toml", "--into", "invitation.json", "--door", "dealer=here:4")
    refused(ConfigError, "once for each of dealer, node-0, node-1, and came for dealer", *asked)


# --- submit ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    study = with_terms(people_study(), places=PLACES)
    return Doors(study, aggregators(tmp_path_factory.mktemp("authority")))


@pytest.fixture
def invitation(folder, doors):
    (folder / "invitation.json").write_bytes(doors.invitation().encode())
    return "invitation.json"


TOKEN = token_text(3, TOKENS[3][0])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("--token", TOKEN, "x=1", "y=4"), OutOfBounds, "field 'y': a number from 0 to 3"),
        (("--token", TOKEN, "x=1", "y=0.5"), OutOfBounds, "field 'y': a multiple of 1"),
        (("--token", TOKEN, "x=1", "y=one"), NotNumeric, "field 'y': a number"),
        (("--token", TOKEN, "x=1"), UnknownField, "one value for each of x, y"),
        (("--token", TOKEN, "x", "y=1"), ConfigError, "FIELD=VALUE is given as NAME=VALUE"),
        (("--token", TOKEN[:-1] + "?", "x=1", "y=1"), MessageRefused, "copy the token again"),
        (("--key", "none.key", "--place", "1", "x=1", "y=1"), ConfigError, "no such file"),
        (("--csv", "none.csv", "--tokens", "none.txt"), ConfigError, "no such file"),
    ],
)
def test_what_is_wrong_is_said_before_anything_leaves(invitation, arguments, error, words):
    refused(error, words, "submit", "--yes", invitation, *arguments)


def test_a_person_reads_what_is_asked_before_anything_leaves(folder, invitation, doors):
    """Values and token are asked for, because all users of a machine see a command's words."""
    digits = fingerprint(parse_certificate(doors.identities[0].ca_pem, "the authority"))
    ended = run("submit", invitation, told=f"{TOKEN}\n1\n2\nn\n")
    assert isinstance(ended.exception, SystemExit) and not list(folder.glob("*.device"))
    said = ended.stderr
    for words in (
        *("x (0 to 3, whole numbers)", "'x': 0 to 3", "sign(a.x - b.x)", "could read a person's"),
        *("2; with fewer", "from 2000-01-01", "node-0, node-1", f"{digits[:4]} {digits[4:8]}"),
    ):
        assert words in said, words
    assert re.search(r"^epsilon +1$", said, re.MULTILINE)
    assert re.search(r"^dealer +dealer$", said, re.MULTILINE)
    assert said.index("authority  ") < said.index("\ntoken") and TOKEN not in ended.output
    # a value that is wrong is refused before the question
    wrong = run("submit", invitation, told=f"{TOKEN}\n1\n9\n")
    assert isinstance(wrong.exception, OutOfBounds)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--token", TOKEN, "x=1", "y=1"), "give --fingerprint DIGITS, or --yes"),
        (("--token", TOKEN, "--yes"), "give FIELD=VALUE for each field"),
        (("x=1", "y=1", "--yes"), "give --token, or --key with --place"),
        (("--csv", "people.csv", "--tokens", "tokens.txt"), "--csv takes --fingerprint DIGITS"),
    ],
)
def test_a_script_says_all_in_its_command(folder, invitation, arguments, words):
    ended = run("submit", invitation, *arguments)
    assert ended.exit_code == 2 and words in ended.output, ended.output
    assert not list(folder.glob("*.device"))


def test_the_invitations_authority_is_said_and_compared_before_anything_leaves(invitation, doors):
    """Somebody else's invitation has an authority, a dealer and aggregators of its own."""
    digits = fingerprint(parse_certificate(doors.identities[0].ca_pem, "the authority"))
    asked = "submit", invitation, "--token", TOKEN, "x=1", "y=1", "--fingerprint"
    other = digits[:-1] + ("0" if digits[-1] != "0" else "1")
    refused(CertificateError, "another fingerprint was given: do not answer", *asked, other)
    refused(CertificateError, f"of the authority {digits[:4]} {digits[4:8]}", *asked, "a4ac")
    # the right one goes on, to values that the study does not take
    wrong = "submit", invitation, "--token", TOKEN, "x=9", "y=1", "--fingerprint"
    ended = run(*wrong, f"{digits[:4].upper()} {digits[4:]}")
    assert isinstance(ended.exception, OutOfBounds)
    assert f"authority      {digits[:4]} {digits[4:8]}" in ended.stderr


def test_an_enrolment_answers_no_study_that_has_no_accounts(folder, invitation):
    """Otherwise an organiser would list enrolments as tokens, and no account would be charged."""
    run("enrol", "device.key")
    asked = "submit", "--yes", invitation, "--key", "device.key", "--place", 1, "x=1", "y=1"
    refused(StudyError, "charges no account of an enrolment", *asked)


@pytest.mark.parametrize(
    "arguments",
    [
        ("x=1", "y=1"),
        ("--token", TOKEN, "--key", "device.key", "x=1", "y=1"),
        ("--key", "device.key", "x=1", "y=1"),
        ("--csv", "people.csv"),
        ("--csv", "people.csv", "--tokens", "tokens.txt", "x=1"),
    ],
)
def test_options_that_do_not_go_together(invitation, arguments):
    assert run("submit", invitation, *arguments).exit_code == 2


def test_a_file_that_is_no_invitation(folder):
    refused(EncodingError, "an invitation was expected", "submit", "study.toml", "--token", TOKEN)


def table(folder, rows, tokens):
    with (folder / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("name", "y", "x"), *rows])
    (folder / "tokens.txt").write_text("".join(f"{token}\n" for token in tokens))
    return "--csv", "people.csv", "--tokens", "tokens.txt"


def test_each_row_of_a_table_is_checked_first(folder, invitation):
    tokens = [token_text(place, seed) for place, (seed, _) in enumerate(TOKENS)]
    rows = [("somebody", "1", "2")] * 400
    submit = "submit", "--yes", invitation
    wrong = table(folder, [*rows, ("somebody", "1", "4")], tokens)
    refused(OutOfBounds, "people.csv, row 401: field 'x'", *submit, *wrong)
    missing = table(folder, [*rows, ("somebody", "1", "")], tokens)
    refused(UnknownField, "people.csv, row 401: one value", *submit, *missing)
    few = table(folder, rows, tokens[:399])
    refused(ConfigError, "tokens.txt has 399 tokens", *submit, *few)
    typed = table(folder, rows, [*tokens[:9], "token", *tokens[10:]])
    refused(MessageRefused, "tokens.txt, line 10: a token", *submit, *typed)
    twice = table(folder, rows, [*tokens[:399], tokens[9]])
    refused(MessageRefused, "tokens.txt, line 400: place 9 is there twice", *submit, *twice)
    foreign = table(folder, rows, [*tokens[:399], token_text(PLACES, TOKENS[0][0])])
    refused(
        MessageRefused, f"tokens.txt, line 400: a message names place {PLACES}", *submit, *foreign
    )
    assert not (folder / "invitation.device").exists()


def test_a_new_device_does_not_overwrite_the_receipts_of_another_one(folder, invitation):
    (folder / "receipt.json").write_text("mine")
    asked = ("submit", "--yes", invitation, "--token", TOKEN, "x=1", "y=1")
    refused(ConfigError, "receipt.json exists already", *asked)
    assert (folder / "receipt.json").read_text() == "mine"
    # nor do those of an earlier run, whose receipts were another file's
    Device(
        folder / "invitation.device", check_invitation((folder / invitation).read_bytes())
    ).close()
    refused(ConfigError, "receipt.json exists already", *asked)
    assert (folder / "receipt.json").read_text() == "mine"


# --- check ----------------------------------------------------------------------------------------


def receipt_of(doors, place):
    told = bytes([place]) * 32
    signed = [
        credentials_of(identity).sign(messages.receipt_statement(doors.survey, side, place, told))
        for side, identity in enumerate(doors.identities)
    ]
    both = signed[0].hex(), signed[1].hex()
    return Receipt(doors.survey.hash.hex(), place, told.hex(), both)


def test_a_receipt_is_looked_for_in_the_published_list(folder, doors, invitation):
    receipts = [receipt_of(doors, place) for place in (3, 7)]
    (folder / "receipt.json").write_text("".join(f"{each.encode()}\n" for each in receipts))
    others = [messages.row(place, bytes(32)) for place in (1, 12)]
    asked = ("check", invitation, "receipt.json", "--counted", "study.counted.csv")
    write_counted(folder / "study.counted.csv", [others[0], receipts[0].row, receipts[1].row])
    ended = run(*asked)
    assert ended.exit_code == 0 and "counted: all 2 receipts" in ended.stdout
    # a row of the place with another receipt is not the person's
    write_counted(folder / "study.counted.csv", [receipts[0].row, messages.row(7, bytes(32))])
    refused(MessageRefused, "1 of 2 receipts are not on the list of study.counted.csv", *asked)
    refused(MessageRefused, "of the places 7: show them to the organiser", *asked)
    (folder / "study.counted.csv").write_text("place,receipt\n1\n")
    refused(ConfigError, "a list of those who are counted was expected", *asked)
