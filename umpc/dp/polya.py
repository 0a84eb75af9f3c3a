"""An exact draw of the Polya law in a number of coins that does not depend on its value.

    P(X = k) = C(k+r-1, k) (1-q)^r q^k,   k = 0, 1, 2, ...,   q = exp(-log_ratio)

It is the negative binomial with real shape r, part of a geometric. Its generating function
((1-q)/(1-qz))^r = exp(sum over k of (r q^k/k) (z^k - 1)) says that X is a sum of jumps: jumps of
size k come in a Poisson number of mean r q^k/k, independently for every k. `PolyaLaw` draws them in
three steps:

1. More jumps than needed are proposed, at the rate r q^k/2^j for 2^j <= k < 2^{j+1}. Their number M
   is Poisson, and is looked up in a table.
2. Each proposal gets its j from a second table. Given j, k - 2^j is a geometric variable cut at
   2^j, and its j binary digits are independent coins (`geometric`).
3. A proposal becomes a jump with odds 2^j/k, at least 1/2. The jumps have the rate r q^k/k.

*Work.* Steps 2 and 3 are done for the same number of slots in every draw, and with all digits in
every slot. Slots past M are left out of the sum at the end. M is above the number of slots, or j
above the number of digits, with probability below 2^-80. Only then is more work done, so the law
stays exact (`fixed_coins`). The tables follow from the law, and are made before a bit is drawn.

Only integers, fractions and certified balls decide. No float does.

Paper: Goryczka, Xiong 2015 (TDSC), and Balle, Bell, Gascón, Nissim 2020 (CCS), give noise as a sum
of Polya variables; neither paper says how to draw one. Quenouille 1949 (Biometrics) has the law as
a Poisson number of logarithmic variables. `reproduction/baselines/inversion.py` inverts the
distribution function, in a time that tells the value
(docs/privacy.md, timing).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from math import ceil

import numpy as np
from flint import arb, ctx

from umpc.dp.events import ball, ball_at
from umpc.dp.geometric_poisson import (
    ROWS,
    digit_odds,
    digits_needed,
    geometric_law,
    integers_of,
    poisson_table,
    totals_of,
)
from umpc.dp.random_bits import (
    WIDTH,
    CoinRow,
    Flags,
    Integers,
    RandomBits,
    SurvivalTable,
    is_below,
    prefixes_of,
    random_words,
    resume,
)
from umpc.errors import LocalProtocolError

MOST_LOG_RATIO = Fraction(10**30)
"""Above it the law of this ratio is drawn: it has more noise, and X > 0 has odds of e^(-10^30)."""

LEAST_LOG_RATIO = Fraction(1, 1 << 256)
"""Least log_ratio drawn. Far below any use, because noise has to fit 64 bits."""

LAWS = 64
"""How many laws are remembered: tables that follow from shape and log_ratio, never from a draw."""


def sample_polyas(shape: Fraction, log_ratio: Fraction, count: int, bits: RandomBits) -> list[int]:
    """`count` exact draws of Polya(shape, exp(-log_ratio)).

    A shape above 1 is drawn as a sum of geometrics and one Polya of the remaining shape, which has
    the same law (shapes add), in fewer coins.

    Args:
        shape: r > 0; 1/h for one of h nodes, 1 for the geometric law.
        log_ratio: -log q >= 2^-256, exact; epsilon/s for noise in units of which s is the
            sensitivity.
        bits: the only source of randomness.

    Returns:
        Each X >= 0, in the units of 1/log_ratio. Secret.

    Raises:
        LocalProtocolError: a parameter is out of range, or the source of randomness is broken.
    """
    _check(shape, log_ratio)
    log_ratio = min(Fraction(log_ratio), MOST_LOG_RATIO)
    # shapes add: whole ones are geometrics
    geometrics, rest = divmod(Fraction(shape), 1)
    totals = [0] * count
    if geometrics:
        law = geometric_law(Fraction(log_ratio))
        totals = [law.draw_sum(geometrics, bits) for _ in totals]
    if rest:
        drawn = polya_law(rest, Fraction(log_ratio)).draw(count, bits)
        totals = [total + one for total, one in zip(totals, drawn, strict=True)]
    return totals


def _check(shape: Fraction, log_ratio: Fraction) -> None:
    if shape <= 0 or log_ratio < LEAST_LOG_RATIO:
        raise LocalProtocolError(
            f"expected a Polya law of shape > 0 and log_ratio >= 2^-256, got {shape} and "
            f"{log_ratio}; check epsilon, the sensitivity and the number of honest nodes"
        )


class PolyaLaw:
    """The law of shape r < 1, and its tables. `polya_law` keeps it.

    Args:
        shape: 0 < r < 1.
        log_ratio: -log q >= 2^-256.
    """

    def __init__(self, shape: Fraction, log_ratio: Fraction):
        self._shape = shape
        self._log_ratio = log_ratio
        # P(k - 2^j has more digits) is below the chance that a geometric has them.
        self.digits = digits_needed(log_ratio)
        self.count_table = poisson_table(self.mean)
        self.slots = self.count_table.last
        self._blocks = SurvivalTable(self.block_survival, 0, self.digits)
        self._coins = self._row(self.digits)

    def draw(self, count: int, bits: RandomBits) -> list[int]:
        """Independent draws. Secret. Cost of each: 1 + slots (2 + digits) coins and look-ups."""
        chunk = max(1, ROWS // max(1, self.slots))
        sizes = [min(chunk, count - start) for start in range(0, count, chunk)]
        return [one for size in sizes for one in self._draw(size, bits)]

    def _draw(self, count: int, bits: RandomBits) -> list[int]:
        # step 1: the number of proposals (spec/noise.py, `polyas`)
        proposals = self.count_table.draw(count, bits)
        # The maxima are exceeded with probability below 2^-80 for each draw.
        slots = max(self.slots, int(proposals.max(initial=0)))
        used = np.arange(slots) < proposals[:, None]
        # step 2: j of each proposal, and below its digits
        blocks = self._blocks.draw(count * slots, bits)
        digits = max(self.digits, int(blocks.max(initial=0)))
        jumps = self._jumps(blocks, digits, bits)
        # step 3: a jump with odds 2^j/k; slots past M are left out
        kept = _accepted(jumps, blocks, bits) & used.reshape(-1)
        return totals_of((jumps & kept[:, None]).reshape(count, slots, digits + 1))

    def _jumps(self, blocks: Integers, digits: int, bits: RandomBits) -> Flags:
        """The binary digits of each slot's k, the lowest first: (slots, digits + 1) bool."""
        row = self._coins if digits == self.digits else self._row(digits)
        coins = row.toss(len(blocks), bits)
        place = np.arange(digits + 1)
        top = blocks[:, None]
        # k = 2^j and the coins below digit j
        digits_of_k: Flags = (coins & (place < top)) | (place == top)
        return digits_of_k

    def _row(self, digits: int) -> CoinRow:
        """The coins of the digits 0 .. digits; the last is there for its shape and never counts."""
        return CoinRow(lambda precision: digit_odds(self._log_ratio, digits + 1, precision))

    def mean(self, precision: int) -> arb:
        """The mean of M: r q (the sum of all `_rates`)."""
        with ctx.workprec(precision):
            q = ball(-self._log_ratio).exp()
            # Quenouille 1949: jumps of size k at the rate r q^k/k
            return ball(self._shape) * q * _suffixes(self._log_ratio, 0, precision)[0]

    def block_survival(self, first: int, last: int, precision: int) -> list[arb]:
        """P(a proposal's j is above k), k = first .. last."""
        with ctx.workprec(precision):
            suffixes = _suffixes(self._log_ratio, last + 1, precision)
            return [suffixes[k + 1] / suffixes[0] for k in range(first, last + 1)]


@lru_cache(maxsize=LAWS)
def polya_law(shape: Fraction, log_ratio: Fraction) -> PolyaLaw:
    """The law, remembered by its public parameters."""
    return PolyaLaw(shape, log_ratio)


def _suffixes(log_ratio: Fraction, least: int, precision: int) -> list[arb]:
    """The sums over i >= j of the rate of block i relative to block 0, for j = 0, 1, 2, ...

    The rate of block j is r 2^-j times the sum of q^k over its k. The next block's rate is this
    one's times q^{2^j} (1 + q^{2^j})/2. From 2^j log_ratio > precision on, that factor is below
    2^-precision, so all later blocks together are below twice the next one.

    Args:
        least: the list goes at least so far.
    """
    digits = max(least, ceil(precision / log_ratio).bit_length())
    rates = [arb(1)]
    exponent = ball(-log_ratio)
    for j in range(digits + 1):
        power = (exponent * (1 << j)).exp()
        # the next block: q^{2^j} (1 + q^{2^j})/2 of this one
        rates.append(rates[-1] * power * (1 + power) / 2)
    # A ball from 0 to twice the last rate stands for it and all later ones.
    suffix = rates.pop() * arb(1, 1)
    suffixes = []
    for rate in reversed(rates):
        suffix += rate
        suffixes.append(suffix)
    return suffixes[::-1]


def _accepted(jumps: Flags, blocks: Integers, bits: RandomBits) -> Flags:
    """A coin of odds 2^j/k for each slot. k is shifted first, so that all k have one length."""
    slots, size = jumps.shape
    words = random_words(slots, bits)
    source = np.arange(size) - (size - 1 - blocks)[:, None]
    shifted = np.take_along_axis(jumps, np.maximum(source, 0), axis=1) & (source >= 0)
    # V < 2^j/k, that is V k 2^{J-j} < 2^J, with V known to 128 bits.
    bound = 1 << size - 1 + WIDTH
    accepted = []
    for slot, (v, k) in enumerate(zip(prefixes_of(words), integers_of(shifted), strict=True)):
        product = v * k
        certain = product + k <= bound
        possible = product < bound
        if certain != possible:
            odds = Fraction(1 << size - 1, k)
            certain = is_below(resume(words[slot : slot + 1], bits), partial(ball_at, odds))
        accepted.append(certain)
    return np.array(accepted, dtype=np.bool_)
