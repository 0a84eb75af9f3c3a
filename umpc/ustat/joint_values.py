"""Points whose convex hull holds all values that several kernels have together on the same records.

The variance of a combination of kernels is largest for a table whose values are such points. So an
interval for a ratio of sums is narrower if these points are few and true: where the numerator of an
AUC is 1, its denominator is 1 too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from umpc.ustat.clear import Columns
from umpc.ustat.expression import (
    Absolute,
    Add,
    Constant,
    Expression,
    Field,
    Rebuild,
    Select,
    Subtract,
    fields_of,
    interpret,
)
from umpc.ustat.kernel import Kernel
from umpc.ustat.ranges import MAX_POINTS, domains_of, interval_of, points_of
from umpc.ustat.schema import FieldSchema
from umpc.ustat.strata import without_weight

MOST_VALUES = 9
"""More points than these are replaced by the corners of the kernels' intervals."""
MOST_CLASSES = 3
"""A field with more values is no label."""
MOST_BOXES = 256
"""The most combinations of labels for which boxes are computed."""


def values_together(kernels: Sequence[Kernel]) -> NDArray[np.float64]:
    """(points, kernels) float64 of several kernels, in their own units.

    They are the kernels' values on all records, where these are few; those of weighted kernels, of
    a mean inside a stratum, and of other forms of ratios; else the corners of the boxes that the
    kernels' intervals make for all values of labels.
    """
    for form in (_enumerated, _weighted, _inside, _spread, _difference, _by_labels):
        found = form(kernels)
        if found is not None:
            return found
    ends = [(float(kernel.interval.low), float(kernel.interval.high)) for kernel in kernels]
    return np.array(sorted(set(product(*ends))))


def _enumerated(kernels: Sequence[Kernel]) -> NDArray[np.float64] | None:
    """The kernels' values together; None where their records or their values are too many."""
    schema = kernels[0].schema
    together = reduce(Add, (kernel.expression for kernel in kernels))
    domains = domains_of(together, schema)
    if prod(len(domain) for domain in domains.values()) > MAX_POINTS:
        return None
    seen: set[tuple[float, ...]] = set()
    for records in points_of(domains):
        columns = [
            np.broadcast_to(kernel.evaluate(records), (_count(records),)) for kernel in kernels
        ]
        seen.update(map(tuple, np.unique(np.stack(columns), axis=1).T.tolist()))
        if len(seen) > MOST_VALUES:
            return None
    units = np.array([float(kernel.unit) for kernel in kernels])
    values: NDArray[np.float64] = np.array(sorted(seen)) * units
    return values


def _weighted(kernels: Sequence[Kernel]) -> NDArray[np.float64] | None:
    """The values without weights, times the least and the largest product of weights.

    None where a kernel has no weights, or where they are the values of other kernels, too.
    """
    first = kernels[0]
    found = [without_weight(each.expression, first.degree) for each in kernels]
    inner = [each[0] for each in found if each is not None]
    names = {each[1] for each in found if each is not None}
    if len(inner) < len(kernels) or len(names) > 1:
        return None
    (name,), schema = names, first.schema
    if any(each.name == name for part in inner for each in fields_of(part)):
        return None
    low, high = (float(end**first.degree) for end in (schema[name].lower, schema[name].upper))
    alone = values_together([replace(first, expression=each) for each in inner])
    return np.unique(np.concatenate([low * alone, high * alone]), axis=0) if low >= 0 else None


def _inside(kernels: Sequence[Kernel]) -> NDArray[np.float64] | None:
    """The ends of select(c, f, 0) and c together: (0, 0), (low, 1) and (high, 1).

    None for kernels of another form.
    """
    first, share = kernels[0].expression, kernels[1].expression
    if len(kernels) > 2 or not isinstance(first, Select) or first.condition != share:
        return None
    if first.otherwise != Constant(Fraction(0)):
        return None
    then, all_values = interval_of(first.then, kernels[0].schema), kernels[0].interval
    low, high = max(then.low, all_values.low), min(then.high, all_values.high)
    return np.array(sorted({(0.0, 0.0), (float(low), 1.0), (float(high), 1.0)}))


def _spread(kernels: Sequence[Kernel]) -> NDArray[np.float64] | None:
    """The triangle of |a.x − b.x| and a.x + b.x for a field of at least 0; None for other forms."""
    first, total = kernels[0].expression, kernels[1].expression
    if len(kernels) > 2 or not isinstance(total, Add) or not isinstance(total.left, Field):
        return None
    field = kernels[0].schema[total.left.name]
    if first != Absolute(Subtract(total.left, total.right)) or field.lower < 0:
        return None
    if total.right != Field(1 - total.left.record, field.name):
        return None
    low, high = float(field.lower), float(field.upper)
    return np.array(sorted({(0.0, 2 * low), (high - low, low + high), (0.0, 2 * high)}))


def _difference(kernels: Sequence[Kernel]) -> NDArray[np.float64] | None:
    """The values of g − f and g together, from the ends of f and of g; None for other forms."""
    first, second = kernels[0].expression, kernels[1].expression
    if len(kernels) > 2 or not isinstance(first, Subtract) or first.left != second:
        return None
    taken, whole = interval_of(first.right, kernels[0].schema), kernels[1].interval
    pairs = product((whole.low, whole.high), (taken.low, taken.high))
    return np.array(sorted({(float(all_of - part), float(all_of)) for all_of, part in pairs}))


def _by_labels(kernels: Sequence[Kernel]) -> NDArray[np.float64] | None:
    """The corners of the kernels' boxes, one box for all values of labels that records can have.

    So a denominator that is 1 for some labels, and a numerator that is 0 for the others, are seen.

    Returns: None where labels have too many values together, or boxes too many corners.
    """
    schema = kernels[0].schema
    together = reduce(Add, (kernel.expression for kernel in kernels))
    labels = sorted(
        (each for each in fields_of(together) if _width(schema[each.name]) <= MOST_CLASSES),
        key=lambda each: (each.name, each.record),
    )
    domains = [range(_width(schema[each.name])) for each in labels]
    if not labels or prod(map(len, domains)) > MOST_BOXES:
        return None
    found: set[tuple[float, ...]] = set()
    for units in product(*domains):
        rows = zip(labels, units, strict=True)
        known = {each: _value(schema[each.name], unit) for each, unit in rows}
        boxes = [
            interval_of(interpret(kernel.expression, _Known(known)), schema) for kernel in kernels
        ]
        found.update(product(*((float(box.low), float(box.high)) for box in boxes)))
        if len(found) > MOST_VALUES:
            return None
    return np.array(sorted(found))


class _Known(Rebuild):
    """The expression for known values of some fields."""

    def __init__(self, known: Mapping[Field, Fraction]):
        self._known = known

    def field(self, record: int, name: str) -> Expression:
        value = self._known.get(Field(record, name))
        return super().field(record, name) if value is None else Constant(value)


def _width(field: FieldSchema) -> int:
    """The number of values that a field has."""
    return field.upper_units - field.lower_units + 1


def _value(field: FieldSchema, place: int) -> Fraction:
    """A field's value by its place, from 0."""
    return field.lower + place * field.resolution


def _count(records: Sequence[Columns]) -> int:
    return max((len(column) for columns in records for column in columns.values()), default=1)
