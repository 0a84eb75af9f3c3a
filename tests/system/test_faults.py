"""A process dies or stops in any phase of a study.

The survivors end within 10 seconds, name it, and charge nothing.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from contextlib import closing

import pytest

from tests.system.conftest import SURVIVE_SECONDS
from umpc.deployment.processes import stop
from umpc.errors import AlreadyReleased, PeerLost, PeerUnavailable

BEFORE_THE_CHARGE = [
    "before-reserve",
    "after-reserve",
    "agree",
    "before-prepare",
    "after-prepare",
    "before-evaluate",
    "after-fields",
    "before-ready",
]


@pytest.mark.parametrize("action", ["kill", "stop"])
@pytest.mark.parametrize("point", BEFORE_THE_CHARGE)
def test_a_node_that_fails_is_named_and_costs_nothing(lab, point, action):
    here = lab(3, {"node-2": {"UMPC_FAILPOINT": f"{point}:{action}"}}).start()
    outcome = here.run()
    # A node that dials a stopped peer may give up before the peer's silence is noticed.
    assert outcome.code in (PeerLost.exit_code, PeerUnavailable.exit_code), outcome.error
    assert "node-2" in outcome.last_line and "no epsilon was charged" in outcome.last_line
    assert outcome.output == ""
    assert outcome.seconds < SURVIVE_SECONDS
    for survivor in ("node-1", "node-3"):
        log = here.wait_for_log(survivor, "ended in step")
        assert "node-2" in log
        assert here.reserved_by_the_living(survivor) == 0
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


@pytest.mark.parametrize("point", ["before-deal", "during-deal"])
def test_a_dealer_that_is_killed_is_named_and_costs_nothing(lab, point):
    a_dealer_that_fails(lab, f"{point}:kill")


@pytest.mark.parametrize("point", ["before-deal", "during-deal"])
def test_a_dealer_that_stops_is_named_and_costs_nothing(lab, point):
    a_dealer_that_fails(lab, f"{point}:stop")


def a_dealer_that_fails(lab, failure: str) -> None:
    here = lab(2, {"dealer": {"UMPC_FAILPOINT": failure}}).start()
    outcome = here.run()
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert "dealer" in outcome.last_line and "no epsilon was charged" in outcome.last_line
    assert outcome.seconds < SURVIVE_SECONDS
    for survivor in here.names:
        assert "dealer" in here.wait_for_log(survivor, "ended in step")
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_nodes_end_a_study_whose_coordinator_fails(lab, number):
    here = lab(2, {"node-1": {"UMPC_FAILPOINT": "before-evaluate:stop"}}).start()
    coordinator = here.coordinate(here.study_file())
    try:
        here.wait_until_stopped("node-1")
        started = time.monotonic()
        os.kill(coordinator.pid, number)
        log = here.wait_for_log("node-2", "ended in step", SURVIVE_SECONDS)
        assert "coordinator" in log or "node-1" in log
        assert time.monotonic() - started < SURVIVE_SECONDS
    finally:
        coordinator.kill()
        coordinator.communicate()
    here.stop()
    assert here.spent("node-2") == 0


def test_a_process_that_is_stopped_says_so_and_blames_nobody(lab):
    here = lab(2, {"node-1": {"UMPC_FAILPOINT": "before-evaluate:stop"}}).start()
    coordinator = here.coordinate(here.study_file())
    try:
        here.wait_until_stopped("node-1")
        here.served["node-2"].process.terminate()
        log = here.wait_for_log("node-2", "ended in step", SURVIVE_SECONDS)
        assert "StudyAborted: this process was stopped while the study ran; start it again" in log
    finally:
        coordinator.kill()
        coordinator.communicate()
    here.stop()
    assert here.spent("node-2") == 0


@pytest.mark.parametrize("point", ["before-charge", "after-charge"])
def test_a_node_that_dies_at_the_release_leaves_no_result(lab, point):
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": f"{point}:kill"}}).start()
    outcome = here.run()
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert (
        "node-2" in outcome.last_line and "some nodes may have charged epsilon" in outcome.last_line
    )
    assert outcome.output == ""
    assert outcome.seconds < SURVIVE_SECONDS
    here.stop()
    assert here.spent("node-2") == (0 if point == "before-charge" else 1)


def test_a_study_that_only_some_released_and_another_lost_is_not_run_again(lab):
    """node-2 comes back without what it held: its ledger's held attempts are removed."""
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": "before-charge:kill"}}).start()
    assert here.run().code == PeerLost.exit_code
    here.wait_for_log("node-1", "charged, the share leaves")
    here.served["node-2"].process.wait(60)
    here.disarm()
    with closing(sqlite3.connect(here.folder / "node-2-ledger.sqlite")) as ledger, ledger:
        assert ledger.execute("DELETE FROM store WHERE kind = 'held'").rowcount == 1
    here.deployment.start_node("node-2", here.table("node-2"), "10")
    here.served.update(here.deployment.wait_until_ready())
    outcome = here.run()
    assert outcome.code == AlreadyReleased.exit_code, outcome.error
    assert "released before by node-1" in outcome.last_line and "new name" in outcome.last_line
    assert "node-2 no longer has its part" in outcome.last_line
    assert here.run(name="lab-2").code == 0


def test_a_dealer_that_is_away_is_named(lab):
    here = lab(2).start()
    outcome = here.run(dealer=("dealer", "127.0.0.1:1"))
    assert outcome.code == PeerUnavailable.exit_code, outcome.error
    assert "dealer" in outcome.last_line and "127.0.0.1:1" in outcome.last_line
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


def test_a_node_that_is_away_is_named(lab):
    here = lab(2).start()
    address = here.served["node-1"].address
    outcome = here.run(nodes=[("node-1", address), ("node-2", "127.0.0.1:1")])
    assert outcome.code == PeerUnavailable.exit_code, outcome.error
    assert "node-2" in outcome.last_line and "127.0.0.1:1" in outcome.last_line


def test_every_node_tells_of_its_charge_and_ends_well(lab):
    """The coordinator hangs up once it has all shares; no node may take that for an abort."""
    here = lab(3)
    here.start()
    outcomes = [here.run(name=f"study-{number}") for number in range(3)]
    assert [outcome.code for outcome in outcomes] == [0] * 3
    for name in here.names:
        assert here.log(name).count("charged, the share leaves") == 3
        assert "ended in step" not in here.log(name)
    here.stop()
    assert all(here.spent(name) == 3 for name in here.names)


def test_a_table_that_hangs_does_not_keep_sigterm_from_ending_the_node(lab):
    """A pipe that nobody writes to hangs as a network disk that is away."""
    here = lab(2)
    here.deployment.popen = subprocess.Popen  # a forked process ends in another way
    here.start()
    assert here.run(name="first").code == 0  # from then on the path is known to be a file
    here.table("node-1").unlink()
    os.mkfifo(here.table("node-1"))
    coordinator = here.coordinate(here.study_file(name="hangs"))
    here.wait_for_log("node-2", "'hangs'")
    node = here.served["node-1"].process
    node.terminate()
    assert node.wait(60) == 0
    stop([coordinator])
    assert here.reserved_by_the_living("node-1") == 0
