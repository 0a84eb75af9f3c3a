"""adversary = "lying_nodes" of the grid over real processes: exact results, costs as predicted."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.node_ledgers import start_again
from tests.system.conftest import (
    SURVIVE_SECONDS,
    Lab,
    costs_what_was_predicted,
    running,
)
from tests.system.forked import Forked
from tests.system.test_backends import in_the_clear, study_facts, write_table
from umpc.coordinator.client import prepare_study, run_study
from umpc.deployment.processes import UMPC, stop
from umpc.errors import EncodingError, PeerLost, ProvenLie

GRID = {
    "backend": "grid",
    "edges": "all",
    "epsilon": "1e12",
    "noise": "distributed",
    "adversary": "lying_nodes",
}
RULES = '[policy]\npublic_labels = ["label"]\n'
BUDGET = "9" + "0" * 14
RECORDS = (7, 6, 5)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Provide a dealer and three nodes for all tests that end no process."""
    with running(tmp_path_factory, 3, BUDGET, RULES) as lab:
        yield lab


def write_tables(lab: Lab, name: str, records: Sequence[int] = RECORDS) -> None:
    """Random records for a statistic at every node."""
    rng = np.random.default_rng(7)
    for table, count in zip(map(lab.table, lab.names), records, strict=True):
        write_table(table, name, count, rng)


@pytest.mark.parametrize("name", ["kendall_tau", "auc", "gini_mean_difference", "spearman_rho"])
def test_a_statistic_is_the_clear_one_and_costs_what_was_predicted(here, name):
    """Also across two public classes (auc), and over triples (spearman_rho)."""
    write_tables(here, name)
    facts = study_facts(name) | GRID | {"name": f"v-{name}".replace("_", "-")}
    report = here.lead(run_study, **facts)
    assert report.estimate == pytest.approx(in_the_clear(here, report.to_dict()), abs=1e-9)
    assert (report.backend, report.adversary) == ("grid", "lying_nodes")
    costs_what_was_predicted(report, rounds=4)
    assert here.loud_lines() == []
    assert here.lead(run_study, **facts).replayed


def test_a_study_prepared_ahead_asks_the_dealer_at_its_run(here):
    write_tables(here, "kendall_tau")
    facts = study_facts("kendall_tau") | GRID
    exact = here.lead(run_study, **facts | {"name": "v-now"}).estimate
    here.lead(prepare_study, **facts | {"name": "v-ahead"})
    report = here.lead(run_study, **facts | {"name": "v-ahead"})
    assert report.prepared and report.estimate == exact


# --- a process that lies --------------------------------------------------------------------------

LIAR = """
import sys
from umpc.cli.main import main
from umpc.testing import lying

def bent(honest, *given):
    proof = honest(*given).copy()
    proof[1, 0] ^= 1
    return proof

with lying("node", make_proof=bent):
    main()
"""


def audited(*arguments: str) -> subprocess.CompletedProcess:
    """Run `umpc audit`."""
    told = [*UMPC, "audit", *arguments]
    return subprocess.run(told, capture_output=True, text=True, timeout=60, check=False)


def test_a_lie_is_proven_to_whoever_has_the_authoritys_certificate(lab, tmp_path):
    """Exit code, report, every site's audit trail and a file have it; nothing is charged."""
    here, script = lab(3), tmp_path / "liar.py"
    script.write_text(LIAR)

    def start(command: list[str], **how: Any) -> subprocess.Popen:
        if str(here.folder / "node-2.toml") not in command:
            return Forked(command, **how)
        return subprocess.Popen([sys.executable, str(script), *command[len(UMPC) :]], **how)

    here.deployment.popen = start
    here.start()
    outcome = here.run(**GRID | {"epsilon": "1"})
    assert outcome.code == ProvenLie.exit_code == 46, outcome.error
    assert "node-2 sent a proof that does not hold" in outcome.last_line
    failure = json.loads(outcome.error.splitlines()[-1])
    assert (failure["error"], failure["culprit"]) == ("ProvenLie", "node-2")
    (file,) = here.folder.glob("study.toml.evidence-*.json")
    assert str(file) in failure["detail"] and file.stat().st_mode & 0o777 == 0o600
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert digest in failure["message"]
    here.stop()
    for name in here.names:
        assert here.spent(name) == 0
        rows = audited("export", "--config", str(here.folder / f"{name}.toml"))
        assert digest in rows.stdout
    ca, dealer = (str(here.folder / "dealer" / each) for each in ("ca.pem", "cert.pem"))
    shown = ["evidence", str(file), "--ca", ca]
    found = audited(*shown, "--dealer", dealer)
    assert "proven: node-2 sent a proof that does not hold" in found.stdout
    assert digest in found.stdout
    assert audited(*shown).returncode == EncodingError.exit_code
    file.write_bytes(file.read_bytes().replace(b'"node":1', b'"node":0'))
    assert audited(*shown, "--dealer", dealer).returncode == EncodingError.exit_code


# --- processes that die or stop -------------------------------------------------------------------

QUIET = {**GRID, "epsilon": "1"}
POINTS = ["during-histogram", "after-histogram", "before-answer", "during-total", "after-total"]


@pytest.mark.parametrize("action", ["kill", "stop"])
@pytest.mark.parametrize("point", POINTS)
def test_a_node_that_fails_is_named_and_costs_nothing(lab, point, action):
    here = lab(3, {"node-2": {"UMPC_FAILPOINT": f"{point}:{action}"}}).start()
    outcome = here.run(**QUIET)
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert "node-2" in outcome.last_line and "no epsilon was charged" in outcome.last_line
    assert outcome.output == "" and outcome.seconds < SURVIVE_SECONDS
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


def test_a_node_that_is_killed_when_it_holds_its_share_finishes_the_same_attempt(lab):
    here = lab(2).start()
    start_again(here, "node-2", "after-ready")
    first = here.run(**QUIET)
    assert first.code == PeerLost.exit_code, first.error
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL
    start_again(here, "node-2")
    again = here.run(**QUIET)
    assert again.code == 0 and again.report["replayed"], again.error
    here.stop()
    assert all(here.spent(name) > 0 for name in here.names)


def test_a_dealer_that_was_started_again_answers_nothing(lab):
    here = lab(2).start()
    prepared = here.run(command="prepare", **QUIET)
    assert prepared.code == 0, prepared.error
    former = here.served["dealer"]
    stop([former.process])
    place = ["--identity", str(here.folder / "dealer"), "--listen", former.address]
    here.deployment.start("dealer", ["dealer", "start", *place])
    here.served.update(here.deployment.wait_until_ready())
    outcome = here.run(**QUIET)
    assert outcome.code != 0 and "holds no masks of this attempt" in outcome.error
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)
