"""A node or a coordinator that stalls after the others' charge burns nobody's ε."""

from __future__ import annotations

from signal import SIGKILL

import pytest

from umpc.errors import PeerLost

LINE = "a node that stalls after the others' charge burns their ε"


@pytest.mark.attack(LINE, "both", "bounded: the same attempt is finished, charged once")
@pytest.mark.parametrize("point", ["before-charge", "after-charge"])
def test_whoever_comes_back_finishes_the_study(lab, point):
    here, coordinator = stalled(lab, point)
    kill_the_stalled(here)
    coordinator.communicate()
    assert coordinator.returncode == PeerLost.exit_code
    charged_once_when_finished(here)


@pytest.mark.attack(LINE, "both", "bounded: a coordinator that dies is started again")
def test_a_coordinator_that_died_after_the_charge_finishes(lab):
    here, coordinator = stalled(lab, "after-charge")
    coordinator.kill()
    coordinator.communicate()
    assert coordinator.returncode == -SIGKILL, "it ended before it was killed"
    kill_the_stalled(here)
    charged_once_when_finished(here)


def stalled(lab, point):
    """Start a study whose node-1 has charged and whose node-2 stands still at the point.

    Returns: the laboratory; the coordinator's process, which waits for node-2.
    """
    here = lab(2, {"node-2": {"UMPC_FAILPOINT": f"{point}:stop"}}).start()
    coordinator = here.coordinate(here.study_file())
    here.wait_until_stopped("node-2")
    here.wait_for_log("node-1", "charged, the share leaves")
    return here, coordinator


def kill_the_stalled(here):
    process = here.served["node-2"].process
    process.kill()
    assert process.wait() == -SIGKILL


def charged_once_when_finished(here):
    """Start node-2 and the study again: both nodes have charged once, and repeat one value."""
    here.disarm()
    here.deployment.start_node("node-2", here.table("node-2"), "10")
    here.served.update(here.deployment.wait_until_ready())
    first, again = here.run(), here.run()
    assert first.code == 0, first.error
    assert again.report["estimate"] == first.report["estimate"]
    here.stop()
    assert [here.spent(name) for name in here.names] == [1, 1]
