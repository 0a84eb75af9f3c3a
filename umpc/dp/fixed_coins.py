"""Exact coins and exact table look-ups whose work does not depend on their outcome.

| class | what it draws | work |
|---|---|---|
| `CoinRow` | rows of independent coins with fixed real odds | one comparison for each coin |
| `SurvivalTable` | integers with P(X > k) given | one comparison for each k of the table |

The work. Each uniform V gets 128 bits at once. It is compared with floor(2^128 odds) of all odds,
in numpy, without a branch. The number of bits and of comparisons follows from the law alone. The
thresholds are computed before any bit is drawn, and kept by law, never by value.

The law is exact. A comparison stays open only if all 128 bits of V agree with those of the odds,
or if V lies outside the table. Then more bits are drawn, and sharper balls computed, until the real
numbers are apart. Only this extra work depends on the outcome. Its probability is below 2^-64 for
each draw (each table covers all but 2^-96 of its law, and an open comparison has 2^-128).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from umpc.dp.random_bits import LazyUniform, RandomBits
from umpc.errors import LocalProtocolError

Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]

WIDTH = 128
"""Bits of a uniform number that are drawn and compared in every case."""

TAIL_BITS = 96
"""A table leaves out at most 2^-TAIL_BITS of its law; values there are found by a slow walk."""

PRECISION = 192
"""Working precision of the first enclosure of a threshold, in bits."""

MOST_PRECISION = 1 << 14
"""Working precision at which a draw gives up: `flint` would have to be at fault."""

MOST_BITS = 1024 + 256
"""Bits of V that a working source does not get to (V agrees with a fixed number in all of them)."""


def random_words(count: int, bits: RandomBits) -> Words:
    """(count, 2) uint64: 128 fresh bits in each row, the low word first.

    Raises:
        LocalProtocolError: the source returned something else, or one word again and again (a
            working source does that with probability below 2^-191).
    """
    # At least two rows are drawn, so that a dead source is always noticed.
    rows = max(2, count)
    drawn = bits(WIDTH * rows)
    if not 0 <= drawn < 1 << WIDTH * rows:
        raise LocalProtocolError(
            f"expected {WIDTH * rows} random bits, but the source returned an integer outside "
            "their range; pass a function such as secrets.randbits"
        )
    words = np.frombuffer(drawn.to_bytes(16 * rows, "little"), dtype="<u8").reshape(rows, 2)
    if (words == words[0, 0]).all():
        raise LocalProtocolError(
            "expected random bits for noise, but one word came again and again; check the "
            "source of randomness, then start again"
        )
    return words[:count].astype(np.uint64)


def is_below(u: LazyUniform, number: Callable[[int], arb]) -> bool:
    """Whether U < number: sharpen the ball while that helps, else draw more bits of U.

    Args:
        u: the uniform; its known bits grow.
        number: the ball at a given working precision.

    Raises:
        LocalProtocolError: the source of randomness is broken, or no ball gets sharp.
    """
    precision = PRECISION
    while precision <= MOST_PRECISION:
        enclosure = number(precision)
        if u.certainly_below(enclosure):
            return True
        if u.certainly_not_below(enclosure):
            return False
        if u.resolved_by(enclosure):
            u.extend()
        else:
            precision *= 2
    raise LocalProtocolError(
        "expected a sharp enclosure of a probability, none came in "
        f"{MOST_PRECISION} bits of precision; report it, and the version of python-flint"
    )


def prefixes_of(words: Words) -> list[int]:
    """The 128-bit integer of each row of `random_words`."""
    raw = words.tobytes()
    return [int.from_bytes(raw[at : at + 16], "little") for at in range(0, len(raw), 16)]


def resume(words: Words, bits: RandomBits) -> LazyUniform:
    """The uniform whose first 128 bits are one row of `random_words`, (1, 2)."""
    return LazyUniform(bits, MOST_BITS, prefixes_of(words)[0], WIDTH)


class _Thresholds:
    """floor(2^128 p) of several probabilities p, as two words each."""

    def __init__(self, odds: Callable[[int], Sequence[arb]]):
        floors = _floors(odds)
        self.high = np.array([floor >> 64 for floor in floors], dtype=np.uint64)
        self.low = np.array([floor & (1 << 64) - 1 for floor in floors], dtype=np.uint64)

    def compare(self, high: Words, low: Words) -> tuple[Flags, Flags]:
        """Whether V is certainly below p, and whether 128 bits leave that open; they broadcast."""
        same = high == self.high
        return (high < self.high) | (same & (low < self.low)), same & (low == self.low)


def _floors(odds: Callable[[int], Sequence[arb]]) -> list[int]:
    """floor(2^128 p): at twice the precision until all of them are certain."""
    precision = PRECISION
    while precision <= MOST_PRECISION:
        with ctx.workprec(precision):
            floors = [_floor(p) for p in odds(precision)]
        known = [floor for floor in floors if floor is not None]
        if len(known) == len(floors):
            return known
        precision *= 2
    raise LocalProtocolError(
        "expected sharp enclosures of a noise law, none came; report it, and the version of "
        "python-flint"
    )


def _floor(p: arb) -> int | None:
    """floor(2^128 p) of a probability, None where the ball does not say."""
    # A tiny ball may reach below 0, and a probability does not.
    if p < arb((1, -WIDTH)):
        return 0
    floor = (p * arb((1, WIDTH))).floor().unique_fmpz()
    return None if floor is None else int(floor)


class CoinRow:
    """Independent coins, each with odds of its own, to be tossed in rows.

    Args:
        odds: the balls of all odds at a given working precision; each strictly within 0 and 1.
    """

    def __init__(self, odds: Callable[[int], Sequence[arb]]):
        self._odds = odds
        self._thresholds = _Thresholds(odds)
        self.size = len(self._thresholds.high)

    def toss(self, rows: int, bits: RandomBits) -> Flags:
        """(rows, size) bool: every coin tossed once for each row. Secret."""
        words = random_words(rows * self.size, bits)
        table = words.reshape(rows, self.size, 2)
        heads, is_open = self._thresholds.compare(table[..., 1], table[..., 0])
        for row, column in np.argwhere(is_open):
            heads[row, column] = self._decide(
                int(column), resume(table[row, column : column + 1], bits)
            )
        return heads

    def again(self, column: int, bits: RandomBits) -> bool:
        """One more toss of one coin, on the rare path that its heads open."""
        return self._decide(column, LazyUniform(bits, MOST_BITS))

    def _decide(self, column: int, u: LazyUniform) -> bool:
        return is_below(u, lambda precision: self._odds(precision)[column])


class SurvivalTable:
    """Integers X >= 0 by inversion: X is the least k with V >= P(X > k).

    Args:
        survival: (first, last, precision) to the balls of P(X > k), k = first .. last.
        first: the table begins here. Unless it is 0, X <= first has probability below 2^-96.
        last: the table ends here; X > last has probability below 2^-96.
    """

    def __init__(self, survival: Callable[[int, int, int], Sequence[arb]], first: int, last: int):
        self._survival = survival
        self._first = first
        self._thresholds = _Thresholds(lambda precision: survival(first, last, precision))
        self.size = last - first + 1

    def draw(self, count: int, bits: RandomBits) -> Integers:
        """(count,) int64: independent draws of X. Secret."""
        words = random_words(count, bits)
        above, is_open = self._thresholds.compare(words[:, 1:], words[:, :1])
        steps = above.sum(axis=1)
        rare = is_open.any(axis=1) | (steps == self.size)
        if self._first:
            rare |= steps == 0
        drawn: Integers = steps + self._first
        for row in np.flatnonzero(rare):
            drawn[row] = self._walk(int(drawn[row]), resume(words[row : row + 1], bits))
        return drawn

    def _walk(self, k: int, u: LazyUniform) -> int:
        """The least k with V >= P(X > k), from a k near it."""
        while self._is_above(k, u):
            k += 1
        while k and not self._is_above(k - 1, u):
            k -= 1
        return k

    def _is_above(self, k: int, u: LazyUniform) -> bool:
        return is_below(u, lambda precision: self._survival(k, k, precision)[0])
