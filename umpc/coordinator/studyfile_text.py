"""The text of a study.toml, from its entries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from umpc.study.parts import FieldText

BARE_KEY = re.compile("[A-Za-z0-9_-]+")


def write_study_file(folder: Path, entries: Mapping[str, Any]) -> Path:
    """study.toml in this folder, from the entries that are not None and not empty."""
    given = {key: value for key, value in entries.items() if value not in (None, (), [], {})}
    plain = {key: value for key, value in given.items() if not _is_table(value)}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for key, value in given.items():
        if isinstance(value, Mapping):
            lines += [f"[{key}]", *_rows(value)]
        elif _is_table(value):
            for row in value:
                lines += [f"[[{key}]]", *_rows(row)]
    path = folder / "study.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def field_entry(field: FieldText) -> dict[str, Any]:
    """A field as a file has it."""
    if field.categories:
        public = {"public": True} if field.public else {}
        return {"name": field.name, "categories": list(field.categories), **public}
    step = {"whole": True} if field.whole else {"resolution": field.resolution}
    return {"name": field.name, "lower": field.lower, "upper": field.upper, **step}


def _is_table(value: Any) -> bool:
    rows: Sequence[Any] = value if isinstance(value, list | tuple) else ()
    return isinstance(value, Mapping) or any(isinstance(row, Mapping) for row in rows)


def _rows(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(name: str) -> str:
    """A key, bare where TOML allows it."""
    return name if BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    """Text, numbers, truth values and lists of text, which TOML writes as JSON does."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
