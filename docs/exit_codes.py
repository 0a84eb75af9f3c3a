"""Write docs/exit_codes.md: every failure of umpc/errors.py, with its exit code and its meaning.

`make settings` runs this file. The meanings are those of the tree in the docstring of
`umpc.errors`, so each failure is described in one place.
"""

from __future__ import annotations

import re
from pathlib import Path

from umpc import errors
from umpc.cli.main import INTERRUPTED

PAGE = Path(__file__).with_suffix(".md")
HEAD, LINE = "| code | failure | meaning |\n|---|---|---|\n", re.compile(r"(\w+)\s{2,}(\S.*)$")
OTHERS = {
    0: ("", "the command succeeded"),
    2: (
        "",
        "an option is missing, unknown or misspelt, or a file's name is a folder; see `--help`",
    ),
    INTERRUPTED: ("", "Ctrl-C"),
}
"""Codes that no class of an error has."""


def meanings() -> dict[str, str]:
    """Return class → meaning, as the tree in the docstring of `umpc.errors` has them."""
    tree = (errors.__doc__ or "").partition("A message says")[0]
    found = (LINE.search(line) for line in tree.splitlines())
    return {match[1]: match[2] for match in found if match}


def table() -> str:
    """Return the table: a row for each exit code, in their order. Raises: KeyError."""
    described = meanings() | {errors.UmpcError.__name__: "any other failure"}
    rows = dict(OTHERS)
    for name, cls in errors.error_classes().items():
        if cls.exit_code in rows:
            raise ValueError(f"{name} and {rows[cls.exit_code][0]} have one exit code")
        rows[cls.exit_code] = (f"`{name}`", described[name])
    lines = (f"| {code} | {name} | {meaning} |\n" for code, (name, meaning) in sorted(rows.items()))
    return HEAD + "".join(lines)


def written(page: str) -> str:
    """Return the page with its table renewed."""
    before, _, rest = page.partition(HEAD)
    after = rest[rest.index("\n\n") + 1 :] if "\n\n" in rest else ""
    return before + table() + after


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
