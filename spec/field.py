"""Two fields, and polynomials that are given by their values at roots of unity.

F is the integers modulo p = 2^64 − 2^32 + 1. K = F[t]/(t² − 7) has p² elements, and t² = 7 has no
solution in F. An element of F is an integer below p; an element of K is a pair (v, w): v + w·t.

F is large enough for sums over all pairs, and it has roots of unity of order 2^32. K is large
enough for challenges. A challenge is in K and not in F: so it is neither a cell nor a root of
unity, and no denominator is ever zero.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from spec.prg import cut, digest, reader
from spec.refused import require

P = 2**64 - 2**32 + 1
NON = 7
"""A number without a square root in F."""

Element = tuple[int, int]
"""An element of K."""
ZERO: Element = (0, 0)
ONE: Element = (1, 0)


@contextmanager
def small_field(prime: int, non_residue: int) -> Iterator[None]:
    """Another prime, with a number that has no square root, for exhaustive tests."""
    global P, NON
    before, (P, NON) = (P, NON), (prime, non_residue)
    try:
        yield
    finally:
        P, NON = before


def lift(values: list[int]) -> list[Element]:
    """Elements of F as elements of K."""
    return [(value % P, 0) for value in values]


def add(one: Element, other: Element) -> Element:
    """The sum in K."""
    return (one[0] + other[0]) % P, (one[1] + other[1]) % P


def subtract(one: Element, other: Element) -> Element:
    """The difference in K."""
    return (one[0] - other[0]) % P, (one[1] - other[1]) % P


def multiply(one: Element, other: Element) -> Element:
    """The product in K: t² = 7."""
    (a, b), (c, d) = one, other
    return (a * c + NON * b * d) % P, (a * d + b * c) % P


def inverse(value: Element) -> Element:
    """1/(v + w·t) = (v − w·t)/(v² − 7·w²), where the denominator is in F and not zero."""
    v, w = value
    norm = pow(v * v - NON * w * w, -1, P)
    return v * norm % P, -w * norm % P


def total(values: list[Element]) -> Element:
    """The sum of a list in K."""
    return sum(v for v, _ in values) % P, sum(w for _, w in values) % P


def dot(one: list[Element], other: list[Element]) -> Element:
    """⟨one, other⟩ in K."""
    return total([multiply(a, b) for a, b in zip(one, other, strict=True)])


def plus(one: list[Element], other: list[Element]) -> list[Element]:
    """The sum of two lists, place by place."""
    return [add(a, b) for a, b in zip(one, other, strict=True)]


def masked(values: list[int], added: list[int]) -> list[int]:
    """The sum of two lists in F."""
    return [(v + m) % P for v, m in zip(values, added, strict=True)]


def negative(values: list[Element]) -> list[Element]:
    """All values with the other sign."""
    return [subtract(ZERO, value) for value in values]


def powers(value: Element, count: int) -> list[Element]:
    """value, value², … value^count."""
    found, last = [], ONE
    for _ in range(count):
        last = multiply(last, value)
        found.append(last)
    return found


def root(order: int) -> int:
    """A root of unity of this order, a power of two; the square of `root(2 * order)`."""
    return pow(NON, (P - 1) // order, P)


def weights(size: int, x: Element) -> list[Element]:
    """λ with v(x) = Σ λ_i·v(ω^i), for each polynomial v of degree < size, where ω = root(size).

    λ_i = ω^i·(x^size − 1) / (size·(x − ω^i)). No λ_i is zero. Args: x: no power of ω.
    """
    points = lift([pow(root(size), place, P) for place in range(size)])
    factor = multiply(subtract(powers(x, size)[-1], ONE), (pow(size, -1, P), 0))
    return [multiply(multiply(factor, w), inverse(subtract(x, w))) for w in points]


def elements(seed: bytes, count: int) -> list[int]:
    """Uniform elements of F: those words of 64 bits of a stream that are below p.

    All others are left out. A word modulo p would prefer the numbers below 2^32 − 1.
    """
    draw, found = reader(seed), list[int]()
    while len(found) < count:
        found += [word for word in draw(count - len(found)) if word < P]
    return found


def pairs(values: list[int]) -> list[Element]:
    """Elements of K from twice as many of F."""
    return [(v, w) for v, w in cut(values, 2)]


def challenge(tag: bytes, *parts: bytes) -> Element:
    """A uniform element of K that is not in F, from a hash of what was sent before."""
    seed, count = digest(tag, *parts), 2
    while True:
        v, w = elements(seed, count)[-2:]
        if w:
            return v, w
        count += 2


def encode(values: list[int]) -> bytes:
    """Elements of F, 8 bytes each, little-endian."""
    return b"".join(value.to_bytes(8, "little") for value in values)


def encode_pairs(values: list[Element]) -> bytes:
    """Elements of K, 16 bytes each."""
    return encode([part for value in values for part in value])


def decode(data: bytes, count: int, check: str, culprit: str | None) -> list[int]:
    """The inverse of `encode`. Another length, or a number that is not below p, is refused."""
    require(len(data) == 8 * count, check, culprit)
    values = [int.from_bytes(part, "little") for part in cut(data, 8)]
    require(all(value < P for value in values), "elements are below p", culprit)
    return values


def decode_pairs(data: bytes, count: int, check: str, culprit: str) -> list[Element]:
    """The inverse of `encode_pairs`."""
    return pairs(decode(data, 2 * count, check, culprit))
