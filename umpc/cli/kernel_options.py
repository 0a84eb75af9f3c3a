"""Options of `umpc kernels` as kernels, fields and grades. Each raises StudyError."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from umpc.errors import StudyError
from umpc.study.parts import FieldText
from umpc.study.settings import ADVERSARIES, HONEST
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import Statistic

QUOTED = r'\s*"(?:[^"]|"")*"\s*'
"""A text in double quotes, in which "" stands for one."""


def listed(text: str) -> list[str]:
    """The items of a list with commas. One in double quotes may hold commas."""
    items = re.findall(rf"(?:^|,)({QUOTED}(?=,|$)|[^,]*)", text)
    return [unquoted(item) for item in items]


def named(text: str) -> tuple[str, str] | None:
    """The name of NAME=REST, without quotes, and the rest as written; None for another form."""
    found = re.fullmatch(rf"({QUOTED}|[^=]+)=(.+)", text, re.DOTALL)
    return (unquoted(found[1]), found[2]) if found else None


def has_colon(text: str) -> bool:
    """Whether a colon stands outside quotes, as between two bounds."""
    return ":" in re.sub(QUOTED, "", text)


def unquoted(text: str) -> str:
    """A text without blanks around it, and without its quotes."""
    text = text.strip()
    return text[1:-1].replace('""', '"') if re.fullmatch(QUOTED, text) else text


def grade_of(adversary: str | None) -> str:
    """The grade of promise that was asked for. Raises: StudyError for an unknown one."""

    if adversary is not None and adversary not in ADVERSARIES:
        raise StudyError(f"--adversary takes {' or '.join(ADVERSARIES)}, got {adversary!r}")
    return adversary or HONEST


def library_kernels(
    statistic: Statistic,
    columns: Sequence[str],
    parameters: Mapping[str, str],
    fields: Iterable[str],
) -> list[Kernel]:
    """A library statistic's kernels over fields as `--field` takes them."""

    schema = Schema(schema_of(text) for text in fields)
    symmetric = statistic.sampling != "two_sample"
    expressions = statistic.expressions(columns, parameters)
    return [Kernel(expression, schema, statistic.degree, symmetric) for expression in expressions]


def schema_of(text: str) -> FieldSchema:
    """A field as the option --field gives it. Raises: StudyError for another form."""
    return field_of(text).schema()


def field_of(text: str) -> FieldText:
    """A field from NAME=LOWER:UPPER[:RESOLUTION] or NAME=FIRST,SECOND,…. Raises: StudyError."""

    name, rest = named(text) or ("", "")
    parts = rest.split(":")
    if name and not has_colon(rest) and "," in rest:
        return FieldText.of_categories(name, listed(rest))
    if not name or len(parts) not in (2, 3):
        raise StudyError(
            f"--field takes NAME=LOWER:UPPER, NAME=LOWER:UPPER:RESOLUTION or "
            f"NAME=FIRST,SECOND,..., got {text!r}"
        )
    lower, upper = parts[:2]
    if len(parts) == 2:
        return FieldText(name, lower, upper, whole=True)
    return FieldText(name, lower, upper, parts[2])


def label_of(text: str) -> FieldText:
    """The public label from NAME=FIRST,SECOND. Raises: StudyError."""

    name, rest = named(text) or ("", "")
    classes = listed(rest)
    if not name or len(classes) != 2:
        raise StudyError(f"--label takes NAME=FIRST,SECOND, got {text!r}")
    return FieldText.of_categories(name, classes, public=True)
