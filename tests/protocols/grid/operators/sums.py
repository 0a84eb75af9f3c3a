"""A grid's sums beside the clear sums over all sets of records."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

import numpy as np

from umpc.protocols.grid.operators.matrix import Form
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema

Columns = Mapping[str, np.ndarray]
MODULUS = 1 << 64


def clear_sum(kernel: Kernel, columns: Columns, label: str = "") -> int:
    """Return the kernel's sum in units over all sets of records, or all pairs of two classes."""
    count = len(next(iter(columns.values())))
    if label:
        first, second = (np.flatnonzero(columns[label] == value) for value in (0, 1))
        sets = list(product(first, second))
    else:
        sets = list(combinations(range(count), kernel.degree))
    if not sets:
        return 0
    places = np.array(sets).T
    records = [{name: column[rows] for name, column in columns.items()} for rows in places]
    return int(kernel.evaluate(records).sum())


def form_sum(form: Form, table: np.ndarray) -> int:
    """Return the form's sum, read as a signed number."""
    doubled = signed(inner(form.apply(table), table) - inner(form.diagonal(), table))
    assert doubled % 2 == 0
    return doubled // 2


def inner(left: np.ndarray, right: np.ndarray) -> int:
    """Return the inner product modulo 2^64."""
    return int(np.add.reduce(left * right, dtype=np.uint64))


def signed(number: int) -> int:
    """Return the number in [−2^63, 2^63) that is congruent modulo 2^64."""
    number %= MODULUS
    return number - MODULUS if number >> 63 else number


def random_columns(schema: Schema, rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Return records with every value within the bounds."""
    return {
        field.name: rng.integers(field.lower_units, field.upper_units, count, endpoint=True)
        for field in schema
    }


def random_words(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return uniform words, as a mask is."""
    return rng.integers(0, MODULUS - 1, count, dtype=np.uint64, endpoint=True)
