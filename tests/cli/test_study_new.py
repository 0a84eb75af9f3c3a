"""`umpc study new`: every kind of question gives a file that `umpc study check` accepts.

A person's answers come through the command's input, and a script's as options. Nothing here calls
a site.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import umpc
from umpc.api.proposal import QUESTIONS
from umpc.cli.main import umpc as command
from umpc.errors import ConfigError, StudyError, UmpcError
from umpc.study.settings import HONEST, LYING_NODES

SCORE, AGE = "score=0:100", "age=0:120"
DAYS, DIED = "days=0:15", "died=no,yes"
GROUP, SEX, STAGE = "group=a,b", "sex=f,m", "stage=I,II,III"
KINDS = {
    ("association", AGE, SCORE): "kendall_tau",
    ("association", SCORE, SEX): "kendall_tau_label",
    ("association", GROUP, SEX): "phi_coefficient",
    ("difference", SEX, SCORE): "auc_private",
    ("difference", SCORE, STAGE): "vus",
    ("spread", SCORE): "gini_mean_difference",
    ("spread", STAGE): "renyi_entropy",
    ("inequality", SCORE): "gini_coefficient",
    ("level", SCORE): "mean",
    ("distribution", SCORE): "quantiles",
    ("survival", DAYS, DIED): "kaplan_meier",
    ("survival", DAYS, DIED, GROUP): "kaplan_meier",
    ("survival", SCORE, DAYS, DIED): "concordance_index",
    ("agreement", SCORE, AGE, DIED): "auc_difference",
    ("agreement", SCORE, AGE, DAYS): "tau_difference",
    ("agreement", SCORE, AGE, DAYS, DIED): "concordance_difference",
}
"""Question and columns → the statistic that is proposed."""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Provide an empty folder with a coordinator's certificate."""
    monkeypatch.chdir(tmp_path)
    run("ca", "init", "own")
    named = ("--name", "coordinator", "--role", "coordinator")
    run("ca", "issue", "--authority", "own", *named, "coordinator")
    return tmp_path


def run(*words: str, told: str | None = None) -> Result:
    return CliRunner().invoke(command, list(words), input=told)


def new(question: str, *fields: str, records: str = "300,200", more: tuple[str, ...] = ()) -> str:
    """The output of a script's command."""
    options = [word for field in fields for word in ("--bounds", field)]
    ended = run("study", "new", "--question", question, *options, "--records", records, *more)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def refused(kind: type[UmpcError], *words: str) -> str:
    """The message of a refused command."""
    ended = run(*words, told="")
    assert isinstance(ended.exception, kind), ended.output
    return ended.exception.message


def rows(text: str) -> dict[str, str]:
    """Label → text."""
    return {line[:12].strip(): line[13:] for line in text.splitlines() if line.strip()}


def test_every_question_has_a_case_here():
    assert {question for question, *_ in KINDS} == set(QUESTIONS)
    assert len(KINDS) == sum(map(len, QUESTIONS.values()))


@pytest.mark.parametrize("asked", KINDS, ids=" ".join)
def test_every_kind_of_question_gives_a_file_that_the_check_accepts(folder, asked):
    text = new(*asked)
    assert rows(text)["statistic"].startswith(f"{KINDS[asked]}: ")
    assert "are made up" in text and "no site was asked, nothing is paid" in text
    checked = run("study", "check", "study.toml", "--records", "300,200")
    assert checked.exit_code == 0, checked.output
    assert umpc.Study.load("study.toml").document.statistic == KINDS[asked]


def test_who_has_no_certificate_reads_the_study_of_a_coordinator_with_its_hash(folder):
    new("association", AGE, SCORE)
    own = rows(run("study", "check", "study.toml").output)
    shutil.rmtree(umpc.Study.load("study.toml").file.identity)
    for name, is_same in ((own["coordinator"], True), ("another", False)):
        ended = run("study", "check", "study.toml", "--coordinator", name)
        assert ended.exit_code == 0, ended.output
        assert (rows(ended.output) == own) == is_same


@pytest.mark.parametrize("age", ["0:120", ""], ids=["typed", "as proposed"])
def test_a_person_answers_and_gets_the_same_file(folder, age):
    new("association", AGE, SCORE, more=("--exact", "0.05"))
    told = "\n".join(["", "age,score", age, "0:100", "300,200", "", "0.05", ""]) + "\n"
    ended = run("study", "new", "--into", "asked.toml", told=told)
    assert ended.exit_code == 0, ended.output
    assert "age in years: LOWER:UPPER, or FIRST,SECOND [0:120]" in ended.stderr
    assert "never from data" in ended.stderr, "each question comes with a line of help"
    # seconds are measured anew
    files = map(Path, ("study.toml", "asked.toml"))
    written, asked = (re.sub(r"[0-9.]+ s more", "", file.read_text()).split() for file in files)
    assert written == asked


def test_two_groups_whose_sizes_are_public_get_an_auc(folder):
    assert "auc: " in new("difference", SCORE, GROUP, records="180+120,150+150")
    study = umpc.Study.load("study.toml").document
    assert (study.statistic, study.two_sample, study.label) == ("auc", True, "group")


def test_all_options_are_in_the_file(folder):
    new(
        "spread",
        "weight=0:300:0.1",
        more=(
            *("--protect", "patient:3", "--epsilon", "0.5", "--adversary", HONEST),
            *("--site", "north=north.site.org:1", "--site", "south=south.site.org:2"),
            *("--dealer", "third=dealer.site.org:3", "--name", "weights"),
        ),
    )
    study = umpc.Study.load("study.toml").document
    assert (study.name, study.epsilon, study.adversary) == ("weights", "0.5", HONEST)
    assert (study.people.column, study.people.records) == ("patient", 3)
    assert [node.name for node in study.nodes] == ["north", "south"]
    assert study.dealer.address == "dealer.site.org:3"
    assert study.fields[0].resolution == "0.1"


def test_another_statistic_over_the_same_columns(folder):
    assert "spearman_rho: " in new("association", AGE, SCORE, more=("--statistic", "spearman_rho"))


# --- what it says of costs ------------------------------------------------------------------------


@pytest.mark.parametrize("grade", [HONEST, LYING_NODES])
def test_bytes_and_noise_are_those_of_the_plan(folder, grade):
    printed = rows(new("association", AGE, SCORE, more=("--epsilon", "1")))
    text = Path("study.toml").read_text()
    Path("study.toml").write_text(text.replace(f'"{LYING_NODES}"', f'"{grade}"'))
    ended = run("plan", "study.toml", "--records", "300,200", "--format", "json")
    planned = json.loads(ended.stdout)
    moved = planned["bytes_online"] + planned["bytes_offline"]
    found = re.search(r"records ± ([0-9.e-]+), .* ([0-9,]+) bytes", printed[grade])
    assert found[2] == f"{moved:,}"
    # a law between a normal and a Laplace law
    assert 1.9 < float(found[1]) / planned["noise_std"] < 2.3


def test_epsilon_is_the_least_that_is_exact_enough():
    fields = {"age": (0, 120, 1), "score": (0, 100, 1)}
    found = umpc.plan("association", fields, [300, 200], exact=0.05, adversary=HONEST)
    assert found.grade.records <= 0.05
    epsilon = 0.9 * found.epsilon
    less = umpc.plan("association", fields, [300, 200], epsilon=epsilon, adversary=HONEST)
    assert less.grade.records > 0.05


def test_the_interval_is_that_of_the_made_up_study():
    found = umpc.plan("association", {"age": (0, 120, 1), "score": (0, 100, 1)}, [300, 200])
    low, high = found.made_up.interval()
    assert (high - low) / 2 == pytest.approx(found.grade.records, rel=0.01)
    assert low < 1 / 3 + 0.2 and high > 1 / 3 - 0.2, "a correlation of 1/2 has the tau 1/3"


def test_lying_nodes_is_taken_where_it_costs_little_and_says_so():
    """Two sites: a half more noise, which the population's interval hides."""
    found = umpc.plan("association", {"age": (0, 120, 1), "score": (0, 100, 1)}, [600, 400])
    assert found.grade.plan.study.adversary == LYING_NODES
    assert "little, so it is taken" in found.costs
    assert found.grade.population <= 1.1 * found.grades[HONEST].population


def test_lying_nodes_is_left_where_it_costs_much_and_says_what():
    """Columns of many values take pairs, at three times the noise."""
    fields = {"age": (0, 120, "0.001"), "score": (0, 100, "0.001")}
    found = umpc.plan("association", fields, [60, 40], exact=0.3)
    assert found.grade.plan.study.adversary == HONEST and f'so "{HONEST}" is left' in found.costs
    lying, honest = found.grades[LYING_NODES], found.grade
    assert f"epsilon {lying.epsilon:g} in place of {honest.epsilon:g}" in found.costs
    assert lying.epsilon > 1.5 * honest.epsilon


def test_lying_nodes_that_are_not_possible_are_told():
    """Over wide columns the grid has no room, and pairs may not subtract values."""
    found = umpc.plan("spread", {"balance": (-10000, 110000, "0.0001")}, [60, 40])
    assert set(found.grades) == {HONEST} and "is not possible here" in found.costs


# --- refusals -------------------------------------------------------------------------------------


def test_a_file_that_is_there_is_not_overwritten(folder):
    Path("study.toml").write_text("mine")
    options = ("--question", "spread", "--bounds", SCORE, "--records", "30,20")
    assert "was not changed" in refused(ConfigError, "study", "new", *options)
    assert Path("study.toml").read_text() == "mine"
    proposal = umpc.plan("spread", {"score": (0, 100, 1)}, [30, 20])
    with pytest.raises(ConfigError, match="was not changed"):
        proposal.save("study.toml")


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), "--question, --records, --columns"),
        (("--question", "spread"), "--records, --columns"),
        (
            ("--question", "spread", "--records", "3,4", "--columns", "a"),
            "--bounds or --categories of a",
        ),
    ],
)
def test_without_a_terminal_missing_answers_are_named_as_options(folder, given, named):
    told = refused(ConfigError, "study", "new", *given)
    assert f"nobody is at a terminal: give {named}" in told
    assert not Path("study.toml").exists()


@pytest.mark.parametrize(
    ("question", "fields", "settings", "words"),
    [
        ("weather", {"a": (0, 1, 1)}, {}, "a question is one of association"),
        ("level", {"a": ["x", "y"]}, {}, "takes a number; a column of 2 categories came"),
        ("association", {"a": (0, 1, 1)}, {}, "a number, a number; or"),
        ("level", {"a": (0, 1, 1)}, {"protect": "patient"}, "COLUMN:MOST"),
        ("level", {"a": (0, 1, 1)}, {"exact": 0.1, "epsilon": 1}, "in place of epsilon"),
        ("level", {"a": (0, 1, 1)}, {"exact": 1e-9}, "at epsilon = 10"),
        ("level", {"a": (0, 1, 1)}, {"adversary": "everybody"}, "adversary"),
        ("level", {"a": (0, 1)}, {}, "a resolution was expected"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_words(question, fields, settings, words):
    with pytest.raises(StudyError, match=words):
        umpc.plan(question, fields, [30, 20], **settings)


def test_other_numbers_of_records_than_sites_are_refused(folder):
    options = ("--question", "level", "--bounds", SCORE, "--records", "30,20", "--site", "a=a.b:1")
    assert "--records takes" in refused(StudyError, "study", "new", *options)


def test_a_table_of_ones_own_is_compared_and_gives_no_bounds(folder):
    Path("own.csv").write_text("score\n12.5\n40\n99\n")
    text = new("level", SCORE, more=("--table", "own.csv"))
    assert "rounds values" in text and 'resolution = "0.1"' in text
    assert umpc.Study.load("study.toml").document.fields[0].upper == "100"
