"""`geometric`: the laws of its draws, and the coins that they are made of."""

from __future__ import annotations

import ast
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tests.support.statistical import N_MANY, SeededBits, accept_only
from umpc.dp import geometric_poisson, polya, random_bits
from umpc.dp.distributed_gaussian import discrete_gaussians
from umpc.dp.geometric_poisson import (
    digits_needed,
    discrete_laplaces,
    geometric_law,
    integers_of,
    sample_poisson,
    totals_of,
)
from umpc.errors import LocalProtocolError


@pytest.mark.parametrize("scale", [Fraction(7, 3), Fraction(1000)], ids=str)
def test_the_law_is_discrete_laplace(scale):
    bits = SeededBits(f"digits laplace {scale}")
    drawn = [x for _ in range(100) for x in discrete_laplaces(1 / scale, N_MANY // 100, bits)]
    accept_only(
        drawn,
        lambda wrong: stats.dlaplace(1 / (float(scale) * wrong)).cdf,
        int(-60 * scale),
        int(60 * scale),
        bits,
    )


def test_the_digits_have_the_odds_of_the_law():
    """P(X = k) is the product over the digits of k, times the chance of no more digits."""
    law = geometric_law(Fraction(1, 3))
    *odds, more = (float(p) for p in law.odds(192))
    q = math.exp(-1 / 3)
    for k in range(40):
        digits = [k >> i & 1 for i in range(law.digits)]
        product = math.prod(p if d else 1 - p for d, p in zip(digits, odds, strict=True))
        assert product * (1 - more) == pytest.approx((1 - q) * q**k, rel=1e-12)


@pytest.mark.parametrize("log_ratio", [Fraction(1, 2**50), Fraction(1, 3), Fraction(70)], ids=str)
def test_more_digits_than_counted_are_rare(log_ratio):
    digits = digits_needed(log_ratio)
    assert float(log_ratio) * 2**digits > 96 * math.log(2)
    assert not digits or float(log_ratio) * 2**digits < 4 * 96 * math.log(2)


def test_a_rare_number_with_more_digits_is_drawn():
    """All digits are 0; the last coin shows heads twice and then tails: 2^J is added twice."""
    law = geometric_law(Fraction(1, 3))
    ones = (1 << 64) - 1
    tails = sum(ones << 64 + 128 * place for place in range(law.digits))
    heads = 1 << 128 * law.digits
    source = iter([tails | heads, 0, 0, ones])
    assert law.draw(1, lambda count: next(source)) == [2 << law.digits]


def test_sums_of_digits_are_sums_of_integers():
    digits = np.random.default_rng(1).integers(0, 2, (3, 50, 77)).astype(bool)
    assert totals_of(digits) == [sum(integers_of(draw)) for draw in digits]


@pytest.mark.parametrize("scale", [10**18, Fraction(1, 1000)], ids=str)
def test_extreme_scales(scale):
    drawn = discrete_laplaces(1 / Fraction(scale), 2000, SeededBits("extreme"))
    mean = np.mean(np.abs(np.array(drawn, dtype=float)))
    assert mean == pytest.approx(float(scale) if scale > 1 else 0, rel=0.2)


@pytest.mark.parametrize("word", [0, 1], ids=["zeros", "ones"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda bits: discrete_laplaces(Fraction(1, 5), 1, bits),
        lambda bits: discrete_laplaces(Fraction(5, 3), 1, bits),
        lambda bits: sample_poisson(Fraction(10**6), bits),
        lambda bits: sample_poisson(Fraction(1, 3), bits),
        lambda bits: discrete_gaussians(Fraction(50), 1, bits)[0],
    ],
    ids=["laplace 5", "laplace 3/5", "poisson 1e6", "poisson 1/3", "gaussian 50"],
)
def test_a_dead_source_is_refused(draw, word):
    with pytest.raises(LocalProtocolError, match="source of randomness"):
        draw(lambda count: (1 << count) - 1 if word else 0)


@pytest.mark.parametrize("log_ratio", [Fraction(0), Fraction(-1)])
def test_a_log_ratio_out_of_range_is_refused(log_ratio):
    with pytest.raises(LocalProtocolError, match="log_ratio"):
        discrete_laplaces(log_ratio, 1, SeededBits("unused"))


@pytest.mark.parametrize(
    "module",
    [geometric_poisson, polya, random_bits],
    ids=lambda m: m.__name__,
)
def test_no_float_and_no_other_randomness_on_the_way_to_a_draw(module):
    """No float literal or conversion, no import of another source."""
    tree = ast.parse(Path(module.__file__).read_text())
    allowed = {
        "__future__",
        "collections.abc",
        "fractions",
        "functools",
        "math",
        "flint",
        "numpy",
        "numpy.typing",
        "umpc.errors",
    }
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), ast.unparse(
            node
        )
        assert not (isinstance(node, ast.Name) and node.id == "float")
        assert not (isinstance(node, ast.Attribute) and node.attr in {"random", "float64"})
        if isinstance(node, ast.Import):
            assert [name.name for name in node.names] == ["numpy"]
        if isinstance(node, ast.ImportFrom):
            assert node.module in allowed or node.module.startswith("umpc.dp.")
            if node.module == "math":
                assert {name.name for name in node.names} <= {"ceil", "floor", "isqrt"}
