"""Arithmetic in F = Z_p, p = 2^64 − 2^32 + 1, and in its quadratic extension K, on numpy arrays.

The verified grid has its masks and tables in F and its challenges in K = F[t]/(t² − 7), outside F.
p − 1 is a multiple of 2^32, so F has roots of unity of every order 2^i, i ≤ 32.

An element of F is a uint64 x with 0 ≤ x < p. An element of K is a pair of them in the last axis,
the coefficient of 1 first: an array of elements of K has shape (…, 2). Arguments are in this form,
and results are. Nothing here looks at it: who takes elements from others checks that they are below
`P`. No step branches on an element, but for the error of an inverse of zero.

| part | functions |
|---|---|
| F | `constant`, `add`, `subtract`, `negate`, `multiply`, `power`, `inverse`, `total`, `inner` |
| signs | `encode`, `decode` |
| K | `add` and `subtract` of F; `times`, `scale`, `inverse_k`, `inner_k`, `inner_fk`, `powers` |
| streams | `field_elements`, `challenge`, `outside_f` |

`field_transforms.py` has polynomials over F and K. Where umpc has its compiled kernel, products,
sums of products, inverses and transforms are computed there, with the same elements as result
(`umpc/native/field.py`). The code here is the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from umpc.crypto.prg import Stream
from umpc.errors import LocalProtocolError
from umpc.native import field as compiled

FieldArray: TypeAlias = NDArray[np.uint64]
"""Elements of F, or of K where the last axis has two coordinates."""

P = 2**64 - 2**32 + 1
"""The number of elements of F: a prime."""
GENERATOR = 7
"""Its powers are all elements of F but 0. So it is no square, and t² − 7 has no root in F."""
MOST_TERMS = 1 << 32
"""The longest sum: its 32-bit halves add up without a carry."""

_P = np.uint64(P)
_EPSILON = np.uint64(2**32 - 1)
"""2^64 mod p, and the lower half of a word."""
_HALF = np.uint64(32)
_ZERO = np.uint64(0)
_BLOCK = 1 << 14
"""Elements that numpy multiplies at a time: their intermediate words stay in a core's cache."""


# --- F --------------------------------------------------------------------------------------------


def constant(value: int) -> FieldArray:
    """The element of F that an integer stands for: an array without axes."""
    return np.array(value % P, dtype=np.uint64)


def subtract(a: FieldArray, b: FieldArray) -> FieldArray:
    """a − b in F or in K. Shapes broadcast.

    `_reduced` also passes words a ≥ p, b < 2^32: then the result is a word of the right residue.
    """
    difference = np.subtract(a, b)
    # a word that wrapped is 2^64 too large, which is 2^32 − 1 modulo p
    return np.subtract(difference, np.where(np.less(a, b), _EPSILON, _ZERO))


def add(a: FieldArray, b: FieldArray) -> FieldArray:
    """a + b in F or in K, as a − (p − b). Shapes broadcast.

    `_reduced` also passes words a ≥ p, b ≤ (2^32 − 1)²: the result is below p even then.
    """
    return subtract(a, np.subtract(_P, b))


def negate(a: FieldArray) -> FieldArray:
    """−a in F or in K."""
    return subtract(np.zeros_like(a), a)


def _reduced(low: FieldArray, high: FieldArray) -> FieldArray:
    """low + 2^64 high modulo p, for any two words.

    With high = h0 + 2^32 h1 and 2^64 = 2^32 − 1, 2^96 = −1 this is low − h1 + (2^32 − 1) h0.
    """
    return add(
        subtract(low, np.right_shift(high, _HALF)),
        np.multiply(np.bitwise_and(high, _EPSILON), _EPSILON),
    )


def _product(a: FieldArray, b: FieldArray) -> FieldArray:
    """a b modulo p, for any two words: 128 bits from products of 32-bit halves."""
    a_low, a_high = np.bitwise_and(a, _EPSILON), np.right_shift(a, _HALF)
    b_low, b_high = np.bitwise_and(b, _EPSILON), np.right_shift(b, _HALF)
    # no sum of these overflows: (2^32 − 1)² + 2 (2^32 − 1) = 2^64 − 1
    middle = np.right_shift(np.multiply(a_low, b_low), _HALF)
    middle = np.add(np.multiply(a_low, b_high), middle)
    other = np.add(np.multiply(a_high, b_low), np.bitwise_and(middle, _EPSILON))
    high = np.add(np.multiply(a_high, b_high), np.right_shift(middle, _HALF))
    return _reduced(np.multiply(a, b), np.add(high, np.right_shift(other, _HALF)))


def multiply(a: FieldArray, b: FieldArray) -> FieldArray:
    """a b in F, place by place. Shapes broadcast."""
    if compiled.CHOSEN is not None:
        return compiled.multiply(a, b)
    a, b = np.broadcast_arrays(a, b)
    if a.size <= _BLOCK:
        return _product(a, b)
    left, right, found = a.reshape(-1), b.reshape(-1), np.empty(a.size, dtype=np.uint64)
    for start in range(0, a.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        found[part] = _product(left[part], right[part])
    return found.reshape(a.shape)


def power(x: FieldArray, exponent: int) -> FieldArray:
    """x^exponent in F, for a public exponent ≥ 0, by squaring. 0^0 is 1."""
    found, square = np.ones_like(x), x
    while exponent:
        if exponent & 1:
            found = multiply(found, square)
        exponent >>= 1
        if exponent:
            square = multiply(square, square)
    return found


def inverse(x: FieldArray) -> FieldArray:
    """1/x in F of every element, by one inversion: three products an element.

    Source: Montgomery 1987, section 10.3.1 (simultaneous inversion), as a tree of products.
    Raises: LocalProtocolError if an element is 0. It does not say which one.
    """
    if not np.all(x):
        raise LocalProtocolError("an inverse of 0 was asked for: expected only nonzero elements")
    if compiled.CHOSEN is not None:
        return compiled.inverse(x)
    level = np.append(x, np.ones(0 if x.size else 1, dtype=np.uint64))
    # up: products of neighbours, an odd one out with 1
    levels = []
    while len(level) > 1:
        if len(level) % 2:
            level = np.append(level, np.uint64(1))
        levels.append(level.reshape(-1, 2))
        level = multiply(level[::2], level[1::2])
    found = power(level, P - 2)
    # down: 1/a = b/(a b), 1/b = a/(a b)
    for pairs in reversed(levels):
        found = multiply(pairs[:, ::-1], found[: len(pairs), None]).reshape(-1)
    return found[: np.size(x)].reshape(np.shape(x))


def total(a: FieldArray, axis: int = -1) -> FieldArray:
    """The sum over an axis, in F or in K (over another axis than the last one).

    Raises: LocalProtocolError for more than 2^32 terms.
    """
    _check_terms(a.shape[axis])
    low = np.bitwise_and(a, _EPSILON).sum(axis=axis, dtype=np.uint64)
    high = np.right_shift(a, _HALF).sum(axis=axis, dtype=np.uint64)
    # low + 2^32 high, where high has up to 64 bits
    upper = _reduced(np.left_shift(high, _HALF), np.right_shift(high, _HALF))
    return add(low, upper)


def inner(a: FieldArray, b: FieldArray) -> FieldArray:
    """Σ a_i b_i in F over the last axis: (…, n) and (…, n) → (…). Shapes broadcast.

    Raises: LocalProtocolError for more than 2^32 terms.
    """
    return _sum_of_products(a, b, multiply, (1, 1))


def _sum_of_products(
    a: FieldArray, b: FieldArray, product: Callable[..., FieldArray], widths: tuple[int, int]
) -> FieldArray:
    """Σ a_i b_i. Args: widths: 1 for elements of F, and 2 for those of K."""
    _check_terms(a.shape[-widths[0]])
    if compiled.CHOSEN is not None:
        return compiled.inner(a, b, widths)
    return total(product(a, b), axis=-widths[1])


def _check_terms(count: int) -> None:
    """Raises: LocalProtocolError for more terms than `total` adds up without a carry."""
    if count > MOST_TERMS:
        raise LocalProtocolError(f"a sum has at most {MOST_TERMS} terms, got {count}")


# --- signs ----------------------------------------------------------------------------------------


def encode(values: NDArray[np.int64]) -> FieldArray:
    """The elements of F that stand for signed integers of 64 bits."""
    words = np.asarray(values, dtype=np.int64).view(np.uint64)
    return np.subtract(words, np.where(np.less(values, 0), _EPSILON, _ZERO))


def decode(a: FieldArray) -> NDArray[np.int64]:
    """The integers between −p/2 and p/2 that elements of F stand for."""
    is_negative = np.greater(a, np.uint64(P // 2))
    words = np.add(a, np.where(is_negative, _EPSILON, _ZERO))
    return np.asarray(words, dtype=np.uint64).view(np.int64)


# --- K --------------------------------------------------------------------------------------------


def times(a: FieldArray, b: FieldArray) -> FieldArray:
    """a b in K: (…, 2) and (…, 2) → (…, 2). Shapes broadcast."""
    if compiled.CHOSEN is not None:
        return compiled.times(a, b)
    (a_one, a_t), (b_one, b_t) = _coordinates(a), _coordinates(b)
    # Karatsuba: three products, and one with 7
    ones, squares = multiply(a_one, b_one), multiply(a_t, b_t)
    both = multiply(add(a_one, a_t), add(b_one, b_t))
    cross = subtract(subtract(both, ones), squares)
    return np.stack([add(ones, multiply(squares, constant(GENERATOR))), cross], axis=-1)


def scale(a: FieldArray, b: FieldArray) -> FieldArray:
    """a b, a in F and b in K: (…) and (…, 2) → (…, 2). Shapes broadcast."""
    return multiply(np.expand_dims(a, -1), b)


def inverse_k(a: FieldArray) -> FieldArray:
    """1/a in K of every element: (…, 2) → (…, 2), by the inverse of its norm in F.

    (x + y t)(x − y t) = x² − 7 y², which is 0 for a = 0 only.
    Raises: LocalProtocolError if an element is 0. It does not say which one.
    """
    one, t = _coordinates(a)
    norm = subtract(multiply(one, one), multiply(multiply(t, t), constant(GENERATOR)))
    conjugate = np.stack([one, negate(t)], axis=-1)
    return scale(inverse(norm), conjugate)


def inner_k(a: FieldArray, b: FieldArray) -> FieldArray:
    """Σ a_i b_i in K: (…, n, 2) and (…, n, 2) → (…, 2). Shapes broadcast.

    Raises: LocalProtocolError for more than 2^32 terms.
    """
    return _sum_of_products(a, b, times, (2, 2))


def inner_fk(a: FieldArray, b: FieldArray) -> FieldArray:
    """Σ a_i b_i, a in F and b in K: (…, n) and (…, n, 2) → (…, 2). Shapes broadcast.

    Raises: LocalProtocolError for more than 2^32 terms.
    """
    return _sum_of_products(a, b, scale, (1, 2))


def powers(rho: FieldArray, count: int) -> FieldArray:
    """rho^1, …, rho^count in K: (2,) → (count, 2), in log2(count) products of arrays."""
    found = rho.reshape(1, 2)
    while len(found) < count:
        # rho^(m + i) = rho^m rho^i
        found = np.concatenate([found, times(found, found[-1])[: count - len(found)]])
    return found[:count]


def _coordinates(a: FieldArray) -> tuple[FieldArray, FieldArray]:
    """The coefficients of 1 and of t."""
    return a[..., 0], a[..., 1]


# --- streams --------------------------------------------------------------------------------------


def field_elements(stream: Stream, count: int) -> FieldArray:
    """The next uniform elements of F: (count,), the stream's words below p in their order.

    A word from p on is skipped: modulo p it would prefer the elements below 2^32 − 1. The stream
    stays right behind the last element, so calls may split a count in any way.
    """
    parts, missing = [], count
    while missing > 0:
        words = stream.words(missing)
        parts.append(words[words < _P])
        missing -= len(parts[-1])
    return np.concatenate([np.empty(0, dtype=np.uint64), *parts])


def challenge(seed: bytes) -> FieldArray:
    """A uniform element of K outside F: (2,), from a seed of 32 bytes.

    It is no pole of 1/(X − y) and no point of interpolation, because these are in F.
    """
    return outside_f(Stream(seed))


def outside_f(stream: Stream) -> FieldArray:
    """The next uniform element of K whose coefficient of t is not 0: (2,)."""
    while not (found := field_elements(stream, 2))[1]:
        pass
    return found
