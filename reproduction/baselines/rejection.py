"""The former draws of Poisson and discrete Gaussian variables: rejection that ends when it can.

The laws and the trials are those of `umpc.dp.geometric_poisson` and
`umpc.dp.distributed_gaussian`. The time follows the value, because a trial's coins do, and because
the odds of a value met before are remembered. `python -m bench.timing` shows what a clock learns
from that.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb

from reproduction.baselines.coins import MOST_TRIES, bernoulli_exp, sample_discrete_laplace
from umpc.dp.geometric_poisson import acceptance
from umpc.dp.random_bits import LazyUniform, RandomBits
from umpc.errors import LocalProtocolError


def reject_poisson(mean: Fraction, bits: RandomBits) -> int:
    """One exact draw of Poisson(mean), mean > 0; the arguments of `umpc.dp.geometric_poisson`."""
    mode = math.floor(mean)
    scale = math.isqrt(mode) + 1
    for _ in range(2 * MOST_TRIES):
        y = sample_discrete_laplace(Fraction(1, scale), bits)
        if mode + y >= 0 and _accepts(mean, y, bits):
            return mode + y
    raise LocalProtocolError("expected a Poisson draw; check the source of randomness")


def reject_skellam(variance: Fraction, bits: RandomBits) -> int:
    """One exact draw of Skellam(variance), variance > 0."""
    return reject_poisson(variance / 2, bits) - reject_poisson(variance / 2, bits)


def reject_gaussian(parameter: Fraction, bits: RandomBits) -> int:
    """One exact draw of the discrete Gaussian; the arguments of `umpc.dp.distributed_gaussian`."""
    n, d = Fraction(parameter).as_integer_ratio()
    t = math.isqrt(n // d) + 1
    for _ in range(2 * MOST_TRIES):
        # Canonne, Kamath, Steinke 2020, algorithm 3.
        y = sample_discrete_laplace(Fraction(1, t), bits)
        if bernoulli_exp((abs(y) * t * d - n) ** 2, 2 * n * d * t * t, bits):
            return y
    raise LocalProtocolError("expected a discrete Gaussian; check the source of randomness")


def _accepts(mean: Fraction, y: int, bits: RandomBits) -> bool:
    """A coin with the odds of acceptance: more bits of U or a sharper ball until they are apart."""
    u = LazyUniform(bits, 1024)
    precision = 64
    while True:
        odds = _remembered(mean, y, precision)
        if u.certainly_below(odds):
            return True
        if u.certainly_not_below(odds):
            return False
        if u.resolved_by(odds):
            u.extend()
        else:
            precision *= 2


@lru_cache(maxsize=16_384)
def _remembered(mean: Fraction, y: int, precision: int) -> arb:
    return acceptance(mean, y, precision)
