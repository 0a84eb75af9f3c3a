"""The administrator's commands at a site with several data sets."""

from __future__ import annotations

import json
import logging
import shutil
from fractions import Fraction
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from tests.support.studies import make_study
from umpc.cli.check_table import compare_table
from umpc.cli.doctor import check_datasets
from umpc.cli.main import umpc
from umpc.cli.server_options import Monitor
from umpc.errors import ApprovalError, ConfigError
from umpc.node.backup.restoring import Statement, restore
from umpc.node.config import load_datasets
from umpc.node.datasets import open_dataset, open_ledger
from umpc.transport.authority import Authority
from umpc.transport.identity import load_identity

STUDY = """name = "s"
statistic = "gini_mean_difference"
columns = ["age"]
epsilon = 1
identity = "c"
{}
[[fields]]
name = "age"
lower = 0
upper = 250
whole = true
"""


@pytest.fixture
def site(tmp_path):
    """A folder with two data sets, whose files a node has made, and two studies that wait."""
    Authority.create(tmp_path / "authority").issue("north", "node", tmp_path / "site")
    entries = ""
    for age, name in ((30, "heart"), (200, "bank")):
        (tmp_path / f"{name}.csv").write_text(f"age\n{age}\n")
        entries += (
            f'[[datasets]]\nname = "{name}"\npath = "{name}.csv"\n'
            "[datasets.budget]\nepsilon = 5\n[datasets.policy]\napproval = true\n"
        )
    config = tmp_path / "node.toml"
    config.write_text(f'name = "north"\nidentity = "site"\n{entries}')
    for place, each in enumerate(load_datasets(config), start=1):
        with open_ledger(each) as ledger:
            study = make_study(name=each.dataset)
            ledger.reserve(study.hash, Fraction(place), Fraction(0), name=each.dataset)
            ledger.hold(study.hash, b"attempt", b"share")
            ledger.charge(study.hash, b"attempt")
            found = open_dataset(each, ledger)
            with pytest.raises(Exception, match="waits for approval"):
                found.approvals.require(make_study(name=f"asked of {each.dataset}"), "north")
    return tmp_path


def run(site, *words: str, fails: type[Exception] | None = None) -> str:
    arguments = [*words, "--config", str(site / "node.toml")]
    done = CliRunner().invoke(umpc, arguments, standalone_mode=False)
    if fails is not None:
        assert isinstance(done.exception, fails), done.output
        return done.exception.message
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


def test_commands_about_one_ledger_take_the_name_of_its_data_set(site):
    for place, name in enumerate(("heart", "bank"), start=1):
        told = json.loads(run(site, "budget", "show", "--dataset", name, "--format", "json"))
        assert (told["dataset"], told["epsilon"]["spent"]) == (name, str(place))
        assert "verified" in run(site, "audit", "verify", "--dataset", name)
    for words in (("budget", "show"), ("audit", "show"), ("node", "backup", "--to", "b.tar")):
        message = run(site, *words, fails=ConfigError)
        assert "the data sets 'heart', 'bank'" in message and "--dataset" in message
    status, doctor = run(site, "node", "status"), run(site, "node", "doctor")
    for name in ("heart", "bank"):
        assert f"'{name}'" in status and "data set" in doctor and f"{name}.csv" in doctor
    assert "4 left of 5" in status and "3 left of 5" in status


def test_a_decision_goes_to_the_data_set_of_its_study(site):
    listed = run(site, "approve", "list").splitlines()
    assert [line.split()[-1] for line in listed[1:]] == ["heart", "bank"]
    digits = listed[2].split()[1]
    assert run(site, "approve", "show", digits).splitlines()[0].split()[-1] == "bank"
    run(site, "approve", "accept", digits)
    states = [line.split()[0] for line in run(site, "approve", "list").splitlines()[1:]]
    assert states == ["pending", "accepted"]
    assert "accepted" in run(site, "audit", "show", "--dataset", "bank")
    assert "accepted" not in run(site, "audit", "show", "--dataset", "heart")
    run(site, "approve", "accept", "ffffffffffff", fails=ApprovalError)
    run(site, "approve", "accept", digits, "--dataset", "heart", fails=ApprovalError)


def test_a_backup_goes_back_to_its_own_data_set(site):
    run(site, "node", "backup", "--to", str(site / "b.tar"), "--dataset", "bank", "--keys")
    for file in site.glob("north-bank-*"):
        file.unlink()
    done = restore(site / "b.tar", site / "node.toml", Statement(Fraction(1)))
    assert done.ledger == site / "north-bank-ledger.sqlite"
    spent = [
        json.loads(run(site, "budget", "show", "--dataset", name, "--format", "json"))["epsilon"]
        for name in ("heart", "bank")
    ]
    assert [each["spent"] for each in spent] == ["1", "3"]


def test_the_doctor_finds_copies_of_a_table(site):
    found = load_datasets(site / "node.toml")
    assert [finding.error for finding in check_datasets(found)] == [None]
    shutil.copy(site / "heart.csv", site / "bank.csv")
    (finding,) = check_datasets(found)
    assert "each record has two budgets" in finding.error.message


def test_metrics_name_the_data_set_only_where_there_are_several(site, caplog):
    found = load_datasets(site / "node.toml")
    monitor = Monitor(load_identity(site / "site"), "127.0.0.1:0")
    for each in found:
        with open_ledger(each) as ledger:
            spent = ledger.balance()
            assert spent.total == 5
    ledgers = [open_ledger(each) for each in found]
    for each, ledger in zip(found, ledgers, strict=True):
        monitor.watch_site(each, ledger, each.dataset)
    with caplog.at_level(logging.INFO, logger="umpc.metrics"), monitor.served():
        address = caplog.messages[-1].split()[-1]
        with urlopen(address, timeout=20) as answer:
            text = answer.read().decode()
    samples = [s for family in text_string_to_metric_families(text) for s in family.samples]
    values = {
        (s.labels.get("dataset"), s.labels.get("state")): s.value
        for s in samples
        if s.name == "umpc_budget_epsilon"
    }
    assert (values["heart", "spent"], values["bank", "spent"]) == (1, 2)
    pending = {s.labels["dataset"]: s.value for s in samples if s.name == "umpc_approvals_pending"}
    assert pending == {"heart": 1, "bank": 1}
    for ledger in ledgers:
        ledger.close()


def test_a_study_is_compared_with_the_data_set_that_it_names(site):
    file = site / "study.toml"
    for line, words in (
        ('dataset = "heart"', "30 to 30"),
        ('dataset = {north = "bank"}', "200 to 200"),
    ):
        file.write_text(STUDY.format(line))
        ((name, text),) = compare_table(file, site / "node.toml")
        assert name == "age" and words in text
    file.write_text(STUDY.format(""))
    with pytest.raises(ConfigError, match="the data sets 'heart', 'bank'"):
        list(compare_table(file, site / "node.toml"))


def test_each_data_set_has_its_own_words_and_names(site):
    file, node = site / "study.toml", site / "node.toml"
    (site / "bank.csv").write_text("Alter\nvierzig\n")
    own = 'columns = {age = "Alter"}\nwords = {vierzig = "40"}\n'
    node.write_text(node.read_text().replace('path = "bank.csv"\n', f'path = "bank.csv"\n{own}'))
    for name, words in (("heart", "30 to 30"), ("bank", "40 to 40")):
        file.write_text(STUDY.format(f'dataset = "{name}"'))
        assert words in dict(compare_table(file, node))["age"]
