"""Draw docs/threats.svg: the parties of a study, the borders of trust, and where each threat is.

`make architecture` runs this file. The numbers are those of the table in docs/threats.md. The
shapes are those of docs/architecture.py, so a text that does not fit into its box is an error.
"""

from __future__ import annotations

import runpy
from pathlib import Path

SHAPES = runpy.run_path(str(Path(__file__).with_name("architecture.py")))
text, box, arrow = SHAPES["text"], SHAPES["box"], SHAPES["arrow"]
NODE, HELPER, LEAD, ROOM = (SHAPES[name] for name in ("NODE", "HELPER", "LEAD", "ROOM"))
QUIET, LINE = SHAPES["QUIET"], SHAPES["LINE"]
WIDTH, HEIGHT = 1040, 640
ALARM = "#b3261e"

PARTIES: tuple[tuple[int, int, int, int, str, str, tuple[str, ...]], ...] = (
    (60, 110, 250, 74, ROOM, "table", ("records of the site",)),
    (60, 240, 250, 100, NODE, "node", ("checks policy, draws noise,", "charges ε, then sends")),
    (60, 400, 250, 100, ROOM, "ledger, audit trail", ("what was spent and asked,", "chained rows")),
    (60, 552, 250, 58, ROOM, "administrator", ("writes [policy], accepts",)),
    (440, 240, 190, 100, ROOM, "network, hub", ("moves TLS or", "sealed records")),
    (760, 84, 250, 80, ROOM, "authority", ("who has which name", "and role")),
    (760, 204, 250, 80, HELPER, "dealer", ("deals random numbers,", "sees no data")),
    (760, 324, 250, 80, NODE, "nodes of other sites", ("their own tables,", "masked values")),
    (760, 444, 250, 80, LEAD, "coordinator", ("the study, final shares,", "the noisy result")),
    (760, 552, 250, 58, ROOM, "reader of a report", ("sees the released numbers",)),
)
"""Boxes: x, y, width, height, colour, title, lines."""

ARROWS = (
    (185, 184, 185, 240),
    (185, 340, 185, 400),
    (185, 552, 185, 500),
    (310, 290, 440, 290),
    (630, 275, 760, 244),
    (630, 290, 760, 364),
    (630, 305, 760, 484),
    (885, 524, 885, 552),
)
BOTH_WAYS = ARROWS[3:7]

THREATS = {
    "T1": (1010, 444),
    "T2": (1010, 324),
    "T3": (1010, 204),
    "T4": (535, 240),
    "T5": (1010, 84),
    "T6": (310, 400),
    "T7": (310, 552),
    "T8": (1010, 552),
    "T9": (310, 240),
    "T10": (310, 110),
}
"""Threat → where its mark is. docs/threats.md has a row for each."""


def border(x: int, y: int, width: int, height: int, words: str) -> str:
    """A dashed border of trust, with its meaning above it."""
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="10" fill="none" '
        f'stroke="{ALARM}" stroke-width="1.6" stroke-dasharray="7 5"/>\n'
        + text(x + 10, y + 20, words, 13, anchor="start", colour=ALARM)
    )


def mark(name: str, x: int, y: int) -> str:
    """The number of a threat, in a circle."""
    return f'<circle cx="{x}" cy="{y}" r="16" fill="white" stroke="{ALARM}"/>\n' + text(
        x, y + 4, name, 12, True, colour=ALARM
    )


def picture() -> str:
    """The whole picture as SVG text."""
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
        f'markerHeight="8" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{LINE}"/>'
        "</marker></defs>"
    )
    parties = [box(*place, title, *lines) for *place, title, lines in PARTIES]
    arrows = [arrow(*ends, both=ends in BOTH_WAYS) for ends in ARROWS]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">',
        "<title>umpc: parties, borders of trust, and threats</title>",
        head,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(30, 34, "Parties, borders of trust, and threats", 20, True, "start"),
        border(30, 66, 330, 564, "one site: it trusts itself only"),
        border(410, 196, 250, 170, "trusted for nothing"),
        border(730, 50, 305, 484, "each is another organisation"),
        *arrows,
        *parties,
        *(mark(name, *place) for name, place in THREATS.items()),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8")
