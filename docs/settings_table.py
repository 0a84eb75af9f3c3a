"""Write the tables of a study file's keys into docs/study.md, from the code that reads the file.

`make settings` runs this file. A test compares docs/study.md with what it writes, so a setting that
is added, renamed or removed cannot be forgotten there.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from umpc.protocols.registry import PROTOCOLS
from umpc.study.settings import keys_of

PAGE = Path(__file__).with_name("study.md")
START = "<!-- from here on written by `make settings` -->\n"
END = "<!-- up to here written by `make settings` -->\n"

REQUIRED = "required"
COMMON = {
    "name": ("the study's name; a new name is a new study, with new noise and a new charge", ""),
    "statistic": ("a statistic of the library, with `columns`", "this or `kernel`"),
    "columns": ("the fields that take the places of the statistic's arguments", "with `statistic`"),
    "parameters": ("a table: numbers that the statistic takes, such as `cells = 10`", "none"),
    "kernel": ("a function of your own, as `file.py:function`", "this or `statistic`"),
    "estimator": ("with `kernel`: what is computed from the released means", "`mean`"),
    "sampling": (
        "how E is taken: `balanced`; `uniform` or `bernoulli` without regard to how many sets a "
        "record is in (`u-mpc` only); with `kernel` also `two_sample` over two classes",
        "`balanced`",
    ),
    "epsilon": ('ε of the whole study: a number, or text such as `"1/3"`', ""),
    "split": ('each sum\'s part of ε, such as `["1/2", "1/2"]`', "equal parts"),
    "variance": (
        "for a population's interval: `largest`, or `private`, a second sum with a part of ε",
        "`largest`",
    ),
    "variance_share": ('with `variance = "private"`: its part of ε', "1/5"),
    "max_colluding": ("the number of nodes that may collude", "all nodes but one"),
    "adversary": (
        "the grade of the promise: `honest`, or `lying_nodes` (see privacy.md)",
        "`honest`",
    ),
    "may_miss": (
        "how many nodes may be lost before the release; the study ends with the others",
        "none",
    ),
    "required": ("with `may_miss`: names of nodes that may not be missing", "no node"),
    "where": ("a condition on records, such as `age >= 40 and sex = 'f'`", "all records"),
    "statistics": (
        "`[[statistics]]`: several statistics over the same sets, each with `statistic`, `columns` "
        "and `parameters`, in place of these keys",
        "one statistic",
    ),
    "weight": (
        "a field of numbers of 0 and more: pairs count by the product of their records' weights",
        "all alike",
    ),
    "strata": ("a field with categories: the statistic inside each of them", "no strata"),
    "person": ("the column that tells people apart; all records of one are protected", "none"),
    "records_per_person": (
        "with `person`: the most records of one person at a site",
        "required then",
    ),
    "dataset": (
        "the data set of sites that have several: a name, or a table of a name for each node",
        "each site's only one",
    ),
    "records": ('about how many records there are in all, for `backend = "auto"`', "10,000"),
    "seconds_per_step": ("the time limit of each step", "600"),
    "identity": ("the coordinator's folder with `ca.pem`, `cert.pem` and `key.pem`", ""),
    "nodes": ("`[[nodes]]`: each node's `name` and `address`", ""),
    "fields": ("`[[fields]]`: see the next table", ""),
    "protocol": (
        "the protocol; the keys of each are in the last table",
        "`u-mpc`, or `grid` where `auto` takes it",
    ),
}
"""The keys of every study: meaning, and default; empty if a file must have the key."""

FIELD = {
    "name": ("the name of the column in every site's table", ""),
    "lower": ("the least value; with `upper`, in place of `categories`", "these or `categories`"),
    "upper": ("the largest value", "these or `categories`"),
    "resolution": ('the step of the values, such as `"0.01"`', "this or `whole`, with bounds"),
    "whole": ("`true` if the values are whole numbers", "this or `resolution`"),
    "categories": ("a list of labels without an order, in place of bounds", "this or bounds"),
    "public": ("`true` if everybody may know this label", "`false`"),
}

NODES, EPSILON = 4, "1"
"""A study whose usual settings the table shows."""


def common_table() -> str:
    return _table(("key", "meaning", "default"), _rows(COMMON))


def field_table() -> str:
    return _table(("key", "meaning", "default"), _rows(FIELD))


def _rows(keys: dict[str, tuple[str, str]]) -> list[tuple[str, ...]]:
    return [(f"`{key}`", text, default or REQUIRED) for key, (text, default) in keys.items()]


def settings_table() -> str:
    """One row for each setting; protocols that have the same one share a row."""
    users: dict[tuple[str, ...], list[str]] = {}
    for protocol in PROTOCOLS.values():
        usual = protocol.read_settings({}, NODES, EPSILON)
        for key, described in keys_of(protocol.settings).items():
            choices = (described.extra or {}).get("choices", ())
            row = (
                f"`{key}`",
                described.description or "",
                _shown(getattr(usual, key)),
                ", ".join(f"`{choice}`" for choice in choices),
            )
            users.setdefault(row, []).append(f"`{protocol.name}`")
    rows = [(", ".join(names), *row) for row, names in users.items()]
    return _table(("protocol", "key", "meaning", "default", "choices"), rows)


def _shown(value: object) -> str:
    """A default value, as a file would write it without quotes; a dash for none."""
    is_shown = value not in ("", (), None, msgspec.UNSET) and not isinstance(value, msgspec.Struct)
    return f"`{value}`" if is_shown else "–"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def written(page: str) -> str:
    """The page with its tables written again. Raises: ValueError if the page has no place."""
    before, start, rest = page.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{PAGE.name} has no lines {START.strip()} and {END.strip()}")
    tables = (
        f"### The keys of every study\n\n{common_table()}\n"
        f"### The keys of a field\n\n{field_table()}\n"
        f"### The settings of each protocol\n\n{settings_table()}"
    )
    return f"{before}{start}\n{tables}\n{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
