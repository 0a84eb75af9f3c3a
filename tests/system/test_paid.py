"""Paid means received: a process is killed after *ready*, and the study is finished later.

The coordinator runs the study again under its name. The result is that of the one attempt, and
every node has charged for it once. A study for which nobody charged runs anew.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from fractions import Fraction

import pytest

from tests.system.conftest import Lab, Outcome
from tests.system.test_ledger_crash import beside, share_of, start_again
from umpc.errors import PeerLost

EPSILON = Fraction(1, 10)
AT_A_NODE = [
    "after-hold",
    "after-ready",
    "release-asked",
    "before-charge",
    "charge-before-commit",
    "charge-after-commit",
    "charge-anchored",
    "after-charge",
    "before-send",
    "after-send",
]
"""The points of a node from which on its share is on disk."""


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Iterator[Lab]:
    """Provide one dealer and two nodes for all tests."""
    lab = Lab(tmp_path_factory.mktemp("lab"), 2)
    try:
        yield lab.start("100")
    finally:
        lab.stop()


def spent(lab: Lab) -> list[Fraction]:
    return [beside(lab, name).account.spent.epsilon for name in lab.names]


def charged_once(lab: Lab, before: list[Fraction]) -> None:
    assert spent(lab) == [value + EPSILON for value in before]
    for name in lab.names:
        assert not beside(lab, name).account.open and not beside(lab, name).held


def run(lab: Lab, name: str, **changes) -> Outcome:
    return lab.run(name=name, epsilon="0.1", **changes)


@pytest.mark.parametrize("point", AT_A_NODE)
def test_a_node_that_is_killed_finishes_the_same_attempt_when_it_is_back(here, point):
    before = spent(here)
    start_again(here, "node-2", point, "100")
    first = run(here, point)
    assert first.code in (0, PeerLost.exit_code), first.error
    assert here.served["node-2"].process.wait(10) == -signal.SIGKILL, "the point was not reached"
    held = {name: [each.share for each in beside(here, name).held] for name in here.names}
    start_again(here, "node-2", epsilon="100")
    again = run(here, point)
    assert again.code == 0, again.error
    for name in here.names:
        # A share that was held is the one that left, unless the study ran anew as nobody had
        # charged: the coordinator then had said so to the others.
        if held[name] and again.report["replayed"]:
            assert [share_of(here, name, point)] == held[name]
    assert again.report["replayed"] == (point not in ("after-hold",))
    if first.code == 0:
        assert first.report["estimate"] == again.report["estimate"]
    assert run(here, point).report["estimate"] == again.report["estimate"]
    charged_once(here, before)
