"""What has been measured, line by line in a file, so that an interrupted run goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.figures.figure import Measured, Point

THEORY = -1
"""The number under which a point's prediction is kept, beside its batches 0, 1, …"""


class Store:
    """The batches of one figure.

    Args: version: of the code that measures. any_version: what other code measured counts as well.
    """

    def __init__(self, path: Path, version: str, any_version: bool = False):
        self.path, self.version, self._any_version = path, version, any_version
        self._found: dict[str, Mapping[str, Any]] = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        self._torn = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            self._read(line)

    def _read(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # a line that was being written when the run was stopped
            return
        if self._any_version or entry["version"] == self.version:
            self._found[entry["key"]] = entry

    def get(self, figure: str, point: Point, number: int) -> Mapping[str, Any] | None:
        """`measured`, `seconds`, `version` and `date` of a batch, if there."""
        return self._found.get(key_of(figure, point, number))

    def put(
        self, figure: str, point: Point, number: int, measured: Measured, seconds: float, date: str
    ) -> None:
        key = key_of(figure, point, number)
        entry = {
            "key": key,
            "version": self.version,
            "measured": measured,
            "seconds": seconds,
            "date": date,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" * self._torn + json.dumps(entry) + "\n")
        self._torn = False
        self._found[key] = entry


def key_of(figure: str, point: Point, number: int) -> str:
    """A batch's identity, hence its seed: figure, point, number. How many batches there are is no part of it."""
    return json.dumps([figure, point.series, point.x, dict(point.facts), number], sort_keys=True)
