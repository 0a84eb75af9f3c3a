"""Study files as tests write them: a small study of two columns, in which any entry can change."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.deployment.processes import UMPC
from umpc.study.parts import FieldText

ADDRESS = "127.0.0.1:1"
"""Nobody listens there."""
FIELDS = (
    FieldText("age", "0", "127", whole=True),
    FieldText("balance", "-100", "1000", whole=True),
)


def participants(*names: str) -> list[dict[str, str]]:
    """Entries of nodes or shufflers, all with the same address."""
    return [{"name": name, "address": ADDRESS} for name in names]


def planned_file(folder: Path, nodes: Sequence[str], /, **changes: Any) -> Path:
    """study.toml of Kendall's tau of age and balance. Args: changes: entries; None removes one.

    It has the fields of its columns only: a study may have no others.
    """
    columns = changes.get("columns") or ["age", "balance"]
    entries = {
        "name": "planned",
        "statistic": "kendall_tau",
        "columns": ["age", "balance"],
        "fields": [field_entry(field) for field in FIELDS if field.name in columns],
        "epsilon": "1",
        "identity": "coordinator",
        "nodes": participants(*nodes),
    }
    return write_study_file(folder, entries | changes)


def run_two_sites(folder: Path, served: Mapping[str, Any]) -> subprocess.CompletedProcess[str]:
    """Run a study of north and south over their processes; the report is JSON.

    Args: served: what answers, by name, with `address`. folder: of the deployment.
    """
    entries = {
        "name": "two sites",
        "identity": "coordinator",
        "statistic": "kendall_tau",
        "columns": ["age", "balance"],
        "epsilon": "1",
        "edges": "all",
        "backend": "shared",
        "fields": [
            {"name": "age", "lower": 0, "upper": 60, "whole": True},
            {"name": "balance", "lower": 0, "upper": 50, "resolution": "0.5"},
        ],
        "nodes": [{"name": name, "address": served[name].address} for name in ("north", "south")],
        "dealer": {"name": "dealer", "address": served["dealer"].address},
    }
    study = [*UMPC, "study", "run", str(write_study_file(folder, entries)), "--format", "json"]
    return subprocess.run(study, capture_output=True, text=True)
