"""Discrete Laplace noise: each node's own part of it, and the coins of a committee.

Sinh & Ramon 2025, appendix B.1.2, protocol B.1 (from Balle et al. 2020): P_i draws a_i and b_i from
Polya(1/n, e^(−ε/s)), and Σ a_i − b_i is discrete Laplace. By their remark B.1 each party adds its
own a_i − b_i to its share, which is uniform anyway. Here 1/h replaces 1/n, so that the parts of any
h honest nodes suffice. s is the sensitivity δ_max·Δf, q = e^(−ε/s), log_ratio = ε/s:

    P(X = k) = C(k + r − 1, k)·(1 − q)^r·q^k          Polya(r, q); the geometric law for r = 1

A draw compares uniform numbers of 128 bits with real thresholds. The work does not depend on the
outcome. A number of 128 bits decides all but 2^−64 of all draws; further bits decide the others
(not specified here). Thresholds are rounded down from DIGITS decimal digits.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, comb

from spec.refused import require

DIGITS = 150
TAIL_BITS = 96
"""A table leaves out at most 2^−TAIL_BITS of its law."""

LN_2 = Fraction(693147180559945310, 10**18)
"""The logarithm of 2, rounded up."""

Source = Callable[[int], bytes]
"""Number of bytes → uniform bytes."""


def uniforms(count: int, source: Source) -> list[int]:
    """Numbers of 128 bits. Two at least are drawn, so that a dead source is always noticed."""
    data = source(16 * max(2, count))
    drawn = [int.from_bytes(data[i : i + 16], "little") for i in range(0, len(data), 16)]
    halves = {data[i : i + 8] for i in range(0, len(data), 8)}
    require(len(halves) > 1, "the source is alive")
    return drawn[:count]


def scaled(odds: Decimal, bits: int = 128) -> int:
    """⌊2^bits · odds⌋."""
    return int(odds * (1 << bits))


def power(log_ratio: Fraction, times: int) -> Decimal:
    """q^times."""
    return (-Decimal(log_ratio.numerator) * times / Decimal(log_ratio.denominator)).exp()


def digits_needed(log_ratio: Fraction) -> int:
    """J with q^(2^J) < 2^−96: so many binary digits of a geometric variable are drawn."""
    return (ceil(Fraction(7, 10) * TAIL_BITS / log_ratio) - 1).bit_length()


def digit_odds(log_ratio: Fraction, digits: int) -> list[Decimal]:
    """Dwork et al. 2006, section 4: the digits of a geometric variable are independent coins.

    q^k is the product of q^(2^i) over the digits that are 1, so digit i has odds q^(2^i) to 1.
    """
    powers = [power(log_ratio, 1 << digit) for digit in range(digits)]
    return [each / (1 + each) for each in powers]


def geometric(log_ratio: Fraction, source: Source) -> int:
    """One geometric draw by its digits. A last coin shows heads with odds 2^−96 (not specified)."""
    digits = digits_needed(log_ratio)
    odds = [*digit_odds(log_ratio, digits), power(log_ratio, 1 << digits)]
    tossed = [v < scaled(p) for v, p in zip(uniforms(len(odds), source), odds, strict=True)]
    return sum(1 << digit for digit in range(digits) if tossed[digit])


def polyas(shape: Fraction, log_ratio: Fraction, count: int, source: Source) -> list[int]:
    """Draws of Polya(shape, q), 0 < shape < 1, as sums of jumps (Quenouille 1949).

    X is a sum of jumps: those of size k come in a Poisson number of mean r·q^k/k. More are
    proposed, at the rate r·q^k/2^j for 2^j ≤ k < 2^(j+1), and one is a jump with odds 2^j/k.
    """
    digits = digits_needed(log_ratio)
    # the rate of all k of one j, relative to j = 0, and sums of these from each j on
    rates = [Decimal(1)]
    for j in range(digits + 12):
        each = power(log_ratio, 1 << j)
        rates.append(rates[-1] * each * (1 + each) / 2)
    after = [sum(rates[j:], Decimal(0)) for j in range(len(rates))]
    mean = Decimal(shape.numerator) / shape.denominator * power(log_ratio, 1) * after[0]
    # step 1: the number of proposals
    survival = poisson_survival(mean)
    slots = len(survival) - 1
    numbers = [sum(v < scaled(p) for p in survival) for v in uniforms(count, source)]
    # step 2: each proposal's j, and then its lower digits, which are independent coins
    above = [scaled(after[k + 1] / after[0]) for k in range(digits + 1)]
    js = [sum(v < p for p in above) for v in uniforms(count * slots, source)]
    odds = [scaled(p) for p in digit_odds(log_ratio, digits + 1)]
    coins = uniforms(count * slots * len(odds), source)
    ks = []
    for slot, j in enumerate(js):
        row = coins[slot * len(odds) : (slot + 1) * len(odds)]
        ks.append((1 << j) + sum(1 << i for i in range(j) if row[i] < odds[i]))
    # step 3: it is a jump with odds 2^j/k; proposals past their number are left out
    decides = uniforms(count * slots, source)
    drawn = [0] * count
    for slot, (j, k, v) in enumerate(zip(js, ks, decides, strict=True)):
        draw, place = divmod(slot, slots)
        if place < numbers[draw] and v * k < 1 << 128 + j:
            drawn[draw] += k
    return drawn


def poisson_survival(mean: Decimal) -> list[Decimal]:
    """P(N > k) for k = 0, 1, … until it is below 2^−96."""
    terms, term = [], (-mean).exp()
    for number in range(1, 2 * int(mean) + 260):
        term = term * mean / number
        terms.append(term)
    found = [sum(terms[k:], Decimal(0)) for k in range(len(terms))]
    last = next(k for k, p in enumerate(found) if p * (1 << TAIL_BITS) < 1)
    return found[: last + 1]


def own_share(honest: int, log_ratio: Fraction, source: Source) -> int:
    """A node's part of the noise: Polya(1/h) − Polya(1/h). It is drawn before any data is used."""
    with localcontext() as context:
        context.prec = DIGITS
        if honest == 1:
            return geometric(log_ratio, source) - geometric(log_ratio, source)
        up, down = polyas(Fraction(1, honest), log_ratio, 2, source)
        return up - down


# --- the coins of a committee ---


def committee_law(log_ratio: Fraction) -> dict[str, list[int]]:
    """Thresholds c and weights: the noise is Σ weight · [u < c], for uniform u of 64 bits each.

    Dwork et al. 2006, section 4: the digits of two geometrics, of which the second is subtracted.
    A committee draws u so that nobody knows it (`coins.py`). Rounded thresholds, and digits that
    are left out, are 2(B + 1)·2^−64 away from the exact law at most.
    """
    needed = 64 * LN_2 / log_ratio
    digits = max(0, ceil(needed) - 1).bit_length()
    with localcontext() as context:
        context.prec = DIGITS
        thresholds = [scaled(p, 64) for p in digit_odds(log_ratio, digits)]
    weights = [1 << digit for digit in range(digits)]
    return {"thresholds": thresholds * 2, "weights": weights + [-each for each in weights]}


def committee_size(nodes: int, colluding: int) -> int:
    """The fewest members with an honest one among them, but for 2^−40.

    Sinh & Ramon 2025, section 4, model M_HF: a random group privatizes the result. All of z members
    collude with probability C(colluding, z)/C(nodes, z). Up to 16 nodes, all are members.
    """
    if nodes <= 16:
        return nodes
    fits = (comb(colluding, z) << 40 <= comb(nodes, z) for z in range(1, nodes))
    return next((z for z, each in enumerate(fits, 1) if each), nodes)
