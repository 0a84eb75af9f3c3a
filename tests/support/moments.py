"""Shared by the tests of local protocols: α, N, small records, and a test of two moments.

An estimator is right if its mean squared distance from its stated mean is its stated variance.
`accept_moments` tests that with the spread it sees. It proves its power: the same N estimates must
reject a standard deviation of ×0.7 and ×1.3, and a mean that is off by half a standard deviation.
Streams are seeded, and a failing test prints its seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from scipy import stats

from tests.support.statistical import WRONG_SCALES, SeededBits
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.exact_sampling import ShakeStream
from umpc_papers.local.quantisation import Bins, Points, Quantiser

ALPHA = 1e-4
"""The chance that one test of a right estimator fails, over random seeds."""

N = 500
"""Estimates per test."""

SCHEMA = Schema(
    [
        FieldSchema("x", Fraction(0), Fraction(31), Fraction(1)),
        FieldSchema("y", Fraction(-2), Fraction(2), Fraction(1, 4)),
        FieldSchema("kind", Fraction(0), Fraction(2), Fraction(1), ("a", "b", "c")),
    ]
)
KENDALL = "sign(a.x - b.x) * sign(a.y - b.y)"
GINI = "abs(a.x - b.x)"
SUM = "(a.x + b.x) * (1/10)"


class Scripted(ShakeStream):
    """A stream that returns given words."""

    def __init__(self, *words: int):
        self._words = list(words)

    def words(self, count: int) -> np.ndarray:
        taken, self._words = self._words[:count], self._words[count:]
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)


def odds_of_one(tell: Callable[[ShakeStream], np.ndarray], *thresholds: int) -> Fraction:
    """Compute exactly the odds that a record sends 1.

    It tries all outcomes of the record's coins, and of the fair answer that comes last.

    Args: tell: the record's message, from a stream. thresholds: of its coins, in their order.
    """
    total = Fraction(0)
    for heads in product((True, False), repeat=len(thresholds)):
        weight = Fraction(1, 2)
        for head, threshold in zip(heads, thresholds, strict=True):
            weight *= Fraction(threshold if head else (1 << 64) - threshold, 1 << 64)
        words = [
            threshold - 1 if head else threshold
            for head, threshold in zip(heads, thresholds, strict=True)
        ]
        if weight:
            total += weight * sum(int(tell(Scripted(*words, answer))[0]) for answer in (0, 1))
    return total


def make_cells(text: str, *axes: Bins | Points) -> Quantiser:
    return Quantiser(Kernel.from_text(text, SCHEMA), axes)


def kendall_cells(x: int = 2, y: int = 3) -> Quantiser:
    return make_cells(KENDALL, Bins.equal(SCHEMA["x"], x), Bins.equal(SCHEMA["y"], y))


def gini_points(points: int = 4) -> Quantiser:
    """Return points for the Gini kernel, with randomised rounding."""
    return make_cells(GINI, Points.equal(SCHEMA["x"], points))


def records(n: int, seed: int = 1) -> dict[str, np.ndarray]:
    """Return correlated columns, in steps of their resolutions."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 32, n)
    y = np.clip((x - 16) // 3 + rng.integers(-4, 5, n), -8, 8)
    return {"x": x, "y": y, "kind": rng.integers(0, 3, n)}


def part(columns: dict[str, np.ndarray], start: int, stop: int) -> dict[str, np.ndarray]:
    return {name: column[start:stop] for name, column in columns.items()}


def accept_moments(
    run: Callable[[SeededBits], float], mean: float, variance: float, seed: str, n: int = N
) -> None:
    """Fail unless the estimates have these moments and reject others; the error names the seed."""
    bits = SeededBits(seed)
    drawn = np.array([run(bits) for _ in range(n)])
    said = f"N = {n}, mean {drawn.mean():.5g}, variance {drawn.var():.5g}, alpha {ALPHA}, {bits!r}"
    ok = passes(drawn, mean, variance)
    assert ok, f"not the stated mean {mean:.5g} and variance {variance:.5g}: {said}"
    for scale in map(float, WRONG_SCALES):
        assert not passes(drawn, mean, variance * scale**2), (
            f"no power: scale × {scale} passes; {said}"
        )
    assert not passes(drawn, mean + variance**0.5 / 2, variance), (
        f"no power: another mean passes; {said}"
    )


def passes(drawn: Sequence[float], mean: float, variance: float) -> bool:
    """Return whether mean and mean square about it are as stated, at ALPHA each."""
    limit = stats.norm.isf(ALPHA / 2)
    errors = (np.asarray(drawn) - mean) / variance**0.5
    squares = errors**2
    near = abs(errors.mean()) * len(errors) ** 0.5 < limit
    return bool(near and abs(squares.mean() - 1) < limit * squares.std() / len(errors) ** 0.5)
