"""A study through a hub, over real processes: its results, and a hub that is killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from fractions import Fraction

import pytest

from tests.system.conftest import Lab, costs_what_was_predicted
from umpc.coordinator.client import run_study
from umpc.deployment.processes import stop
from umpc.errors import PeerUnavailable
from umpc.study.report import Report

ALL = {
    "epsilon": "1e9",
    "noise": "distributed",
    "max_colluding": 0,
    "edges": "all",
    "seconds_per_step": 60,
}
"""All pairs and next to no noise: every run has the same result."""
RULES = "[policy]\nmin_colluding = 0\n"
BUDGET = "9" + "0" * 12
MOMENTS = (30, 90)
"""Envelopes after which a hub is killed."""


@pytest.fixture
def behind(tmp_path) -> Iterator[Lab]:
    """Provide three nodes and a dealer that dial a hub."""
    lab = Lab(tmp_path, 3)
    try:
        lab.served["hub"] = lab.deployment.start_hub()
        yield lab.start(BUDGET, RULES)
    finally:
        lab.stop()


def kept_alive(lab: Lab, moments: tuple[int, ...], ended: threading.Event) -> list[int]:
    """Start the hub again whenever it dies, armed for the next moment. Returns: exit codes."""
    codes = []
    hub = lab.served["hub"]
    for following in (*moments[1:], None):
        while hub.process.poll() is None:
            if ended.wait(0.02):
                return codes
        codes.append(hub.process.returncode)
        lab.disarm()
        if following is not None:
            lab.arm("hub", f"relayed-{following}:kill")
        hub = lab.served["hub"] = lab.deployment.start_hub(hub.address)
    return codes


def restarted(lab: Lab, moments: tuple[int, ...], **changes) -> tuple[Report, list[int]]:
    """Run a study while the hub dies at these moments. Returns: also the exit codes of the hubs."""
    lab.arm("hub", f"relayed-{moments[0]}:kill")
    address = lab.served["hub"].address
    stop([lab.served["hub"].process])
    lab.served["hub"] = lab.deployment.start_hub(address)
    ended, killed = threading.Event(), []
    watch = threading.Thread(target=lambda: killed.extend(kept_alive(lab, moments, ended)))
    watch.start()
    try:
        return lab.lead(run_study, **ALL | changes), killed
    finally:
        ended.set()
        watch.join()


def test_a_study_through_a_hub_ends_unchanged_when_the_hub_is_killed(behind):
    expected = behind.lead(run_study, **ALL, name="before")
    grid = behind.lead(run_study, **ALL, name="grid", backend="grid")
    found, killed = restarted(behind, MOMENTS, name="after")
    assert killed == [-9, -9], "both hubs died in the middle of the study"
    for report, rounds in ((expected, 4), (grid, 2), (found, 4)):
        costs_what_was_predicted(report, rounds)
        assert abs(report.estimate - expected.estimate) < 1e-6
    text = "the connection to hub 'hub' is lost and dialled again"
    assert all(text in behind.log(name) for name in behind.names)


def test_a_hub_that_is_killed_at_any_moment_changes_no_study(behind):
    expected = behind.lead(run_study, **ALL, name="before")
    died = 0
    for moment in range(4, 124, 6):
        found, killed = restarted(behind, (moment,), name=f"after-{moment}")
        assert abs(found.estimate - expected.estimate) < 1e-6, moment
        died += len(killed)
    assert died >= 15, "most of the hubs died before the study's end"


def refusal(lab: Lab, **changes) -> PeerUnavailable:
    """Return the error of a study that no wait of the coordinator's may hold up."""
    began = time.monotonic()
    with pytest.raises(PeerUnavailable) as caught:
        lab.lead(run_study, **ALL | changes)
    assert time.monotonic() - began < ALL["seconds_per_step"] / 2
    return caught.value


@pytest.mark.parametrize("end", ["leaves", "is killed", "never came"])
def test_a_study_ends_at_once_for_a_process_that_the_hub_does_not_expect(tmp_path, end):
    lab = Lab(tmp_path, 2)
    try:
        hub = lab.served["hub"] = lab.deployment.start_hub(grace=1)
        lab.start(BUDGET, RULES)
        lab.lead(run_study, **ALL, name="before")
        lost = lab.served["node-2"].process
        if end == "leaves":
            stop([lost])
        else:
            lost.kill()
            lost.wait()
        if end == "never came":  # to this hub, which was started after the node had died
            stop([hub.process])
            lab.served["hub"] = lab.deployment.start_hub(hub.address, grace=1)
        error = refusal(lab, name="after")
        assert error.culprit == "node-2" and "not connected to hub" in error.message
    finally:
        lab.stop()
    assert lab.spent("node-1") == Fraction(10**9), "for the study of before"


def test_a_hub_that_was_just_started_expects_everybody(behind):
    """A node that the new hub never saw is started while the coordinator waits for it."""
    node, hub = behind.served["node-2"], behind.served["hub"]
    stop([node.process, hub.process])
    behind.served["hub"] = behind.deployment.start_hub(hub.address)
    coordinator = behind.coordinate(behind.study_file(**ALL))
    behind.wait_for_log("hub", "coordinator", 60)
    behind.deployment.start_node("node-2", behind.table("node-2"), BUDGET, more=RULES)
    assert coordinator.wait(60) == 0


def test_a_node_behind_a_hub_that_is_stopped_says_so_and_blames_nobody(tmp_path):
    lab = Lab(tmp_path, 2, {"node-1": {"UMPC_FAILPOINT": "before-evaluate:stop"}})
    try:
        lab.served["hub"] = lab.deployment.start_hub()
        lab.start(BUDGET, RULES)
        coordinator = lab.coordinate(lab.study_file(**ALL))
        lab.wait_until_stopped("node-1")
        lab.served["node-2"].process.terminate()
        log = lab.wait_for_log("node-2", "ended in step")
        assert "StudyAborted: this process was stopped while the study ran; start it again" in log
        stop([coordinator])
    finally:
        lab.stop()
