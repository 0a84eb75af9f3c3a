"""Study files as tests write them: a small study of two columns, in which any entry can change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umpc.coordinator.studyfile_text import field_entry, write_study_file
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
