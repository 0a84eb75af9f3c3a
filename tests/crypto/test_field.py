"""F, K and polynomials over them against Python's integers.

Tiny fields are gone through exhaustively in `field_reference.py`, which takes the steps of umpc.
umpc's own field is then compared with this reference, at corners and at random elements, in numpy
and then compiled.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crypto.field_reference import Extension, Reference
from umpc.crypto import field
from umpc.crypto import field_transforms as transforms
from umpc.crypto.field import P
from umpc.crypto.prg import Stream
from umpc.errors import LocalProtocolError

pytestmark = pytest.mark.usefixtures("both_ways")
WHOLE, K = Reference(32), Extension(P, 7)
TINY = (Extension(5, 2), Extension(7, 3), Extension(13, 2))
CORNERS = (0, 1, 2, 7, 2**31, 2**32 - 2, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, P // 2)
CORNERS += (P // 2 + 1, P - 2**32, P - 2**32 + 1, P - 7, P - 2, P - 1)
elements = st.one_of(st.sampled_from(CORNERS), st.integers(0, P - 1))
pairs = st.tuples(elements, elements)
outside = st.tuples(elements, elements.filter(bool))


def array(values) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def numbers(found: np.ndarray) -> list:
    """Python's integers, after a look at their form: uint64 below p."""
    assert found.dtype == np.uint64 and (found < P).all()
    return found.tolist()


def drawn(label: str, *shape: int) -> np.ndarray:
    """Uniform elements."""
    stream = Stream(label.encode().ljust(32))
    return field.field_elements(stream, int(np.prod(shape))).reshape(shape)


def as_pairs(found: np.ndarray) -> list[tuple[int, int]]:
    return [tuple(each) for each in numbers(found)]


# --- tiny fields, exhaustively --------------------------------------------------------------------


@pytest.mark.parametrize("tiny", [Reference(1), Reference(2), Reference(4)], ids=lambda t: t.p)
def test_the_reduction_of_words_is_right_for_every_pair_of_words(tiny):
    """p = 3, 13 and 241 have the form of umpc's p, with halves of 1, 2 and 4 bits."""
    for a, b in product(range(tiny.words), repeat=2):
        assert tiny.product(a, b) == a * b % tiny.p
        assert tiny.reduced(a, b) == (a + tiny.words * b) % tiny.p
    for a, b in product(range(tiny.p), repeat=2):
        assert tiny.add(a, b) == (a + b) % tiny.p and tiny.subtract(a, b) == (a - b) % tiny.p


@pytest.mark.parametrize("tiny", TINY, ids=lambda tiny: tiny.p)
def test_every_product_and_inverse_of_k(tiny):
    every = tiny.elements()
    for a, b in product(every, repeat=2):
        assert tiny.times(a, b) == tiny.definition_times(a, b)
    for a in every[1:]:
        assert tiny.definition_times(a, tiny.inverse_k(a)) == (1, 0)
        assert tiny.powers(a, 9) == [tiny.power(a, exponent) for exponent in range(1, 10)]


@pytest.mark.parametrize("tiny", TINY, ids=lambda tiny: tiny.p)
def test_every_list_of_few_elements_is_inverted_together(tiny):
    for length in (1, 2, 3, 4):
        for row in product(range(1, tiny.p), repeat=length if tiny.p < 13 else min(length, 3)):
            found = tiny.inverses(row)
            assert [a * b % tiny.p for a, b in zip(row, found, strict=True)] == [1] * len(row)


@pytest.mark.parametrize("tiny", TINY, ids=lambda tiny: tiny.p)
def test_weights_of_every_point_outside_f(tiny):
    """They are those of Lagrange, and give r^j for x^j."""
    for n in (1, 2, 4):
        if (tiny.p - 1) % n:
            continue
        for r in (each for each in tiny.elements() if each[1]):
            weights = tiny.weights(n, r)
            assert weights == tiny.definition_weights(n, r)
            for j in range(n):
                values = [(pow(w, j, tiny.p), 0) for w in tiny.roots(n)]
                assert tiny.inner(values, weights) == tiny.power(r, j)


@pytest.mark.parametrize("tiny", TINY, ids=lambda tiny: tiny.p)
def test_transforms_of_every_polynomial_of_few_coefficients(tiny):
    for n in (1, 2, 4):
        if (tiny.p - 1) % n == 0:
            for x in product(range(min(tiny.p, 7)), repeat=n):
                assert tiny.transform(x) == tiny.definition_values(x)


def test_transforms_of_a_tiny_field_with_many_roots():
    """p = 17 has 16 roots: all polynomials of one term, whose sums are all others."""
    tiny = Extension(17, 3)
    for i in range(16):
        x = [int(i == j) for j in range(16)]
        assert tiny.transform(x) == tiny.definition_values(x)


# --- F --------------------------------------------------------------------------------------------


def test_p_is_a_prime_and_7_generates_its_field():
    """p − 1 = 2^32 · 3 · 5 · 17 · 257 · 65537 (Lucas' test: 7 has order p − 1)."""
    primes = (2, 3, 5, 17, 257, 65537)
    assert P - 1 == 2**32 * 3 * 5 * 17 * 257 * 65537
    assert pow(field.GENERATOR, P - 1, P) == 1
    assert all(pow(field.GENERATOR, (P - 1) // prime, P) != 1 for prime in primes)


def test_every_pair_of_corners():
    a, b = (array(each) for each in zip(*product(CORNERS, repeat=2), strict=True))
    both = list(product(CORNERS, repeat=2))
    assert numbers(field.add(a, b)) == [(x + y) % P for x, y in both]
    assert numbers(field.subtract(a, b)) == [(x - y) % P for x, y in both]
    assert numbers(field.multiply(a, b)) == [x * y % P for x, y in both]
    assert numbers(field.multiply(a, b)) == [WHOLE.product(x, y) for x, y in both]
    assert numbers(field.negate(array(CORNERS))) == [-x % P for x in CORNERS]


@given(a=elements, b=elements, exponent=st.one_of(st.integers(0, 20), elements))
def test_elements_one_by_one(a, b, exponent):
    """Arrays without axes, too: nothing warns of an overflow."""
    one, other = array(a), array(b)
    assert int(field.add(one, other)) == (a + b) % P
    assert int(field.subtract(one, other)) == (a - b) % P
    assert int(field.multiply(one, other)) == a * b % P
    assert int(field.negate(one)) == -a % P
    assert int(field.power(one, exponent)) == pow(a, exponent, P)
    assert int(field.constant(a - b)) == (a - b) % P


@given(rows=st.lists(elements.filter(bool), max_size=40))
def test_inverses_are_those_of_python_and_of_the_tree(rows):
    found = numbers(field.inverse(array(rows)))
    assert found == [pow(x, -1, P) for x in rows]
    assert not rows or found == K.inverses(rows)


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0,), (2, 0, 3), (1025,)])
def test_inverses_keep_their_shape(shape):
    given_ = field.add(drawn("inverses", *shape), np.zeros(shape, dtype=np.uint64))
    found = field.inverse(given_)
    assert found.shape == shape and (field.multiply(found, given_) == 1).all()


@pytest.mark.parametrize("at", [0, 1, 6])
def test_zero_has_no_inverse_and_the_error_names_no_value(at):
    x = drawn("zero", 7)
    x[at] = 0
    with pytest.raises(LocalProtocolError, match="an inverse of 0") as caught:
        field.inverse(x)
    assert not any(str(each) in str(caught.value) for each in x[x > 0])
    with pytest.raises(LocalProtocolError, match="an inverse of 0"):
        field.inverse_k(np.stack([x, x], axis=-1))


@given(rows=st.lists(st.tuples(elements, elements), max_size=30))
def test_sums_and_inner_products(rows):
    a, b = array(rows).reshape(-1, 2).T
    assert int(field.total(a)) == sum(x for x, _ in rows) % P
    assert int(field.inner(a, b)) == sum(x * y for x, y in rows) % P


def test_long_sums_do_not_wrap():
    """2^32 terms of p − 1 by broadcasting: halves of 2^32 − 1, whose sum fills a word."""
    long = np.broadcast_to(array(2**32 - 1), (1 << 22,))
    assert int(field.total(long)) == (2**32 - 1) * 2**22 % P
    most = np.full(1 << 17, P - 1, dtype=np.uint64)
    assert int(field.total(most)) == -(2**17) % P
    assert int(field.inner(most, most)) == 2**17
    full = 2**32 * (2**32 - 1)
    assert full < 2**64, "the sum of 2^32 halves"
    with pytest.raises(LocalProtocolError, match="at most 4294967296 terms, got 4294967297"):
        field.total(np.broadcast_to(array(1), (2**32 + 1,)))


def test_shapes_broadcast_and_long_arrays_are_computed_in_parts():
    a, b = drawn("rows", 30, 1, 700), drawn("columns", 2, 700)
    expected = a.astype(object) * b.astype(object) % P
    assert (field.multiply(a, b).astype(object) == expected).all()
    assert numbers(field.inner(a, b)) == (expected.sum(axis=-1) % P).tolist()
    assert numbers(field.total(a, axis=0)) == (a.astype(object).sum(axis=0) % P).tolist()


# --- signs ----------------------------------------------------------------------------------------


@given(value=st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, -1, P // 2])))
def test_signed_integers_survive(value):
    found = field.encode(np.array([value], dtype=np.int64))
    assert numbers(found) == [value % P]
    signed = value % P if value % P <= P // 2 else value % P - P
    assert field.decode(found).tolist() == [signed]


# --- K --------------------------------------------------------------------------------------------


@given(a=pairs, b=pairs, c=elements)
def test_products_of_k(a, b, c):
    assert tuple(numbers(field.times(array(a), array(b)))) == K.definition_times(a, b)
    assert tuple(numbers(field.scale(array(c), array(a)))) == K.definition_times((c, 0), a)
    assert tuple(numbers(field.add(array(a), array(b)))) == K.plus(a, b)


def test_every_product_of_corners_of_k():
    few = [(a, b) for a in CORNERS[::3] for b in CORNERS[1::3]]
    a = array(few)
    found = field.times(a[:, None], a)
    expected = [[list(K.definition_times(x, y)) for y in few] for x in few]
    assert numbers(found) == expected


@given(rows=st.lists(pairs.filter(any), max_size=20))
def test_inverses_of_k(rows):
    a = array(rows).reshape(-1, 2)
    found = field.inverse_k(a)
    assert as_pairs(found) == [K.inverse_k(each) for each in rows]
    assert (field.times(found, a) == array([1, 0])).all()


@given(rows=st.lists(st.tuples(pairs, pairs), max_size=20))
def test_inner_products_of_k(rows):
    a, b = (array([each[side] for each in rows]).reshape(-1, 2) for side in (0, 1))
    left, right = ([each[side] for each in rows] for side in (0, 1))
    assert tuple(numbers(field.inner_k(a, b))) == K.inner(left, right)
    of_f = [(each[0], 0) for each in left]
    assert tuple(numbers(field.inner_fk(a[:, 0], b))) == K.inner(of_f, right)


def test_inner_products_of_many_rows_with_one():
    rows, weights = drawn("wires", 6, 33, 2), drawn("weights", 33, 2)
    found = as_pairs(field.inner_k(rows, weights))
    assert found == [K.inner(as_pairs(row), as_pairs(weights)) for row in rows]
    found = as_pairs(field.inner_fk(rows[..., 0], weights))
    of_f = [[(a, 0) for a, _ in as_pairs(row)] for row in rows]
    assert found == [K.inner(row, as_pairs(weights)) for row in of_f]


@given(rho=pairs, count=st.integers(0, 40))
def test_powers(rho, count):
    found = field.powers(array(rho), count)
    assert found.shape == (count, 2)
    assert as_pairs(found) == [K.power(rho, exponent) for exponent in range(1, count + 1)]


# --- polynomials ----------------------------------------------------------------------------------

LENGTHS = (1, 2, 4, 8, 64)


def values_at_roots(coefficients: np.ndarray, axis: int = -1) -> np.ndarray:
    """Values of polynomials at the n-th roots of unity: n times the inverse, read backwards."""
    n = coefficients.shape[axis]
    turned = np.roll(np.flip(transforms.values_to_coefficients(coefficients, axis), axis), 1, axis)
    return field.multiply(turned, field.constant(n))


@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_are_the_values_at_roots_of_unity(n):
    x = drawn("coefficients", 3, n)
    x[0, : len(CORNERS)] = array(CORNERS)[:n]
    found = values_at_roots(x)
    assert numbers(found) == [K.definition_values(row.tolist()) for row in x]
    assert numbers(found) == [K.transform(row.tolist()) for row in x]
    assert (transforms.values_to_coefficients(found) == x).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_transforms_along_any_axis_are_those_of_the_last_one(n):
    x = drawn("axes", 3, n, 2)
    expected = np.moveaxis(values_at_roots(np.moveaxis(x, 1, -1)), -1, 1)
    for axis in (1, -2):
        assert (values_at_roots(x, axis) == expected).all()
        assert (transforms.values_to_coefficients(expected, axis) == x).all()
    turned = values_at_roots(np.moveaxis(x, 1, 0), 0)
    assert (np.moveaxis(turned, 0, 1) == expected).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_extended_values_are_those_of_one_polynomial(n):
    x = drawn("extended", 2, n, 2)
    given_ = values_at_roots(x, -2)
    longer = np.concatenate([x, np.zeros_like(x)], axis=-2)
    found = transforms.extended(given_, -2)
    assert (found == values_at_roots(longer, -2)).all()
    assert (found[:, ::2] == given_).all()
    assert (transforms.extended(given_[..., 1]) == found[..., 1]).all()


@pytest.mark.parametrize("n", [0, 3, 6, 2**33])
def test_lengths_that_are_no_power_of_two_are_refused(n):
    with pytest.raises(LocalProtocolError, match=r"expected a power of two up to 2\^32"):
        transforms.roots_of_unity(n)
    if n < 2**32:
        for function in (transforms.values_to_coefficients, transforms.extended):
            with pytest.raises(LocalProtocolError, match="expected a power of two"):
                function(np.zeros((2, n), dtype=np.uint64))


@settings(max_examples=30)
@given(n=st.sampled_from([1, 2, 4, 16]), r=outside)
def test_weights_are_those_of_lagrange(n, r):
    found = as_pairs(transforms.weights_at(n, array(r)))
    assert found == K.definition_weights(n, r) == K.weights(n, r)


@pytest.mark.parametrize("n", [32, 512])
def test_weights_give_the_value_of_a_polynomial(n):
    coefficients, r = drawn("polynomial", n, 2), drawn("point", 2)
    values = values_at_roots(coefficients, 0)
    found = field.inner_k(transforms.weights_at(n, r), values)
    powers = [(1, 0), *as_pairs(field.powers(r, n - 1))]
    assert tuple(numbers(found)) == K.inner(as_pairs(coefficients), powers)


@pytest.mark.parametrize("r", [(1, 0), (5, 0)])
def test_points_in_f_are_refused(r):
    with pytest.raises(LocalProtocolError, match="a point of K outside F"):
        transforms.weights_at(4, array(r))


# --- streams --------------------------------------------------------------------------------------


class Told:
    """A stream whose words are given."""

    def __init__(self, words):
        self._words, self.at = array(words), 0

    def words(self, count: int) -> np.ndarray:
        self.at += count
        assert self.at <= len(self._words), "more words than were needed"
        return self._words[self.at - count : self.at]


WORDS = [P, 5, 2**64 - 1, P - 1, 0, P + 1, P, 2**64 - 1, 7, P, 9, 11, P, P, 12]


def test_words_from_p_on_are_skipped_and_no_word_more_is_drawn():
    stream = Told(WORDS)
    assert numbers(field.field_elements(stream, 5)) == [5, P - 1, 0, 7, 9]
    assert stream.at == 11, "the next word is the one behind the last element"
    assert numbers(field.field_elements(stream, 0)) == [] and stream.at == 11


@given(parts=st.lists(st.integers(0, 7), max_size=7).filter(lambda parts: sum(parts) <= 7))
def test_elements_do_not_depend_on_how_calls_split_them(parts):
    stream = Told(WORDS)
    found = [each for part in parts for each in numbers(field.field_elements(stream, part))]
    assert found == [word for word in WORDS if word < P][: sum(parts)]


def test_elements_of_a_seed_are_its_words_below_p():
    seed = bytes(range(32))
    words = Stream(seed).words(1000)
    assert (field.field_elements(Stream(seed), 1000) == words[words < P]).all()
    stream = Stream(seed)
    split = [field.field_elements(stream, count) for count in (1, 0, 998, 1)]
    assert (np.concatenate(split) == words).all()


def test_a_challenge_is_outside_f():
    seed = bytes(32)
    assert numbers(field.challenge(seed)) == Stream(seed).words(2).tolist()
    assert numbers(field.outside_f(Told([3, P, 0, 4, 0, P, 5, 6]))) == [5, 6]
