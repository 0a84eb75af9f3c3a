"""Triples of records without a dealer over real processes: exact sums, bytes, failures, ahead."""

from __future__ import annotations

import numpy as np
import pytest

from tests.system.conftest import names_who_was_lost
from tests.system.test_demo import demo
from umpc.cli.table import exact_over_all, pooled
from umpc.coordinator.studyfile import load_study_file
from umpc.errors import StudyError

TRIPLES = ("--backend", "triples", "--preprocessing", "none")
STUDY = {
    "backend": "triples",
    "preprocessing": "none",
    "dealer": None,
    "statistic": "triples_skewness",
    "columns": ["age"],
    "edges": "60",
}


@pytest.mark.parametrize(
    ("nodes", "statistic", "columns"),
    [(3, "triples_skewness", ["age"]), (4, "bergsma_dassios_tau_star", ["age", "balance"])],
    ids=["3 owners", "4 owners"],
)
def test_a_study_by_triples_is_exact_at_its_predicted_cost(lab, nodes, statistic, columns):
    here = lab(nodes).start(epsilon="99" + "0" * 14, dealer=False)
    for number, name in enumerate(here.names):
        here.table(name).write_text(table(number, 2))
    changes = {"statistic": statistic, "columns": columns, "edges": "all", "epsilon": "1e12"}
    outcome = here.run(**(STUDY | changes))
    assert outcome.code == 0, outcome.error
    report = outcome.report
    study = load_study_file(here.folder / "study.toml").study("coordinator")
    expected = exact_over_all(study, pooled(study, [here.table(name) for name in here.names]))
    assert report["estimate"] == pytest.approx(expected, abs=1e-12)
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert report["bytes_online_by_node"] == report["bytes_online_by_node_predicted"]
    assert report["bytes_online_by_step"] == report["bytes_online_by_step_predicted"]
    assert report["bytes_offline"] == report["bytes_offline_predicted"]
    assert report["rounds"] == report["rounds_predicted"]
    assert (report["backend"], report["preprocessing"]) == ("triples", "none")
    assert here.loud_lines() == []


def table(node: int, records: int) -> str:
    """Return a node's table, the same in every run."""
    rng = np.random.default_rng(node)
    rows = (f"{rng.integers(0, 50)},{rng.integers(-40, 90) / 2}" for _ in range(records))
    return "\n".join(["age,balance", *rows]) + "\n"


def test_a_lying_grade_without_a_dealer_is_refused_before_any_process_starts():
    ended = demo(*TRIPLES, "--nodes", "3", "--adversary", "lying_nodes")
    assert ended.returncode == StudyError.exit_code, ended.stderr
    assert "sends other numbers in transfers" in ended.stderr.strip().splitlines()[-1]
    assert "starting" not in ended.stderr


@pytest.mark.parametrize(
    ("node", "point", "action"),
    [("node-3", "after-set-up", "kill"), ("node-1", "before-ready", "stop")],
)
def test_an_owner_that_fails_is_named_and_costs_nothing(lab, node, point, action):
    here = lab(3, {node: {"UMPC_FAILPOINT": f"{point}:{action}"}}).start(dealer=False)
    outcome = here.run(**STUDY)
    names_who_was_lost(outcome, node)
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


def test_prepared_ahead_a_study_by_triples_finishes_later_at_its_predicted_cost(lab):
    here = lab(3).start(dealer=False)
    prepared = here.run(command="prepare", name="ahead", **STUDY)
    assert prepared.code == 0, prepared.error
    assert all(size > 0 for size in prepared.report["bytes_by_node"].values()), "triples wait"
    report = here.run(name="ahead", **STUDY).report
    assert report["prepared"] and report["backend"] == "triples"
    assert report["bytes_offline"] == report["bytes_offline_predicted"] > 0
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert report["bytes_online_by_step"] == report["bytes_online_by_step_predicted"]
    assert report["rounds"] == report["rounds_predicted"]


def test_a_preparation_leaves_the_run_two_rounds_less_also_over_drawn_edges(lab):
    here = lab(3).start(dealer=False)
    assert here.run(command="prepare", name="ahead", **STUDY).code == 0
    report = here.run(name="ahead", **STUDY).report
    at_once = here.run(name="at-once", sampling="bernoulli", **STUDY).report
    assert at_once["bytes_online"] == at_once["bytes_online_predicted"]
    assert report["rounds"] == at_once["rounds"] - 2, "triples take two rounds"
    assert report["bytes_online"] < at_once["bytes_online"] / 2
