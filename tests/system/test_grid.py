"""backend = "grid" over real processes: exact results, failures in every step, a lying coordinator.

The coordinator is a process of its own where its exit counts. Elsewhere it runs in this process,
since a start takes longer than a study.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest

from tests.protocols.grid.test_grid_run import TAKEN
from tests.support.node_ledgers import beside, start_again, wait_until
from tests.system.conftest import SURVIVE_SECONDS, Lab, costs_what_was_predicted, running
from tests.system.test_backends import in_the_clear, study_facts, write_table
from tests.system.test_demo import result
from umpc.coordinator.client import prepare_study, run_study
from umpc.coordinator.links import Encoded, encoded
from umpc.errors import PeerLost, StudyAborted, StudyError, UmpcError
from umpc.proto import codec
from umpc.study import messages as m
from umpc.study.messages import Frame
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.testing import lying, without

GRID = {"backend": "grid", "edges": "all"}
SILENT = {**GRID, "epsilon": "1e12", "noise": "distributed", "max_colluding": 0}
RULES = '[policy]\nmin_colluding = 0\npublic_labels = ["label"]\n'
BUDGET = "9" + "0" * 14
RECORDS = (7, 6, 5)
QUICK = ("kendall_tau", "auc", "covariance")
"""Statistics that `make test` runs; the others are long."""
RUNS = 20
FAR = 12
"""Standard deviations beyond which noise lies with a probability below 1e-6."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Provide a dealer and three nodes for all tests that end no process."""
    with running(tmp_path_factory, 3, BUDGET, RULES) as lab:
        yield lab


def ask(lab: Lab, job: Any, **changes: Any) -> Any:
    return lab.lead(job, **SILENT | changes)


def run(lab: Lab, **changes: Any) -> Report:
    """A run with the coordinator in this process; its costs are those that were predicted."""
    report = ask(lab, run_study, **changes)
    if not report.replayed:
        costs_what_was_predicted(report, rounds=2)
    return report


def check_statistic(lab: Lab, name: str) -> None:
    rng = np.random.default_rng(7)
    for table, count in zip(map(lab.table, lab.names), RECORDS, strict=True):
        write_table(table, name, count, rng)
    report = run(lab, **study_facts(name) | {"edges": "all"}, name=f"g-{name}".replace("_", "-"))
    assert report.estimate == in_the_clear(lab, report.to_dict()), name
    assert report.backend == "grid" and report.records_by_node == list(RECORDS)


@pytest.mark.parametrize("name", QUICK)
def test_a_statistic_is_the_clear_one(here, name):
    """Also across two public classes (auc)."""
    check_statistic(here, name)


@pytest.mark.parametrize("name", [name for name in TAKEN if name not in QUICK])
def test_every_other_statistic_is_the_clear_one(here, name):
    check_statistic(here, name)


# --- noise, and both ends of a study --------------------------------------------------------------


def with_tables(lab: Lab) -> Lab:
    """The laboratory with a table of 20 records at every node again."""
    for number, name in enumerate(lab.names):
        rows = "".join(f"{(7 * i + number) % 50},{(13 * i) % 90}\n" for i in range(20))
        lab.table(name).write_text("age,balance\n" + rows)
    return lab


@pytest.fixture(scope="module")
def tables(here: Lab) -> Lab:
    return with_tables(here)


@pytest.mark.parametrize("noise", ["distributed", "in_mpc"])
def test_the_noise_is_what_the_report_says(tables, noise):
    exact = run(tables, name=f"exact-{noise}").estimate
    noisy = run(tables, name=f"noisy-{noise}", noise=noise, epsilon="4")
    # the noise may be 0; that it is not always 0 is the next test's
    assert abs(noisy.estimate - exact) < FAR * noisy.noise_std


def test_the_error_of_many_runs_is_the_predicted_one(tables):
    """The squared errors of 20 runs at ε = 1, in units of the predicted variance."""
    exact = run(tables, name="mse-exact").estimate
    reports = [run(tables, name=f"mse-{i}", epsilon="1", max_colluding=2) for i in range(RUNS)]
    squares = [((each.estimate - exact) / each.noise_std) ** 2 for each in reports]
    # discrete Laplace noise: a square has mean 1 and variance 5
    assert abs(sum(squares) / RUNS - 1) < FAR * sqrt(5 / RUNS), squares
    assert sum(squares) / RUNS > 1 / FAR


def test_a_study_asked_again_shows_the_stored_shares_and_costs_nothing(tables):
    before = tables.loud_lines()
    first = run(tables, name="twice", noise="in_mpc", epsilon="3")
    spent = [beside(tables, name).account.spent.epsilon for name in tables.names]
    again = run(tables, name="twice", noise="in_mpc", epsilon="3")
    assert again.replayed and again.estimate == first.estimate
    assert spent == [beside(tables, name).account.spent.epsilon for name in tables.names]
    assert tables.loud_lines() == before


def test_a_study_prepared_ahead_needs_no_dealer_at_its_run(tables):
    exact = run(tables, name="not-ahead").estimate
    ask(tables, prepare_study, name="ahead")
    report = run(tables, name="ahead")
    assert report.prepared and report.estimate == exact


def test_a_table_of_many_cells_gives_the_clear_value(tables):
    fields = [FieldText(name, "0", "127", whole=True) for name in ("age", "balance")]
    report = run(tables, name="many-cells", fields=fields)
    assert report.bytes_online > 2 * len(tables.names) * 2**14
    assert report.estimate == in_the_clear_of(tables, tables.names)


def test_a_site_whose_rows_are_all_incomplete_adds_an_empty_table(tables):
    whole = tables.table("node-3").read_text()
    try:
        tables.table("node-3").write_text("age,balance\n3,\n,4\n")
        report = run(tables, name="incomplete")
    finally:
        tables.table("node-3").write_text(whole)
    assert report.records_by_node == [20, 20, 0] and report.edges == 780
    assert report.estimate == in_the_clear_of(tables, ("node-1", "node-2"))


def in_the_clear_of(lab: Lab, names: Any) -> float:
    """Kendall's tau over all pairs of these nodes' records."""
    rows = np.array(
        [
            [float(part) for part in line.split(",")]
            for name in names
            for line in lab.table(name).read_text().splitlines()[1:]
        ]
    )
    signs = np.sign(rows[:, None] - rows[None, :]).prod(axis=2)
    return float(signs[np.triu_indices(len(rows), 1)].mean())


# --- lies -----------------------------------------------------------------------------------------


def changed(parts: Iterable[Encoded], change: Callable[[Frame], Frame]) -> Iterator[Encoded]:
    """Encoded parts of a total with other frames. All other messages stay as they are."""
    for part in parts:
        message = codec.decode_coordinator(*part)
        yield encoded(m.Part(change(message.frame))) if isinstance(message, m.Part) else part


def two_totals(node: str, frame: Frame) -> Frame:
    """The second node is told a total with one cell changed."""
    if node != "node-2":
        return frame
    return replace(frame, payload=bytes([frame.payload[0] ^ 1]) + frame.payload[1:])


def short_frames(node: str, frame: Frame) -> Frame:
    """Each frame of the total loses a byte."""
    return replace(frame, count=frame.count - 1, payload=frame.payload[: -frame.width // 8])


def lied_to(lab: Lab, tale: Callable[[str, Frame], Frame], name: str) -> UmpcError:
    """A run with a coordinator that lies, and checks nothing itself."""

    def deliver(honest: Any, link: Any, step: str, parts: Any, *rest: Any) -> Any:
        told = changed(parts, lambda frame: tale(link.node.name, frame))
        return honest(link, step, told, *rest)

    with (
        lying("coordinator", deliver=deliver),
        without("all signed the total"),
        pytest.raises(UmpcError) as ended,
    ):
        ask(lab, run_study, name=name, epsilon="2")
    return ended.value


@pytest.mark.parametrize(
    ("tale", "message"),
    [(two_totals, "has not signed the same total"), (short_frames, "frame 0 of total has")],
)
def test_a_coordinator_that_lies_about_the_total_is_named_and_nothing_is_charged(
    tables, tale, message
):
    spent = [beside(tables, name).account.spent.epsilon for name in tables.names]
    error = lied_to(tables, tale, tale.__name__.replace("_", ""))
    assert not isinstance(error, StudyAborted)
    assert error.culprit == "coordinator" and message in error.message
    assert "no epsilon was charged" in error.message
    for name, before in zip(tables.names, spent, strict=True):
        assert beside(tables, name).account.spent.epsilon == before
        assert wait_until(lambda name=name: not beside(tables, name).account.open), name


def test_noise_of_a_committee_is_refused_where_nodes_lie_before_anything(tables):
    with pytest.raises(StudyError, match='needs noise = "distributed"'):
        ask(tables, run_study, name="liars", adversary="lying_nodes", noise="in_mpc")


# --- processes that die or stop -------------------------------------------------------------------

POINTS = ["during-histogram", "after-histogram", "during-total", "after-total"]


@pytest.mark.parametrize("action", ["kill", "stop"])
@pytest.mark.parametrize("point", POINTS)
def test_a_node_that_fails_is_named_and_costs_nothing(lab, point, action):
    here = lab(3, {"node-2": {"UMPC_FAILPOINT": f"{point}:{action}"}}).start()
    check_ended(here, "node-2", ("node-1", "node-3"))


@pytest.mark.parametrize("action", ["kill", "stop"])
def test_a_dealer_that_fails_is_named_and_costs_nothing(lab, action):
    here = lab(2, {"dealer": {"UMPC_FAILPOINT": f"before-deal:{action}"}}).start()
    check_ended(here, "dealer", here.names)


def check_ended(lab: Lab, culprit: str, survivors: Any) -> None:
    outcome = lab.run(**GRID, noise="distributed")
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert culprit in outcome.last_line and "no epsilon was charged" in outcome.last_line
    assert outcome.output == "" and outcome.seconds < SURVIVE_SECONDS
    for survivor in survivors:
        assert culprit in lab.wait_for_log(survivor, "ended in step")
        assert lab.reserved_by_the_living(survivor) == 0
    lab.stop()
    assert all(lab.spent(name) == 0 for name in lab.names)


@pytest.mark.parametrize("action", ["kill", "stop"])
def test_nodes_end_a_study_whose_coordinator_fails_before_the_total(lab, action):
    here = lab(2).start()
    here.arm("coordinator", f"before-total:{action}")
    coordinator = here.coordinate(here.study_file(**GRID, noise="distributed"))
    try:
        for name in here.names:
            assert "coordinator" in here.wait_for_log(name, "ended in step", SURVIVE_SECONDS)
    finally:
        coordinator.kill()
        coordinator.communicate()
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


def test_a_node_that_is_killed_when_it_holds_its_share_finishes_the_same_attempt(lab):
    here = lab(2).start()
    start_again(here, "node-2", "after-ready")
    first = here.run(**GRID)
    assert first.code == PeerLost.exit_code, first.error
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL
    start_again(here, "node-2")
    again = here.run(**GRID)
    assert again.code == 0 and again.report["replayed"], again.error
    assert here.run(**GRID).report["estimate"] == again.report["estimate"]
    here.stop()
    assert all(here.spent(name) == 1 for name in here.names)


# --- known sums -----------------------------------------------------------------------------------


def grid_demo(bank, *fields: str, **options: str) -> dict:
    named = {"edges": "all", "backend": "grid", "epsilon": "1e9", **options}
    flags = [part for key, value in named.items() for part in (f"--{key}", value)]
    return result(*bank.options(*fields), "--nodes", "4", *flags)


def test_a_demo_over_all_pairs_is_exact(bank):
    report = grid_demo(bank, "age", "balance")
    assert report["estimate"] == pytest.approx(bank.exact["kendall_tau"], rel=0, abs=1e-15)
    assert report["estimate"] == report["exact"]
    assert report["bytes_online"] == report["bytes_online_predicted"]


def test_all_pairs_with_the_same_job_are_counted_exactly(bank):
    report = grid_demo(bank, "job", statistic="duplicate_pair_ratio")
    same = bank.exact["duplicate_pair_ratio"] * bank.pairs
    assert report["estimate"] * bank.pairs == pytest.approx(round(same), abs=1e-3)


@pytest.mark.parametrize("coarse", [{"bins": "balance=1024"}, {"levels": "12"}])
def test_a_demo_over_coarser_records_is_exact_for_them(bank, coarse):
    report = grid_demo(bank, "age", "balance", **coarse)
    assert report["estimate"] == report["quantised"] != report["exact"]
    assert report["quantised"] == pytest.approx(report["exact"], abs=0.002)
    assert report["bytes_online"] == report["bytes_online_predicted"]
    assert "are ties" in report["note"].lower()


def test_a_demo_takes_all_pairs_by_the_grid_where_that_is_cheaper(bank):
    report = result(*bank.options("job"), "--statistic", "duplicate_pair_ratio", "--epsilon", "1e9")
    assert (report["backend"], report["edges"]) == ("grid", bank.pairs)
    assert report["estimate"] == report["exact"]
