"""Comparisons of two sites' people, in one process."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from umpc.coordinator.studyfile import read_study
from umpc.protocols.overlap.settings import AT_BOTH
from umpc.study.document import Study

LOUD = "1000000000"


def overlap_study(epsilon: str = LOUD, **entries: Any) -> Study:
    """A comparison of two sites, from the entries of its file."""
    nodes = [{"name": name, "address": "127.0.0.1:1"} for name in ("first", "second")]
    usual = {
        "name": "shared",
        "protocol": "overlap",
        "person": "id",
        "epsilon": epsilon,
        "identity": "coordinator",
        "nodes": nodes,
    }
    return read_study(Path("study.toml"), usual | entries).new_study("coordinator")


def people(numbers: Iterable[int]) -> dict[str, np.ndarray]:
    """A site's records: one of each of these people."""
    return {AT_BOTH: np.array([f"p{each}" for each in numbers], dtype=object)}
