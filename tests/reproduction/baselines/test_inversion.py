"""`invert_polya`, the former draw: its law, and every end of its range."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from reproduction.baselines.inversion import MOST_BITS, distribution, invert_polya
from tests.support.polya import (
    ONES,
    SHAPES,
    WHOLE_RANGE,
    LawOfDraws,
)
from tests.support.statistical import (
    N_MOSTLY_ZERO,
    N,
    SeededBits,
    fixed_bits,
)
from umpc.dp.polya import LEAST_LOG_RATIO
from umpc.dp.random_bits import LazyUniform
from umpc.errors import LocalProtocolError


def draws(shape: Fraction, scale: Fraction, bits: SeededBits, count: int = 0) -> list[int]:
    count = count or (N if shape > Fraction(1, 8) else N_MOSTLY_ZERO)
    return [invert_polya(shape, 1 / scale, bits) for _ in range(count)]


# --- the law --------------------------------------------------------------------------------------


class TestLaw(LawOfDraws):
    draws = staticmethod(draws)


# --- inversion: F(k-1) <= U < F(k) ----------------------------------------------------------------


@settings(max_examples=150)
@given(
    honest=st.integers(1, 64),
    log_ratio=st.fractions(Fraction(1, 5000), 20, max_denominator=10**6),
    word=st.integers(0, ONES),
    more=st.lists(st.integers(0, ONES), min_size=3, max_size=3),
)
@example(honest=1, log_ratio=Fraction(1, 5000), word=ONES, more=[ONES, ONES, ONES - 16592])
def test_the_answer_is_the_inverse_of_the_distribution_function(honest, log_ratio, word, more):
    bits = fixed_bits(word, *more, *[0] * 16)  # near 1 a draw needs more than four words
    k = invert_polya(Fraction(1, honest), log_ratio, bits)
    law = stats.nbinom(1 / honest, -special.expm1(-float(log_ratio)))
    u, slack = word / 2**64, 1e-9
    assert law.cdf(k - 1) <= u + slack and u - slack <= law.cdf(k)


def decimal_cdf(shape: Fraction, log_ratio: Fraction, k: int) -> Fraction:
    """P(X <= k) summed term by term in 80 digits: C(j+r-1, j) (1-q)^r q^j."""
    getcontext().prec = 80
    r = Decimal(shape.numerator) / shape.denominator
    q = (-Decimal(log_ratio.numerator) / log_ratio.denominator).exp()
    term = total = (r * (1 - q).ln()).exp()
    for j in range(1, k + 1):
        term *= q * (r + j - 1) / j
        total += term
    return Fraction(total)


@pytest.mark.parametrize("k", [0, 1, 7, 150])
@pytest.mark.parametrize(
    "log_ratio", [Fraction(1, 1000), Fraction(1, 9), Fraction(2), Fraction(50)], ids=str
)
@pytest.mark.parametrize("shape", [*SHAPES, Fraction(1, 1000)], ids=str)
def test_the_enclosure_holds_the_distribution_function(shape, log_ratio, k):
    """Exact ends of the ball against a sum of 80 digits: certified, and sharp to 100 bits."""
    ball = distribution(shape, log_ratio, k, 256)
    assert ball.is_finite()
    middle, radius, exponent = (int(part) for part in ball.mid_rad_10exp(60))
    unit = Fraction(10) ** exponent
    assert radius * unit < Fraction(1, 2**100)
    assert abs(decimal_cdf(shape, log_ratio, k) - middle * unit) <= radius * unit + Fraction(
        1, 10**70
    )


@pytest.mark.parametrize(
    "scale", [10**19, 10**9, 100, 3, 1, Fraction(9, 10), Fraction(1, 2), Fraction(1, 9)]
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_enclosure_is_sharp_everywhere(shape, scale):
    """flint gives up at no k that a draw may meet: see `_ball_with_radius` and `distribution` for
    two places it would."""
    for tenths in (1, 10, 100, 1000, 3000):
        k = int(tenths * scale) // 10
        balls = [
            distribution(shape, 1 / Fraction(scale), k, precision) for precision in (64, 256, 512)
        ]
        assert any(ball.is_finite() and bool(ball.rad() < 2.0**-48) for ball in balls)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("k", [0, 3, 40])
def test_both_sides_of_a_step_of_the_distribution_function(shape, k):
    """U just below F(k) gives k, U just above gives k+1, also when 64 bits are not enough to
    tell."""
    log_ratio = Fraction(1, 9)
    step = int(
        decimal_cdf(shape, log_ratio, k) * 2**192
    )  # F(k) is between step and step + 1, over 2^192
    for value, answer in [(step - 1, k), (step + 2, k + 1)]:
        words = [value >> 128, value >> 64 & ONES, value & ONES]
        assert invert_polya(shape, log_ratio, fixed_bits(*words)) == answer


def test_more_bits_are_drawn_only_when_needed():
    assert (
        invert_polya(Fraction(1, 2), Fraction(1, 9), fixed_bits(1 << 63)) == 2
    )  # a second word would fail


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "log_ratio", "expected"),
    [
        (Fraction(1), Fraction(1, 10), [9, 3, 12, 2, 19, 10]),
        (Fraction(1, 3), Fraction(1, 1000), [182, 13, 339, 9, 713, 253]),
        (Fraction(1, 16), Fraction(1, 10**9), [201729, 0, 3144122, 0, 48722268, 897686]),
        (Fraction(5, 2), Fraction(2, 3), [2, 2, 3, 5, 0, 2]),
    ],
    ids=["geometric", "third", "sixteenth", "five halves"],
)
def test_the_same_stream_gives_the_same_noise(shape, log_ratio, expected):
    bits = SeededBits("vector")
    assert [invert_polya(shape, log_ratio, bits) for _ in expected] == expected


# --- the ends of the range ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "log_ratio", [Fraction(10**9), Fraction(10**30), Fraction(10**300)], ids=float
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_huge_log_ratio_is_zero_after_one_word(shape, log_ratio):
    for word in (0, 1, 1 << 63, ONES - 1):
        assert invert_polya(shape, log_ratio, fixed_bits(word)) == 0


@pytest.mark.parametrize(
    "log_ratio", [Fraction(1, 10**9), Fraction(1, 10**19), LEAST_LOG_RATIO], ids=float
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tiny_log_ratio_is_the_gamma_quantile(shape, log_ratio):
    """The middle of the law, against scipy's inverse of the incomplete gamma function."""
    u = 0xC000_0000_0000_0000
    expected = special.gammaincinv(float(shape), 0.75)
    k = invert_polya(shape, log_ratio, fixed_bits(u, *[12345] * 8))
    assert float(k * log_ratio) == pytest.approx(expected, rel=1e-7)


def test_geometric_of_tiny_log_ratio_is_exact_to_the_unit():
    """U = 1/2 exactly: k is the least integer with 1 - q^{k+1} > 1/2, that is k+1 >
    ln2/log_ratio."""
    getcontext().prec = 80
    scale = 10**30
    k = invert_polya(Fraction(1), Fraction(1, scale), fixed_bits(1 << 63, *[0] * 8))
    assert k == int(Decimal(2).ln() * scale)


@pytest.mark.parametrize("log_ratio", WHOLE_RANGE, ids=float)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_zeros_end_at_zero(shape, log_ratio):
    """U = 0 < F(0), whatever the law: bits are drawn until 2^-width < F(0)."""
    assert invert_polya(shape, log_ratio, lambda count: 0) == 0


@pytest.mark.parametrize("log_ratio", WHOLE_RANGE, ids=float)
@pytest.mark.parametrize("shape", [*SHAPES, Fraction(5, 2)], ids=str)
def test_all_ones_are_a_dead_source(shape, log_ratio):
    """U = 1 has no answer: the draw ends with an error instead of running for ever."""
    asked = []
    with pytest.raises(LocalProtocolError, match="source of randomness"):
        invert_polya(shape, log_ratio, lambda count: asked.append(count) or ONES)
    assert sum(asked) == MOST_BITS


def test_after_256_ones_a_zero_still_ends():
    """The deepest tail a test can reach: 1-U near 2^-256, so k near 256 ln2 scale for the
    geometric."""
    words = [ONES] * 4 + [0] * 4
    k = invert_polya(Fraction(1), Fraction(1, 1000), fixed_bits(*words))
    assert k == 177_445  # floor(256 ln2 * 1000)
    third = invert_polya(Fraction(1, 3), Fraction(1, 1000), fixed_bits(*words))
    assert decimal_tail_is(Fraction(1, 3), Fraction(1, 1000), third)


def decimal_tail_is(shape: Fraction, log_ratio: Fraction, k: int) -> bool:
    """Whether F(k-1) <= 1 - 2^-256 < F(k), by summing the tail beyond k in 80 digits."""
    getcontext().prec = 80
    r = Decimal(shape.numerator) / shape.denominator
    q = (-Decimal(log_ratio.numerator) / log_ratio.denominator).exp()
    coefficient = Decimal(1)
    for j in range(1, k + 1):
        coefficient *= (r + j - 1) / j
    term = (r * (1 - q).ln()).exp() * coefficient * q**k  # P(X = k)
    tail = Decimal(0)  # P(X > k)
    first, j = term, k
    while term > tail * Decimal("1e-40"):
        j += 1
        term *= q * (r + j - 1) / j
        tail += term
    return tail < Decimal(2) ** -256 <= tail + first


@pytest.mark.parametrize(
    ("shape", "log_ratio"),
    [
        (Fraction(0), Fraction(1)),
        (Fraction(-1, 2), Fraction(1)),
        (Fraction(1), Fraction(0)),
        (Fraction(1), Fraction(-1)),
        (Fraction(1), LEAST_LOG_RATIO / 2),
    ],
)
def test_parameters_out_of_range_are_refused(shape, log_ratio):
    with pytest.raises(LocalProtocolError, match="expected a Polya law"):
        invert_polya(shape, log_ratio, SeededBits("unused"))


@pytest.mark.parametrize("word", [-1, 1 << 64])
def test_a_source_that_returns_too_many_bits_is_refused(word):
    with pytest.raises(LocalProtocolError, match="64 random bits"):
        invert_polya(Fraction(1), Fraction(1), lambda count: word)


def test_a_partly_drawn_uniform_does_not_show_its_bits():
    assert repr(LazyUniform(fixed_bits(0xDEADBEEF), 64)) == "LazyUniform(<redacted>, width=64)"
