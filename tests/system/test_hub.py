"""A study through a hub, over real processes: its results, and a hub that is killed in its middle."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.system.conftest import Lab, costs_what_was_predicted
from umpc.cli.deployment import stop
from umpc.coordinator.client import run_study
from umpc.study.report import Report

SILENT = {"epsilon": "1e9", "noise": "distributed", "max_colluding": 0, "seconds_per_step": 60}
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
    for moment in (*moments[1:], None):
        while hub.process.poll() is None:
            if ended.wait(0.02):
                return codes
        codes.append(hub.process.returncode)
        lab.disarm()
        if moment is not None:
            lab.arm("hub", f"relayed-{moment}:kill")
        hub = lab.served["hub"] = lab.deployment.start_hub(hub.address)
    return codes
