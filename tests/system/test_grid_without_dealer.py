"""backend = "grid" without a dealer over real processes: exact results, noise, killed processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.support.node_ledgers import beside
from tests.system.conftest import SURVIVE_SECONDS, Lab, costs_what_was_predicted, running
from tests.system.test_backends import in_the_clear, study_facts, write_table
from tests.system.test_grid import in_the_clear_of, with_tables
from umpc.coordinator.client import prepare_study, run_study
from umpc.errors import PeerLost, RangeError
from umpc.protocols.grid import cross_terms
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.testing import limited

ALONE = {"backend": "grid", "edges": "all", "preprocessing": "none", "dealer": None}
SMALL = (FieldText("age", "0", "63", whole=True), FieldText("balance", "0", "127", whole=True))
"""Fields of 8,192 cells: a pair of nodes needs few transfers."""
SILENT = {
    **ALONE,
    "epsilon": "1e12",
    "noise": "distributed",
    "max_colluding": 0,
    "fields": SMALL,
}
RULES = (
    '[policy]\nmin_colluding = 0\npublic_labels = ["label"]\nbackend = ["grid"]\n'
    'preprocessing = ["none"]\n'
)
BUDGET = "9" + "0" * 14
RECORDS = (7, 1, 5)
FAR = 12
"""Standard deviations beyond which noise lies with a probability below 1e-6."""
WIDE = (FieldText("age", "0", "127", whole=True), FieldText("balance", "0", "609", whole=True))
"""Fields of 78,080 cells: 5 bits each make 390,400 transfers a pair."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Provide three nodes for all tests that end no process. There is no dealer."""
    with running(tmp_path_factory, 3, BUDGET, RULES, dealer=False) as lab:
        yield lab


def ask(lab: Lab, job: Any, **changes: Any) -> Any:
    return lab.lead(job, **SILENT | changes)


def run(lab: Lab, **changes: Any) -> Report:
    """A run with the coordinator in this process; its costs are those that were predicted."""
    report = ask(lab, run_study, **changes)
    if not report.replayed:
        costs_what_was_predicted(report, rounds=3)
    return report


@pytest.mark.parametrize("name", ["kendall_tau", "auc", "gini_mean_difference", "covariance"])
def test_a_statistic_is_the_clear_one(here, name):
    """One site has a single record."""
    rng = np.random.default_rng(7)
    for table, count in zip(map(here.table, here.names), RECORDS, strict=True):
        write_table(table, name, count, rng)
    report = run(here, **study_facts(name) | ALONE, name=f"a-{name}".replace("_", "-"))
    assert report.estimate == in_the_clear(here, report.to_dict()), name
    assert report.backend == "grid" and report.preprocessing == "none"


@pytest.fixture(scope="module")
def tables(here: Lab) -> Lab:
    return with_tables(here)


def test_noise_of_a_committee_a_replay_and_a_preparation(tables):
    """Two channels on one link: for the coins and for the cross term.

    At this epsilon the noise is 0 in one of some two thousand runs.
    """
    exact = run(tables, name="exact").estimate
    assert exact == in_the_clear_of(tables, tables.names)
    noisy = run(tables, name="noisy", noise="in_mpc", epsilon="0.1")
    assert 0 < abs(noisy.estimate - exact) < FAR * noisy.noise_std
    spent = [beside(tables, name).account.spent.epsilon for name in tables.names]
    again = run(tables, name="noisy", noise="in_mpc", epsilon="0.1")
    assert again.replayed and again.estimate == noisy.estimate
    assert spent == [beside(tables, name).account.spent.epsilon for name in tables.names]
    ask(tables, prepare_study, name="ahead")
    ahead = run(tables, name="ahead")
    assert ahead.prepared and ahead.estimate == exact


def test_a_site_whose_rows_are_all_incomplete_has_no_cross_term(tables):
    whole = tables.table("node-3").read_text()
    try:
        tables.table("node-3").write_text("age,balance\n3,\n,4\n")
        report = run(tables, name="incomplete")
    finally:
        tables.table("node-3").write_text(whole)
    assert report.records_by_node == [20, 20, 0] and report.edges == 780
    assert report.estimate == in_the_clear_of(tables, ("node-1", "node-2"))


def test_many_chunks_and_a_table_that_is_too_large(tables):
    """Two chunks a pair; refused where fewer transfers are possible."""
    exact = run(tables, name="wide", fields=WIDE)
    assert exact.estimate == in_the_clear_of(tables, tables.names)
    message = r"coarsen balance to at most \d+ values.*name a dealer"
    refused = pytest.raises(RangeError, match=message)
    with limited(cross_terms, MAX_TRANSFERS=1 << 16), refused:
        ask(tables, run_study, name="too-wide", fields=WIDE)


# --- processes that die or stop -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("point", "action"),
    [
        ("after-set-up", "kill"),
        ("during-rounds", "kill"),
        ("during-rounds", "stop"),
    ],
)
def test_a_node_that_fails_is_named_and_costs_nothing(lab, point, action):
    here = lab(3, {"node-2": {"UMPC_FAILPOINT": f"{point}:{action}"}}).start(dealer=False)
    outcome = here.run(**ALONE, noise="distributed", fields=SMALL)
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert "node-2" in outcome.last_line and "no epsilon was charged" in outcome.last_line
    assert outcome.output == "" and outcome.seconds < SURVIVE_SECONDS
    for survivor in ("node-1", "node-3"):
        assert "node-2" in here.wait_for_log(survivor, "ended in step")
        assert here.reserved_by_the_living(survivor) == 0
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)
