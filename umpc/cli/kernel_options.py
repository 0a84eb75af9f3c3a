"""Options of `umpc kernels` as kernels, fields and grades. Each raises StudyError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from umpc.study.parts import FieldText
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.schema import FieldSchema
    from umpc.ustat.statistics import Statistic


def grade_of(adversary: str | None) -> str:
    """The grade of promise that was asked for. Raises: StudyError for an unknown one."""
    from umpc.errors import StudyError
    from umpc.study.grades import ADVERSARIES, HONEST

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
    from umpc.ustat.kernel import Kernel
    from umpc.ustat.schema import Schema

    schema = Schema(schema_of(text) for text in fields)
    symmetric = statistic.sampling != "two_sample"
    expressions = statistic.expressions(columns, parameters)
    return [Kernel(expression, schema, statistic.degree, symmetric) for expression in expressions]


def schema_of(text: str) -> FieldSchema:
    """A field as the option --field gives it. Raises: StudyError for another form."""
    return field_of(text).schema()


def field_of(text: str) -> FieldText:
    """A field from NAME=LOWER:UPPER[:RESOLUTION] or NAME=FIRST,SECOND,…. Raises: StudyError."""
    from umpc.errors import StudyError
    from umpc.study.parts import FieldText

    name, _, rest = text.partition("=")
    parts = rest.split(":")
    if name and len(parts) == 1 and "," in rest:
        return FieldText.of_categories(name, rest.split(","))
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
    from umpc.errors import StudyError
    from umpc.study.parts import FieldText

    name, _, rest = text.partition("=")
    classes = rest.split(",")
    if not name or len(classes) != 2:
        raise StudyError(f"--label takes NAME=FIRST,SECOND, got {text!r}")
    return FieldText.of_categories(name, classes, public=True)
