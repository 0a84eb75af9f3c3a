"""Fields from bounds as people write them in Python, and columns in steps of their resolution.

| bounds | field |
|---|---|
| `(0, 127)`, both whole, and the frames' values are whole | whole numbers |
| `(0, 127)` with other frames | numbers, in at least 2^20 steps of a power of ten |
| `(0, 127)` without frames | refused: nobody knows whether the values are whole |
| `(0, 127, 1)`, `(0, 300, "0.1")` | numbers in steps of 1, of 0.1 |
| `["case", "control"]` | categories |

Bounds are public knowledge: they follow from what a column means, and never from its values.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.api.columns import describe_column
from umpc.api.frames import Values
from umpc.errors import StudyError
from umpc.node.table.units import to_units
from umpc.study.parts import FieldText
from umpc.ustat.schema import FieldSchema

Bounds: TypeAlias = Any
"""Lower and upper bound, maybe with a resolution; or the categories, a list of texts."""
STEPS = 1 << 20
"""The steps between two bounds, at least, where no resolution is given."""
FROM_DATA = "data"
"""Bounds that are taken from the values themselves, which is not private."""


def fields_of(
    names: Sequence[str],
    bounds: Mapping[str, Bounds] | str | None,
    sites: Mapping[str, Mapping[str, Values]],
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
    if bounds == FROM_DATA:
        counts = classes or {}
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
            field_of(name, given[name], [site[name] for site in sites.values()] if sites else None)
            for name in names
        )
    return tuple(_published(field, field.name == public) for field in found)


def field_of(name: str, bounds: Bounds, columns: Sequence[Values] | None) -> FieldText:
    """One field from its bounds. Args: columns: its values at all sites; None if elsewhere.

    Raises: StudyError, also where only the values could tell the resolution.
    """
    if isinstance(bounds, FieldText):
        return bounds
    if isinstance(bounds, str) or not isinstance(bounds, Sequence):
        raise _unreadable(name, bounds)
    if bounds and all(isinstance(value, str) for value in bounds) and isinstance(bounds, list):
        return FieldText.of_categories(name, bounds)
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


def units_of(
    columns: Mapping[str, Values], schemas: Sequence[FieldSchema], site: str
) -> tuple[dict[str, NDArray[np.int64]], int]:
    """A site's complete records in steps of their fields, and how many were left out.

    Values count as in a node (`umpc/node/records.py`): beyond a bound as the bound, between two
    steps as the nearest one. Warns: UserWarning where a value counts as another one.

    Returns: (field → (records,) int64, the number of records with a missing value).
    """
    present = np.logical_and.reduce([is_present(columns[schema.name]) for schema in schemas])
    found = {}
    for schema in schemas:
        numbers = _numbers(columns[schema.name][present], schema)
        found[schema.name] = to_units(np.ma.filled(numbers, np.nan), schema).units
        _warn(numbers, found[schema.name], schema, site)
    return found, int((~present).sum())


def with_label(
    bounds: Mapping[str, Bounds] | str | None,
    label: tuple[str, str] | None,
    sites: Mapping[str, Mapping[str, Values]],
    *,
    named_last: bool,
) -> Mapping[str, Bounds] | str | None:
    """The bounds with the label's two classes, in the order of a study file.

    Args: named_last: whether the class that `label` names comes last, as the one that should score
        higher in a statistic of the library; the first record of a kernel of Python is of the
        first class.
    Raises: StudyError where the frames hold other than two classes.
    """
    if label is None or isinstance(bounds, str):
        return bounds
    name, first = label[0], str(label[1])
    if bounds and name in bounds:
        classes = list(map(str, bounds[name]))
    else:
        seen = {value for site in sites.values() for value in site[name].tolist()}
        classes = sorted(str(value) for value in seen if value is not None)
    if first not in classes or len(classes) != 2:
        raise StudyError(
            f"label={label!r}: two classes were expected in column {name!r}, one of them "
            f"{first!r}; it holds {', '.join(classes[:5])}"
        )
    ordered = [first, *(each for each in classes if each != first)]
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


def _from_data(name: str, columns: Sequence[Values], classes: int) -> FieldText:
    """A field with the values' own bounds or categories. Args: classes: of a label, else 0."""
    values = [value for column in columns for value in column[is_present(column)].tolist()]
    if classes:
        return describe_column(name, list(map(_label, values)), classes).field
    texts = [repr(value) if isinstance(value, float) else str(value) for value in values]
    return describe_column(name, texts).field


def _published(field: FieldText, public: bool) -> FieldText:
    if not public:
        return field
    return FieldText.of_categories(field.name, field.categories, public=True)


def is_present(column: Values) -> NDArray[np.bool_]:
    """Return where a column has a value."""
    if column.dtype.kind == "f":
        return ~np.isnan(column)
    return np.array([value is not None for value in column], dtype=bool)


def _is_whole(column: Values) -> bool:
    numbers = column[is_present(column)]
    return column.dtype.kind == "f" and bool((numbers == np.rint(numbers)).all())


def _numbers(column: Values, schema: FieldSchema) -> Any:
    """(records,) float64, masked where a value is no number and no category."""
    if not schema.categories:
        if column.dtype.kind == "f":
            return np.ma.asarray(column)
        raise StudyError(
            f"field {schema.name!r} has bounds of numbers, and the frame holds texts; give a list "
            f"of its categories"
        )
    places = {label: place for place, label in enumerate(schema.categories)}
    labels = [_label(value) for value in column.tolist()]
    unknown = [label not in places for label in labels]
    return np.ma.array([float(places.get(label, 0)) for label in labels], mask=unknown)


def _label(value: Any) -> str:
    """A category's text: whole numbers have no decimal point."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _warn(numbers: Any, units: NDArray[np.int64], schema: FieldSchema, site: str) -> None:
    """Tell the frames' owner how many values count as another one."""
    known = np.ma.getdata(numbers)[~np.ma.getmaskarray(numbers)]
    beyond = int(((known < float(schema.lower)) | (known > float(schema.upper))).sum())
    unknown = len(numbers) - len(known)
    merged = len(np.unique(np.clip(known, float(schema.lower), float(schema.upper))))
    merged -= len(np.unique(units[~np.ma.getmaskarray(numbers)]))
    told = []
    if beyond:
        told.append(f"{beyond} value(s) beyond the bounds count as the nearer bound")
    if unknown:
        told.append(f"{unknown} value(s) of no category count as {schema.categories[-1]!r}")
    if merged > 0:
        told.append(
            f"{merged} different value(s) became equal to another one in steps of "
            f"{schema.resolution}; give a finer resolution"
        )
    if told:
        warnings.warn(f"site {site!r}, field {schema.name!r}: {'; '.join(told)}", stacklevel=4)


def _unreadable(name: str, bounds: Bounds) -> StudyError:
    return StudyError(
        f"bounds of {name!r} are (LOWER, UPPER), (LOWER, UPPER, RESOLUTION) or a list of "
        f"categories such as ['case', 'control'], got {bounds!r}"
    )
