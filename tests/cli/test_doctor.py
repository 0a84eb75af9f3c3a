"""`umpc node doctor`: one line a check, and each red line says what to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from tests.support.examined_site import Examined, the_one
from umpc import __version__
from umpc.node.audit.trail import AuditRow, AuditTrail
from umpc.node.budget.ledger import Ledger
from umpc.protocol_version import PROTOCOL
from umpc.testing import lying
from umpc.transport.identity import load_identity


@pytest.fixture
def site(tmp_path):
    return Examined(tmp_path)


def test_a_healthy_site_is_green_in_text_and_in_json(site):
    site.spend()
    site.list(1 << 100)
    before = {path: path.read_bytes() for path in site.folder.rglob("*") if path.is_file()}
    code, output = site.doctor()
    assert code == 0 and "!!" not in output, output
    for line in (
        f"ok  version: umpc {__version__}, protocol {PROTOCOL}, Python 3",
        "3 rows and 3 columns",
        "ok  column: 'age': whole numbers\n",
        "ok  column: 'balance': numbers\n",
        "ok  column: 'city': words\n",
        "MB free",
        "verified with its anchor, row ",
        "ok  budget: epsilon 5 left of 5 (0 spent, 0 reserved)",
        "ok  certificate: node 'north', from ",
        "mode 600, for its owner only",
        "1 revoked, next due ",
        "0 days old, and this node is not on it",
        f"ok  listen: 127.0.0.1:{site.port} is free",
        "--  peers: none was named",
        "ok  policy: allows studies within fields = [age, balance, city]; max_epsilon = 1; "
        "approval = true; refuses raw records for the coordinator, public labels, conditions on "
        "records, ",
    ):
        assert line in output, (line, output)
    for path, content in before.items():
        assert path.read_bytes() == content, f"the command changed {path}"
    code, output = site.doctor("--format", "json")
    told = json.loads(output)
    assert (code, told["ok"], told["exit_code"]) == (0, True, 0)
    assert {each["state"] for each in told["checks"]} == {"ok", "neutral"}


def test_a_new_site_has_no_ledger_yet_and_gets_none(site):
    code, output = site.doctor()
    assert code == 0 and "--  ledger: " in output and "with 5 in all" in output
    assert not site.ledger.exists()


def test_a_configuration_that_does_not_load_ends_the_checks(site):
    site.write(head='nam = "north"')
    the_one(site.red(), 20, "unknown key 'nam'", "did you mean 'name'?")
    code, output = site.doctor("--format", "json")
    (failed,) = [each for each in json.loads(output)["checks"] if each["state"] == "failed"]
    assert (code, failed["error"]) == (20, "ConfigError")
    assert site.doctor("--peer", "south")[0] == 2  # no address: a usage error


def test_each_fault_of_the_disk_is_red(site, monkeypatch):
    with monkeypatch.context() as patch:
        full = shutil.disk_usage(site.folder)._replace(free=5_000_000)
        patch.setattr(shutil, "disk_usage", lambda path: full)
        the_one(site.red(), 32, "5 MB free", "Make room")
    with monkeypatch.context() as patch:
        access = os.access
        patch.setattr(os, "access", lambda path, mode: mode == os.R_OK and access(path, mode))
        the_one(site.red(), 32, "may not write", "correct owner and mode")


def test_a_prepared_study_and_long_amounts_are_shown_in_few_characters(site):
    site.spend(Fraction(1, 3) + Fraction(1, 10**30))
    with Ledger(site.ledger, "t", Fraction(5)) as ledger:
        ledger.reserve(b"p" * 32, Fraction(2), Fraction(0), name="tau")
        ledger.prepare(b"p" * 32, 1e10)
        _, output = site.doctor()
    assert "epsilon 2.66666 left of 5 (0 spent, 2.33334 reserved), delta " in output
    assert "; reserved for studies prepared ahead: 1\n" in output


def test_each_fault_of_the_ledger_is_red(site):
    site.spend(5)
    the_one(site.red(), 31, "0 left of 5", "Raise epsilon under [budget]")
    site.write(budget="epsilon = 7")
    code, output = site.doctor()
    assert code == 0 and "gives epsilon 7 from the next start on" in output
    site.write(data='name = "other"')
    the_one(site.red(), 32, "data set 'other' was expected", "Correct ledger")
    site.write()
    key = site.folder / "north-ledger.sqlite.key"
    site.write(budget="epsilon = 7")
    key.chmod(0o640)
    the_one(site.red(), 51, "mode 640", f"chmod 600 {key}")
    key.chmod(0o600)
    anchor = site.folder / "north-ledger.sqlite.anchor"
    text = anchor.read_bytes()
    anchor.unlink()
    the_one(site.red(), 32, "its anchor", "umpc budget anchor")
    anchor.write_bytes(text)
    site.ledger.unlink()
    the_one(site.red(), 32, "because its anchor", "from its backup")
    site.ledger.write_bytes(b"no database" * 500)
    the_one(site.red(), 32, "the system refused", "Check the disk")


def test_each_fault_of_the_certificate_is_red(site):
    folder, key = site.folder / "site", site.folder / "site/key.pem"
    key.chmod(0o604)
    the_one(site.red(), 51, "mode 604", f"chmod 600 {key}")
    key.chmod(0o600)
    key.chmod(0o440)
    with lying("process", check_private=lambda *_: None):  # root gave it
        assert "mode 440, for root and this process's group" in site.doctor()[1]
        assert site.red() == (0, [])
    key.chmod(0o600)
    site.write(head='name = "south"')
    the_one(site.red(), 51, "is for 'north'", "Make both names equal")
    site.write()
    site.authority.issue("north", "node", folder, days=10)
    the_one(site.red(), 51, "expires in 9 days", "renew it")
    site.authority.issue("north", "node", folder, now=datetime.now(UTC) - timedelta(days=200))
    the_one(site.red(), 51, "expired", "umpc enrol join --name north")
    site.authority.issue("north", "node", folder)
    site.list(now=datetime.now(UTC) - timedelta(days=40))
    the_one(site.red(), 51, "is overdue since", "get a new crl.pem")
    site.list(load_identity(folder).certificate.serial_number)
    came = site.red("--peer", "south=127.0.0.1:1")
    the_one(came, 51, "is revoked", "move key.pem away and make a new key")
    assert "--  peers: not called" in site.doctor("--peer", "south=127.0.0.1:1")[1]


def test_a_policy_that_refuses_everything_is_red_and_others_are_one_line(site):
    for text, word in (
        ("coordinators = []", "coordinators"),
        ("noise = []\nfields = []", "fields, noise"),
        ("statistics = []", "statistics or kernels"),
    ):
        site.write(f"[policy]\n{text}\n")
        the_one(site.red(), 34, f"{word} under [policy]", "remove the key")
    site.write("[policy]\ndealers = []\ntrusted_curator = true\nmin_colluding = 1\n")
    code, output = site.doctor()
    refused = "refuses public labels, conditions on records; "
    assert code == 0 and f"dealers = []; trusted_curator = true; {refused}" in output
    site.write()
    assert "policy: allows every study; refuses raw records" in site.doctor()[1]


def test_an_open_policy_is_never_green(site):
    """Open: every statistic of every column, and no person is asked."""
    rules = ("", "min_nodes = 3", 'coordinators = ["c"]', "max_epsilon = 1")
    for rule in rules:
        site.write(f"[policy]\n{rule}\n")
        code, output = site.doctor()
        assert code == 0 and "--  policy: allows" in output and "ok  policy" not in output
        assert "OPEN: every member may ask" in output and "approval = true under" in output
    for rule in ("approval = true", 'statistics = ["mean"]', 'fields = ["age"]'):
        site.write(f"[policy]\n{rule}\n")
        output = site.doctor()[1]
        assert "ok  policy: allows" in output and "OPEN" not in output


def test_columns_that_seem_to_identify_people_are_named_and_person_is_asked_for(site):
    site.table("age,PatientID,first name,drug_name,patient_age\n1,2,3,4,5\n")
    site.write("[policy]\napproval = true\n")
    output = site.doctor()[1]
    assert "--  identifiers: 'PatientID', 'first name': columns of such names" in output
    assert "--  person: none under [policy]" in output and 'person = "PatientID"' in output
    site.write('[policy]\nfields = ["age"]\nperson = "PatientID"\n')
    output = site.doctor()[1]
    assert "identifiers" not in output and "--  person" not in output
    site.write('[policy]\nfields = ["age"]\n')
    assert "identifiers" not in site.doctor()[1] and "--  person" in site.doctor()[1]


def test_the_audit_trail_is_verified_with_the_ledgers_charges(site):
    assert "--  audit trail: " in site.doctor()[1]
    site.spend(1)
    with Ledger(site.ledger, "t", Fraction(5)) as ledger:
        ledger.charge(site.study, ledger.held(site.study).attempt)
    the_one(site.red(), 37, "audit trail", "1 studies that have no row here")
    trail = AuditTrail(site.ledger)
    trail.append(AuditRow("charge", study=site.study.hex(), epsilon="1", delta="0"))
    assert "ok  audit trail: " in site.doctor()[1]
    trail.path.write_bytes(trail.path.read_bytes().replace(b'"1"', b'"2"'))
    the_one(site.red(), 37, "audit trail", "row 1 is wrong")
    site.ledger.write_bytes(b"damaged")
    the_one(site.red(), 32, "ledger")


@pytest.mark.parametrize(
    ("limit", "said"), [(1024, "--  open files: at most 1024"), (4096, "ok  ")]
)
def test_a_low_limit_of_open_files_is_told(tmp_path, limit, said):
    site = Examined(tmp_path)
    command = f"ulimit -Sn {limit} && ulimit -Hn {limit} && exec {sys.executable} -m umpc.cli.main"
    words = f"{command} node doctor --config {site.folder / 'node.toml'}"
    shown = subprocess.run(["bash", "-c", words], capture_output=True, text=True).stdout
    (line,) = [line for line in shown.splitlines() if "open files" in line]
    assert line.startswith(said)
