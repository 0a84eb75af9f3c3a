"""Connections serve one study after the other, and a process that is gone is noticed all the same.

docs/decisions/0070-kept-connections.md.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from umpc.coordinator.client import run_study
from umpc.crypto.signing import is_signature
from umpc.errors import PeerLost, PeerUnavailable
from umpc.transport.kept import KeptConnections

ESTABLISHED = "01"


def connections(pid: int) -> set[str]:
    """The kernel's numbers of a process's TCP connections that stand."""
    files = (Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6"))
    rows = [line.split() for text in files for line in text.splitlines()]
    stand = {row[9] for row in rows if row[3] == ESTABLISHED}
    links = (os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir())
    return {link[8:-1] for link in links if link.startswith("socket:[")} & stand


def test_three_studies_over_the_connections_of_the_first(lab):
    """A dealer that ends between two studies is missed by a new connection, before any data."""
    here = lab(2).start()
    pids = [here.served[name].process.pid for name in ("dealer", "node-1", "node-2")]

    async def scenario(study, identity):
        kept = KeptConnections()
        seen = []
        for number in range(2):
            report = await run_study(_named(study, number), identity, kept=kept)
            assert report.bytes_offline == report.bytes_offline_predicted
            assert len(kept) == 2
            assert is_signature.cache_info().currsize == 0, "nothing grows with the studies"
            seen.append([connections(pid) for pid in pids])
        # The dealer has one of each node. Node-2 has those of node-1 and of the coordinator, and
        # its own to the dealer.
        assert [len(found) for found in seen[0]] == [2, 3, 3]
        assert seen[0] == seen[1]
        os.kill(pids[0], signal.SIGKILL)
        here.served["dealer"].process.wait()
        with pytest.raises((PeerUnavailable, PeerLost), match="dealer") as caught:
            await run_study(_named(study, 2), identity, kept=kept)
        assert caught.value.culprit == "dealer" and len(kept) == 0

    here.lead(scenario, seconds_per_step=20)
    here.stop()
    assert [here.spent(name) for name in here.names] == [2, 2]


def _named(study, number: int):
    return study.replaced(name=f"kept-{number}")


def test_what_was_made_after_one_study_serves_the_next_and_a_new_process_has_nothing(lab):
    here = lab(2, {name: {"UMPC_LOG_LEVEL": "debug"} for name in ("node-1", "node-2")}).start()

    def uses() -> list[int]:
        text = "is from after an earlier study"
        return [here.log(name).count(text) for name in here.names]

    async def run(study, identity):
        report = await run_study(study, identity)
        assert report.bytes_offline == report.bytes_offline_predicted
        assert report.bytes_online == report.bytes_online_predicted

    here.lead(run, name="first")
    for name in here.names:
        here.wait_for_log(name, "waits for the next study")
    assert uses() == [0, 0]
    here.lead(run, name="second")
    assert uses() == [1, 1]
    here.lead(run, name="other", epsilon="2")
    assert uses() == [2, 2], "each study makes the channel of the next one"

    node = here.served["node-2"].process
    node.kill()
    node.wait()
    here.deployment.start_node("node-2", here.table("node-2"), "10")
    here.served.update(here.deployment.wait_until_ready())
    here.lead(run, name="third")
    assert uses() == [2, 2]
    here.stop()
