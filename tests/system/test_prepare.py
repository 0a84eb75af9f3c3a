"""Studies prepared ahead, over real processes.

The run takes the prepared material once, and failures leave no files. The coordinator is a process
of its own where that is tested. Elsewhere it runs in this process, since a start takes longer than
a study.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.support.node_ledgers import beside, kinds, share_of, start_again, wait_until
from tests.system.conftest import TABLE, Lab, running
from umpc.coordinator.client import prepare_study, run_study
from umpc.coordinator.conductor import Preparation
from umpc.deployment.processes import stop
from umpc.errors import AlreadyReleased, PeerLost, PeerUnavailable, PolicyRefused, PreparationError
from umpc.study.report import Report
from umpc.testing import limited, lying
from umpc.transport import stream

LOUD = "1000000000000"
"""An epsilon under which there is no noise."""
BUDGET = "9000000000000"
WINDOW = 32 << 20
"""The most bytes of its material that a node may hold in memory."""


def ask(lab: Lab, job, **changes):
    return lab.lead(job, **{"epsilon": "0.01", **changes})


def prepare(lab: Lab, **changes) -> Preparation:
    return ask(lab, prepare_study, **changes)


def run(lab: Lab, **changes) -> Report:
    return ask(lab, run_study, **changes)


def again(lab: Lab, name: str, failpoint: str = "", more: str = "[policy]\n") -> None:
    start_again(lab, name, failpoint, BUDGET, more)


def waiting_files(lab: Lab, name: str) -> list[int]:
    """Return the sizes of unnamed files that the node has open beside its ledger."""
    folder, sizes = Path(f"/proc/{lab.served[name].process.pid}/fd"), []
    for link in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            target = os.readlink(link)
            if target.startswith(str(lab.folder)) and target.endswith("(deleted)"):
                sizes.append(link.stat().st_size)
    return sizes


def files(lab: Lab) -> set[str]:
    """Return all named files, but the coordinator's own."""
    return {path.name for path in lab.folder.iterdir()} - {"study.toml"}


def reserved(lab: Lab, name: str) -> float:
    """Return the ε that the commands of a site show as reserved for prepared studies."""
    return float(sum(each.epsilon for each in beside(lab, name).prepared))


def nothing_waits(lab: Lab, names: list[str] | None = None) -> None:
    for name in names or lab.names:
        assert wait_until(lambda name=name: not beside(lab, name).account.open), (
            f"{name} holds an attempt"
        )
        assert wait_until(lambda name=name: not waiting_files(lab, name)), f"{name} keeps files"
        assert reserved(lab, name) == 0


def spent(lab: Lab, name: str):
    return beside(lab, name).account.spent.epsilon


def clear_sum() -> int:
    """Compute Kendall's sum over all pairs of the two nodes' tables, which are equal."""
    rows = [tuple(map(float, line.split(","))) for line in TABLE.splitlines()[1:]] * 2

    def sign(value: float) -> int:
        return (value > 0) - (value < 0)

    return sum(sign(a[0] - b[0]) * sign(a[1] - b[1]) for a, b in itertools.combinations(rows, 2))


def measured_as_predicted(report: Report) -> None:
    assert report.bytes_offline == report.bytes_offline_predicted > 0
    assert report.bytes_online == report.bytes_online_predicted > 0
    assert report.rounds == report.rounds_predicted


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Iterator[Lab]:
    with running(tmp_path_factory, 2, epsilon=BUDGET, more="[policy]\n") as lab:
        yield lab


def test_the_command_prepares_runs_and_replays(here):
    study = {"name": "command", "epsilon": LOUD, "edges": "all"}
    before, before_all = files(here), datetime.now(UTC) - timedelta(seconds=2)
    prepared = here.run(command="prepare", **study)
    assert prepared.code == 0, prepared.error
    assert files(here) == before
    for name in here.names:
        assert kinds(here, name) == ["genesis", "total"], "a preparation costs no row"
        assert waiting_files(here, name) == [prepared.report["bytes_by_node"][name]]
    first = here.run(**study)
    assert first.code == 0, first.error
    report = Report.from_dict(first.report)
    assert report.prepared and "no longer" not in first.error
    waited = datetime.fromisoformat(report.finished) - datetime.fromisoformat(report.prepared_at)
    assert before_all <= datetime.fromisoformat(report.prepared_at) <= datetime.now(UTC)
    assert timedelta(0) < waited, "the records are those of the preparation"
    assert round(report.estimate * report.edges) == clear_sum()
    measured_as_predicted(report)
    nothing_waits(here)
    again = run(here, **study)
    assert again.replayed and again.estimate == report.estimate
    with pytest.raises(AlreadyReleased, match="shows its stored result"):
        prepare(here, **study)
    usual = run(here, **{**study, "name": "usual"})
    assert not usual.prepared and usual.estimate == report.estimate
    assert usual.prepared_at == "" and usual.finished >= report.finished
    measured_as_predicted(usual)


def test_noise_of_each_node_and_pairs_without_a_dealer(here):
    garbled = {"dealer": None, "backend": "garbled", "preprocessing": "none"}
    for number, changes in enumerate(({"noise": "distributed"}, garbled)):
        study = {"name": f"kind-{number}", "epsilon": LOUD, "edges": "all", **changes}
        preparation = prepare(here, **study)
        assert (sum(preparation.bytes_by_node.values()) > 0) == ("dealer" not in changes)
        assert preparation.seconds == 86_400
        steps: list[str] = []
        told = partial(run_study, tell=lambda step, done, total, steps=steps: steps.append(step))
        report = ask(here, told, **study)
        assert report.prepared and round(report.estimate * report.edges) == clear_sum()
        assert not {"agree", "prepare"} & set(steps), "every node has said at once what it has"
        measured_as_predicted(report)
    nothing_waits(here)


def test_nodes_that_hear_members_and_openings_again_go_on_all_the_same(here):
    prepare(here, name="agreed-again", edges="all", epsilon=LOUD)
    with lying("coordinator", resume=lambda honest, side, answers: None):
        report = run(here, name="agreed-again", edges="all", epsilon=LOUD)
    assert report.prepared and round(report.estimate * report.edges) == clear_sum()
    measured_as_predicted(report)
    nothing_waits(here)


def test_prepared_again_the_earlier_one_is_dropped(here):
    before = {name: spent(here, name) for name in here.names}
    first, second = prepare(here, name="twice"), prepare(here, name="twice")
    for name in here.names:
        assert reserved(here, name) == 0.01
        assert waiting_files(here, name) == [second.bytes_by_node[name]]
    assert first.bytes_by_node.keys() == second.bytes_by_node.keys()
    assert run(here, name="twice").prepared
    nothing_waits(here)
    assert all(float(spent(here, name) - before[name]) == 0.01 for name in here.names)


def test_the_rules_are_asked_again_at_the_run(here):
    prepare(here, name="ruled")
    config = here.folder / "node-1.toml"
    text = config.read_text()
    config.write_text(text + 'statistics = ["mean"]\n')
    try:
        with pytest.raises(PolicyRefused, match="node-1"):
            run(here, name="ruled")
        nothing_waits(here)
    finally:
        config.write_text(text)
    assert not run(here, name="ruled").prepared


def test_a_node_that_was_killed_and_came_back_makes_it_a_run_from_the_start(here, caplog):
    before = {name: spent(here, name) for name in here.names}
    names = files(here)
    prepare(here, name="killed")
    here.served["node-2"].process.kill()
    here.served["node-2"].process.wait()
    quickly = limited(stream, CONNECT_SECONDS=1)
    with quickly, pytest.raises(PeerUnavailable, match="node-2"):
        run(here, name="killed")
    assert waiting_files(here, "node-1"), "a run that reached nobody uses nothing up"
    again(here, "node-2")
    assert not waiting_files(here, "node-2")
    assert files(here) == names
    assert {name: spent(here, name) for name in here.names} == before
    expected = []
    with caplog.at_level(logging.INFO, "umpc"):
        report = ask(here, partial(run_study, expect=expected.append), name="killed")
    assert [attempt.sizes.records for attempt in expected] == [report.records]
    assert not report.prepared and "node-2 no longer has what was prepared" in caplog.text
    loud = [entry.message for entry in caplog.records if entry.levelno >= logging.WARNING]
    assert not loud, "a study that succeeded leaves no warning"
    measured_as_predicted(report)
    nothing_waits(here)
    assert all(float(spent(here, name) - before[name]) == 0.01 for name in here.names)


def test_an_evaluation_that_fails_uses_it_up(here):
    before = spent(here, "node-1")
    again(here, "node-2", "after-fields")
    prepare(here, name="failed")
    with pytest.raises(PeerLost, match=r"node-2.*no epsilon was charged"):
        run(here, name="failed")
    nothing_waits(here, ["node-1"])
    assert spent(here, "node-1") == before
    again(here, "node-2")
    assert not run(here, name="failed").prepared


@pytest.mark.parametrize(
    ("point", "charged"), [("charge-before-commit", False), ("after-charge", True)]
)
def test_a_prepared_run_is_charged_before_its_share_leaves(here, point, charged):
    """A node that is killed before its charge is on disk has released nothing, as in any run."""
    before = spent(here, "node-2")
    again(here, "node-2", point)
    prepare(here, name=point)
    with pytest.raises(PeerLost, match=r"node-2.*some nodes may have charged"):
        run(here, name=point)
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL, "the point was not reached"
    assert (share_of(here, "node-2", point) is not None) == charged
    again(here, "node-2")
    assert run(here, name=point).replayed, "the later run finishes the prepared attempt"
    nothing_waits(here)
    assert float(spent(here, "node-2") - before) == 0.01


@pytest.mark.parametrize("point", ["during-spool", "before-park"])
def test_a_node_that_dies_while_it_prepares_leaves_nothing(here, point):
    names = files(here)
    again(here, "node-2", point)
    with pytest.raises(PeerLost, match="node-2"):
        prepare(here, name=point)
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL, "the point was not reached"
    assert wait_until(lambda: not waiting_files(here, "node-1"))
    again(here, "node-2")
    nothing_waits(here)
    assert files(here) == names


def test_a_node_that_ends_returns_what_it_reserved(here):
    prepare(here, name="ended")
    stop([here.served["node-2"].process])
    assert "reserve" not in kinds(here, "node-2")
    assert "ends with the node" in here.log("node-2")
    again(here, "node-2")
    assert not run(here, name="ended").prepared


def test_limits_of_number_and_time(here):
    """node-2 keeps one study, for three seconds."""
    again(here, "node-2", more="[prepare]\nmost = 1\nhours = 1e-3")
    started = time.monotonic()
    assert prepare(here, name="timed").seconds == 3
    with pytest.raises(
        PreparationError, match=r"node-2: 1 prepared studies wait there.*run one of them"
    ):
        prepare(here, name="one-too-many")
    assert len(waiting_files(here, "node-1")) == 1, "node-1 keeps what nobody else has"
    assert wait_until(lambda: not waiting_files(here, "node-2"))
    assert time.monotonic() - started >= 3.6
    assert "was not run in time" in here.log("node-2")
    assert not run(here, name="timed").prepared
    again(here, "node-2")
    nothing_waits(here)


def test_without_the_dealer_and_in_bounded_memory(here):
    """Material beyond the window goes to disk; the run then works after the dealer has ended.

    Nodes hold the window, and 64 chunks on their way of 1 MiB and their messages. How much of that
    is needed at once depends on how busy the machine is, so the material is far more than both.
    """
    again(here, "node-1")
    again(here, "node-2")
    # the first study loads libraries, which are no part of what is measured
    prepare(here, name="small")
    run(here, name="small")
    for name in here.names:
        here.table(name).write_text(
            "age,balance\n" + "".join(f"{7 * i % 50},{13 * i % 90}\n" for i in range(2_000))
        )
    memory = {name: peak_memory(here, name) for name in here.names}
    preparation = prepare(here, name="large", edges="all")
    stop([here.served["dealer"].process])
    assert max(preparation.bytes_by_node.values()) > 7 * WINDOW, "the rows go to one owner"
    report = run(here, name="large", edges="all")
    assert report.prepared
    measured_as_predicted(report)
    nothing_waits(here)
    grown = {name: (peak_memory(here, name) - memory[name]) >> 20 for name in here.names}
    assert max(grown.values()) < 160, grown


def peak_memory(lab: Lab, name: str) -> int:
    status = Path(f"/proc/{lab.served[name].process.pid}/status").read_text()
    return next(
        int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:")
    )
