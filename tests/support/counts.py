"""Studies of counts, their tables, and their counts by numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.studies import Columns, generator
from umpc.coordinator.studyfile import read_study
from umpc.study.document import Study

TIME = {"name": "time", "lower": 0, "upper": 19, "whole": True}
EVENT = {"name": "event", "categories": ["no", "yes"]}
GROUP = {"name": "group", "categories": ["a", "b", "c"]}
LOUD = "1000000000"
"""An ε under which there is hardly any noise."""


def counts_study(statistic: str = "kaplan_meier", nodes: int = 3, **entries: Any) -> Study:
    """A study of time, event and maybe group, from the entries of its file; None leaves one out."""
    usual = {
        "name": "table",
        "statistic": statistic,
        "columns": ["time", "event"],
        "epsilon": LOUD,
        "identity": "coordinator",
        "fields": [TIME, EVENT],
        "nodes": [{"name": f"node-{number}", "address": "node:1"} for number in range(nodes)],
    }
    given = {key: value for key, value in (usual | entries).items() if value is not None}
    return read_study(Path("study.toml"), given).new_study("coordinator")


def counts_tables(label: str, sizes: Sequence[int] = (9, 0, 12)) -> list[Columns]:
    """Random records of every node, in steps of the fields."""
    rng = generator(label)
    return [
        {
            "time": rng.integers(0, 20, size),
            "event": rng.integers(0, 2, size),
            "group": rng.integers(0, 3, size),
        }
        for size in sizes
    ]


def only(study: Study, tables: Sequence[Columns]) -> list[Columns]:
    """The tables with the study's fields alone."""
    names = [field.name for field in study.fields]
    return [{name: table[name] for name in names} for table in tables]


def counted_by_numpy(
    tables: Sequence[Columns], names: Sequence[str], edges: Sequence[Sequence[float]]
) -> np.ndarray:
    """The table of all records. Args: edges: of the cells on each axis, with both ends."""
    columns = [np.concatenate([table[name] for table in tables]) for name in names]
    return np.histogramdd(columns, bins=[np.asarray(each, float) for each in edges])[0].astype(int)
