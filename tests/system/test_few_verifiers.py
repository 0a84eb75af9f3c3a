"""max_colluding = 1 of 4 nodes of a verified grid, over real processes: two nodes check for all."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.system.conftest import costs_what_was_predicted, running
from tests.system.forked import Forked
from tests.system.test_backends import in_the_clear, study_facts
from tests.system.test_verified_grid import BUDGET, GRID, LIAR, RULES, write_tables
from umpc.coordinator.client import prepare_study, run_study
from umpc.deployment.processes import UMPC
from umpc.errors import ProvenLie

FEW = {**GRID, "max_colluding": 1}
RULES_OF_FEW = f"{RULES}min_colluding = 1\n"
RECORDS = (7, 6, 5, 4)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Provide a dealer and four nodes for all tests that end no process."""
    with running(tmp_path_factory, 4, BUDGET, RULES_OF_FEW) as lab:
        yield lab


@pytest.mark.parametrize("name", ["kendall_tau", "auc"])
def test_a_statistic_is_the_clear_one_and_costs_what_was_predicted(here, name):
    write_tables(here, name, RECORDS)
    facts = study_facts(name) | FEW | {"name": f"few-{name}".replace("_", "-")}
    report = here.lead(run_study, **facts)
    assert report.estimate == pytest.approx(in_the_clear(here, report.to_dict()), abs=1e-9)
    assert (report.adversary, report.max_colluding) == ("lying_nodes", 1)
    costs_what_was_predicted(report, rounds=4)
    assert here.loud_lines() == []
    assert here.lead(run_study, **facts).replayed


def test_a_study_prepared_ahead_runs_with_few_verifiers(here):
    write_tables(here, "kendall_tau", RECORDS)
    facts = study_facts("kendall_tau") | FEW
    exact = here.lead(run_study, **facts | {"name": "few-now"}).estimate
    here.lead(prepare_study, **facts | {"name": "few-ahead"})
    report = here.lead(run_study, **facts | {"name": "few-ahead"})
    assert report.prepared and report.estimate == exact


def test_a_node_that_does_not_check_and_lies_is_named_with_evidence(lab, tmp_path):
    here, script = lab(4), tmp_path / "liar.py"
    script.write_text(LIAR)

    def start(command: list[str], **how: Any) -> subprocess.Popen:
        if str(here.folder / "node-3.toml") not in command:
            return Forked(command, **how)
        return subprocess.Popen([sys.executable, str(script), *command[len(UMPC) :]], **how)

    here.deployment.popen = start
    here.start(more=RULES_OF_FEW)
    outcome = here.run(**FEW | {"epsilon": "1"})
    assert outcome.code == ProvenLie.exit_code == 46, outcome.error
    assert "node-3 sent a proof that does not hold" in outcome.last_line
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)
