"""Polynomials over F and K: number-theoretic transforms, and their values at a point of K.

The points are the n-th roots of unity w^0, …, w^(n−1) in F, n a power of two up to 2^32, with
w = 7^((p−1)/n). Then the 2n-th roots hold the n-th ones at their even places. Elements of K have
coordinates that are transformed alone, because the points are in F.
"""

from __future__ import annotations

from math import prod

import numpy as np

from umpc.crypto.field import (
    GENERATOR,
    FieldArray,
    P,
    add,
    constant,
    inverse_k,
    multiply,
    scale,
    subtract,
    times,
)
from umpc.errors import LocalProtocolError
from umpc.native import field as compiled

MOST_POINTS = 1 << 32
"""The largest power of two that divides p − 1."""


def roots_of_unity(n: int) -> FieldArray:
    """w^0, …, w^(n−1) in F: (n,). Raises: LocalProtocolError unless n is a power of two ≤ 2^32."""
    if not 0 < n <= MOST_POINTS or n & (n - 1):
        raise LocalProtocolError(f"expected a power of two up to 2^32 of points, got {n}")
    found = np.ones(1, dtype=np.uint64)
    while len(found) < n:
        # w^(m + i) = w^m w^i, where w^m = 7^((p−1) m/n)
        step = constant(pow(GENERATOR, (P - 1) // n * len(found), P))
        found = np.concatenate([found, multiply(found, step)])
    return found


def values_to_coefficients(values: FieldArray, axis: int = -1) -> FieldArray:
    """The n coefficients, lowest first, of polynomials by their values at the n-th roots of 1.

    Args: axis: of the n values; −1 for arrays over F, such as −2 for arrays over K.
    Raises: LocalProtocolError unless n is a power of two up to 2^32.
    """
    found = _transform(_in_rows(values, axis))
    # the inverse takes w^−1 for w, and divides by n
    turned = np.concatenate([found[:, :1], found[:, :0:-1]], axis=1)
    return multiply(turned, _one_over(found.shape[1])).reshape(values.shape)


def extended(values: FieldArray, axis: int = -1) -> FieldArray:
    """The values at the 2n-th roots of unity from those at the n-th ones, of degree below n.

    Args: axis: of the n values; −1 for arrays over F, such as −2 for arrays over K.
    Returns: 2n values in the axis. Those at even places are the given ones.
    Raises: LocalProtocolError unless 2n is a power of two up to 2^32.
    """
    rows = _in_rows(values, axis)
    n = rows.shape[1]
    # the values of f(v x), where v is the 2n-th root, are those of f at odd places
    shift = roots_of_unity(2 * n)[:n, None]
    odd = _transform(multiply(values_to_coefficients(rows, 1), shift))
    shape = list(values.shape)
    shape[axis] = 2 * n
    return np.stack([rows, odd], axis=2).reshape(shape)


def weights_at(n: int, r: FieldArray) -> FieldArray:
    """Lagrange weights of the n-th roots of unity at a point: (n, 2), elements of K.

    f(r) = Σ_i weight_i f(w^i) for each polynomial of degree below n over F or K.
    Source: Berrut and Trefethen 2004, section 3 (the first barycentric formula), whose weights are
    (r^n − 1)/n · w^i/(r − w^i) at roots of unity.

    Args: r: (2,), a point of K outside F.
    Raises: LocalProtocolError if r is in F, or unless n is a power of two up to 2^32.
    """
    roots = roots_of_unity(n)
    if not r[1]:
        raise LocalProtocolError("expected a point of K outside F, got one in F")
    differences = np.stack([subtract(r[0], roots), np.broadcast_to(r[1], n)], axis=-1)
    # r^n by squarings
    common = r
    for _ in range(n.bit_length() - 1):
        common = times(common, common)
    common = np.stack([subtract(common[0], constant(1)), common[1]])
    return times(multiply(common, _one_over(n)), scale(roots, inverse_k(differences)))


def _one_over(n: int) -> FieldArray:
    return constant(pow(n, -1, P))


def _in_rows(array: FieldArray, axis: int) -> FieldArray:
    """The array as (rows, n, width): axes before the axis, the axis, axes behind it."""
    before, behind = array.shape[:axis], array.shape[axis:][1:]
    return array.reshape(prod(before), array.shape[axis], prod(behind))


def _transform(rows: FieldArray) -> FieldArray:
    """Σ_i x_i w^(ij) for each j: (rows, n, width) → (rows, n, width).

    Source: Van Loan 1992, section 1.7 (Stockham's transform of radix 2, which sorts by itself).
    """
    count, n, width = rows.shape
    roots, half = roots_of_unity(n), n // 2
    if compiled.CHOSEN is not None:
        return compiled.transform(rows, roots)
    found = rows.reshape(count, n * width)
    done = 1
    while done < n:
        # transforms of `done` points, of strides: joined by w_(2 done)^k
        stride = half // done
        twiddles = np.repeat(np.tile(roots[:half:stride], stride), width)
        even, odd = found[:, : half * width], multiply(found[:, half * width :], twiddles)
        joined = np.empty((count, stride, 2, done * width), dtype=np.uint64)
        joined[:, :, 0] = add(even, odd).reshape(count, stride, done * width)
        joined[:, :, 1] = subtract(even, odd).reshape(count, stride, done * width)
        found, done = joined.reshape(count, n * width), 2 * done
    return found.reshape(rows.shape)
