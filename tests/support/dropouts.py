"""Nodes of a lab that are killed in a study that may miss some, and what its report must say."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.support.node_ledgers import beside, start_again
from tests.support.studies import clear_sums, graph_of
from tests.system.conftest import TABLE, Lab
from umpc.api.study import run_now
from umpc.coordinator import client
from umpc.coordinator.studyfile import load_study_file
from umpc.study.attempt import without
from umpc.study.document import Study
from umpc.study.report import Report
from umpc.transport.identity import load_identity

EXACT = "1000000000"
"""An ε with which the noise is 0."""
BUDGET = "1000000000000"
ALL = {"edges": "all"}
"""E is all pairs of the survivors: which record has which number is each node's secret."""
AWAY = "away"
"""The point of a node that is dead before the study begins."""
AT_NODES = (
    "before-reserve",
    "after-reserve",
    "agree",
    "before-prepare",
    "after-reserve-delta",
    "after-set-up",
    "after-prepare",
    "before-evaluate",
    "after-fields",
    "during-rounds",
    "before-ready",
    "after-hold",
)
"""The failpoints of a node before *ready*, in the protocol of pairs with a dealer."""
AT_COORDINATOR = ("propose 0", "propose 3", "agree 0", "agree 3", "prepare 0", "prepare 3")
AT_COORDINATOR += ("evaluate 0",)
"""The moments at which the coordinator has so many answers to a step."""
POINTS = (AWAY, *AT_NODES, *AT_COORDINATOR)


def start_lab(lab: Lab, hub_grace: int | None = None) -> Lab:
    """Start a lab whose nodes have tables of their own, of different lengths, and much budget.

    Args: hub_grace: all processes are behind a hub with this grace time; None means no hub.
    """
    if hub_grace is not None:
        lab.served["hub"] = lab.deployment.start_hub(grace=hub_grace)
    lab.start(BUDGET)
    head, *rows = TABLE.splitlines(keepends=True)
    for number, name in enumerate(lab.names):
        lab.table(name).write_text(head + "".join(rows[number : 20 + 3 * number]))
    return lab


def lose(lab: Lab, victim: str, point: str, **changes) -> tuple[Study, Report]:
    """Run a study that loses a node at this point. Returns: the whole study, and its report."""
    if point in AT_NODES:
        start_again(lab, victim, point, BUDGET)
    if point == AWAY:
        _kill(lab, victim)

    def tell(step: str, done: int, total: int) -> None:
        if f"{step} {done}" == point:
            _kill(lab, victim)

    facts = {"epsilon": EXACT, "may_miss": 1, "name": f"lab-{victim}-{point}".replace(" ", "-")}
    study, report = lead(lab, tell, **{**facts, **changes})
    start_again(lab, victim, "", BUDGET)
    return study, report


def lose_the_hub(lab: Lab, point: str, **changes) -> tuple[Study, Report]:
    """Run a study while the hub is killed at this point and started again.

    A node's point is that of node-2, which waits there until the hub is back.
    """
    if point in AT_NODES:
        start_again(lab, "node-2", point, BUDGET, action="stop")
    ended = threading.Event()
    killed: list[str] = []
    watch = threading.Thread(target=_restart_hub_when_stopped, args=(lab, ended, killed))
    if point == AWAY:
        _kill(lab, "hub")
        killed.append(point)
        watch = threading.Timer(1.0, _start_hub, (lab,))

    def tell(step: str, done: int, total: int) -> None:
        if f"{step} {done}" == point:
            killed.append(point)
            _kill(lab, "hub")
            _start_hub(lab)

    if point in (AWAY, *AT_NODES):
        watch.start()
    try:
        name = f"hub-{point}".replace(" ", "-")
        found = lead(lab, tell, **{"epsilon": EXACT, "name": name, **changes})
        assert killed, f"{point} was not reached"
        return found
    finally:
        ended.set()
        if watch.is_alive():
            watch.join()
        if point in AT_NODES:
            start_again(lab, "node-2", "", BUDGET)


def _restart_hub_when_stopped(lab: Lab, ended: threading.Event, killed: list[str]) -> None:
    """Restart the hub when node-2 stops, and let it go on, also if it reaches the point again."""
    node = lab.served["node-2"].process
    while not ended.wait(0.02):
        if _state(node.pid) != "T":
            continue
        if not killed:
            killed.append("node-2")
            _kill(lab, "hub")
            _start_hub(lab)
        os.kill(node.pid, signal.SIGCONT)


def _state(pid: int) -> str:
    """The state of a process as the kernel shows it; T means stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _start_hub(lab: Lab) -> None:
    hub = lab.served["hub"]
    lab.disarm()
    lab.served["hub"] = lab.deployment.start_hub(hub.address, grace=60)


def lead(
    lab: Lab, tell=client.silent, *, returning: float = 0.0, **changes
) -> tuple[Study, Report]:
    """Run a study with the coordinator in this process. Args: returning: as of `run_study`."""
    entries = load_study_file(lab.study_file(**{**ALL, **changes}))
    identity = load_identity(entries.identity, "coordinator")
    study = entries.study(identity.name)
    return study, run_now(client.run_study(study, identity, tell, returning=returning))


def _kill(lab: Lab, name: str) -> None:
    process = lab.served[name].process
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def check_survivors(lab: Lab, whole: Study, report: Report, lost: Sequence[str]) -> None:
    """The report is exact over the survivors' own E, and they alone have charged, once each."""
    study = without(whole, lost)
    names = [node.name for node in study.nodes]
    assert report.missing == list(lost) and report.nodes == len(names)
    assert report.study_hash == study.hash.hex()
    tables = [_columns(study, lab, name) for name in names]
    assert report.records_by_node == [len(table["age"]) for table in tables]
    graph = graph_of(study, report)
    (exact,) = clear_sums(study, tables, graph)
    edges = sum(cell.count for cell in graph.cells.values())
    assert report.edges == edges and report.estimate == exact / edges
    for name in lab.names:
        rows = [row for row in beside(lab, name).rows if row.note == whole.name]
        assert [row.kind for row in rows] == ["charge"] * (name in names), name
        assert all(row.study == whole.hash for row in rows)


def _columns(study: Study, lab: Lab, name: str) -> dict[str, np.ndarray]:
    """A node's records in steps of their fields, as its table has them."""
    rows = np.loadtxt(lab.table(name), delimiter=",", skiprows=1)
    found = dict(zip(("age", "balance"), rows.T, strict=True))
    steps = {field.name: float(field.schema().resolution) for field in study.fields}
    return {key: np.rint(column / steps[key]).astype(np.int64) for key, column in found.items()}
