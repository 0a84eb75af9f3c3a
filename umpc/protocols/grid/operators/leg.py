"""An operator along one axis, applied in time and memory linear in the number of cells.

A leg is Σ_k c_k · out_k(i) · Σ_{j in interval_k(i)} in_k(j) · v(j). With prefix sums P of in_k·v,
the inner sum is P[high(i)] − P[low(i)]. Terms with one in_k share P, and terms with one threshold
are added up, so the sign of a difference costs two terms and the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.ring import Elements, Word
from umpc.mpc.arrays import Integers, Words
from umpc.protocols.grid.operators.axis import Bounds
from umpc.ustat.blocks import in_blocks

CHUNK = 1 << 19
"""Cells that a thread works on at once. Fewer make calls so short that threads wait for each other;
more do not stay in a processor's cache."""


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

    threshold: Integers
    factor: Elements

    def of(self, kind: np.dtype[Any]) -> _Gather:
        """This addend for elements of a ring."""
        return _Gather(self.threshold, self.factor.astype(kind))


@dataclass(frozen=True)
class _LegGroup:
    """All addends with one inner weight."""

    inner: Elements | None
    of_values: bool
    gathers: tuple[_Gather, ...]

    def of(self, kind: np.dtype[Any]) -> _LegGroup:
        """These addends for elements of a ring."""
        inner = None if self.inner is None else self.inner.astype(kind)
        return _LegGroup(inner, self.of_values, tuple(each.of(kind) for each in self.gathers))


class Leg:
    """The operator of these pieces from `inputs` places to `outputs` places."""

    def __init__(self, pieces: Sequence[Piece], inputs: int, outputs: int):
        self.inputs = inputs
        self.outputs = outputs
        inner: dict[bytes | None, list[Piece]] = {}
        for piece in pieces:
            # pieces with one inner weight share their prefix sums
            key = None if piece.inner is None else piece.inner.tobytes()
            inner.setdefault(key, []).append(piece)
        self.groups = tuple(_group(alike, inputs, outputs) for alike in inner.values())
        self._groups_of = {np.dtype(np.uint64): self.groups}

    @property
    def cost(self) -> int:
        """Ring operations for each cell."""
        return sum(1 + len(group.gathers) for group in self.groups)

    def apply(self, source: NDArray[Word], target: NDArray[Word]) -> None:
        """Write A·source to target.

        Args: source: (outer, inputs, inner) of a ring, uint32 or uint64. target: (outer, outputs,
        inner) of the same ring. It may be the source where both have one shape.
        """
        outer, _, inner = source.shape
        most = max(self.inputs, self.outputs)
        self._of(source.dtype)  # made here, and not by several threads

        def along_rows(start: int) -> None:
            part = slice(start, start + rows)
            # rows in parts that stay in a core's cache
            target[part, :, 0] = self._block(source[part, :, 0], axis=1)

        def along_columns(place: tuple[int, int]) -> None:
            row, start = place
            part = slice(start, start + columns)
            target[row, :, part] = self._block(source[row, :, part], axis=0)

        if inner == 1:
            rows = max(1, CHUNK // most)
            in_blocks(along_rows, range(0, outer, rows))
            return
        columns = max(64, CHUNK // most)
        starts = range(0, inner, columns)
        in_blocks(along_columns, [(row, start) for row in range(outer) for start in starts])

    def _of(self, kind: np.dtype[Any]) -> tuple[_LegGroup, ...]:
        """The groups for elements of a ring. Narrow rings take less memory, and less time."""
        if kind not in self._groups_of:
            self._groups_of[kind] = tuple(group.of(kind) for group in self.groups)
        return self._groups_of[kind]

    def _block(self, block: Elements, axis: int) -> Elements:
        """The operator along an axis of a block of two axes."""
        shape = list(block.shape)
        shape[axis] = self.outputs
        total = np.zeros(shape, dtype=block.dtype)
        for group in self._of(block.dtype):
            # inner(j) · v(j)
            values = block if group.inner is None else block * _along(group.inner, axis)
            # linear time: prefix sums in place of a matrix
            sums = values if group.of_values else prefix_sums(values, axis)
            for gather in group.gathers:
                # P[high] − P[low] = Σ over the interval
                taken = np.take(sums, gather.threshold, axis=axis)
                factor = gather.factor
                total += taken * (_along(factor, axis) if factor.ndim else factor)
        return total


def to_words(numbers: Integers) -> Words:
    """int64 numbers modulo 2^64."""
    return numbers.astype(np.int64, copy=False).view(np.uint64)


def word(number: int) -> Words:
    """() uint64: an integer modulo 2^64."""
    return np.asarray(number % (1 << 64), dtype=np.uint64)


def _group(pieces: Sequence[Piece], inputs: int, outputs: int) -> _LegGroup:
    points = all(np.all(high - low <= 1) for low, high in (piece.bounds for piece in pieces))
    found: dict[bytes, tuple[Integers, Words]] = {}
    for piece in pieces:
        low, high = piece.bounds
        factor = word(piece.coefficient)
        if piece.outer is not None:
            factor = piece.outer * factor
        if points:
            # an interval of one place or none
            held = (high > low).astype(np.uint64)
            whole = bool(held.all())
            _collect(found, np.minimum(low, inputs - 1), factor if whole else factor * held)
        else:
            # + P[high]
            _collect(found, high, factor)
            # − P[low]
            _collect(found, low, np.negative(factor))
    gathers = [
        _Gather(places, factor)
        for places, factor in found.values()
        if factor.any() and (points or places.any())
    ]
    return _LegGroup(pieces[0].inner, points, tuple(gathers))


def _collect(found: dict[bytes, tuple[Integers, Words]], places: Integers, factor: Words) -> None:
    key = places.tobytes()
    known = found.get(key)
    found[key] = (places, factor if known is None else np.add(known[1], factor))


def _along(vector: Elements, axis: int) -> Elements:
    return vector[None, :] if axis else vector[:, None]


def prefix_sums(values: Elements, axis: int) -> Elements:
    """P with P[t] = Σ_{j < t} values[j] along the axis."""
    shape = list(values.shape)
    shape[axis] += 1
    sums: Elements = np.zeros(shape, dtype=values.dtype)
    after = sums[:, 1:] if axis else sums[1:]
    np.cumsum(values, axis=axis, dtype=values.dtype, out=after)
    return sums
