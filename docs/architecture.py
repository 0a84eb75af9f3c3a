"""Draw docs/architecture.svg: the processes of a study, what each sees, and the rooms of the code.

`make architecture` runs this file. It needs nothing but Python. A text that does not fit into its
box is an error, so the picture cannot silently become unreadable.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

WIDTH, HEIGHT = 1040, 1108
TITLE, TEXT, SMALL = 17, 14, 13
CHARACTER = 0.53
"""Width of an average character of a sans-serif font, in units of its size."""

NODE, HELPER, LEAD, ROOM = "#dcebf7", "#f6e7cf", "#dff0dc", "#f4f4f4"
INK, LINE, QUIET = "#1b1f24", "#5b6770", "#48525a"


def text(
    x: float,
    y: float,
    words: str,
    size: int = TEXT,
    bold: bool = False,
    anchor: str = "middle",
    colour: str = INK,
) -> str:
    """One line of text whose baseline is at y."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{colour}"{weight}>{escape(words)}</text>'
    )


def box(x: int, y: int, width: int, height: int, colour: str, title: str, *lines: str) -> str:
    """A rounded box with a title and lines of text in its middle. Raises: ValueError."""
    for words, size in ((title, TITLE), *((line, TEXT) for line in lines)):
        if len(words) * size * CHARACTER > width - 8:
            raise ValueError(f"{words!r} does not fit into a box of width {width}")
    height_of_text = TITLE + 20 * len(lines)
    if height_of_text > height - 8:
        raise ValueError(f"the {len(lines)} lines of {title!r} do not fit into height {height}")
    top = y + (height - height_of_text) / 2 + TITLE - 3
    drawn = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" '
        f'fill="{colour}" stroke="{LINE}"/>',
        text(x + width / 2, top, title, TITLE, bold=True),
    ]
    for place, line in enumerate(lines, start=1):
        drawn.append(text(x + width / 2, top + 20 * place, line))
    return "\n".join(drawn)


def arrow(x1: int, y1: int, x2: int, y2: int, both: bool = False) -> str:
    """An arrow from the first point to the second, with a head at both ends if asked for."""
    start = ' marker-start="url(#head)"' if both else ""
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{LINE}" stroke-width="1.6" '
        f'marker-end="url(#head)"{start}/>'
    )


def processes() -> list[str]:
    """The upper half: who sends what to whom, and what each process sees."""
    drawn = [text(30, 38, "Processes: who sends what, and who sees what", 20, True, "start")]
    drawn.append(
        box(
            340,
            62,
            360,
            92,
            HELPER,
            "dealer (optional)",
            "sees the study, the record counts and E",
            "never receives anything about data",
        )
    )
    for x, site in ((30, "north"), (375, "south"), (720, "west")):
        drawn.append(
            box(
                x,
                246,
                290,
                118,
                NODE,
                f"node {site}",
                "holds its own table, policy, ledger",
                "pairs of its own records in the clear",
                "sees masked values of other nodes",
            )
        )
    drawn.append(
        box(
            340,
            462,
            360,
            92,
            LEAD,
            "coordinator",
            "sees uniform shares and their noisy sum",
            "sees the numbers of complete records",
        )
    )
    drawn += [
        arrow(400, 154, 200, 246),
        arrow(520, 154, 520, 246),
        arrow(640, 154, 840, 246),
        arrow(320, 320, 375, 320, both=True),
        arrow(665, 320, 720, 320, both=True),
        arrow(200, 364, 400, 462, both=True),
        arrow(520, 364, 520, 462, both=True),
        arrow(840, 364, 640, 462, both=True),
    ]
    drawn += [
        text(762, 178, "before the data: seeds,", SMALL, anchor="start", colour=QUIET),
        text(762, 196, "comparison keys, shares of masks", SMALL, anchor="start", colour=QUIET),
        text(278, 178, "nothing that depends on", SMALL, anchor="end", colour=QUIET),
        text(278, 196, "data goes to the dealer", SMALL, anchor="end", colour=QUIET),
        text(347, 306, "masked", SMALL, colour=QUIET),
        text(692, 306, "masked", SMALL, colour=QUIET),
        text(347, 342, "values", SMALL, colour=QUIET),
        text(692, 342, "values", SMALL, colour=QUIET),
        text(275, 420, "down: the study, openings,", SMALL, anchor="end", colour=QUIET),
        text(275, 438, "the steps of the study", SMALL, anchor="end", colour=QUIET),
        text(765, 420, "up: a noisy share of the sum,", SMALL, anchor="start", colour=QUIET),
        text(765, 438, "after ε is charged on disk", SMALL, anchor="start", colour=QUIET),
    ]
    drawn += [
        text(
            30,
            592,
            "All links are mutual TLS 1.3. Without a dealer, two nodes evaluate their "
            "pairs by garbled circuits.",
            TEXT,
            anchor="start",
            colour=QUIET,
        ),
        text(
            30,
            614,
            "ghazi-shuffle adds two shufflers, which see uniform numbers. "
            "central shows the coordinator all records.",
            TEXT,
            anchor="start",
            colour=QUIET,
        ),
    ]
    return drawn


ROWS: tuple[tuple[str, str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "the command",
        "what people type",
        LEAD,
        (
            ("cli", "umpc demo, study, plan, ..."),
            ("planning", "errors and seconds, predicted"),
        ),
    ),
    (
        "processes",
        "gRPC lives here",
        NODE,
        (
            ("node", "attempts, budget"),
            ("coordinator", "leads a study"),
            ("dealer", "deals material"),
            ("shuffler", "mixes messages"),
        ),
    ),
    (
        "the wire",
        "bytes and TLS",
        ROOM,
        (
            ("transport", "gRPC over mutual TLS, certificates"),
            ("proto", "bytes to dataclasses and back"),
        ),
    ),
    (
        "protocols",
        "one object each",
        HELPER,
        (
            ("registry", "every protocol by its name"),
            ("base", "the object, and both sides of a study"),
        ),
    ),
    (
        "their folders",
        "no network, no clock",
        HELPER,
        (
            ("u_mpc, grid", "one noisy sum"),
            ("bell_2pc", "noisy pairs"),
            ("local, ghazi_*", "answers, counts"),
            ("gopa", "noisy sums"),
            ("central", "a baseline"),
        ),
    ),
    (
        "agreement",
        "what all must share",
        ROOM,
        (("study", "the document with its settings, its sizes, its messages, its report"),),
    ),
    (
        "mathematics",
        "randomness is given",
        ROOM,
        (
            ("ustat", "the statistic"),
            ("mpc", "values under shares"),
            ("dp", "exact noise"),
            ("crypto", "streams, shares"),
        ),
    ),
)
"""Rows of rooms: name, what holds for the row, colour, and folder with what it is."""


def rooms() -> list[str]:
    """The lower half: the folders of umpc, with what holds for each row of them."""
    drawn = [text(30, 668, "Rooms of the code: the folders of umpc", 20, True, "start")]
    for row, (name, rule, colour, folders) in enumerate(ROWS):
        y = 686 + 58 * row
        drawn.append(text(30, y + 22, name, TITLE, True, "start"))
        drawn.append(text(30, y + 40, rule, SMALL, anchor="start", colour=QUIET))
        width = (830 - 10 * (len(folders) - 1)) // len(folders)
        for place, (folder, what) in enumerate(folders):
            drawn.append(box(180 + place * (width + 10), y, width, 50, colour, folder, what))
    return drawn


def picture() -> str:
    """The whole picture as SVG text."""
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
        f'markerHeight="8" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{LINE}"/>'
        "</marker></defs>"
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif">',
        "<title>umpc: processes of a study, and rooms of the code</title>",
        head,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *processes(),
        *rooms(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(picture(), encoding="utf-8")
