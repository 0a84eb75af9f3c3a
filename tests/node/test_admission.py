"""umpc.node.datasets: when a node checks its administrator's rules, and how it sees a change."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from scipy import stats

from tests.support.studies import make_study
from umpc.cli.main import umpc
from umpc.errors import ConfigError, DataError, PolicyRefused, TooManySchemas, UmpcError
from umpc.node.approvals import ACCEPTED, Approvals, approvals_beside
from umpc.node.budget.ledger import Ledger
from umpc.node.config import NodeConfig, load_node_config
from umpc.node.config_section import IDENTITY_FILES
from umpc.node.datasets import MOST, Admission, open_ledger
from umpc.node.policy import ANYTHING
from umpc.node.server import public_error
from umpc.study.document import Study
from umpc.study.parts import FieldText

TAU = make_study(max_colluding=1)
GRID = make_study(max_colluding=1, protocol="grid")


class AtNode:
    """A node's admission of studies, its file of rules and its table."""

    def __init__(self, folder: Path):
        self.file, self.table = folder / "node.toml", folder / "t.csv"
        for name in IDENTITY_FILES:
            (folder / name).write_text("pem")
        self.table.write_text("x,y\n1,2\n3,0\n,1\n")
        self.write("")
        self.ledger: Ledger | None = None
        self.restart()

    def restart(self, read: Callable[[Path], NodeConfig] = load_node_config) -> None:
        """Start the node anew, from its files. Args: read: reads the file of rules again."""
        config = load_node_config(self.file)
        approvals = Approvals(approvals_beside(config.ledger))
        if self.ledger is not None:
            self.ledger.close()
        self.ledger = open_ledger(config)
        self.admission = Admission(config, approvals, self.ledger, read)

    def write(self, rules: str, budget: str = "5", more: str = "") -> None:
        data = '[data]\npath = "t.csv"\n'
        top = f'name = "north"\nidentity = "."\n{more}{data}[budget]\nepsilon = {budget}\n'
        self.file.write_text(f"{top}[policy]\n{rules}\n")

    def ask(self, study: Study = TAU) -> str:
        """The node's answer to a coordinator."""
        try:
            self.admission.admit(study)
            return f"{self.admission.load(study).count} records"
        except UmpcError as error:
            return type(error).__name__


@pytest.fixture
def node(tmp_path) -> AtNode:
    return AtNode(tmp_path)


def test_a_change_of_the_rules_counts_at_the_next_proposal(node, caplog):
    caplog.set_level(logging.INFO)
    assert node.ask() == "2 records" and not caplog.messages
    node.write("min_nodes = 3")
    assert node.ask() == node.ask() == "PolicyRefused"
    assert caplog.messages == [f"{node.file} changed; its [policy] counts from now on"]
    node.write("min_nodes = 2")
    assert node.ask() == "2 records"


def test_a_file_that_is_being_written_in_pieces_is_read_until_it_is_whole(node):
    before = node.admission.config
    assert before.policy == ANYTHING
    node.write("min_nodes = 3")
    whole = load_node_config(node.file)
    torn = replace(whole, policy=ANYTHING, epsilon=Fraction(7))
    readings = iter([torn, whole, whole])
    node.write("")
    node.restart(read=lambda file: next(readings))
    assert node.ask() == "PolicyRefused" and next(readings, None) is None


def test_other_changes_wait_for_a_restart_and_the_log_says_so(node, caplog):
    node.write("min_nodes = 3", budget="6", more='listen = "127.0.0.1:7000"\n')
    assert node.ask() == node.ask() == "PolicyRefused"
    assert caplog.messages == [
        f"{node.file}: budget.epsilon, listen changed, and counts from the next start on"
    ]
    assert node.admission.config.epsilon == 5


@pytest.mark.parametrize("text", ["", "[policy", None])
def test_a_broken_file_refuses_all_and_only_the_administrator_reads_why(node, text):
    whole = node.file.read_text()
    node.file.unlink() if text is None else node.file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        node.admission.admit(TAU)
    assert str(node.file) in caught.value.message
    assert public_error(caught.value, "north").message == (
        "north: its configuration has an error, which only its administrator can correct; "
        "see the node's own log"
    )
    node.file.write_text(whole)
    assert node.ask() == "2 records"


def test_rules_come_before_approval_approval_before_the_table_and_min_records_after(node):
    node.table.write_text("no table at all")
    node.write("approval = true\nmin_nodes = 3\nmin_records = 3")
    assert node.ask() == "PolicyRefused" and node.admission.approvals.entries() == []
    node.write("approval = true\nmin_records = 3")
    assert node.ask() == "ApprovalPending"
    node.admission.approvals.decide(TAU.hash.hex(), ACCEPTED)
    with pytest.raises(DataError):
        node.admission.load(TAU)
    node.table.write_text("x,y\n1,2\n3,0\n,1\n")
    with pytest.raises(PolicyRefused, match="fewer complete records"):
        node.admission.load(TAU)
    node.write("approval = true\nmin_records = 2")
    assert node.ask() == "2 records"


def of_fields(*names: str, **changes) -> Study:
    """A study over these fields."""
    fields = tuple(FieldText(name, "0", "3", whole=True) for name in names)
    kernel = " + ".join(f"abs(a.{name} - b.{name})" for name in names)
    return make_study(kernel, fields=fields, max_colluding=1, **changes)


def test_a_node_answers_for_so_many_sets_of_fields_also_after_a_restart(node):
    columns = [f"f{number}" for number in range(MOST + 1)]
    node.table.write_text(",".join(columns) + "\n" + ",".join("1" for _ in columns) + "\n")
    for name in columns[:MOST]:
        assert node.ask(of_fields(name)) == "1 records"
    node.restart()
    assert node.ask(of_fields(columns[MOST])) == "TooManySchemas"
    assert node.ask(of_fields(columns[0], epsilon="2")) == "1 records"
    with pytest.raises(TooManySchemas) as caught:
        node.admission.load(of_fields(columns[MOST]))
    command = f"budget fields --config {node.file}"
    assert "umpc budget fields" in caught.value.detail and "umpc" not in caught.value.message
    said = (("", f"counted: {MOST} "), (" --forget", f"forgotten: {MOST} "), ("", "counted: 0 "))
    for option, expected in said:
        done = CliRunner().invoke(umpc, (command + option).split(), catch_exceptions=False)
        assert done.output.startswith(expected)
    assert node.ask(of_fields(columns[MOST])) == "1 records"


def test_neither_bounds_nor_a_refusal_use_up_sets_of_fields(node):
    node.write("approval = true")
    for name in [f"f{number}" for number in range(MOST + 8)]:
        assert node.ask(of_fields(name)) == "ApprovalPending"
    node.write("")
    for upper in range(4, MOST + 8):
        assert node.ask(make_study(x=("0", str(upper)), max_colluding=1)) == "2 records"


# --- what a coordinator learns ----------------------------------------------------------------


def test_the_maximum_of_a_column_is_not_found_by_proposing_bounds(node, caplog):
    """Whether values fit was told once: 17 proposals then gave the maximum of a column."""
    largest, answers = 70_001, set()
    node.table.write_text(f"x,y\n1,1\n{largest},1\n")
    low, high = 0, 1 << 17
    for _ in range(17):
        middle = (low + high) // 2
        answer = node.ask(make_study(x=("0", str(middle)), max_colluding=1))
        answers.add(answer)
        low, high = (low, middle) if answer == "2 records" else (middle, high)
    assert answers == {"2 records"} and high != largest
    assert "for the administrator only: study 'study', field 'x'" in caplog.messages[0]
    assert "data rows 2 count as the nearer bound" in caplog.messages[0]


def test_the_administrator_is_told_loudly_where_most_values_do_not_fit(node, caplog):
    """The study goes on, because its end would be an answer about the values."""
    told = "MOST VALUES of field 'x' DO NOT FIT"
    for rows, loud in (("90,1\n100,1\n2,1\n", True), ("90,1\n2,1\n", False)):
        caplog.clear()
        node.table.write_text(f"x,y\n{rows}")
        assert (
            node.ask(make_study(name=f"of {len(rows)}", max_colluding=1))
            == f"{rows.count(chr(10))} records"
        )
        errors = [each.message for each in caplog.records if each.levelname == "ERROR"]
        assert [told in message for message in errors] == [True] * loud


def test_class_counts_are_not_found_by_proposing_categories(node):
    node.table.write_text("x,job\n1,nurse\n2,baker\n3,nurse\n")
    numbers = FieldText("x", "0", "3", whole=True)
    kernel = "abs(a.x - b.x) * (a.job == b.job)"
    for labels in (["nurse"], ["baker"], ["nurse", "other"], ["none"]):
        job = FieldText.of_categories("job", labels)
        study = make_study(kernel, fields=(numbers, job), max_colluding=1)
        assert node.ask(study) == "3 records"


def test_a_label_is_public_only_if_the_site_says_so(node):
    node.table.write_text("x,label\n1,case\n2,control\n")
    study = make_study("a.x < b.x", sampling="two_sample", max_colluding=1)
    assert node.ask(study) == "PolicyRefused"
    node.write('public_labels = ["label"]')
    assert node.ask(study) == "2 records"


def test_a_condition_keeps_the_records_for_which_it_holds_and_no_others(node):
    node.write('public_filters = ["x"]')
    assert node.ask(TAU) == "2 records"
    assert node.ask(TAU.replaced(where="x >= 3")) == "1 records"
    records = node.admission.load(TAU.replaced(where="x >= 3"))
    assert {name: column.tolist() for name, column in records.columns.items()} == {
        "x": [3],
        "y": [0],
    }
    assert (records.dropped, records.cohort.count) == (1, 1)
    assert node.ask(TAU.replaced(where="y = 0")) == "PolicyRefused"
    node.write('public_filters = ["x"]\nmin_records = 2')
    assert node.ask(TAU.replaced(where="x >= 3")) == "PolicyRefused"


def test_each_condition_is_another_set_of_fields(node):
    """Otherwise a coordinator could read the histogram of a column from numbers of records."""
    node.write('public_filters = ["x", "y"]')
    conditions = [f"x >= {low} and y <= {high}" for low in range(4) for high in range(4)]
    conditions += [f"not ({text})" for text in conditions]
    asked = [TAU.replaced(where=text) for text in conditions]
    assert len(asked) == MOST
    assert "TooManySchemas" not in {node.ask(study) for study in asked}
    assert node.ask(TAU) == "TooManySchemas"
    spelt = TAU.replaced(where="(x>=0) AND y<=0")
    assert node.ask(spelt) == node.ask(asked[0])


def test_bounds_steps_and_categories_that_a_condition_sees_make_other_sets(node):
    """Rounding moves a threshold: one text of a condition would give the whole histogram."""
    node.write('public_filters = ["x"]')
    studies = [
        make_study(x=("0", str(upper)), max_colluding=1, where="x >= 3")
        for upper in range(3, MOST + 3)
    ]
    assert {node.ask(study) for study in studies} == {"1 records"}
    assert node.ask(make_study(x=("0", "99"), max_colluding=1, where="x >= 3")) == "TooManySchemas"
    other = make_study(x=("0", "3"), y=("0", "9"), max_colluding=1, where="x >= 3")
    assert node.ask(other) == "1 records", "the condition does not read y"


def test_the_order_of_a_table_says_nothing(node):
    """Every order of three records is equally likely, whatever the file's; see `numbered_anew`."""
    node.table.write_text("x,y\n0,1\n1,2\n2,3\n")
    assert len({tuple(node.admission.load(TAU).columns["x"]) for _ in range(20)}) > 1
    records = node.admission.load(TAU)
    found = Counter()
    for _ in range(600):
        columns = records.numbered_anew(os.urandom).columns
        assert (columns["y"] == columns["x"] + 1).all(), "records stay whole"
        found[tuple(columns["x"].tolist())] += 1
    assert len(found) == 6
    assert stats.chisquare(list(found.values())).pvalue > 1e-6


def test_a_node_of_a_grid_takes_the_order_of_its_table(node):
    """Nothing that it sends depends on it: see the tests of `tabulate`."""
    node.table.write_text("x,y\n" + "".join(f"{n % 4},{n % 3}\n" for n in range(40)))
    grid = node.admission.load(GRID)
    assert list(grid.columns["x"]) == [n % 4 for n in range(40)]
    assert list(node.admission.load(TAU).columns["x"]) != list(grid.columns["x"])


def test_values_count_before_the_condition_sees_them(node):
    """A value beyond the bounds is the nearer bound for the condition too."""
    node.table.write_text("x,y\n99,2\n-5,1\n1,1\n")
    node.write('public_filters = ["x"]')
    assert node.ask(TAU.replaced(where="x = 3")) == "1 records"
    assert node.ask(TAU.replaced(where="x = 0")) == "1 records"
