"""The field of the verified grid compiled: products, inner products, inverses and transforms.

`crypto/field.py` and `field_transforms.py` say what each function computes, and stay the reference:
every function gives their elements. Callers take it where `CHOSEN` names a kind. A call holds no
lock of Python. Elements are below p; arrays of another type or of shapes that do not fit raise
ValueError.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from umpc.native import CHOSEN, call

__all__ = ["CHOSEN", "inner", "inverse", "multiply", "times", "transform"]

Words = NDArray[np.uint64]


def multiply(a: Words, b: Words) -> Words:
    """a b in F, place by place. Shapes broadcast."""
    return _each("umpc_field_multiply", a, b, 1)


def times(a: Words, b: Words) -> Words:
    """a b in K: (…, 2) and (…, 2) → (…, 2). Shapes broadcast."""
    if a.shape[-1:] != (2,) or b.shape[-1:] != (2,):
        raise ValueError(f"elements of K are (…, 2), got {a.shape} and {b.shape}")
    return _each("umpc_field_times", a, b, 2)


def inner(a: Words, b: Words, widths: tuple[int, int]) -> Words:
    """Sums of products over n: (…, n) or (…, n, 2), and so for b → (…) or (…, 2).

    Args: widths: (1, 1) for F and F, (1, 2) for F and K, (2, 2) for K and K.
    """
    left, right = widths
    if widths not in ((1, 1), (1, 2), (2, 2)):
        raise ValueError(f"widths are (1, 1), (1, 2) or (2, 2), got {widths}")
    one, other = (_with_width(each, width) for each, width in ((a, left), (b, right)))
    *lead, count = np.broadcast_shapes(one.shape[:-1], other.shape[:-1])
    one, one_step = _rows(one, lead, (count, left))
    other, other_step = _rows(other, lead, (count, right))
    found = np.empty((*lead, right), dtype=np.uint64)
    given = left, right, _at(one), one_step, _at(other), other_step, prod(lead), count
    call("umpc_field_inner", CHOSEN, *given, _at(found))
    return found if right == 2 else found.reshape(lead)


def inverse(x: Words) -> Words:
    """1/x in F of every element; 0 for all of a chain of elements if one of them is 0."""
    words = _laid_out(x, x.shape)
    found = np.empty(x.shape, dtype=np.uint64)
    call("umpc_field_inverse", CHOSEN, _at(words), x.size, _at(found))
    return found


def transform(rows: Words, roots: Words) -> Words:
    """Σ_i x_i w^(ij) for each j: (rows, n, width) → (rows, n, width), n a power of two.

    Args: roots: (n,), the powers of w.
    """
    count, n, width = rows.shape
    if roots.shape != (n,) or n & (n - 1) or not n:
        raise ValueError(f"n is a power of two and the number of roots, got {n} and {roots.shape}")
    words, powers = _laid_out(rows, rows.shape), _laid_out(roots, (n,))
    found = np.empty(rows.shape, dtype=np.uint64)
    given = _at(words), _at(powers), count, n, width
    call("umpc_field_transform", CHOSEN, *given, _at(found))
    return found


def _each(name: str, a: Words, b: Words, width: int) -> Words:
    shape = np.broadcast_shapes(a.shape, b.shape)
    one, other = _laid_out(a, shape), _laid_out(b, shape)
    found = np.empty(shape, dtype=np.uint64)
    call(name, CHOSEN, _at(one), _at(other), found.size // width, _at(found))
    return found


def _with_width(array: Words, width: int) -> Words:
    """The array with an axis of coordinates, also in F."""
    whole = array[..., None] if width == 1 else array
    if whole.ndim < 2 or whole.shape[-1] != width:
        raise ValueError(f"elements are (…, n{', 2' * (width - 1)}), got {array.shape}")
    return whole


def _rows(array: Words, lead: list[int], row: tuple[int, int]) -> tuple[Words, int]:
    """The rows for the library, and the step between them: 0 if there is one for all."""
    if prod(array.shape[:-2]) == 1:
        return _laid_out(array.reshape(array.shape[-2:]), row), 0
    return _laid_out(array, (*lead, *row)), prod(row)


def _laid_out(array: Words, shape: tuple[int, ...]) -> Words:
    """The array broadcast to a shape, contiguous. Raises: ValueError."""
    if array.dtype != np.uint64:
        raise ValueError(f"elements of the field are uint64, got {array.dtype}")
    return np.ascontiguousarray(np.broadcast_to(array, shape))


def _at(array: Words) -> int:
    """Where an array begins. It lives as long as the caller holds it."""
    address: int = array.ctypes.data
    return address
