"""The source of randomness: a function from a number of bits to a uniform integer of as many bits.

Nothing in `umpc.dp` opens another source. So a draw is a deterministic function of its arguments
and of the bits it is given: a node passes `secrets.randbits`, and a test passes a seeded stream and
gets the same draw again. The noise is only as good as its source. The outputs of a general-purpose
generator (`random`, numpy) are predictable, and would undo the privacy that the noise is for.

Exact coins and exact table look-ups whose work does not depend on their outcome.

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

Rejection in a fixed number of trials: a batch of draws makes all of them.

A trial proposes a value and accepts it with certain odds. The first `count` values accepted are the
answer. To stop there would make the number of trials visible. So a number of trials that follows
from `count` alone is made (`trials_for`), all in the same steps; some 1.7 for each of many draws,
36 for one. Which of them are accepted is independent of the accepted values, because trials are
independent of one another, so that picking them tells nothing of the answer.

Fewer than `count` are accepted with probability below 2^-64; then the same number is made again.
The law is exact: the accepted values are independent and each has the law. A comparison that 128
bits of the uniform leave open gets more bits and a sharper ball (probability below 2^-110).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from math import ceil

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from umpc.errors import LocalProtocolError

RandomBits = Callable[[int], int]
"""`bits(n)` is uniform on 0 .. 2^n − 1, independent of earlier calls. Nodes: `secrets.randbits`."""

STEP = 64
"""Bits by which a `LazyUniform` is started and extended."""


class LazyUniform:
    """A real number U, uniform on [0, 1), of which only the bits asked for so far have been drawn.

    The known prefix u of `width` bits says u/2^width <= U <= (u+1)/2^width. U meets the upper end
    with probability 0. The caller compares U with a number, and asks for more bits until that
    interval decides. So the outcome is that of infinitely many bits, not of a rounded U.

    Args:
        bits: the source of randomness.
        most: a width in bits that a working source does not get to. `extend` refuses to pass it:
            a source stuck at all ones means U = 1, which no comparison ever decides.
        prefix: bits of U that were drawn before, as an integer of `width` bits. Secret.
        width: how many they are; none is drawn at once if there are some.
    """

    def __init__(self, bits: RandomBits, most: int, prefix: int = 0, width: int = 0):
        self._bits = bits
        self._most = most
        self._prefix = prefix
        self.width = width
        if not width:
            self.extend()

    def extend(self) -> None:
        """Draw the next 64 bits of U.

        Raises:
            LocalProtocolError: the source returned something other than 64 bits, or U has used up
                `most` bits.
        """
        if self.width >= self._most:
            raise LocalProtocolError(
                f"expected a noise draw to be decided within {self._most} random bits, "
                "but it was not; a working source of randomness never does that: "
                "check the source, then start again"
            )
        more = self._bits(STEP)
        if not 0 <= more < 1 << STEP:
            raise LocalProtocolError(
                f"expected {STEP} random bits, but the source returned an integer outside "
                f"0 .. 2^{STEP}-1; pass a function such as secrets.randbits"
            )
        # U is known to 64 bits more
        self._prefix = self._prefix << STEP | more
        self.width += STEP

    def certainly_below(self, number: arb) -> bool:
        """Whether every U with the known prefix is (almost surely) below the whole enclosure."""
        # U <= (u + 1)/2^width
        return bool(number >= arb((self._prefix + 1, -self.width)))

    def certainly_not_below(self, number: arb) -> bool:
        """Whether every U with the known prefix is at least every number in the enclosure."""
        # u/2^width <= U
        return bool(number <= arb((self._prefix, -self.width)))

    def resolved_by(self, number: arb) -> bool:
        """Whether the enclosure is narrow against the unknown part of U.

        If it is, a sharper enclosure would not help, and U needs more bits.
        """
        return number.is_finite() and bool(number.rad() < arb((1, -self.width - 8)))

    def __repr__(self) -> str:
        return f"LazyUniform(<redacted>, width={self.width})"


# --- fixed coins ----------------------------------------------------------------------------------


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
        # the ball is sharp, so U is what is not known well enough
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
        # two words are compared as one number of 128 bits (spec/noise.py, `scaled`)
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
        self.thresholds = _Thresholds(odds)
        self.size = len(self.thresholds.high)

    def toss(self, rows: int, bits: RandomBits) -> Flags:
        """(rows, size) bool: every coin tossed once for each row. Secret."""
        words = random_words(rows * self.size, bits)
        table = words.reshape(rows, self.size, 2)
        # one comparison for each coin, whatever comes
        heads, is_open = self.thresholds.compare(table[..., 1], table[..., 0])
        # odds of 2^-128 for each coin: only here the work tells something
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
        self.survival = survival
        self._first = first
        self.thresholds = _Thresholds(lambda precision: survival(first, last, precision))
        self.size = last - first + 1

    def draw(self, count: int, bits: RandomBits) -> Integers:
        """(count,) int64: independent draws of X. Secret."""
        words = random_words(count, bits)
        # inversion: X is the number of k with V < P(X > k)
        above, is_open = self.thresholds.compare(words[:, 1:], words[:, :1])
        steps = above.sum(axis=1)
        # past an end of the table, or equal in 128 bits
        rare = is_open.any(axis=1) | (steps == self.size)
        if self._first:
            rare |= steps == 0
        drawn: Integers = steps + self._first
        for row in np.flatnonzero(rare):
            k, u = int(drawn[row]), resume(words[row : row + 1], bits)
            # the least k with V >= P(X > k), from a k near it
            while self._is_above(k, u):
                k += 1
            while k and not self._is_above(k - 1, u):
                k -= 1
            drawn[row] = k
        return drawn

    def _is_above(self, k: int, u: LazyUniform) -> bool:
        return is_below(u, lambda precision: self.survival(k, k, precision)[0])


# --- trials ---------------------------------------------------------------------------------------


OFTEN = Fraction(18, 25)
"""A bound of the probability that a trial is accepted: 36 of them suffice for one draw."""

LESS_OFTEN = Fraction(109, 250)
"""A bound for narrow laws: 80 of them suffice for one draw."""

MOST_BATCHES = 16
"""Batches of trials that a working source does not get to."""

MOST_DRAWS = 1 << 10
"""Draws whose trials are held in memory at once."""


def first_accepted(
    propose: Callable[[int, RandomBits], list[int]],
    odds: Callable[[int], arb],
    sharper_odds: Callable[[int, int], arb],
    often: Fraction,
    count: int,
    bits: RandomBits,
) -> list[int]:
    """The first `count` accepted proposals. Secret.

    Args:
        propose: (count, bits) to independent proposals.
        odds: a proposal's odds of acceptance as a ball, in the same steps for every proposal.
        sharper_odds: the same at a given working precision.
        often: a proposal is accepted with this probability or more.
        bits: the source of randomness.

    Raises:
        LocalProtocolError: the source of randomness is broken.
    """
    if count > MOST_DRAWS:
        sizes = [min(MOST_DRAWS, count - start) for start in range(0, count, MOST_DRAWS)]
        chunks = [first_accepted(propose, odds, sharper_odds, often, n, bits) for n in sizes]
        return [one for chunk in chunks for one in chunk]
    trials = trials_for(count, often)
    found: list[int] = []
    for _ in range(MOST_BATCHES):
        if len(found) >= count:
            return found[:count]
        # all trials are made before any is looked at
        proposals = propose(trials, bits)
        words = random_words(trials, bits)
        coins = _accepted(proposals, words, odds, sharper_odds, bits)
        found += np.array(proposals, dtype=object)[coins].tolist()
    raise LocalProtocolError(
        f"expected {count} of {MOST_BATCHES * trials} proposals to be accepted, {len(found)} were; "
        "a working source of randomness never does that: check the source, then start again"
    )


@lru_cache(maxsize=64)
def trials_for(count: int, often: Fraction) -> int:
    """The trials of which `count` are accepted, but for a probability of 2^-66."""
    trials = max(1, ceil(count / often))
    while trials * _distance(Fraction(count - 1, trials), often) < 66 * arb(2).log():
        trials += 1
    return trials


def _distance(part: Fraction, often: Fraction) -> arb:
    """KL(part, often). Chernoff: P(Binomial(n, often) <= part n) <= exp(-n KL), part < often."""

    def term(p: Fraction, q: Fraction) -> arb:
        ratio = p / q
        return arb(p.numerator) / p.denominator * (arb(ratio.numerator) / ratio.denominator).log()

    return term(1 - part, 1 - often) + (term(part, often) if part > 0 else arb(0))


def _accepted(
    proposals: Sequence[int],
    words: Words,
    odds: Callable[[int], arb],
    sharper_odds: Callable[[int, int], arb],
    bits: RandomBits,
) -> Flags:
    """(proposals,) bool: whether its uniform V is below its odds."""
    unit = arb((1, WIDTH))
    coins = []
    with ctx.workprec(PRECISION):
        for row, (v, y) in enumerate(zip(prefixes_of(words), proposals, strict=True)):
            # V < odds, with V known to 128 bits: v or v + 1 in units of 2^-128
            above = odds(y) * unit - v
            certain = bool(above >= 1)
            if certain == bool(above <= 0):
                certain = is_below(resume(words[row : row + 1], bits), partial(sharper_odds, y))
            coins.append(certain)
    return np.array(coins, dtype=np.bool_)
