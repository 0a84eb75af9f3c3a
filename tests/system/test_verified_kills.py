"""kill -9 at many moments of a study whose nodes may lie: what was released was charged, once.

Moments go round all processes. Every other one is spread over the study, from the coordinator's
start to its end; the others follow the first charge closely, as in `tests.system.crash`. After each
the process is started again, and the study is run under its name once more.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction

import pytest

from tests.support.node_ledgers import beside, share_of
from tests.system.conftest import Lab, running
from tests.system.crash import VICTIMS, anchors, first_charge, revive
from umpc.deployment.processes import stop

NODES, MOMENTS = 3, 40
CHARGES_SECONDS = 0.1
"""All nodes charge, and the coordinator ends, in some such time after the first charge."""
EPSILON = Fraction(1, 100)
GRADE = {
    "backend": "grid",
    "edges": "all",
    "noise": "distributed",
    "adversary": "lying_nodes",
    "epsilon": "0.01",
}
Row = tuple[str, str]
"""The killed process, and the charges that were there by then."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with running(tmp_path_factory, NODES, "100") as lab:
        yield lab


def spent(lab: Lab) -> list[Fraction]:
    return [beside(lab, name).account.spent.epsilon for name in lab.names]


def killed_at(lab: Lab, victim: str, seconds: float, name: str, *, is_charged: bool) -> Row:
    """Kill a process at a moment, and finish the study.

    Args: seconds: after the coordinator's start, or after the first charge if `is_charged`.
    """
    study, before, former = {**GRADE, "name": name}, spent(lab), anchors(lab)
    coordinator = lab.coordinate(lab.study_file(**study))
    try:
        if is_charged:
            first_charge(lab, former)
        with suppress(subprocess.TimeoutExpired):
            coordinator.wait(seconds)
        killed = coordinator if victim == "coordinator" else lab.served[victim].process
        killed.kill()
        output, error = coordinator.communicate(timeout=100)
    finally:
        stop([coordinator])
    told = f"{name}: {victim} at {seconds:.3f} s: {error}"
    paid = [now - former for now, former in zip(spent(lab), before, strict=True)]
    assert set(paid) <= {0, EPSILON}, told
    assert not output or set(paid) == {EPSILON}, f"released without a charge: {told}"
    kept = {node: share_of(lab, node, name) for node in lab.names}
    revive(lab, victim)
    again, last = lab.run(**study), lab.run(**study)
    assert (again.code, last.code) == (0, 0), f"{told}\n{again.error}\n{last.error}"
    reports = [again.report, last.report, *([json.loads(output)] if output else [])]
    assert len({report["estimate"] for report in reports}) == 1, told
    assert last.report["replayed"] and again.report["replayed"] >= any(paid), told
    for node, share in kept.items():
        assert share in (None, share_of(lab, node, name)), f"two shares of {node}: {told}"
    assert spent(lab) == [former + EPSILON for former in before], f"not charged once: {told}"
    charges = sum(map(bool, paid))
    if output:
        return victim, "finished"
    return victim, "no charge" if not charges else f"{charges} of {NODES} charges"


def kill_at(lab: Lab, moments: int, first: int = 0, step: int = 1) -> Counter[Row]:
    """Args: first, step: which of the moments are taken."""
    lab.run(**GRADE, name=f"warm-{first}")  # a first study takes longer
    usual = lab.run(**GRADE, name=f"usual-{first}")
    assert usual.code == 0, usual.error
    found: Counter[Row] = Counter()
    for number in range(first, moments, step):
        part, is_charged = (number + 1) / moments, number % 2 == 1
        seconds = part**3 * CHARGES_SECONDS if is_charged else part * usual.seconds
        victim, name = VICTIMS[number % len(VICTIMS)], f"moment-{first}-{number}"
        found[killed_at(lab, victim, seconds, name, is_charged=is_charged)] += 1
    for (victim, course), count in sorted(found.items()):
        print(f"killed: {victim:<12} {course:<16} {count:>3}")
    return found


def test_a_node_that_is_killed_in_the_midst_pays_once(here):
    """One moment of them, in every run of the tests."""
    assert kill_at(here, MOMENTS, 18, MOMENTS).total() == 1


def test_no_kill_of_any_process_releases_without_a_charge_or_charges_twice(here):
    found = kill_at(here, MOMENTS)
    assert found.total() == MOMENTS
    courses: Counter[str] = Counter()
    for (_, course), count in found.items():
        courses[course] += count
    assert courses["no charge"] > MOMENTS // 5, "hardly a kill came before the first charge"
    assert courses.keys() - {"no charge", "finished"}, "no kill came after the first charge"
