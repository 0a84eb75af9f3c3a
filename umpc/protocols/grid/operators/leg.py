"""An operator along one axis, applied in time and memory linear in the number of cells.

A leg is Σ_k c_k · out_k(i) · Σ_{j in interval_k(i)} in_k(j) · v(j). With prefix sums P of in_k·v,
the inner sum is P[high(i)] − P[low(i)]. Terms with one in_k share P, and terms with one threshold
are added up, so the sign of a difference costs two terms and the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from umpc.protocols.arrays import Integers, Words
from umpc.protocols.grid.operators.intervals import Bounds

CHUNK = 1 << 17
"""Cells that are worked on at once. Their 1 MiB stays in a processor's cache."""

Threshold: TypeAlias = "int | slice | Integers"
"""The place of a prefix sum (or of a value) for each place of the output."""


@dataclass(frozen=True)
class Piece:
    """One addend of a leg: coefficient · outer(i) · Σ_{low(i) ≤ j < high(i)} inner(j) · v(j).

    Args: outer: (outputs,) uint64, inner: (inputs,) uint64; None stands for 1.
    """

    coefficient: int
    bounds: Bounds
    outer: Words | None
    inner: Words | None


@dataclass(frozen=True)
class _Gather:
    """factor · source[threshold], the source being prefix sums, or the values themselves."""

    threshold: Threshold
    factor: Words


@dataclass(frozen=True)
class _Group:
    """All addends with one inner weight."""

    inner: Words | None
    of_values: bool
    gathers: tuple[_Gather, ...]

    @property
    def only_total(self) -> bool:
        """Whether the sum over all places is all that is needed."""
        return not self.of_values and all(isinstance(g.threshold, int) for g in self.gathers)


class Leg:
    """The operator of these pieces from `inputs` places to `outputs` places."""

    def __init__(self, pieces: Sequence[Piece], inputs: int, outputs: int):
        self.inputs = inputs
        self.outputs = outputs
        inner: dict[bytes | None, list[Piece]] = {}
        for piece in pieces:
            key = None if piece.inner is None else piece.inner.tobytes()
            inner.setdefault(key, []).append(piece)
        self.groups = tuple(_group(alike, inputs, outputs) for alike in inner.values())

    @property
    def cost(self) -> int:
        """Ring operations for each cell."""
        return sum(1 + len(group.gathers) for group in self.groups)

    def apply(self, source: Words, target: Words) -> None:
        """Write A·source to target.

        Args: source: (outer, inputs, inner) uint64. target: (outer, outputs, inner) uint64, which
        may be the source where both have one shape.
        """
        outer, _, inner = source.shape
        most = max(self.inputs, self.outputs)
        if inner == 1:
            rows = max(1, CHUNK // most)
            for start in range(0, outer, rows):
                part = slice(start, start + rows)
                target[part, :, 0] = self._block(source[part, :, 0], axis=1)
            return
        columns = max(64, CHUNK // most)
        for row in range(outer):
            for start in range(0, inner, columns):
                part = slice(start, start + columns)
                target[row, :, part] = self._block(source[row, :, part], axis=0)

    def _block(self, block: Words, axis: int) -> Words:
        """The operator along an axis of a block of two axes."""
        shape = list(block.shape)
        shape[axis] = self.outputs
        total = np.zeros(shape, dtype=np.uint64)
        for group in self.groups:
            values = block if group.inner is None else block * _along(group.inner, axis)
            if group.only_total:
                whole = np.add.reduce(values, axis=axis, dtype=np.uint64, keepdims=True)
                for gather in group.gathers:
                    _accumulate(total, whole, gather.factor, axis)
                continue
            sums = values if group.of_values else _prefix_sums(values, axis)
            for gather in group.gathers:
                _accumulate(total, _taken(sums, gather.threshold, axis), gather.factor, axis)
        return total


def to_words(numbers: Integers) -> Words:
    """int64 numbers modulo 2^64."""
    return numbers.astype(np.int64, copy=False).view(np.uint64)


def word(number: int) -> Words:
    """() uint64: an integer modulo 2^64."""
    return np.asarray(number % (1 << 64), dtype=np.uint64)


def _group(pieces: Sequence[Piece], inputs: int, outputs: int) -> _Group:
    points = all(np.all(high - low <= 1) for low, high in (piece.bounds for piece in pieces))
    found: dict[bytes, tuple[Integers, Words]] = {}
    for piece in pieces:
        low, high = piece.bounds
        factor = word(piece.coefficient)
        if piece.outer is not None:
            factor = piece.outer * factor
        if points:
            held = (high > low).astype(np.uint64)
            whole = bool(held.all())
            _collect(found, np.minimum(low, inputs - 1), factor if whole else factor * held)
        else:
            _collect(found, high, factor)
            _collect(found, low, np.negative(factor))
    gathers = [
        _Gather(_simplified(places), factor)
        for places, factor in found.values()
        if factor.any() and (points or places.any())
    ]
    return _Group(pieces[0].inner, points, tuple(gathers))


def _collect(found: dict[bytes, tuple[Integers, Words]], places: Integers, factor: Words) -> None:
    key = places.tobytes()
    known = found.get(key)
    found[key] = (places, factor if known is None else np.add(known[1], factor))


def _simplified(places: Integers) -> Threshold:
    """Places as one number or a slice where they are; views cost nothing."""
    first = int(places[0])
    if np.all(places == first) and len(places) > 1:
        return first
    if np.array_equal(places, np.arange(first, first + len(places))):
        return slice(first, first + len(places))
    return places


def _along(vector: Words, axis: int) -> Words:
    return vector[None, :] if axis else vector[:, None]


def _prefix_sums(values: Words, axis: int) -> Words:
    """P with P[t] = Σ_{j < t} values[j] along the axis."""
    shape = list(values.shape)
    shape[axis] += 1
    sums = np.empty(shape, dtype=np.uint64)
    if axis:
        sums[:, 0] = 0
        np.cumsum(values, axis=1, out=sums[:, 1:])
        return sums
    sums[0] = 0
    if values.shape[1] < 256:
        np.cumsum(values, axis=0, out=sums[1:])
        return sums
    for place, row in enumerate(values):
        np.add(sums[place], row, out=sums[place + 1])
    return sums


def _taken(sums: Words, threshold: Threshold, axis: int) -> Words:
    if isinstance(threshold, int):
        threshold = slice(threshold, threshold + 1)
    if isinstance(threshold, slice):
        return sums[:, threshold] if axis else sums[threshold]
    return np.take(sums, threshold, axis=axis)


def _accumulate(total: Words, value: Words, factor: Words, axis: int) -> None:
    """total += factor · value, without a product where the factor is 1 or −1."""
    if factor.ndim:
        total += value * _along(factor, axis)
    elif factor == 1:
        total += value
    elif factor == word(-1):
        total -= value
    else:
        total += value * factor
