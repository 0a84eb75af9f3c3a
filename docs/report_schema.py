"""Write umpc/reporting/report.schema.json: the JSON Schema of a report's document.

`make settings` runs this file. The schema follows from types and docstrings, so each key is
described in one place.
"""

from __future__ import annotations

import json
import re
from inspect import getdoc
from typing import Any

import msgspec

from umpc.counts.answers import CountsAnswer, Number, Series
from umpc.reporting.json_document import SCHEMA, VERSION, InferenceDocument, ReportDocument
from umpc.study.report import CountedAxis, CountsReport, PartReport, Report


def make_schema() -> str:
    """The text of report.schema.json."""
    _, definitions = msgspec.json.schema_components([ReportDocument], ref_template="#/$defs/{name}")
    for cls in (
        Report,
        PartReport,
        CountedAxis,
        CountsReport,
        CountsAnswer,
        Series,
        Number,
        InferenceDocument,
        ReportDocument,
    ):
        _describe(definitions, cls.__name__, cls)
    root = definitions.pop("ReportDocument")
    root["properties"]["schema"] = {"const": VERSION}
    _describe({"root": root}, "root", Report)
    _describe({"root": root}, "root", ReportDocument)
    _forget_modules(definitions)
    _forget_empty_defaults({"root": root, **definitions})
    for key in ("title", "description"):
        root.pop(key, None)
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:umpc:{VERSION}",
        "title": "A report of umpc",
        "description": "Written by `umpc study run --format json` and `Result.to_dict()`.",
    }
    return json.dumps({**head, **root, "$defs": definitions}, indent=2, ensure_ascii=False) + "\n"


def _describe(definitions: dict[str, Any], name: str, cls: type) -> None:
    """Give each property its description, from the lines "name, name: text" of a docstring."""
    properties = definitions.get(name, {}).get("properties", {})
    for line in re.split(r"\n(?=[a-z_, ]+: )", getdoc(cls) or ""):
        names, colon, text = line.partition(": ")
        for key in names.split(", ") if colon else ():
            if key in properties and "description" not in properties[key]:
                first = " ".join(text.split("\n\n")[0].split())
                properties[key]["description"] = first


def _forget_modules(definitions: dict[str, Any]) -> None:
    """Docstrings of whole types stay; their parameter lists do not repeat."""
    for entry in definitions.values():
        if "description" in entry:
            entry["description"] = " ".join(entry["description"].split("\n\n")[0].split())


def _forget_empty_defaults(definitions: dict[str, Any]) -> None:
    """Versions of msgspec differ in whether they write the default of an empty list or table."""
    for entry in definitions.values():
        for each in entry.get("properties", {}).values():
            if each.get("default") in ([], {}):
                del each["default"]


if __name__ == "__main__":
    SCHEMA.write_text(make_schema(), encoding="utf-8")
