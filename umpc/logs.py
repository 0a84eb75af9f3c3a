"""The log of a process: one line for each record, with date, level, process, study and step.

    2026-03-01T09:30:00.125Z INFO node north study=3f2a9c0d1e2b4f56 step=release: the message
    {"at": "2026-03-01T09:30:00.125Z", "level": "INFO", "process": "node north", "study": …}

Times are in UTC, as ISO 8601 writes them. `study` is the beginning of the study's hash. It is "-"
in a line of text, and null in JSON, where a line belongs to no study.

*No value of data.* An exception's own text may hold a value of the table ("could not convert
'53.2' to float"), because libraries write it. A line therefore names the exception's class and the
places in the code, and gives its text only where umpc wrote it, in an `UmpcError`. Lines of
other libraries, such as gRPC, have neither: only their first line and the class.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

from umpc.errors import UmpcError

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")
DIGITS = 16
"""Hexadecimal digits of a study's hash in a line."""
OWN = "umpc"
MOST_CHARACTERS = 4000
"""Longest message. A longer one is cut, so that no peer fills a line at will."""
Place = tuple[str, str]
"""The digits of a study's hash, and a step. Either is "" if there is none."""

_place: ContextVar[Callable[[], Place]] = ContextVar("place")
_process: ContextVar[str] = ContextVar("process", default="")


@contextlib.contextmanager
def about(place: Callable[[], Place], process: str = "") -> Iterator[None]:
    """Let all lines of this task, and of threads and tasks that it starts, name a study and step.

    Args:
        place: asked at each line, because a study's step changes.
        process: the role and name that the lines have, where one process runs many nodes.
    """
    token = _place.set(place)
    former = _process.set(process or _process.get())
    try:
        yield
    finally:
        _process.reset(former)
        _place.reset(token)


def belongs(study_hash: bytes, step: str) -> dict[str, str]:
    """Return the `extra` of one line that belongs to a study and a step."""
    return {"study": study_hash.hex()[:DIGITS], "step": step}


def start_logging(
    process: str, level: str = "info", style: str = "text", stream: TextIO | None = None
) -> None:
    """Write the log of this process to standard error.

    Args:
        process: its role and name.
        level: one of LEVELS, for umpc's own lines. Other libraries write warnings and errors only.
        style: one of FORMATS.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(process, style))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(OWN).setLevel(level.upper())
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)


class Lines(logging.Formatter):
    """One line for each record. Args: style: one of FORMATS; "json" is for programs."""

    def __init__(self, process: str, style: str):
        super().__init__()
        self.process = process
        self.is_json = style == "json"

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, or as one JSON object in one line."""
        study, step = place_of(record)
        at, process = time_of(record), _process.get() or self.process
        message, fault = message_of(record), fault_of(record)
        if not self.is_json:
            place = f"study={study or '-'} step={step or '-'}"
            name, places = fault or ("", [])
            tail = f" [{name}{' at ' if places else ''}{', '.join(places)}]" if fault else ""
            return f"{at} {record.levelname} {process} {place}: {message}{tail}"
        entry: dict[str, object] = {
            "at": at,
            "level": record.levelname,
            "process": process,
            "study": study or None,
            "step": step or None,
            "message": message,
        }
        if fault:
            entry["fault"], entry["places"] = fault
        return json.dumps(entry, ensure_ascii=False)


def time_of(record: logging.LogRecord) -> str:
    """Return the record's time in UTC, with milliseconds."""
    at = datetime.fromtimestamp(record.created, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def place_of(record: logging.LogRecord) -> Place:
    """Return the study and the step of a record: its own, else those of its task."""
    study: str | None = getattr(record, "study", None)
    if study is not None:
        return study, getattr(record, "step", "")
    place = _place.get(None)
    return place() if place else ("", "")


def message_of(record: logging.LogRecord) -> str:
    """Return the message as one printable line; of other libraries its first line only."""
    text = record.getMessage()
    if not is_own(record):
        text = f"{record.name}: {text.partition(chr(10))[0]}"
    shown = text[:MOST_CHARACTERS]
    if not shown.isprintable():
        shown = "".join(each if each.isprintable() else " " for each in shown)
    return shown if len(text) <= MOST_CHARACTERS else f"{shown}…"


def fault_of(record: logging.LogRecord) -> tuple[str, list[str]] | None:
    """Return the exception's class, with its text if umpc wrote that, and its places in the code.

    None if the record has no exception. Other libraries' exceptions have no places.
    """
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return None
    name = type(error).__name__
    if isinstance(error, UmpcError):
        name = f"{name}: {error.message}"
    if not is_own(record):
        return name, []
    frames = traceback.extract_tb(error.__traceback__)
    return name, [f"{each.filename}:{each.lineno} {each.name}" for each in frames]


def is_own(record: logging.LogRecord) -> bool:
    """Return whether umpc itself wrote the record."""
    return record.name == OWN or record.name.startswith(f"{OWN}.")
