"""A report as Markdown, for papers and for issue trackers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from umpc.reporting.rows import (
    FOLDED,
    HEADING,
    PICTURE,
    TITLE,
    VALUE,
    blocks_of,
)
from umpc.reporting.words import printable
from umpc.study.report import Report

SPECIAL = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|#~"})
FORMS = {TITLE: "# {}", HEADING: "## {}", VALUE: "**{}**"}
"""Kind of a block → how its text is written; others are paragraphs."""


def markdown(report: Report) -> str:
    """The report: the estimate first, then the promises, the protocol and the cost."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    for kind, content in blocks_of(report):
        if kind == FOLDED:
            yield from _table(*content)
        elif kind != PICTURE:
            yield FORMS.get(kind, "{}").format(_plain(content))
            yield ""


def _table(title: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "| | | |"
    yield "|---|---|---|"
    for row in rows:
        yield f"| {' | '.join(map(_plain, row))} |"
    yield ""


def _plain(text: Any) -> str:
    """Text without meaning in Markdown, on one line."""
    return " ".join(printable(text).split()).translate(SPECIAL)
