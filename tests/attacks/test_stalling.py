"""A node or a coordinator that stalls after the others' charge burns nobody's ε."""

from __future__ import annotations

from signal import SIGKILL

import pytest

LINE = "a node that stalls after the others' charge burns their ε"


@pytest.mark.attack(LINE, "both", "bounded: the same attempt is finished, charged once")
@pytest.mark.parametrize("point", ["before-charge", "after-charge"])
def test_whoever_comes_back_finishes_the_study(lab, point):
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": f"{point}:kill"}}).start()
    assert here.run().code != 0
    here.wait_for_log("node-1", "charged, the share leaves")
    killed(here)
    here.disarm()
    here.deployment.start_node("node-2", here.table("node-2"), "10")
    here.served.update(here.deployment.wait_until_ready())
    outcome = here.run()
    assert outcome.code == 0, outcome.error
    assert here.run().report["estimate"] == outcome.report["estimate"]
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1]


@pytest.mark.attack(LINE, "both", "bounded: a coordinator that dies is started again")
def test_a_coordinator_that_died_after_the_charge_finishes(lab):
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": "after-charge:kill"}}).start()
    coordinator = here.coordinate(here.study_file())
    here.wait_for_log("node-1", "charged, the share leaves")
    coordinator.kill()
    coordinator.communicate()
    assert coordinator.returncode == -SIGKILL, "it ended before it was killed"
    killed(here)
    here.disarm()
    here.deployment.start_node("node-2", here.table("node-2"), "10")
    here.served.update(here.deployment.wait_until_ready())
    assert here.run().code == 0
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1]


def killed(lab):
    """Check that node-2 died at its failpoint."""
    assert lab.served["node-2"].process.wait(10) == -SIGKILL, "node-2 did not stall"
