"""The exact interval of a kernel with few points: its value on all of them.

A field is *order-only* if the kernel does nothing with it but compare it between records: each time it occurs, it
is inside a comparison that says no more than the order of `x` of one record and `x` of another, as in
`a.x < b.x` or `sign(a.x - b.x)`. Then only the weak order of its values matters, every weak order of n values
is one of n neighbouring values, and its domain may be replaced by these. So the 65,536 points of two such fields in
four records stand for all records there are, whatever the fields' bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from umpc.errors import LocalProtocolError
from umpc.ustat.clear import Columns, Exact, evaluate_exact, fits_words
from umpc.ustat.expression import Expression, Field, Interpreter, Subtract, fields_of, interpret
from umpc.ustat.local import evaluate_local
from umpc.ustat.polynomial import Polynomial
from umpc.ustat.ranges import Interval
from umpc.ustat.schema import Schema

MAX_POINTS = 1 << 20
"""Kernels with more points are not enumerated."""
MAX_WIDE_POINTS = 1 << 12
"""The same, where values inside the kernel do not fit 63 bits."""
CHUNK = 1 << 14
"""Points evaluated at once: one column has 128 KiB."""


def exact_interval(
    expression: Expression, schema: Schema, normal: Polynomial | None = None
) -> Interval | None:
    """The least and the greatest value of a kernel on records of the schema; None if it has too many points.

    normal: its normal form, from which shares are computed; on every point it must be the kernel's value, for noise
    covers this interval.

    Raises: LocalProtocolError where it is not.
    """
    domains = domains_of(expression, schema)
    most = MAX_POINTS if fits_words(expression, schema) else MAX_WIDE_POINTS
    if prod(len(domain) for domain in domains.values()) > most:
        return None
    low = high = None
    for records in _points(domains):
        value = evaluate_exact(expression, schema, records)
        if normal is not None:
            _require_equal(value, normal, records)
        least, greatest = (
            int(np.min(value.units)) * value.unit,
            int(np.max(value.units)) * value.unit,
        )
        low, high = (
            least if low is None else min(low, least),
            greatest if high is None else max(high, greatest),
        )
    return Interval(low, high)


def _require_equal(value: Exact, normal: Polynomial, records: Sequence[Columns]) -> None:
    count = max((len(column) for columns in records for column in columns.values()), default=1)
    shared = evaluate_local(normal.scaled(1 / normal.unit), dict(enumerate(records)), count)
    if not np.all(shared == value.rescaled(normal.unit)):
        raise LocalProtocolError(
            "a kernel's normal form differs from the kernel: a fault of umpc's own; report it"
        )


def always_equal(left: Expression, right: Expression, schema: Schema) -> bool | None:
    """Whether two kernels agree on all records of the schema; None if they have too many points."""
    difference = exact_interval(Subtract(left, right), schema)
    return None if difference is None else difference == Interval(Fraction(0), Fraction(0))


def domains_of(expression: Expression, schema: Schema) -> dict[Field, range]:
    """What each field of each record must run through, in steps of the field's resolution."""
    occurring = sorted(fields_of(expression), key=lambda field: (field.record, field.name))
    whole = interpret(expression, _Uses()).beyond_order
    domains = {}
    for field in occurring:
        bounds = schema[field.name]
        domain = range(bounds.lower_units, bounds.upper_units + 1)
        records = sum(other.name == field.name for other in occurring)
        domains[field] = domain if field.name in whole else domain[:records]
    return domains


def _points(domains: Mapping[Field, range]) -> Iterator[list[Columns]]:
    """All points, in chunks: one Columns per record, row j of each is point j."""
    points = prod(len(domain) for domain in domains.values())
    for start in range(0, points, CHUNK):
        rest = np.arange(start, min(start + CHUNK, points))
        records: list[dict[str, np.ndarray]] = [
            {} for _ in range(1 + max((f.record for f in domains), default=-1))
        ]
        for field, domain in domains.items():
            rest, digit = np.divmod(rest, len(domain))
            records[field.record][field.name] = digit + domain.start
        yield records


@dataclass(frozen=True)
class _Use:
    """How a value depends on fields.

    linear: its coefficients if it is a linear combination of fields, None standing for the constant; else None.
    beyond_order: the names of the fields of which it tells more than their order among the records.
    """

    linear: Mapping[Field | None, Fraction] | None
    beyond_order: frozenset[str]

    @property
    def is_order(self) -> bool:
        """Whether its sign tells the order of two records' values of one field, or nothing."""
        if self.linear is None:
            return False
        terms = {field: c for field, c in self.linear.items() if c}
        constant, fields = terms.pop(None, 0), list(terms)
        ordered = (
            len({field.name for field in fields}) == 1
            and len(fields) == 2
            and sum(terms.values()) == 0
        )
        return not fields or (ordered and not constant)


class _Uses(Interpreter[_Use]):
    def field(self, record: int, name: str) -> _Use:
        return _Use({Field(record, name): Fraction(1)}, frozenset((name,)))

    def constant(self, value: Fraction) -> _Use:
        return _Use({None: value}, frozenset())

    def add(self, left: _Use, right: _Use) -> _Use:
        linear = None
        if left.linear is not None and right.linear is not None:
            terms = left.linear.keys() | right.linear.keys()
            linear = {term: left.linear.get(term, 0) + right.linear.get(term, 0) for term in terms}
        return _Use(linear, left.beyond_order | right.beyond_order)

    def multiply(self, left: _Use, right: _Use) -> _Use:
        linear = _scaled(left.linear, right.linear) or _scaled(right.linear, left.linear)
        return _Use(linear, left.beyond_order | right.beyond_order)

    def sign(self, of: _Use) -> _Use:
        return _Use(None, frozenset() if of.is_order else of.beyond_order)

    def less(self, left: _Use, right: _Use) -> _Use:
        return self.sign(self.subtract(left, right))

    equal = less


def _scaled(of: Mapping | None, factor: Mapping | None) -> dict[Field | None, Fraction] | None:
    """A linear combination times a constant; None if the factor is no constant."""
    if of is None or factor is None or factor.keys() != {None}:
        return None
    return {term: coefficient * factor[None] for term, coefficient in of.items()}
