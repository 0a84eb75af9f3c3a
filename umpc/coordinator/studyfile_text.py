"""The text of a study.toml, from its entries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from umpc.study.parts import FieldText

WIDTH = 90
"""The most characters of a line of a comment."""
BARE_KEY = re.compile("[A-Za-z0-9_-]+")


def write_study_file(folder: Path, entries: Mapping[str, Any]) -> Path:
    """study.toml in this folder, from the entries that are not None and not empty."""
    path = folder / "study.toml"
    path.write_text(study_text(entries, {}), encoding="utf-8")
    return path


def study_text(entries: Mapping[str, Any], about: Mapping[str, str]) -> str:
    """The text of a study.toml. Args: about: key → a comment above it."""
    given = {key: value for key, value in entries.items() if value not in (None, (), [], {})}
    lines = []
    # a key that follows a table would be one of the table
    for key, value in sorted(given.items(), key=lambda item: _is_table(item[1])):
        if key in about:
            lines += ["", *(f"# {line}" for line in wrap(about[key], WIDTH))]
        if isinstance(value, Mapping):
            lines += [f"[{key}]", *_rows(value)]
        elif _is_table(value):
            for row in value:
                lines += [f"[[{key}]]", *_rows(row)]
        else:
            lines.append(f"{key} = {_value(value)}")
    return "\n".join(lines).lstrip() + "\n"


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
