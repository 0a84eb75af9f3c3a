"""docs/study.md lists every key that a study file may have, and docs/policy.md every noise."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import msgspec

import umpc
from umpc.coordinator.studyfile_entries import FieldEntry, StudyEntries
from umpc.protocols.registry import PROTOCOLS
from umpc.study.settings import keys_of

DOCS = Path(umpc.__file__).parents[1] / "docs"
STUDY = (DOCS / "study.md").read_text(encoding="utf-8")
POLICY = (DOCS / "policy.md").read_text(encoding="utf-8")
SCRIPT = runpy.run_path(str(DOCS / "settings_table.py"))

ROW = re.compile(r"^\| (`[^|]*`) \| `(\w+)` \| ([^|]+) \| [^|]* \| ([^|]*) \|$", re.MULTILINE)
"""A row of the table of settings: protocols, key, meaning, default and choices."""


def names(cell: str) -> list[str]:
    """The names between backticks in a table's cell."""
    return re.findall(r"`([\w-]+)`", cell)


def test_the_tables_are_what_make_settings_writes():
    assert SCRIPT["written"](STUDY) == STUDY, "run `make settings`"


def test_every_setting_of_every_protocol_has_its_row():
    shown = {
        (protocol, key): (meaning, tuple(names(choices)))
        for protocols, key, meaning, choices in ROW.findall(STUDY)
        for protocol in names(protocols)
    }
    expected = {
        (protocol.name, key): (described.description, (described.extra or {})["choices"])
        for protocol in PROTOCOLS.values()
        for key, described in keys_of(protocol.settings).items()
    }
    assert shown == expected


def test_the_keys_of_every_study_are_those_that_the_file_may_have():
    keys = {field.name for field in msgspec.structs.fields(StudyEntries)}
    assert set(SCRIPT["COMMON"]) == keys | {"protocol"}


def test_a_required_key_is_one_without_a_default():
    required = {field.name for field in msgspec.structs.fields(StudyEntries) if field.required}
    assert {key for key, (_, default) in SCRIPT["COMMON"].items() if not default} == required


def test_the_keys_of_a_field_are_those_that_the_file_may_have():
    assert set(SCRIPT["FIELD"]) == {field.name for field in msgspec.structs.fields(FieldEntry)}


def test_the_policys_table_has_every_protocol_with_its_noise():
    table = POLICY[POLICY.index("| `protocol` |") : POLICY.index("- **What may be computed.**")]
    rows = [cells for line in table.splitlines()[2:] if len(cells := line.split(" | ")) == 3]
    shown = {name: cells[2] for cells in rows for name in names(cells[0])}
    assert set(shown) == set(PROTOCOLS)
    for protocol in PROTOCOLS.values():
        described = keys_of(protocol.settings).get("noise")
        choices = (described.extra or {})["choices"] if described else ()
        possible = set(choices) or {protocol.settings().noise}
        cell = shown[protocol.name]
        listed = set(names(cell.partition(";")[0]))
        assert listed <= possible
        assert listed == possible or "..." in cell
