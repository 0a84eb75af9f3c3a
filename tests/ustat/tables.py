"""Statistics over all edges of a small table, as umpc computes them in the clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np

from umpc.ustat.clear import evaluate_clear
from umpc.ustat.expression import Expression
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY

HALF = Fraction(1, 2)
"""The resolution of all columns but classes."""
CLASSES = ("label", "event", "stratum", "vertex")
"""Columns of the numbers 0, 1, 2."""
NUMBERS = ("x", "y", "z", "score", "score_a", "score_b", "time")
"""Columns of numbers."""
SCHEMA = Schema(
    [FieldSchema(name, Fraction(-3), Fraction(3), HALF) for name in NUMBERS]
    + [FieldSchema(name, Fraction(0), Fraction(2), Fraction(1)) for name in CLASSES]
)
UNIT = Fraction(1, 3600)
"""A common unit of all kernels here."""
CELLS = {"uniformity": (("cells", 5),)}
"""Parameters that must be given."""

Table = Mapping[str, Sequence[int]]
"""Column → its values, in steps of the resolution."""


def columns_of(name: str) -> list[str]:
    """Columns for a statistic; two features where it takes any number."""
    return [c for a in LIBRARY[name].arguments for c in (["x", "y"] if a == "x..." else [a])]


@cache
def expressions(name: str, parameters: tuple = ()) -> tuple[Expression, ...]:
    return LIBRARY[name].expressions(columns_of(name), dict(parameters or CELLS.get(name, ())))


def values(
    name: str, records: Sequence[Mapping[str, np.ndarray]], parameters: tuple = ()
) -> list[np.ndarray]:
    """Each sum's kernel on a batch of edges: (edges,) int64, in UNIT."""
    return [
        evaluate_clear(expression, SCHEMA, records, UNIT)
        for expression in expressions(name, parameters)
    ]


def means(
    name: str, table: Table, second: Table | None = None, parameters: tuple = ()
) -> list[Fraction]:
    """Each sum's mean over all edges; of two samples over all pairs of a record of each."""
    tables = [table] * LIBRARY[name].degree if second is None else [table, second]
    sizes = [len(next(iter(side.values()))) for side in tables]
    sets = list(
        product(*map(range, sizes))
        if second is not None
        else combinations(range(sizes[0]), len(sizes))
    )
    index = np.array(sets).reshape(-1, len(sizes)).T
    records = [
        {column: np.array(side[column], dtype=np.int64)[rows] for column in side}
        for side, rows in zip(tables, index, strict=True)
    ]
    return [int(value.sum()) * UNIT / len(sets) for value in values(name, records, parameters)]
