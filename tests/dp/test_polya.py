"""`sample_polyas`: its law, its power to be found wrong, and every end of its range."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.support.polya import (
    ONES,
    SHAPES,
    WHOLE_RANGE,
    LawOfDraws,
)
from tests.support.statistical import (
    ALPHA,
    N,
    SeededBits,
)
from umpc.dp.geometric_poisson import digit_odds
from umpc.dp.polya import LEAST_LOG_RATIO, PolyaLaw, sample_polyas
from umpc.dp.random_bits import CoinRow, LazyUniform
from umpc.errors import LocalProtocolError


def draws(shape: Fraction, scale: Fraction, bits: SeededBits, count: int = 0) -> list[int]:
    count = count or (N if shape > Fraction(1, 8) else 2 * N)
    return sample_polyas(shape, 1 / scale, count, bits)


# --- the law --------------------------------------------------------------------------------------


class TestLaw(LawOfDraws):
    draws = staticmethod(draws)


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "log_ratio", "expected"),
    [
        (Fraction(1), Fraction(1, 10), [0, 3, 10, 18, 4, 1]),
        (Fraction(1, 3), Fraction(1, 1000), [5, 29, 412, 1, 648, 64]),
        (Fraction(1, 16), Fraction(1, 10**9), [0, 0, 32820, 822, 0, 0]),
        (Fraction(5, 2), Fraction(2, 3), [3, 0, 5, 6, 1, 8]),
    ],
    ids=["geometric", "third", "sixteenth", "five halves"],
)
def test_the_same_stream_gives_the_same_noise(shape, log_ratio, expected):
    bits = SeededBits("vector")
    assert [sample_polyas(shape, log_ratio, 1, bits)[0] for _ in expected] == expected


# --- the parts of a draw --------------------------------------------------------------------------


def pmf_of_parts(shape: float, scale: float, most: int) -> np.ndarray:
    """P(X = k), k < most, from the jumps: Panjer's recursion for a compound Poisson sum.

    The rate of the jumps k is the rate of proposals r q^k/2^j times the odds 2^j/k.
    """
    q = math.exp(-1 / scale)
    k = np.arange(1, most)
    block = 2.0 ** np.floor(np.log2(k))
    rates = shape * q**k / block * (block / k)
    pmf = np.zeros(most)
    pmf[0] = (1 - q) ** shape
    for x in range(1, most):
        pmf[x] = (k[:x] * rates[:x] * pmf[x - 1 :: -1][:x]).sum() / x
    return pmf


@pytest.mark.parametrize("shape", [Fraction(1, 2), Fraction(1, 16)], ids=str)
def test_the_jumps_add_up_to_the_law(shape):
    pmf = pmf_of_parts(float(shape), 7.0, 200)
    law = stats.nbinom(float(shape), -math.expm1(-1 / 7)).pmf(np.arange(200))
    assert np.allclose(pmf, law, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("log_ratio", [Fraction(1, 1000), Fraction(1, 7), Fraction(3)], ids=str)
@pytest.mark.parametrize("shape", [Fraction(1, 2), Fraction(1, 16)], ids=str)
def test_the_tables_hold_the_rates_of_proposals(shape, log_ratio):
    """The mean of M and the law of j against sums of r q^k/2^j, term by term."""
    law = PolyaLaw(shape, log_ratio)
    q = math.exp(-float(log_ratio))
    k = np.arange(1, 1 << 17, dtype=np.float64)
    block = np.floor(np.log2(k)).astype(int)
    rates = float(shape) * q**k / 2.0**block
    assert float(law.mean(192)) == pytest.approx(rates.sum(), rel=1e-9)
    for j, above in enumerate(law.block_survival(0, 9, 192)):
        assert float(above) == pytest.approx(rates[block > j].sum() / rates.sum(), abs=1e-9)


def test_the_tables_cover_all_but_2_to_the_minus_64():
    """The schedule is exceeded with a smaller probability, slots and digits together."""
    for log_ratio in (Fraction(1), Fraction(1, 1000), Fraction(1, 2**50)):
        for shape in (Fraction(1, 2), Fraction(1, 16)):
            law = PolyaLaw(shape, log_ratio)
            many = law.count_table.survival(law.slots, law.slots, 192)[0]
            wide = law.block_survival(law.digits, law.digits, 192)[0]
            assert bool(many + law.slots * wide < 2.0**-80)


# --- rare paths -----------------------------------------------------------------------------------


class Words:
    """A `RandomBits` whose 128-bit numbers come from a function of their place in each request."""

    def __init__(self, *requests):
        self._requests = list(requests)

    def __call__(self, count: int) -> int:
        assert count % 64 == 0
        choose = self._requests.pop(0) if self._requests else (lambda place: 1 << 127)
        if count == 64:
            return choose(0) & ONES
        numbers = [choose(place) for place in range(count // 128)]
        return sum(number << 128 * place for place, number in enumerate(numbers))


def threshold(table, entry: int) -> int:
    """The integer that a table or a row of coins compares with."""
    return int(table.thresholds.high[entry]) << 64 | int(table.thresholds.low[entry])


@pytest.mark.parametrize(("word", "expected"), [(0, 4), (ONES, 3)])
def test_128_bits_that_agree_get_more_bits(word, expected):
    """V agrees with P(X > 3) in 128 bits; the next 64 bits decide on which side it lies."""
    table = PolyaLaw(Fraction(1, 2), Fraction(1, 9)).count_table
    source = Words(lambda place: threshold(table, 3), lambda place: word, lambda place: word)
    assert table.draw(1, source).tolist() == [expected]


def test_a_value_past_the_table_is_found():
    """V = 2^-128 of P(X > last): the walk goes on to the k that V belongs to."""
    table = PolyaLaw(Fraction(1, 2), Fraction(1, 9)).count_table
    (drawn,) = table.draw(1, Words(lambda place: 1))
    above = [table.survival(int(drawn) + step, int(drawn) + step, 400)[0] for step in (-1, 0)]
    assert drawn > table.last
    assert bool(above[1] <= 2 * 2.0**-128) and bool(above[0] > 2.0**-128)


def test_a_coin_that_128_bits_leave_open_is_decided():
    row = CoinRow(lambda precision: digit_odds(Fraction(1, 9), 3, precision))
    odds = threshold(row, 2)
    for word, heads in [(0, True), (ONES, False)]:
        source = Words(lambda place: odds if place == 2 else ONES << 64, lambda place, w=word: w)
        assert row.toss(1, source)[0].tolist() == [False, False, heads]


def test_a_block_past_the_table_is_summed():
    """The rare j above the digits: the draw is then as large as its jump."""
    law = PolyaLaw(Fraction(1, 2), Fraction(1, 9))
    one = threshold(law.count_table, 0) - 1  # M = 1
    rare = Words(
        lambda place: one,
        lambda place: 0 if place == 0 else ONES << 64,  # j of the first slot: V = 2^-384
        *[lambda place: 0] * 4,
        lambda place: ONES,
    )
    assert law.draw(1, rare)[0] >= 1 << law.digits + 1


# --- the ends of the range ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "log_ratio", [Fraction(10**9), Fraction(10**30), Fraction(10**300)], ids=float
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_huge_log_ratio_is_zero(shape, log_ratio):
    bits = SeededBits("huge")
    assert sample_polyas(shape, log_ratio, 20, bits) == [0] * 20


@pytest.mark.parametrize(
    "log_ratio", [Fraction(1, 10**40), Fraction(1, 10**19), LEAST_LOG_RATIO], ids=float
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tiny_log_ratio_has_the_gamma_law(shape, log_ratio):
    """The ratio is so small that X = 0, which the gamma law lacks, hardly ever comes up."""
    bits = SeededBits(f"tiny {shape}")
    drawn = [float(k * log_ratio) for k in sample_polyas(shape, log_ratio, 1000, bits)]
    assert stats.kstest(drawn, stats.gamma(float(shape)).cdf).pvalue > ALPHA, bits


@pytest.mark.parametrize("word", [0, ONES], ids=["zeros", "ones"])
@pytest.mark.parametrize("log_ratio", WHOLE_RANGE[:-1], ids=float)
@pytest.mark.parametrize("shape", [*SHAPES, Fraction(5, 2)], ids=str)
def test_a_dead_source_is_refused(shape, log_ratio, word):
    def dead(count: int) -> int:
        return sum(word << 64 * place for place in range(count // 64))

    with pytest.raises(LocalProtocolError, match="source of randomness"):
        sample_polyas(shape, log_ratio, 1, dead)[0]


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
        sample_polyas(shape, log_ratio, 1, SeededBits("unused"))[0]


@pytest.mark.parametrize("word", [-1, 1 << 4096])
def test_a_source_that_returns_too_many_bits_is_refused(word):
    with pytest.raises(LocalProtocolError, match="random bits"):
        sample_polyas(Fraction(1), Fraction(1), 1, lambda count: word)[0]


def test_a_partly_drawn_uniform_does_not_show_its_bits():
    known = LazyUniform(lambda count: 0, 256, 0xDEADBEEF, 64)
    assert repr(known) == "LazyUniform(<redacted>, width=64)"
