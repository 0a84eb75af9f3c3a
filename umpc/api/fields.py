"""Fields from bounds as people write them in Python, and columns in steps of their resolution.

| bounds | field |
|---|---|
| `(0, 127)`, both whole, and the frames' values are whole | whole numbers |
| `(0, 127)` with other frames | numbers, in at least 2^20 steps of a power of ten |
| `(0, 127)` without frames | refused: nobody knows whether the values are whole |
| `(0, 127, 1)`, `(0, 300, "0.1")` | numbers in steps of 1, of 0.1 |
| `["case", "control"]`, `[False, True]` | categories |

Bounds are public knowledge: they follow from what a column means, and never from its values.

A field from a column's own values: its bounds and resolution, or its categories.

Only the owner of a table may do so. In a real study bounds and resolutions are public knowledge.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from umpc.errors import DataError, NotNumeric, StudyError
from umpc.node.records import Records, load_records
from umpc.node.table.batch import ReadColumn
from umpc.node.table.conversions import PLAIN, NumberFormat, normal, typed
from umpc.node.table.resolution import Resolution, find_resolution
from umpc.node.table.source import MISSING_MARKS, OwnersTable, TableSource
from umpc.node.table.units import Misfit, to_units
from umpc.study.parts import FieldText, Person
from umpc.ustat.condition import Condition
from umpc.ustat.schema import FieldSchema, check_words

MOST_CATEGORIES = 4096
"""A column of text with more different values is refused."""


@dataclass(frozen=True)
class DescribedColumn:
    """A field, and the resolution that was found for it; None where none was looked for."""

    field: FieldText
    resolution: Resolution | None
    is_given: bool = False
    """Whether its bounds or categories were given, and not taken from the table."""

    def __str__(self) -> str:
        """One line for the table's owner."""
        if self.is_given:
            return f"field {self.field.name!r}: {self.field.values()}, as was said"
        if self.resolution is None:
            return f"field {self.field.name!r}: {len(self.field.categories)} categories"
        return (
            f"field {self.field.name!r}: {self.field.values()}; this resolution "
            f"{self.resolution.keeps}"
        )


def plain_column(values: Sequence[str], numbers: NumberFormat) -> list[str]:
    """The values; those that are numbers have a decimal point and no separators."""
    if numbers == PLAIN:
        return list(values)
    return [numbers.plain(value) or value for value in values]


def describe_column(name: str, values: Sequence[str], classes: int = 0) -> DescribedColumn:
    """A field with the column's own bounds, and the resolution that holds its values.

    A column without numbers, or with few of them, becomes a field of categories. A label becomes
    one, too, if it holds as many different whole numbers as it has classes, in their order.

    Args: classes: of a private label of the statistic; 0 for other columns.
    Raises: DataError for numbers among which there are words, and for infinite numbers.
    """
    texts = [PLAIN.plain(value) for value in values]
    if None in texts:
        _refuse_words(name, values, texts)
        words = sorted({value.strip() for value in values})
        if len(words) > MOST_CATEGORIES:
            raise DataError(
                f"column {name!r} holds {len(words)} different texts, "
                f"but a field has at most {MOST_CATEGORIES} categories"
            )
        return DescribedColumn(FieldText.of_categories(name, words), None)
    numbers = [Decimal(text) for text in texts if text is not None]
    if not all(number.is_finite() for number in numbers):
        raise DataError(
            f"column {name!r} holds NaN or infinity; --fields needs columns of finite numbers"
        )
    labels = {value.strip(): number for value, number in zip(values, numbers, strict=True)}
    if len(labels) == classes and all(number == int(number) for number in numbers):
        ordered = sorted(labels, key=labels.__getitem__)
        return DescribedColumn(FieldText.of_categories(name, ordered), None)
    found = find_resolution(numbers)
    low, high = found.bounds(Fraction(min(numbers)), Fraction(max(numbers)))
    if found.step == 1:
        return DescribedColumn(FieldText(name, low, high, whole=True), found)
    return DescribedColumn(FieldText(name, low, high, found.text), found)


def _refuse_words(name: str, values: Sequence[str], texts: Sequence[str | None]) -> None:
    """Raises: DataError where the words of a column stand among numbers.

    Words that mark missing values are refused beside any number, others where most values are
    numbers: such a column is no list of categories.
    """
    words = [value.strip() for value, text in zip(values, texts, strict=True) if text is None]
    if len(words) == len(values):
        return
    distinct = sorted(set(words))
    shown = ", ".join(map(repr, distinct[:SHOWN]))
    if set(distinct) <= set(MISSING_MARKS):
        options = " ".join(f"--missing '{word}'" for word in distinct)
        raise DataError(
            f"column {name!r} holds numbers, and {len(words)} time(s) {shown}, which often marks a "
            f"missing value; add {options} to leave these rows out"
        )
    if 2 * len(words) < len(values):
        raise DataError(
            f"column {name!r} holds numbers, but {len(words)} of its {len(values)} values are "
            f"none: {shown}; correct them, add --missing for each word that marks a missing "
            f"value, or say with --decimal and --thousands how the table writes numbers"
        )


# --- fields of a study ----------------------------------------------------------------------------


Bounds: TypeAlias = Any
"""Lower and upper bound, maybe with a resolution; or the categories, a list of texts."""
STEPS = 1 << 20
"""The steps between two bounds, at least, where no resolution is given."""
SHOWN = 5
FROM_DATA = "data"
"""Bounds that are taken from the values themselves, which is not private."""


Label: TypeAlias = tuple[str, Any]
"""A public label and its first class."""


def fields_of(
    names: Sequence[str],
    bounds: Mapping[str, Bounds] | str | None,
    sites: Mapping[str, Mapping[str, ReadColumn]],
    public: str | None = None,
    classes: Mapping[str, int] | None = None,
) -> tuple[FieldText, ...]:
    """The fields of these columns.

    Args:
        bounds: by column; "data" takes them from the values, as `umpc demo` does.
        sites: each site's columns. They decide only whether values are whole and, with "data", the
            bounds. They are empty where values are elsewhere; then bounds have resolutions.
        public: the column of a public label.
        classes: private label → its number of classes, by which "data" describes it.

    Raises: StudyError naming the column.
    """
    if isinstance(bounds, str) and bounds != FROM_DATA:
        raise StudyError(f'bounds are a dictionary or "{FROM_DATA}", got {bounds!r}')
    counts = classes or {}
    if bounds == FROM_DATA:
        found = (
            _from_data(name, [site[name] for site in sites.values()], counts.get(name, 0))
            for name in names
        )
    else:
        given: Mapping[str, Bounds] = bounds if isinstance(bounds, Mapping) else {}
        missing = [name for name in names if name not in given]
        if missing:
            raise StudyError(
                f"bounds for {', '.join(map(repr, missing))} were expected: write "
                f"bounds={{{missing[0]!r}: (LOWER, UPPER)}} or a list of categories. They are "
                f'public, so take them from what the column means; bounds="{FROM_DATA}" takes '
                f"them from the values, which is not private"
            )
        found = (
            field_of(
                name,
                given[name],
                [site[name] for site in sites.values()] if sites else None,
                counts.get(name, 0),
            )
            for name in names
        )
    return tuple(
        FieldText.of_categories(field.name, field.categories, public=True)
        if field.name == public
        else field
        for field in found
    )


def field_of(
    name: str, bounds: Bounds, columns: Sequence[ReadColumn] | None, classes: int = 0
) -> FieldText:
    """One field from its bounds.

    Args: columns: its values at all sites; None if elsewhere. classes: of a private label, else 0.

    Raises: StudyError, also where only the values could tell the resolution.
    """
    if isinstance(bounds, FieldText):
        return bounds
    if isinstance(bounds, str) and bounds == FROM_DATA and columns is not None:
        return _from_data(name, columns, classes)
    if isinstance(bounds, str) or not isinstance(bounds, Sequence):
        raise _unreadable(name, bounds)
    if bounds and isinstance(bounds, list) and _are_words(bounds):
        if columns is not None:  # elsewhere the study may be released already, and is replayed
            check_words(name, _texts(bounds))
        return FieldText.of_categories(name, _texts(bounds))
    if len(bounds) not in (2, 3):
        raise _unreadable(name, bounds)
    try:
        low, high = (Fraction(str(value)) for value in bounds[:2])
    except ValueError:
        raise _unreadable(name, bounds) from None
    lower, upper = (str(value) for value in bounds[:2])
    if len(bounds) == 3:
        return FieldText(name, lower, upper, str(bounds[2]))
    if columns is None:
        raise StudyError(
            f"bounds of {name!r}: a resolution was expected, because the values are at the sites: "
            f'write ({lower}, {upper}, 1) for whole numbers, or a step such as "0.01"'
        )
    if low.denominator == high.denominator == 1 and all(map(_is_whole, columns)):
        return FieldText(name, str(low), str(high), whole=True)
    return FieldText(name, *_with_step(low, high))


def _are_words(values: Sequence[Any]) -> bool:
    """Whether all values are texts, or all are booleans."""
    kinds = {str if isinstance(value, str) else type(value) for value in values}
    return kinds == {str} or (len(kinds) == 1 and kinds <= {bool, np.bool_})


def _texts(values: Sequence[Any]) -> list[str]:
    """The texts of categories and of classes, as a table has them; a text stays as it is."""
    return [each if isinstance(each, str) else str(typed([each]).texts[0]) for each in values]


def columns_at(source: TableSource, names: Sequence[str]) -> dict[str, ReadColumn]:
    """Return these columns of a site's frame as a node reads them. Raises: DataError."""
    from umpc.node.table.reading import read_columns  # DuckDB, which a study elsewhere needs not

    return read_columns(source, names, OwnersTable("", source.path))


def records_of(
    source: TableSource,
    schemas: Sequence[FieldSchema],
    where: Condition | None = None,
    person: Person | None = None,
) -> Records:
    """Return a site's complete records, by the reader of a node.

    Its owner sees the values anyway. Warns: UserWarning where a value counts as another one.

    Raises: NotNumeric where no value of a field is a number, or in any category; DataError.
    """
    source = with_categories(source, schemas)
    records = load_records(source, schemas, node=None, where=where, person=person)
    for misfit in records.misfits:
        schema = next(each for each in schemas if each.name == misfit.name)
        if len(misfit.unknown) == records.count:
            raise _of_no_value(schema, source)
        _warn(misfit, schema, source)
    return records


def with_categories(source: TableSource, schemas: Sequence[FieldSchema]) -> TableSource:
    """Return the table with fewer words for missing values: those of a category stand for it."""
    listed = {category for schema in schemas for category in schema.categories}
    return replace(source, missing=tuple(word for word in source.missing if word not in listed))


def _of_no_value(schema: FieldSchema, source: TableSource) -> NotNumeric:
    """The error for a field of which no value fits."""
    found = sorted({text for text in columns_at(source, [schema.name])[schema.name].texts if text})
    came = ", ".join(map(repr, found[:SHOWN]))
    if schema.categories:
        return NotNumeric(
            f"{source.path}, field {schema.name!r}: values in the categories "
            f"{', '.join(map(repr, schema.categories[:SHOWN]))} were expected, and no value is in "
            f"any; there are {came}. Correct the categories, or the table"
        )
    return NotNumeric(
        f"{source.path}: field {schema.name!r} has bounds of numbers, and the table holds texts, "
        f"such as {came}; give a list of its categories"
    )


def checked_label(label: Any) -> Label | None:
    """Return a label. Raises: StudyError for another form than a pair of a name and a class."""
    if label is None:
        return None
    if not isinstance(label, tuple | list) or len(label) != 2 or not isinstance(label[0], str):
        raise StudyError(
            'label should be a pair of a column and its first class, as ("sex", "f"), got '
            f"{label!r}"
        )
    return (label[0], label[1])


def with_label(
    bounds: Mapping[str, Bounds] | str | None,
    label: Label | None,
    sites: Mapping[str, Mapping[str, ReadColumn]],
    *,
    named_last: bool,
) -> Mapping[str, Bounds] | str | None:
    """The bounds with the label's two classes, in the order of a study file.

    Args: named_last: whether the class that `label` names comes last, as the one that should score
        higher in a statistic of the library; the first record of a kernel of Python is of the
        first class.
    Raises: StudyError where the frames hold other than two classes.
    """
    if label is None:
        return bounds
    if isinstance(bounds, str):
        if bounds != FROM_DATA:
            return bounds
        bounds = {each: FROM_DATA for site in sites.values() for each in site if each != label[0]}
    name, (first,) = label[0], map(normal, _texts(label[1:]))
    given = (bounds or {}).get(name)
    if isinstance(given, FieldText):
        given = list(given.categories) or None
    if isinstance(given, list) or (given is not None and not sites):
        classes = _texts(given)[:2] if isinstance(given, tuple) else _texts(given)
    else:
        values = (text for site in sites.values() for text in site[name].texts)
        classes = sorted({text for text in values if text is not None})
    own = [normal(each) for each in classes]
    if first not in own or len(classes) != 2:
        raise StudyError(
            f"label={label!r}: two classes were expected in column {name!r}, one of them "
            f"{first!r}; it holds {', '.join(classes[:5])}"
        )
    ordered = sorted(classes, key=lambda each: normal(each) != first)
    return {**(bounds or {}), name: ordered[::-1] if named_last else ordered}


def _with_step(low: Fraction, high: Fraction) -> tuple[str, str, str]:
    """Bounds widened to multiples of a power of ten that makes at least STEPS steps of them."""
    width = max(high - low, Fraction(1, STEPS))
    digits = 0
    while width * 10**digits < STEPS:
        digits += 1
    step = Fraction(1, 10**digits)
    ends = low // step * step, -(-high // step) * step
    lower, upper = (f"{Decimal(end.numerator) / Decimal(end.denominator):f}" for end in ends)
    return lower, upper, f"{Decimal(1).scaleb(-digits):f}"


def _from_data(name: str, columns: Sequence[ReadColumn], classes: int) -> FieldText:
    """A field with the values' own bounds or categories. Args: classes: of a label, else 0."""
    texts = [text for column in columns for text in column.texts if text is not None]
    return describe_column(name, texts, classes).field


def _is_whole(column: ReadColumn) -> bool:
    numbers = column.numbers[column.is_there]
    return bool((numbers == np.rint(numbers)).all())


def _warn(misfit: Misfit, schema: FieldSchema, source: TableSource) -> None:
    """Tell the frames' owner how many values count as another one."""
    told = []
    if len(misfit.beyond):
        infinite = f", {misfit.infinite} of them infinite," if misfit.infinite else ""
        told.append(
            f"{len(misfit.beyond)} value(s) beyond the bounds{infinite} count as the nearer bound"
        )
    if len(misfit.unknown):
        kind = "of no category" if schema.categories else "that are no numbers"
        told.append(f"{len(misfit.unknown)} value(s) {kind} count as {misfit.substitute}")
    merged = _merged(schema, source) if len(misfit.rounded) else 0
    if merged > 0:
        told.append(
            f"{merged} different value(s) became equal to another one in steps of "
            f"{schema.resolution}; give a finer resolution"
        )
    if told:
        warnings.warn(f"{source.path}, field {schema.name!r}: {'; '.join(told)}", stacklevel=5)


def _merged(schema: FieldSchema, source: TableSource) -> int:
    """How many different values become equal to another one in steps of the resolution."""
    numbers = columns_at(source, [schema.name])[schema.name].numbers
    known = np.unique(numbers[~np.isnan(numbers)])
    within = np.clip(known, float(schema.lower), float(schema.upper))
    return len(np.unique(within)) - len(np.unique(to_units(known, schema).units))


def _unreadable(name: str, bounds: Bounds) -> StudyError:
    return StudyError(
        f"bounds of {name!r} are (LOWER, UPPER), (LOWER, UPPER, RESOLUTION) or a list of "
        f"categories such as ['case', 'control'] or [False, True], got {bounds!r}"
    )
