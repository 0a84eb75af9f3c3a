"""A private test whether a column is uniform over m categories, by the collision statistic.

U is the share of pairs of records with equal categories, E U = Σp² = (1 + mean of a²)/m for
p_j = (1 + a_j)/m. The two hypotheses are mean a² <= D²/2 (nearly uniform) and mean a² >= D² (far).
The test says "uniform" if the private U is at most (1 + 3D²/4)/m, half way between. All
|a_j| <= 1, so p_j <= 2/m.

ξ. H_i is the share of the other n - 1 records in i's category, a mean of n - 1 coins of chance
p <= 2/m and variance <= 2/m. Bernstein bounds |H_i - p|, and with blocks of two |U - E U|.
Moreover |p - Σp²| <= 2/m, as both are in [0, 2/m]. So ξ = 2/m + these two holds for all records
with the stated chance, under both hypotheses (the paper's Lemma A.19 has the same order). With
`nearly`, a bound of max |a_j|, |p - Σp²| <= 2 nearly/m, which is less noise where it is true.

Privacy is that of `hajek` for any data; ξ matters for accuracy only. `error_bound` is a bound on
the chance of a wrong answer by Chebyshev, for noise at L = 0 plus the variance of U under the worst
p of either hypothesis.

Paper: Chaudhuri, Loh, Pandey, Sarkar 2024, section 5, Algorithm 4, Theorem 5, Lemmas A.17-A.19;
Diakonikolas et al. 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from umpc.dp.checks import check_epsilon, is_exact, is_integer
from umpc.dp.events import PureEvent
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError
from umpc.protocols.central.hajek import LocalHajek, bernstein_concentration
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema


@dataclass(frozen=True)
class Decision:
    """The answer of the test.

    Args:
        uniform: whether the column is called uniform.
        statistic: the private share of equal pairs that the answer rests on.
    """

    uniform: bool
    statistic: Fraction


@dataclass(frozen=True)
class UniformityTest:
    """A test that is epsilon-DP, replace-one.

    Args:
        column: the column's name; its values are 0 .. categories - 1.
        categories: m >= 2.
        distance: D, exact, 0 < D <= 1.
        records: n >= 4, public; ξ depends on it.
        epsilon: > 0, exact.
        nearly: a bound of all |a_j| that is expected to hold, 0 .. 1; 1 is the paper's class.
        failure: chance, under either hypothesis, that ξ does not hold.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
        StudyError: another parameter is not exact or out of range.
    """

    column: str
    categories: int
    distance: Fraction
    records: int
    epsilon: Fraction
    nearly: Fraction = Fraction(1)
    failure: Fraction = Fraction(1, 20)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        if not (
            is_integer(self.categories)
            and self.categories >= 2
            and is_integer(self.records)
            and self.records >= 4
        ):
            raise StudyError("a test of uniformity needs at least 2 categories and 4 records")
        if not all(map(is_exact, (self.distance, self.nearly, self.failure))):
            raise StudyError("a test of uniformity needs exact numbers")
        if not (0 < self.distance <= 1 and 0 <= self.nearly <= 1 and 0 < self.failure < 1):
            raise StudyError(
                "distance, nearly and failure are between 0 and 1, distance and failure above 0"
            )

    @property
    def concentration(self) -> Fraction:
        """ξ."""
        likely = (1 + self.nearly) / self.categories
        spread = bernstein_concentration(self.records, 2, Fraction(1), likely, self.failure)
        return 2 * self.nearly / self.categories + spread

    @property
    def threshold(self) -> Fraction:
        """The largest private U that is called uniform."""
        return (1 + Fraction(3, 4) * self.distance**2) / self.categories

    @cached_property
    def estimator(self) -> LocalHajek:
        """The private estimator of U."""
        field = FieldSchema(self.column, Fraction(0), Fraction(self.categories - 1), Fraction(1))
        kernel = Kernel.from_text(f"a.{self.column} == b.{self.column}", Schema([field]))
        return LocalHajek(kernel, self.epsilon, self.concentration)

    def decide(self, columns: Columns, bits: RandomBits) -> Decision:
        """The answer for a table. Reveals: the private statistic."""
        if len(columns[self.column]) != self.records:
            raise StudyError(f"expected {self.records} records, {len(columns[self.column])} came")
        statistic = self.estimator.estimate(columns, bits)
        return Decision(statistic <= self.threshold, statistic)

    def statistic_variance(self, collisions: Fraction, cubes: Fraction) -> float:
        """Variance of U from Σp² and Σp³ (Lemma A.18).

        ζ_1 = Σp³ - (Σp²)², ζ_2 = Σp² - (Σp²)².
        """
        n, square = self.records, collisions**2
        zeta_1, zeta_2 = cubes - square, collisions - square
        return float((2 * (n - 2) * zeta_1 + zeta_2) * 2 / (n * (n - 1)))

    def error_bound(self, excess: Fraction) -> float:
        """A bound of the chance of a wrong answer for a p of mean a² = `excess`.

        It includes ξ's failure. Σp³ = (1 + 3 mean a² + mean a³)/m², where mean a³ <= mean a²
        because |a| <= 1.
        """
        m = self.categories
        collisions = (1 + Fraction(excess)) / m
        variance = self.statistic_variance(collisions, (1 + 4 * Fraction(excess)) / m**2)
        gap = float(collisions - self.threshold) ** 2
        if not gap:
            return 1.0
        return min(1.0, (variance + self.estimator.mse(self.records)) / gap + float(self.failure))

    @property
    def event(self) -> PureEvent:
        """The cost of the release."""
        return PureEvent(self.epsilon)
