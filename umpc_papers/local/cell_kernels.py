"""A kernel between cells: its average, its midpoint and its spread over the values of two cells.

Paper: Bell et al. 2020, appendix A.2. A cell is a bin of each field. With a measure λ on the values
of each field, by default the one that counts every value alike, and independent fields,

    A^Avg between two cells = the λ-mean of f over all pairs of their values    (15)
    A^Mid between two cells = (the largest value of f + the least one)/2        (14)
    Δ between two cells = ((the largest value of f − the least one)/2)²         (remark 4)

`average` needs no list of pairs for a kernel that is a sum of products of comparisons and values,
each of one field: along a field of V values and k bins it takes time V·k. Other kernels, and
`extremes` of all kernels, go through all pairs of values, at most `MOST_PAIRS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import prod

import numpy as np

from umpc.errors import KernelError, StudyError
from umpc.mpc.arrays import Floats, Integers
from umpc.protocols.grid.operators.axis import (
    Axis,
    BilinearBit,
    DoesNotFactor,
    bilinear_of,
    field_axis,
    intersection,
)
from umpc.protocols.grid.operators.splitting import (
    ProductTerm,
    terms_of,
    written_out,
)
from umpc.ustat.kernel import Kernel
from umpc.ustat.normal_form import Monomial, Polynomial
from umpc.ustat.polynomial import evaluate_local

MOST_VALUES = 1 << 21
"""The most values of a field along which a kernel is averaged."""
MOST_PAIRS = 1 << 24
"""The most pairs of values that are evaluated one by one, in a second or two."""
PAIRS_AT_ONCE = 1 << 18

Starts = Mapping[str, Integers]
"""Field → the place of each bin's first value, from 0, and at the end the number of values."""
Weights = Mapping[str, Floats]
"""Field → λ of each of its values: (values,) float64, above 0. The scale means nothing."""
_Along = tuple[frozenset[BilinearBit], Monomial, Monomial]
"""The factors of a term that one field decides: comparisons, the first record's, the second's."""


def average(kernel: Kernel, starts: Starts, weights: Weights | None = None) -> Floats:
    """A^Avg: (t, t) float64, cells in the order of the fields' bins, the last field fastest.

    Args: weights: λ, if values do not count alike.

    Raises: StudyError where the kernel has too many values to be averaged.
    """
    weights = weights or {}
    try:
        return _average_of_terms(kernel, starts, weights)
    except (DoesNotFactor, KernelError):
        total = np.zeros((_cells(starts), _cells(starts)))
        for own, values, cuts in _blocks(kernel, starts, weights):
            np.add.at(total, own, np.add.reduceat(values, cuts, axis=1))
        sizes = _measures_of_cells(starts, weights)
        return total * float(kernel.unit) / np.outer(sizes, sizes)


def has_average(kernel: Kernel, starts: Starts) -> bool:
    """Whether `average` is possible."""
    if _pairs(starts) <= MOST_PAIRS:
        return True
    try:
        _check_values(starts)
        for term in _terms(kernel):
            _by_field(term, tuple(starts))
    except (DoesNotFactor, KernelError, StudyError):
        return False
    return True


def extremes(kernel: Kernel, starts: Starts) -> tuple[Floats, Floats]:
    """The least and the largest value between two cells: (t, t) float64 each.

    Raises: StudyError where there are too many pairs of values to look at.
    """
    t = _cells(starts)
    least = np.full((t, t), np.inf)
    most = np.full((t, t), -np.inf)
    for own, values, cuts in _blocks(kernel, starts, {}):
        np.minimum.at(least, own, np.minimum.reduceat(values, cuts, axis=1))
        np.maximum.at(most, own, np.maximum.reduceat(values, cuts, axis=1))
    unit = float(kernel.unit)
    return least * unit, most * unit


def has_extremes(starts: Starts) -> bool:
    """Whether `extremes` is possible."""
    return _pairs(starts) <= MOST_PAIRS


def _cells(starts: Starts) -> int:
    return prod(len(each) - 1 for each in starts.values())


def _pairs(starts: Starts) -> int:
    return prod(int(each[-1]) for each in starts.values()) ** 2


def _measures_of_cells(starts: Starts, weights: Weights) -> Floats:
    """(t,): λ of each cell; without weights the number of its combinations of values."""
    sizes = np.ones(1)
    for name, each in starts.items():
        sizes = np.outer(sizes, _measures(name, each, weights)).reshape(-1)
    return sizes


def _measures(name: str, starts: Integers, weights: Weights) -> Floats:
    """(k,): λ of each bin of a field."""
    if name in weights:
        measures: Floats = np.add.reduceat(weights[name], starts[:-1])
        return measures
    return np.diff(starts).astype(np.float64)


def _check_values(starts: Starts) -> None:
    for name, each in starts.items():
        if each[-1] > MOST_VALUES:
            raise StudyError(
                f"field {name!r} has {int(each[-1]):,} values, and a kernel is averaged over the "
                f"bins of at most {MOST_VALUES:,}; take a coarser resolution, or "
                f'cell_kernel = "middle"'
            )


# --- sums of products ---------------------------------------------------------------------------


def _average_of_terms(kernel: Kernel, starts: Starts, weights: Weights) -> Floats:
    """Raises: DoesNotFactor, KernelError where the kernel is no such sum; StudyError."""
    terms = _terms(kernel)
    split = [_by_field(term, tuple(starts)) for term in terms]
    _check_values(starts)
    axes = {name: field_axis(name, kernel.schema) for name in starts}
    known: dict[tuple[str, _Along], Floats] = {}
    total = np.zeros((_cells(starts), _cells(starts)))
    for term, along in zip(terms, split, strict=True):
        product = np.full((1, 1), float(term.coefficient))
        for name, factors in along.items():
            if (name, factors) not in known:
                known[name, factors] = _average_along(axes[name], starts[name], factors, weights)
            product = np.kron(product, known[name, factors])
        total += product
    return total * float(kernel.unit)


def _terms(kernel: Kernel) -> tuple[ProductTerm, ...]:
    return terms_of(written_out(kernel.polynomial.scaled(1 / kernel.unit)), 2)


def _by_field(term: ProductTerm, names: Sequence[str]) -> dict[str, _Along]:
    """A term's factors by field. Raises: DoesNotFactor where a factor is of several fields."""
    links: dict[str, set[BilinearBit]] = {name: set() for name in names}
    own: list[dict[str, list[tuple[object, int]]]] = [{name: [] for name in names} for _ in (0, 1)]
    for bit in term.bits:
        links[_one(bit.fields)].add(_plain(bilinear_of(bit, 0, 1)))
    for side, factors in zip(own, term.local, strict=True):
        for factor, power in factors:
            side[_one(factor.fields)].append((factor, power))
    return {
        name: (frozenset(links[name]), tuple(own[0][name]), tuple(own[1][name]))  # type: ignore[arg-type]
        for name in names
    }


def _one(names: frozenset[str]) -> str:
    if len(names) != 1:
        raise DoesNotFactor
    return next(iter(names))


def _plain(link: BilinearBit) -> BilinearBit:
    """The comparison, if it compares a field with itself. Raises: DoesNotFactor."""
    if link.first != link.second or len(link.first.terms) != 1:
        raise DoesNotFactor
    ((monomial, coefficient),) = link.first.terms
    if coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1:
        raise DoesNotFactor
    return link


def _average_along(axis: Axis, starts: Integers, factors: _Along, weights: Weights) -> Floats:
    """The average of the factors of one field between its bins: (k, k) float64."""
    links, first, second = factors
    low, high = intersection(links, axis, axis)
    measure = weights.get(axis.name, np.ones(1))
    outer, inner = (_weight(axis, own) * measure for own in (first, second))
    before = np.concatenate([[0.0], np.cumsum(inner)])
    columns = []
    for start, stop in pairwise(starts):
        top = np.clip(high, start, stop)
        bottom = np.minimum(np.clip(low, start, stop), top)
        columns.append(np.add.reduceat(outer * (before[top] - before[bottom]), starts[:-1]))
    widths = _measures(axis.name, starts, weights)
    return np.stack(columns, axis=1) / np.outer(widths, widths)


def _weight(axis: Axis, factors: Monomial) -> Floats:
    """(values,) float64: the product of one record's own factors at each value of its field."""
    polynomial = Polynomial(((factors, Fraction(1)),))
    columns = {axis.name: axis.values}
    return evaluate_local(polynomial, {0: columns}, axis.size).astype(np.float64)


# --- all pairs of values ------------------------------------------------------------------------


def _blocks(
    kernel: Kernel, starts: Starts, weights: Weights
) -> Iterator[tuple[Integers, Floats, Integers]]:
    """All pairs of values, some rows at a time; the columns are in the order of their cells.

    Yields: the rows' cells (rows,), the kernel in units times λ of both records (rows, values), and
    the first column of each cell (t,).

    Raises: StudyError where there are too many.
    """
    if _pairs(starts) > MOST_PAIRS:
        raise StudyError(
            f"the kernel has {_pairs(starts):,} pairs of values, at most {MOST_PAIRS:,} can be "
            f"looked at one by one; take coarser resolutions, or another cell_kernel"
        )
    sizes = [int(each[-1]) for each in starts.values()]
    count = prod(sizes)
    places = np.indices(sizes).reshape(len(sizes), count)
    cell = np.zeros(count, dtype=np.int64)
    measure = np.ones(count)
    columns = {}
    for (name, each), place in zip(starts.items(), places, strict=True):
        if name in weights:
            measure = measure * weights[name][place]
        cell = cell * (len(each) - 1) + np.searchsorted(each[1:-1], place, side="right")
        columns[name] = kernel.schema[name].lower_units + place
    order = np.argsort(cell, kind="stable")
    cell, measure = cell[order], measure[order]
    columns = {name: column[order] for name, column in columns.items()}
    cuts = np.searchsorted(cell, np.arange(_cells(starts)))
    rows = max(1, PAIRS_AT_ONCE // count)
    for start in range(0, count, rows):
        own = np.arange(start, min(start + rows, count))
        sides = np.repeat(own, count), np.tile(np.arange(count), len(own))
        records = [{n: column[side] for n, column in columns.items()} for side in sides]
        values = kernel.evaluate(records).astype(np.float64)
        weighted = values.reshape(len(own), count) * np.outer(measure[own], measure)
        yield cell[own], weighted, cuts
