"""The checks of `umpc node doctor` of a table's columns: their names, and how their values read.

A study counts a word as the lower bound of a field of numbers, and its outcome tells nobody. So
this command, which only the site sees, says which columns have such words.

One line of `umpc node doctor`: what a check found, in words and as JSON.

The policy of a node in one line, for `umpc node doctor`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import ParamSpec

from umpc.cli.check_table import compare_fields
from umpc.coordinator.studyfile_entries import FieldEntry
from umpc.coordinator.studyfile_text import field_entry
from umpc.errors import ConfigError, NotNumeric, PolicyRefused, UmpcError, UnknownField
from umpc.node.approvals import REJECTED, Approvals, approvals_beside
from umpc.node.config import NodeConfig
from umpc.node.policy import ANYTHING, KINDS, Policy
from umpc.node.table.survey import MOST_COLUMNS, ColumnKind, TableSurvey
from umpc.protocols.registry import decode_study

Given = ParamSpec("Given")
GOOD, NEUTRAL, RED = "ok", "--", "!!"


@dataclass(frozen=True)
class Finding:
    """The outcome of one check. `error` is what is wrong; a neutral finding decides nothing."""

    check: str
    text: str = ""
    error: UmpcError | None = None
    is_neutral: bool = False

    @property
    def mark(self) -> str:
        """The first word of the line."""
        if self.error is not None:
            return RED
        return NEUTRAL if self.is_neutral else GOOD

    def __str__(self) -> str:
        return f"{self.mark}  {self.check}: {self.words}"

    @property
    def words(self) -> str:
        """The finding in one line. The command is local, so it shows the error's detail, too."""
        if self.error is None:
            return self.text
        detail = f" ({self.error.detail})" if self.error.detail else ""
        return f"{self.error.message}{detail}"

    def as_dict(self) -> dict[str, str | None]:
        """Return the finding for JSON."""
        state = {GOOD: "ok", NEUTRAL: "neutral", RED: "failed"}[self.mark]
        kind = type(self.error).__name__ if self.error else None
        return {"check": self.check, "state": state, "text": self.words, "error": kind}


def neutral(check: str, text: str) -> Finding:
    """Return a finding that is neither good nor wrong."""
    return Finding(check, text, is_neutral=True)


def attempt(
    check: str, part: Callable[Given, Iterable[Finding]], *args: Given.args, **kwargs: Given.kwargs
) -> Iterator[Finding]:
    """Yield the findings of one part. An error ends the part with one red line."""
    try:
        yield from part(*args, **kwargs)
    except UmpcError as error:
        yield Finding(check, error=error)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}. Correct the path, the owner or the mode"
        yield Finding(check, error=ConfigError(reason))


# --- columns --------------------------------------------------------------------------------------


MOST_STUDIES = 20
"""Approved and waiting studies that are compared with the table, the last ones."""
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


def check_columns(config: NodeConfig, survey: TableSurvey) -> Iterator[Finding]:
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
    if unusable := survey.refused:
        listed = _listed([f"{name} ({kind})" for name, kind in unusable.items()])
        yield neutral("columns", f"of types that no study can use: {listed}")
    fine = []
    for name, kind in survey.kinds.items():
        if kind.not_available and not config.source.states_missing:
            yield neutral(
                "missing",
                f"{name!r}: {kind.not_available} value(s) are NA, and such records are left out; "
                'write missing = [""] under [data] if NA is a value',
            )
        if kind.infinite:
            yield Finding("column", error=_infinite(name, kind))
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


def _summary(names: Sequence[str], survey: TableSurvey) -> Iterator[Finding]:
    """Yield one line for the columns of numbers, and one for those of words."""
    numbers = [name for name in names if survey.kinds[name].numbers]
    words = [name for name in names if survey.kinds[name].values and name not in numbers]
    if numbers:
        yield Finding("columns", f"numbers: {_listed(numbers)}")
    if words:
        yield Finding("columns", f"words, which a study uses by its categories: {_listed(words)}")


def _misspelt(name: str, survey: TableSurvey, *, is_open: bool) -> NotNumeric | None:
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


def _infinite(name: str, kind: ColumnKind) -> NotNumeric:
    return NotNumeric(
        f"{name!r}: {kind.infinite} of {kind.values} value(s) are infinite, and count as a field's "
        "bound: correct them, or list their spelling as missing under [data]"
    )


def check_study(config: NodeConfig, name: str, entries: Sequence[FieldEntry]) -> Iterator[Finding]:
    """Compare a study's fields with the table, as `umpc study check --table` does.

    Raises: StudyError, ConfigError, DataError, UnknownField, EmptyTable.
    """
    lines: dict[str, str] = {}
    comparison = compare_fields(entries, config.source)
    try:
        while True:
            field, text = next(comparison)
            lines[field] = text
    except StopIteration as ended:
        misfits = ended.value
    for field, text in lines.items():
        line = f"{name!r}, field {field!r}: {text}"
        if field in misfits:
            error = NotNumeric(f"{line}. Most values do not fit, and the study counts them anyway")
            yield Finding("study", error=error)
        else:
            yield Finding("study", line)


def check_known(config: NodeConfig) -> Iterator[Finding]:
    """Compare the studies that wait for approval, or have it, with the table: the red ones only.

    Studies of another version of the protocol are left out: they can only be replayed.
    """
    path = approvals_beside(config.ledger)
    known = Approvals(path).entries() if path.exists() else []
    for entry in known[-MOST_STUDIES:]:
        if entry.state == REJECTED:
            continue
        try:
            fields = decode_study(entry.document).fields
        except UmpcError:
            continue
        entries = [FieldEntry(**field_entry(each)) for each in fields]
        found = attempt("study", check_study, config, entry.name, entries)
        yield from (finding for finding in found if finding.error is not None)


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


# --- policy ---------------------------------------------------------------------------------------


NEVER_EMPTY = ("coordinators", "fields", *KINDS)
"""The keys whose empty list refuses every study. Dealers and shufflers need not take part."""

IDENTIFYING = re.compile(
    "ids?|pid|patid|patno|uuid|guid|mrn|nhs|ssn|bsn|nir|iban|passport|surname|lastname|firstname|"
    "forename|email|phone|telephone|street"
)
"""Words that tell people apart, wherever they stand in a column's name."""
PEOPLE = re.compile("patient|person|subject|participant|customer|insurance|account|name")
NUMBERED = re.compile("number|no|nr|num|code|key|first|last|full")
"""Words that tell people apart together with one of PEOPLE, and with no other word."""


def check_policy(policy: Policy) -> Iterator[Finding]:
    """Show what the policy allows. A list that refuses every study is an error."""
    empty = [key for key in NEVER_EMPTY if getattr(policy, key) == frozenset()]
    computations = [each for each in (policy.statistics, policy.kernels) if each is not None]
    if computations and not any(computations):
        empty.append("statistics or kernels")
    if empty:
        raise PolicyRefused(
            f"{', '.join(empty)} under [policy] is an empty list, so every study is refused. "
            "Name what you allow, or remove the key"
        )
    finding = neutral if is_open(policy) else Finding
    yield finding("policy", describe_policy(policy))


def is_open(policy: Policy) -> bool:
    """Whether any statistic over any column runs, and no person is asked."""
    computations = (policy.statistics, policy.kernels, policy.fields)
    return not policy.approval and computations == (None, None, None)


def check_people(policy: Policy, columns: Iterable[str]) -> Iterator[Finding]:
    """Name the columns that seem to identify people, and ask for the key `person`."""
    known = {policy.person, *policy.public_filters}
    found = sorted({name for name in columns if looks_like_identifier(name)} - known)
    usable = [name for name in found if policy.fields is None or name in policy.fields]
    if usable:
        named = ", ".join(map(repr, usable))
        yield neutral(
            "identifiers",
            f"{named}: columns of such names identify people, and a study may use them. Name the "
            "other columns as fields under [policy]",
        )
    if not policy.person:
        column = found[0] if found else "patient_id"
        yield neutral(
            "person",
            "none under [policy], so a study protects one record, and not all records of a person. "
            f'If a person may have several rows, write person = "{column}"',
        )


def looks_like_identifier(name: str) -> bool:
    """Whether a column's name says that its values tell people apart."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    words = set(re.split(r"[^a-z]+", spaced.lower())) - {""}
    if any(map(IDENTIFYING.fullmatch, words)):
        return True
    people = {word for word in words if PEOPLE.fullmatch(word)}
    return bool(people) and all(map(NUMBERED.fullmatch, words - people))


def describe_policy(policy: Policy) -> str:
    """Return the rules that restrict studies, and those that hold by default, in one line."""
    rules = [
        f"{field.name} = {_text(getattr(policy, field.name))}"
        for field in fields(policy)
        if getattr(policy, field.name) != getattr(ANYTHING, field.name)
    ]
    allowed = f"allows studies within {'; '.join(rules)}" if rules else "allows every study"
    refused = [
        words
        for words, is_refused in (
            ("raw records for the coordinator", not policy.trusted_curator),
            ("public labels", not policy.public_labels),
            ("conditions on records", not policy.public_filters),
            ("noise that not all other nodes withstand", policy.min_colluding is None),
        )
        if is_refused
    ]
    person = "a person accepts each study" if policy.approval else "no person is asked"
    if is_open(policy):
        person += (
            ". OPEN: every member may ask for every statistic of every column. Write "
            "approval = true under [policy], or name statistics and fields"
        )
    return f"{allowed}; refuses {', '.join(refused) or 'nothing else'}; {person}"


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return f"[{', '.join(sorted(map(str, value)))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
