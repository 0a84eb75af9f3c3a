"""The checks of `umpc node doctor` of a table's columns: their names, and how their values read.

A study counts a word as the lower bound of a field of numbers, and its outcome tells nobody. So
this command, which only the site sees, says which columns have such words.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from umpc.cli.doctor_finding import Finding, neutral
from umpc.errors import NotNumeric, UnknownField
from umpc.node.config import NodeConfig
from umpc.node.table.survey import MOST_COLUMNS, Survey

LISTED = 20
"""Names of columns on one line."""
OPEN = "[policy] names no fields, so a study may use every column"


def fields_of(config: NodeConfig) -> list[str] | None:
    """Return the columns that the policy names; None for all columns of a file.

    A database has types for its columns, and all of a wide view would have to be fetched.
    """
    policy = config.policy
    if _is_open(config):
        return None
    return sorted(policy.public_labels | policy.public_filters | (policy.fields or frozenset()))


def _is_open(config: NodeConfig) -> bool:
    """Return whether a study may use every column of a file."""
    return config.policy.fields is None and config.source.sql is None


def check_columns(config: NodeConfig, survey: Survey) -> Iterator[Finding]:
    """Yield a finding for each column that the policy names, or for all columns of a file."""
    policy = config.policy
    named = policy.public_labels | policy.public_filters | (policy.fields or frozenset())
    for name in sorted(named - set(survey.columns)):
        yield Finding("column", error=_no_column(name, survey.columns))
    is_open = _is_open(config)
    if is_open:
        yield neutral("columns", f"{OPEN}{_left_out(survey.columns)}")
    elif not named:
        yield neutral("columns", f"{OPEN}; name fields, and this command looks at their values")
    fine = []
    for name in survey.kinds:
        if error := _misspelt(name, survey, is_open=is_open):
            yield Finding("column", error=error)
            continue
        fine.append(name)
        if name in named:
            yield Finding("column", f"{name!r}: {survey.kinds[name]}")
    if is_open:
        yield from _summary([name for name in fine if name not in named], survey)


def _left_out(columns: Sequence[str]) -> str:
    """Say which columns no study can use, and how many are looked at."""
    told = ""
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        told += f", except those whose name is there twice: {_listed(twice)}"
    if len(set(columns)) - len(twice) > MOST_COLUMNS:
        told += f"; the first {MOST_COLUMNS} are looked at, or those in fields if you name some"
    return told


def _summary(names: Sequence[str], survey: Survey) -> Iterator[Finding]:
    """Yield one line for the columns of numbers, and one for those of words."""
    numbers = [name for name in names if survey.kinds[name].numbers]
    words = [name for name in names if survey.kinds[name].values and name not in numbers]
    if numbers:
        yield Finding("columns", f"numbers: {_listed(numbers)}")
    if words:
        yield Finding("columns", f"words, which a study uses by its categories: {_listed(words)}")


def _misspelt(name: str, survey: Survey, *, is_open: bool) -> NotNumeric | None:
    """Return an error where a column is mostly numbers, and has words beside them."""
    spelling = survey.spelling(name)
    if not spelling.words or not spelling.is_of_numbers:
        return None
    parts = "; ".join(spelling.advice())
    other = ". Or name other columns as fields under [policy]" if is_open else ""
    return NotNumeric(
        f"{name!r}: {sum(spelling.words.values())} of {survey.kinds[name].values} value(s) are no "
        f"numbers as they are written, and count as a field's lower bound: {parts}{other}"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(repr, names[:LISTED])) + more


def _no_column(name: str, columns: list[str]) -> UnknownField:
    close = difflib.get_close_matches(name, columns, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return UnknownField(
        f"[policy] names the field {name!r}, and the table has no such column{hint} "
        "Correct the policy, or rename the column"
    )
