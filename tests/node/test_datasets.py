"""Several data sets at one node: their configuration, and the one that a study is about."""

from __future__ import annotations

import os
from fractions import Fraction
from pathlib import Path

import pytest

from tests.support.ledgers import pay
from tests.support.node_files import BUDGET, DATA, HEAD, refused
from tests.support.studies import make_study
from umpc.errors import ConfigError, PolicyRefused, StudyError
from umpc.node.approvals import ACCEPTED, REJECTED
from umpc.node.config import load_datasets, load_node_config, load_places
from umpc.node.config_section import IDENTITY_FILES
from umpc.node.datasets import Dataset, Datasets, open_dataset, open_ledger
from umpc.study.document import Study

TOP = 'name = "node-0"\nidentity = "."\n'
HEART = (
    '[[datasets]]\nname = "heart"\npath = "heart.csv"\n[datasets.budget]\nepsilon = "5/2"\n'
    '[datasets.policy]\ncoordinators = ["coordinator"]\nperson = ""\n'
)
BANK = (
    '[[datasets]]\nname = "bank"\npath = "bank.csv"\nledger = "other.sqlite"\n'
    "[datasets.budget]\nepsilon = 4\n[datasets.policy]\nmax_epsilon = 1\n"
)
HEAD_OF_ONE = f'{TOP}[data]\npath = "heart.csv"\n[budget]\nepsilon = 4\n'
RARE = (
    '[[datasets]]\nname = "rare"\npath = "rare.csv"\n[datasets.budget]\nepsilon = 1\n'
    '[datasets.policy]\ncoordinators = ["another"]\n'
)


def write(folder: Path, text: str) -> Path:
    for name in IDENTITY_FILES:
        (folder / name).write_text("pem")
    for place, name in enumerate(("heart", "bank", "rare")):
        (folder / f"{name}.csv").write_text(f"x,y\n1,{place}\n")
    file = folder / "node.toml"
    file.write_text(text)
    return file


def of(dataset: str = "", **changes) -> Study:
    study = make_study(max_colluding=1, **changes)
    return study.replaced(datasets=(dataset, "")) if dataset else study


@pytest.fixture
def node(tmp_path):
    """A function that makes the data sets of a node from its file. They close after the test."""
    made: list[Dataset] = []

    def start(text: str) -> Datasets:
        for each in made:
            each.ledger.close()
        made[:] = [
            open_dataset(each, open_ledger(each)) for each in load_datasets(write(tmp_path, text))
        ]
        return Datasets("node-0", made)

    yield start
    for each in made:
        each.ledger.close()


def test_each_data_set_has_a_budget_rules_and_a_ledger_of_its_own(tmp_path):
    file = write(tmp_path, TOP + HEART + BANK)
    heart, bank = load_datasets(file)
    assert (heart.name, heart.listen, heart.dataset) == (bank.name, bank.listen, "heart")
    assert (heart.epsilon, bank.epsilon) == (Fraction(5, 2), 4)
    assert heart.ledger == tmp_path / "node-0-heart-ledger.sqlite"
    assert (bank.ledger, bank.source.path) == (tmp_path / "other.sqlite", tmp_path / "bank.csv")
    assert (heart.policy.max_epsilon, bank.policy.max_epsilon) == (None, 1)
    assert load_node_config(file, "bank") == bank
    assert load_places(file, dataset="bank").ledger == bank.ledger
    for wrong, words in ((None, "data sets 'heart', 'bank', and one"), ("hart", "'hart' came")):
        for read in (load_node_config, lambda path, name: load_places(path, dataset=name)):
            with pytest.raises(ConfigError, match=words):
                read(file, wrong)


def test_what_would_mix_two_budgets_is_refused(site):
    for name in ("other.csv", "b.csv"):
        (site / name).write_text("age\n1\n")
    (site / "link.csv").symlink_to(site / "bank.csv")
    os.link(site / "bank.csv", site / "hard.csv")

    def entry(name: str, table: str, more: str = "") -> str:
        return f'[[datasets]]\nname = "{name}"\n{table}\n{more}\n[datasets.budget]\nepsilon = 1\n'

    one = HEAD + entry("a", 'path = "bank.csv"')
    for path in ("bank.csv", "./bank.csv", "link.csv", "hard.csv"):
        refused(site, one + entry("b", f'path = "{path}"'), "'a' and 'b' have one table", "bank")
    sql = 'url = "sqlite:///d.sqlite"\nsql = "{}"'.format
    queries = HEAD + entry("a", sql("visits")) + entry("b", sql("SELECT *  FROM visits"))
    refused(site, queries, "have one table, 'visits'")
    other = 'path = "other.csv"'
    refused(site, one + entry("a", other), "two data sets have the name 'a'")
    refused(site, one + entry("b", other, 'ledger = "a-a-ledger.sqlite"'), "an anchor of its own")
    refused(site, one + entry("Heart 2024", other), "'datasets[2].ledger' is missing")
    for key in (DATA, BUDGET, "[policy]\nmin_nodes = 2\n", 'ledger = "x"\n'):
        text = HEAD + key + entry("a", other) if "[" not in key else one + key
        refused(site, text, "[[datasets]] exclude each other")
    refused(site, one.replace("epsilon", "epsilom"), "'datasets[1].budget.epsilom'", "'epsilon'?")
    refused(site, HEAD + "datasets = []\n", "one section [[datasets]] or more")
    (site / "node.toml").write_text(one + entry("b", other))
    assert len(load_datasets(site / "node.toml")) == 2


def test_a_study_gets_the_data_set_that_it_names(node):
    datasets = node(TOP + HEART + BANK)
    for name in ("heart", "bank"):
        study = of(name)
        datasets.check(study)
        assert datasets.of(study).name == name
    with pytest.raises(StudyError) as caught:
        datasets.check(of("lungs"))
    assert caught.value.message.startswith("node-0 has no data set 'lungs' for this study; write")
    assert datasets.of(of("lungs")).name == "heart", "its rows go to the first trail"


def test_a_study_that_names_none_is_told_those_that_it_may_use_and_no_others(node):
    datasets = node(TOP + HEART + BANK + RARE)
    with pytest.raises(StudyError, match="several data sets, and the study names none") as caught:
        datasets.check(of())
    assert caught.value.message.endswith("allow this study on 'heart', 'bank'")
    with pytest.raises(StudyError) as caught:
        datasets.check(of(epsilon="2"))
    assert caught.value.message.endswith("on 'heart'"), "bank allows an epsilon of 1 at most"

    # A data set that the coordinator may not use is refused as one that does not exist.
    told = []
    for name in ("rare", "none"):
        with pytest.raises(StudyError) as caught:
            datasets.check(of(name))
        told.append(caught.value.message.replace(name, "NAME"))
    assert told[0] == told[1] and "rare" not in told[0]


def test_the_only_data_set_needs_no_name_but_a_wrong_name_is_refused(node):
    datasets = node(TOP + RARE)
    datasets.check(of())
    with pytest.raises(PolicyRefused):
        datasets.first.admission.admit(of())
    with pytest.raises(StudyError, match=r"no data set 'heart'.*none that it could name"):
        datasets.check(of("heart"))


def test_a_study_of_the_time_before_the_second_data_set_is_found_in_its_ledger(node):
    alone = TOP + '[data]\npath = "bank.csv"\n[budget]\nepsilon = 4\n'
    ledger = node(alone).first.ledger
    study = of()
    ledger.reserve(study.hash, Fraction(1), Fraction(0), name="tau")
    ledger.hold(study.hash, b"attempt", b"share")
    ledger.charge(study.hash, b"attempt")
    moved = BANK.replace("other.sqlite", "node-0-ledger.sqlite")
    datasets = node(TOP + HEART + moved)
    datasets.check(study)
    assert datasets.of(study).name == "bank"
    with pytest.raises(StudyError):
        datasets.check(of(name="another"))
    assert [each.ledger.balance().spent for each in datasets.found] == [0, 1]


def test_a_running_data_set_never_takes_the_rules_of_another(node, tmp_path):
    heart, bank = node(TOP + HEART + BANK).found
    write(tmp_path, TOP + BANK.replace("max_epsilon = 1", "max_epsilon = 3") + HEART)
    assert bank.admission.policy().max_epsilon == 3
    assert heart.admission.policy().max_epsilon is None
    write(tmp_path, TOP + BANK)
    with pytest.raises(ConfigError, match="'heart' came"):
        heart.admission.policy()


def test_the_names_of_data_sets_are_part_of_a_study_only_where_it_has_any():
    assert b"datasets" not in of().encode()
    assert len({of().hash, of("heart").hash, of("bank").hash}) == 3
    assert (of("heart").dataset_of("node-0"), of("heart").dataset_of("node-1")) == ("heart", "")


def test_a_rejection_withdraws_a_stored_result(node):
    datasets = node(HEAD_OF_ONE)
    study, only = of(), datasets.first
    only.ledger.reserve(study.hash, Fraction(1), Fraction(0), name=study.name)
    pay(only.ledger, study.hash, b"a" * 32, b"share")
    datasets.check(study)
    known = study.hash.hex()
    only.approvals.add_unseen(known, study.name, "1")
    only.approvals.decide(known, REJECTED, "withdrawn by the board")
    with pytest.raises(PolicyRefused, match="withdrawn by the board"):
        datasets.check(study)
    only.approvals.decide(known, ACCEPTED)
    datasets.check(study)
