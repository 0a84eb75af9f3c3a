"""The examples in real containers: the printed estimate against an oracle of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

ROOT = Path(__file__).parents[2]
NODES = 3
SECONDS = 1200
"""The first run builds the image."""
FAR = 12
"""Standard deviations that discrete Laplace noise passes with a probability below 1e-6."""


@pytest.fixture
def file() -> str:
    """Name the file with the consortium."""
    return "docker-compose.yml"


@pytest.fixture
def project(file: str, compose: tuple[str, ...]) -> Iterator[list[str]]:
    """Provide a Compose command with a project name of its own, and remove all it made."""
    command = [*compose, "--file", str(ROOT / file), "--project-name", f"umpctest{os.getpid()}"]
    yield command
    subprocess.run([*command, "down", "-v"], cwd=ROOT, capture_output=True, timeout=SECONDS)


def run(command: list[str], **settings: str) -> dict[str, float]:
    """Start the consortium, and return the report that the coordinator prints as JSON."""
    variables = {f"UMPC_{name.upper()}": value for name, value in settings.items()}
    options = ["--build", "--no-color", "--scale", f"node={NODES}"]
    ended = subprocess.run(
        [*command, "up", *options, "--exit-code-from", "coordinator"],
        cwd=ROOT,
        env={**os.environ, "UMPC_FORMAT": "json", **variables},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    printed = re.search(r"^\S*coordinator\S*\s+\|\s*(\{.*\})\s*$", ended.stdout, re.MULTILINE)
    assert printed, ended.stdout[-4000:]
    return json.loads(printed[1])


def exact() -> float:
    """Compute Kendall's tau over all pairs of the demo's table from its definition."""
    table = load_breast_cancer().data[:, :2]
    first, second = np.triu_indices(len(table), 1)
    return float(np.sign(table[first] - table[second]).prod(axis=1).mean())


@pytest.mark.parametrize("file", ["docker-compose.yml", "docker-compose.hub.yml"])
def test_without_noise_all_pairs_give_the_exact_value(project):
    report = run(project, epsilon="1000000000", edges="all")
    assert report["estimate"] == pytest.approx(exact(), abs=1e-12)
    assert report["nodes"] == NODES
    assert report["bytes_online"] == report["bytes_online_predicted"]


def test_the_noise_is_that_of_the_report(project):
    report = run(project, epsilon="1", edges="all")
    assert 0 < abs(report["estimate"] - exact()) < FAR * report["noise_std"]
