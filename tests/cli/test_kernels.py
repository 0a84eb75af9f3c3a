"""`umpc kernels`: the library, and what a kernel of one's own means and costs."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from tests.support.studies import AUC, make_study
from umpc.cli.kernels import kernels
from umpc.coordinator.studyfile import load_kernel
from umpc.counts import COUNTED
from umpc.errors import KernelError, StudyError
from umpc.study.computation import computation_hash
from umpc.study.parts import FieldText
from umpc.ustat.statistics import LIBRARY
from umpc.ustat.text import to_text

SOURCE = """\
from umpc.ustat.tracing import select

def close_in_age(a, b):
    near = (a.age - b.age < 5) & (b.age - a.age < 5)
    return select(near, abs(a.balance - b.balance), 0)

def lopsided(a, b):
    return a.age - b.age

def both(a, b):
    return abs(a.age - b.age), a.age * b.age
"""
NO_EDGES = {
    "u-mpc": {},
    "bell-auc": {"dealer": None, "noise": "local", "backend": "none", "preprocessing": "none"},
}
FIELDS = ("--field", "age=0:127", "--field", "balance=0:1000:0.5")


def explain(tmp_path, monkeypatch, *arguments: str):
    (tmp_path / "kernels.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return CliRunner().invoke(kernels, ["explain", *arguments])


def test_the_library_is_listed_with_formulas_and_citations():
    output = CliRunner().invoke(kernels).output
    for statistic in LIBRARY.values():
        assert statistic.name in output and statistic.citation in output
    assert "sign(a.x - b.x) * sign(a.y - b.y)" in output
    for name, counted in COUNTED.items():
        assert f"{name}({counted.roles[0]}" in output and counted.title in output


def test_a_statistic_of_counts_says_what_it_releases(tmp_path, monkeypatch):
    fields = ("--field", "days=0:59", "--field", "died=no,yes")
    output = explain(tmp_path, monkeypatch, "kaplan_meier", *fields).output
    assert "120 noisy counts: 60 of days x 2 of died" in output
    assert "2 for the whole table" in output and "number        median" in output
    for few in (fields[:2], fields * 2):
        refused = explain(tmp_path, monkeypatch, "kaplan_meier", *few).exception
        assert isinstance(refused, StudyError) and "time, event, [group]" in refused.message


@pytest.mark.parametrize("name", COUNTED)
def test_every_statistic_of_counts_is_explained(tmp_path, monkeypatch, name):
    fields = [f"--field={role}=a,b" for role in COUNTED[name].roles]
    ended = explain(tmp_path, monkeypatch, name, *fields)
    assert ended.exit_code == 0 and f'statistics = ["{name}"]' in ended.output


def test_a_kernel_is_explained_with_range_sensitivity_and_cost(tmp_path, monkeypatch):
    output = explain(tmp_path, monkeypatch, "kernels.py:close_in_age", *FIELDS).output
    for words in (
        "range         [0, 1000], in steps of 1/2",
        "sensitivity   1000 per edge",
        "owners AB: 4 rounds",
        "compared    9 bits, 9 bits, 12 bits; numbers re-masked: 0",
        "opened      7 + 7 bits an edge",
    ):
        assert words in output, output


def test_an_explanation_says_what_lying_nodes_can_do(tmp_path, monkeypatch):
    refused = explain(tmp_path, monkeypatch, "kernels.py:close_in_age", *FIELDS).output
    assert "not for lying nodes: it multiplies a number of one record" in refused
    fields = ("--field", "x=0:9", "--field", "y=0:9")
    assert (
        "against lying nodes Δf 6" in explain(tmp_path, monkeypatch, "kendall_tau", *fields).output
    )


def test_a_refused_kernel_says_why(tmp_path, monkeypatch):
    refused = explain(tmp_path, monkeypatch, "kernels.py:lopsided", *FIELDS).exception
    assert isinstance(refused, KernelError) and "not symmetric" in refused.message


@pytest.mark.parametrize("field", ["age", "age=1", "=0:1", "age=0:1:1:1", "age=low:high"])
def test_a_field_that_cannot_be_read_is_refused(tmp_path, monkeypatch, field):
    refused = explain(tmp_path, monkeypatch, "kernels.py:lopsided", "--field", field).exception
    assert isinstance(refused, StudyError)


def test_a_statistic_is_explained_for_every_spread_over_owners(tmp_path, monkeypatch):
    output = explain(tmp_path, monkeypatch, "triples_skewness", "--field", "age=0:100").output
    assert "range         [-1/3, 1/3]" in output
    for owners in ("AAB", "ABB", "ABC"):
        (block,) = re.findall(f"owners {owners}: .*\\n(.*)\\n", output)
        assert "compared    9 bits, 9 bits, 9 bits; numbers re-masked: 0" in block


def shown_hash(output: str) -> str:
    (shown,) = re.findall(r"hash +([0-9a-f]{64}), for kernels under \[policy\]\n", output)
    return shown


def test_the_hash_that_is_shown_is_that_of_the_study(tmp_path, monkeypatch):
    output = explain(tmp_path, monkeypatch, "kernels.py:close_in_age", *FIELDS).output
    fields = (FieldText("age", "0", "127", whole=True), FieldText("balance", "0", "1000", "0.5"))
    (expression,) = load_kernel("kernels.py:close_in_age", tmp_path).expressions
    assert shown_hash(output) == computation_hash(make_study(to_text(expression), fields=fields))


def test_the_hash_of_a_statistic_of_two_classes_needs_the_label(tmp_path, monkeypatch):
    score = ("auc", "--field", "x=0:3")
    output = explain(tmp_path, monkeypatch, *score).output
    assert "hash          depends on the public label; give --label NAME=FIRST,SECOND\n" in output
    for protocol in ("u-mpc", "bell-auc"):
        options = ("--label", "label=case,control", "--protocol", protocol)
        output = explain(tmp_path, monkeypatch, *score, *options).output
        study = make_study(AUC, sampling="two_sample", protocol=protocol, **NO_EDGES[protocol])
        assert shown_hash(output) == computation_hash(study)
    refused = explain(tmp_path, monkeypatch, *score, "--label", "label=case").exception
    assert isinstance(refused, StudyError) and "--label takes" in refused.message


def test_the_hash_of_several_sums_needs_their_estimator(tmp_path, monkeypatch):
    both = ("kernels.py:both", "--field", "age=0:127")
    output = explain(tmp_path, monkeypatch, *both).output
    assert "hash          depends on the estimator; give --estimator " in output
    output = explain(tmp_path, monkeypatch, *both, "--estimator", "ratio").output
    field = FieldText("age", "0", "127", whole=True)
    texts = ["abs(a.age - b.age)", "a.age * b.age"]
    study = make_study(texts, fields=(field,), estimator="ratio")
    assert shown_hash(output) == computation_hash(study)


def test_a_field_may_have_categories(tmp_path, monkeypatch):
    job = ("duplicate_pair_ratio", "--field", "job=nurse,baker")
    output = explain(tmp_path, monkeypatch, *job).output
    field = FieldText.of_categories("job", ["nurse", "baker"])
    assert shown_hash(output) == computation_hash(make_study("a.job == b.job", fields=(field,)))


def test_what_a_garbled_pair_costs_is_said_for_pairs_only(tmp_path, monkeypatch):
    """An AND gate takes 32 bytes, an output element 8, a piece of b bits 2^b / 4, a bit of a piece
    4, and a bit of the evaluator's record 4.
    """
    output = explain(
        tmp_path, monkeypatch, "kendall_tau", "--field", "a=0:127", "--field", "b=-10000:110000"
    ).output
    assert "garbled       5 rounds; 6 AND gates and 320 bytes an edge" in output
    assert "once a record 0 bytes of labels, or 100 of choices" in output
    assert (
        "garbled"
        not in explain(tmp_path, monkeypatch, "triples_skewness", "--field", "a=0:127").output
    )


def test_what_an_edge_by_triples_costs_is_said_for_every_degree(tmp_path, monkeypatch):
    """A bit of a sum takes one transfer: 4 bytes, and 8 back."""
    field = ("--field", "a=0:1")
    output = explain(tmp_path, monkeypatch, "duplicate_pair_ratio", *field).output
    assert "triples       3 rounds; 0 ANDs by triples of 2 owners and 12 bytes an edge" in output
    output = explain(tmp_path, monkeypatch, "triples_skewness", "--field", "a=0:127").output
    assert "triples       15 rounds; 69 ANDs by triples of 3 owners and 2183 bytes" in output
