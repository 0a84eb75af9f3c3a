"""The finished batches, line by line in a file, so that an interrupted run can continue."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reproduction.figures.figure import Measured, Point

THEORY = -1
"""The number of a point's prediction. Its batches have the numbers 0, 1, …"""


class Store:
    """The batches of one figure.

    Args:
        version: the version of the code that measures now.
        data: the digest of the table that is measured, which is part of every batch's key.
        any_version: also use batches that another version measured.
    """

    def __init__(self, path: Path, version: str, any_version: bool = False, data: str = ""):
        self.path, self.version, self.data = path, version, data
        self._any_version = any_version
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
        """A batch's `measured`, `seconds`, `version` and `date`; None if it is not stored."""
        return self._found.get(self._key(figure, point, number))

    def _key(self, figure: str, point: Point, number: int) -> str:
        return json.dumps([self.data, key_of(figure, point, number)])

    def put(
        self, figure: str, point: Point, number: int, measured: Measured, seconds: float, date: str
    ) -> None:
        key = self._key(figure, point, number)
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
    """A batch's identity: figure, point, number. Its seed follows from this text.

    The number of batches is no part of it, nor is the table: another table takes the same seeds.
    """
    return json.dumps([figure, point.series, point.x, dict(point.facts), number], sort_keys=True)
