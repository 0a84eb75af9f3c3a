"""The ledgers of a lab's nodes while they run, and nodes that are started again."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.system.conftest import Lab
from umpc.deployment.processes import stop
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import Snapshot, read_beside


def start_again(
    lab: Lab,
    name: str,
    failpoint: str = "",
    epsilon: str = "10",
    more: str = "",
    action: str = "kill",
) -> None:
    """Stop a node and start it again. Args: failpoint: the point of the action, kill or stop."""
    if name in lab.served:
        stop([lab.served[name].process])
    lab.disarm()
    if failpoint:
        lab.arm(name, f"{failpoint}:{action}")
    lab.deployment.start_node(name, lab.table(name), epsilon, more=more)
    lab.served.update(lab.deployment.wait_until_ready())


def beside(lab: Lab, name: str) -> Snapshot:
    """Return the node's ledger, verified with its anchor, whether or not the node runs."""
    snapshot = read_beside(Place.of(lab.folder / f"{name}-ledger.sqlite"))
    assert snapshot.fault == ""
    return snapshot


def share_of(lab: Lab, name: str, study: str) -> bytes | None:
    """Return the bytes that the node charged for and keeps."""
    rows = beside(lab, name).rows
    return next((row.share for row in rows if row.kind == "charge" and row.note == study), None)


def held_by(lab: Lab, name: str, study: str) -> bytes | None:
    """Return the bytes that the node holds and has not charged for."""
    return next((each.share for each in beside(lab, name).held if each.name == study), None)


def settled(lab: Lab) -> None:
    """Wait until no node holds an attempt: all have noticed the study's end."""
    for name in lab.names:
        assert wait_until(lambda name=name: not beside(lab, name).account.open), (
            f"{name} keeps a reservation"
        )


def wait_until(true: Callable[[], bool], seconds: float = 30) -> bool:
    """Whether it comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def kinds(lab: Lab, name: str) -> list[str]:
    """The kinds of the rows of a node's ledger, the oldest first."""
    return [row.kind for row in beside(lab, name).rows]
