"""The field and its extension in Python's integers, of any size: an independent implementation.

`Reference(h)` reduces words of 2h bits modulo p = 2^(2h) − 2^h + 1. h = 1, 2 and 4 give p = 3, 13
and 241, which tests go through exhaustively; h = 32 gives umpc's p. `Extension(p, g)` has the steps
that need no words, so p is any prime, and g a generator of Z_p. `definition_` functions say what is
meant. The others take the steps of `umpc/crypto/field.py` and `field_transforms.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

Pair = tuple[int, int]


@dataclass(frozen=True)
class Reference:
    """Reduction of words of 2h bits."""

    half: int

    @property
    def p(self) -> int:
        return (1 << 2 * self.half) - (1 << self.half) + 1

    @property
    def words(self) -> int:
        return 1 << 2 * self.half

    @property
    def epsilon(self) -> int:
        return (1 << self.half) - 1

    def subtract(self, a: int, b: int) -> int:
        wrapped = (a - b) % self.words
        return (wrapped - (self.epsilon if a < b else 0)) % self.words

    def add(self, a: int, b: int) -> int:
        return self.subtract(a, (self.p - b) % self.words)

    def reduced(self, low: int, high: int) -> int:
        top, bottom = high >> self.half, high & self.epsilon
        assert bottom * self.epsilon < self.words
        return self.add(self.subtract(low, top), bottom * self.epsilon)

    def product(self, a: int, b: int) -> int:
        a_low, a_high = a & self.epsilon, a >> self.half
        b_low, b_high = b & self.epsilon, b >> self.half
        middle = a_low * b_high + (a_low * b_low >> self.half)
        other = a_high * b_low + (middle & self.epsilon)
        high = a_high * b_high + (middle >> self.half) + (other >> self.half)
        assert max(middle, other, high) < self.words
        return self.reduced(a * b % self.words, high)


@dataclass(frozen=True)
class Extension:
    """K = F[t]/(t² − g) over F = Z_p, where g generates F."""

    p: int
    g: int

    def elements(self) -> list[Pair]:
        return list(product(range(self.p), repeat=2))

    def definition_times(self, a: Pair, b: Pair) -> Pair:
        """The product of polynomials in t, modulo t² − g."""
        low, middle, high = a[0] * b[0], a[0] * b[1] + a[1] * b[0], a[1] * b[1]
        return (low + self.g * high) % self.p, middle % self.p

    def plus(self, a: Pair, b: Pair) -> Pair:
        return (a[0] + b[0]) % self.p, (a[1] + b[1]) % self.p

    def times(self, a: Pair, b: Pair) -> Pair:
        ones, squares = a[0] * b[0], a[1] * b[1]
        cross = (a[0] + a[1]) * (b[0] + b[1]) - ones - squares
        return (ones + self.g * squares) % self.p, cross % self.p

    def inner(self, a: Sequence[Pair], b: Sequence[Pair]) -> Pair:
        found = (0, 0)
        for left, right in zip(a, b, strict=True):
            found = self.plus(found, self.definition_times(left, right))
        return found

    def power(self, a: Pair, exponent: int) -> Pair:
        found = (1, 0)
        for _ in range(exponent):
            found = self.definition_times(found, a)
        return found

    def inverses(self, numbers: Sequence[int]) -> list[int]:
        """The tree of products over F."""
        level, levels = list(numbers), []
        while len(level) > 1:
            level += [1] * (len(level) % 2)
            levels.append(level)
            level = [a * b % self.p for a, b in zip(level[::2], level[1::2], strict=True)]
        found = [pow(level[0], self.p - 2, self.p)]
        for level in reversed(levels):
            swapped = [level[i ^ 1] for i in range(len(level))]
            found = [a * found[i // 2] % self.p for i, a in enumerate(swapped)]
        return found[: len(numbers)]

    def inverse_k(self, a: Pair) -> Pair:
        norm = (a[0] * a[0] - self.g * a[1] * a[1]) % self.p
        (scale,) = self.inverses([norm])
        return a[0] * scale % self.p, -a[1] * scale % self.p

    def powers(self, rho: Pair, count: int) -> list[Pair]:
        found = [rho]
        while len(found) < count:
            found += [self.times(each, found[-1]) for each in found][: count - len(found)]
        return found[:count]

    def roots(self, n: int) -> list[int]:
        return [pow(self.g, (self.p - 1) // n * i, self.p) for i in range(n)]

    def transform(self, x: Sequence[int]) -> list[int]:
        """Values at the roots of unity by halves, from sorted halves to the whole."""
        n, roots = len(x), self.roots(len(x))
        found, done = list(x), 1
        while done < n:
            stride, joined = n // 2 // done, []
            for at in range(stride):
                for sign in (1, -1):
                    for k in range(done):
                        even, odd = found[at * done + k], found[n // 2 + at * done + k]
                        joined.append((even + sign * odd * roots[k * stride]) % self.p)
            found, done = joined, 2 * done
        return found

    def definition_values(self, coefficients: Sequence[int]) -> list[int]:
        roots = self.roots(len(coefficients))
        terms = [enumerate(coefficients) for _ in roots]
        return [
            sum(c * pow(w, i, self.p) for i, c in each) % self.p
            for w, each in zip(roots, terms, strict=True)
        ]

    def weights(self, n: int, r: Pair) -> list[Pair]:
        """The barycentric formula at roots of unity."""
        top = self.plus(self.power(r, n), (-1, 0))
        top = self.times(top, (pow(n, -1, self.p), 0))
        return [
            self.times(top, self.times((w, 0), self.inverse_k(((r[0] - w) % self.p, r[1]))))
            for w in self.roots(n)
        ]

    def definition_weights(self, n: int, r: Pair) -> list[Pair]:
        """Lagrange's polynomials, factor by factor."""
        found, roots = [], self.roots(n)
        for i, root in enumerate(roots):
            weight = (1, 0)
            for other in roots[:i] + roots[i + 1 :]:
                factor = pow(root - other, -1, self.p)
                difference = ((r[0] - other) * factor % self.p, r[1] * factor % self.p)
                weight = self.definition_times(weight, difference)
            found.append(weight)
        return found
