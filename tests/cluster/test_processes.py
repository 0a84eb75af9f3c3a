"""A real study: one node computes on a cluster, and a worker dies in the middle."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from bench.dask_sites import Cluster, cluster
from tests.support.studies import generator
from tests.system.conftest import Lab, lab  # noqa: F401  (a fixture)
from umpc.deployment.processes import Deployment

RECORDS = 300
"""The records of each node: 90,000 pairs of two owners, in several chunks."""
LOUD = "1000000000000"
"""There is no noise, and E holds all pairs: every run has the same estimate."""
HELD_SECONDS = 8
"""A worker is held for so long, and then killed with the tasks that it got in the meantime."""


class WithCluster(Deployment):
    """The first node and the dealer compute on a cluster."""

    site: Cluster | None = None

    def _configure(self, folder: Path, name: str, *rest) -> Path:
        config = super()._configure(folder, name, *rest)
        if self.site is not None and name == "node-1":
            place = f'compute = "{self.site.place.cluster}"\ncompute_tls = "{self.site.tls}"\n'
            config.write_text(place + config.read_text())
        return config


def columns(name: str) -> np.ndarray:
    """Return the ages and balances of a node's records: (2, RECORDS)."""
    rng = generator(name)
    return np.stack([rng.integers(0, high, RECORDS) for high in (128, 1000)])


def exact(tables: list[np.ndarray]) -> float:
    """Return Kendall's tau over all pairs of records, in the clear."""
    age, balance = np.concatenate(tables, axis=1)
    signs = np.sign(age[:, None] - age) * np.sign(balance[:, None] - balance)
    return float(signs.sum() / (len(age) * (len(age) - 1)))


def test_a_study_survives_a_worker_that_dies_with_its_tasks(lab):  # noqa: F811
    here: Lab = lab(2)
    with cluster() as site:
        here.deployment = deployment = WithCluster(here.folder / "all", here.environment)
        deployment.site = site
        deployment.start_dealer()
        for name in here.names:
            lines = [f"{age},{balance}" for age, balance in columns(name).T]
            here.table(name).write_text("\n".join(["age,balance", *lines]))
            deployment.start_node(name, here.table(name), LOUD + "0")
        here.served.update(deployment.wait_until_ready())
        # It gets tasks and answers none of them.
        site.processes[1].send_signal(signal.SIGSTOP)
        (here.folder / "coordinator").rename(here.folder / "unused")
        (here.folder / "all" / "coordinator").rename(here.folder / "coordinator")
        process = here.coordinate(here.study_file(edges="all", epsilon=LOUD))
        time.sleep(HELD_SECONDS)
        assert process.poll() is None, "a study ended while a worker was held"
        assert site.begun_at(0) > 0
        site.kill_worker(0)
        output, error = process.communicate(timeout=200)
    assert process.returncode == 0, error
    estimate = json.loads(output)["estimate"]
    assert estimate == pytest.approx(exact([columns(name) for name in here.names]), abs=1e-9)
