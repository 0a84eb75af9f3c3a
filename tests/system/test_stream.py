"""A process dies in the middle of a stream: all end within 10 s, without charge or files."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.system.conftest import SURVIVE_SECONDS
from umpc.errors import PeerLost

ROWS = 1800
TABLE = "age,balance\n" + "".join(f"{(7 * i) % 120},{(13 * i) % 900 - 20.5}\n" for i in range(ROWS))


@pytest.mark.parametrize("step", ["prepare", "evaluate"])
@pytest.mark.parametrize("dies", ["node-2", "dealer"])
def test_killed_in_the_middle_of_a_stream(lab, step, dies):
    here = lab(3, {"dealer": {"UMPC_FAILPOINT": "during-deal:stop"}} if step == "prepare" else {})
    here.deployment.start_dealer()
    for name in here.names:
        here.table(name).write_text(TABLE)
        here.deployment.start_node(name, here.table(name), "10")
    here.served.update(here.deployment.wait_until_ready())
    before = _files(here.folder)
    coordinator = here.coordinate(here.study_file(edges="all"))
    try:
        if step == "prepare":
            here.wait_until_stopped("dealer")
        else:
            _wait_for(coordinator, "evaluate node-1: ")
        os.kill(here.served[dies].process.pid, signal.SIGKILL)
        started = time.monotonic()
        output, error = coordinator.communicate(timeout=SURVIVE_SECONDS)
    finally:
        coordinator.kill()
    assert coordinator.returncode == PeerLost.exit_code and output == "", error
    assert time.monotonic() - started < SURVIVE_SECONDS
    last = error.strip().splitlines()[-1]
    assert dies in last and "no epsilon was charged" in last
    for survivor in {"node-1", "node-3"}:
        assert dies in here.wait_for_log(survivor, "ended in step")
        assert here.reserved_by_the_living(survivor) == 0
    assert _files(here.folder) - before == {"study.toml"}
    here.stop()
    assert all(here.spent(name) == 0 for name in here.names)


def _wait_for(process, text: str) -> None:
    """Read the process's standard error up to a line with the text."""
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"the study ended before it said {text!r}")


def _files(folder) -> set[str]:
    """Return all files below, without those that a node keeps beside an open ledger."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.endswith(("-wal", "-shm", "-journal"))}
