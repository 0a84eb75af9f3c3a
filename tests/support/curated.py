"""Shared by tests of central protocols: small tables and kernels, power checks, the audit.

The audit is that of `tests/audit`: a lower confidence bound of ε from events fixed beforehand.
Right code stays below the claimed ε. Runs with too little noise must exceed it, which proves the
audit's power.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy import stats

from tests.audit.auditor import loss_bound
from tests.support.statistical import ALPHA, WRONG_SCALES, SeededBits
from umpc.dp.random_bits import RandomBits
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema

__all__ = ["ALPHA", "WRONG_SCALES", "SeededBits"]

ONE = Fraction(1)
SCHEMA = Schema(
    [
        FieldSchema("x", Fraction(0), Fraction(3), ONE),
        FieldSchema("y", Fraction(0), Fraction(3), ONE),
    ]
)
KENDALL = Kernel.from_text("sign(a.x - b.x) * sign(a.y - b.y)", SCHEMA)
GINI = Kernel.from_text("abs(a.x - b.x)", SCHEMA)
EQUAL = Kernel.from_text("a.x == b.x", SCHEMA)
PRODUCT = Kernel.from_text("a.x * b.x", SCHEMA)
TRIPLE = Kernel.from_text("a.x * b.x * c.x", SCHEMA, degree=3)
CONSTANT = Kernel.from_text("a.x * 0 + b.x * 0 + 2", SCHEMA)

Draw = Callable[[RandomBits], float]


def columns(x: Sequence[int], y: Sequence[int] | None = None) -> dict[str, np.ndarray]:
    return {"x": np.array(x, dtype=np.int64), "y": np.array(x if y is None else y, dtype=np.int64)}


def random_columns(records: int, seed: int) -> dict[str, np.ndarray]:
    x, y = np.random.default_rng(seed).integers(0, 4, (2, records))
    return columns(x, y)


def draws(draw: Draw, count: int, seed: str) -> np.ndarray:
    bits = SeededBits(seed)
    return np.array([float(draw(bits)) for _ in range(count)])


def accept_law(found: np.ndarray, law: Callable[[np.ndarray], np.ndarray], std: float) -> None:
    """Check that draws around 0 have the law of this standard deviation.

    The chi-square test in 20 bins must also reject 0.7 and 1.3 times the standard deviation.

    Args: law: the distribution function of the law with standard deviation 1.
    """
    for wrong in (1.0, *map(float, WRONG_SCALES)):
        seen = np.histogram(law(found / (std * wrong)), bins=20, range=(0, 1))[0]
        p = stats.chisquare(seen).pvalue
        assert (p > ALPHA) == (wrong == 1.0), (
            f"scale x {wrong}: p = {p:.1e} with {len(found)} draws"
        )


def laplace_cdf(x: np.ndarray) -> np.ndarray:
    return stats.laplace(scale=2**-0.5).cdf(x)


def heavy_cdf(z: np.ndarray) -> np.ndarray:
    """Compute the distribution function of the density √2/π/(1 + z⁴), of standard deviation 1.

    It adds up the density, independently of the closed form in the code.
    """
    places = np.sinh(np.linspace(-12, 12, 40_001))
    density = np.sqrt(2) / np.pi / (1 + places**4)
    below = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(places))])
    return np.interp(z, places, below)


def has_moments(found: np.ndarray, mean: float, variance: float) -> bool:
    """Check the mean within six standard errors, and the variance between 0.68 and 1.4 times.

    No scale that is wrong by 0.7 or 1.3 passes.
    """
    ratio = ((found - mean) ** 2).mean() / variance
    return abs(found.mean() - mean) < 6 * np.sqrt(variance / len(found)) and 0.68 < ratio < 1.4


def accept_moments(found: np.ndarray, mean: float, variance: float) -> None:
    """Check `has_moments`, and that it rejects standard deviations × 0.7 and × 1.3."""
    assert has_moments(found, mean, variance), (
        f"{found.mean()} for {mean}, {found.var()} for {variance}"
    )
    for wrong in map(float, WRONG_SCALES):
        assert not has_moments(found, mean, variance * wrong**2)


def audited(first: Draw, second: Draw, runs: int, seed: str, delta: float = 0.0) -> float:
    """Return a lower bound of ε from the answers on two neighbours; events lie around the medians.

    The thresholds come from separate runs, a tenth as many.
    """
    pilot = [
        np.median(draws(draw, runs // 10, f"{seed} pilot {i}"))
        for i, draw in enumerate((first, second))
    ]
    sign = 1.0 if pilot[1] >= pilot[0] else -1.0
    thresholds = [
        sign * (pilot[0] + (pilot[1] - pilot[0]) * part) for part in (-0.5, 0.0, 0.5, 1.0, 1.5)
    ]
    scores = [sign * draws(draw, runs, f"{seed} {i}") for i, draw in enumerate((first, second))]
    return loss_bound(*scores, thresholds, delta)
