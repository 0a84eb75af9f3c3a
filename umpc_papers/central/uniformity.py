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

from umpc.dp.events import PureEvent, check_epsilon, is_exact, is_integer
from umpc.dp.random_bits import RandomBits
from umpc.errors import StudyError, TooFewRecords
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema
from umpc_papers.central.hajek import LocalHajek, bernstein_concentration

LEAST_RECORDS = 4


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
            and self.records >= LEAST_RECORDS
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

    def error_bound(self, excess: Fraction, noise_std: float | None = None) -> float:
        """A bound of the chance of a wrong answer for a p of mean a² = `excess`.

        Σp³ = (1 + 3 mean a² + mean a³)/m², where mean a³ <= mean a² because |a| <= 1.

        Args:
            noise_std: of noise that has this size for every table. None is that of the estimator,
                and the bound then includes ξ's failure.
        """
        m = self.categories
        collisions = (1 + Fraction(excess)) / m
        variance = self.statistic_variance(collisions, (1 + 4 * Fraction(excess)) / m**2)
        gap = float(collisions - self.threshold) ** 2
        if not gap:
            return 1.0
        if noise_std is not None:
            return min(1.0, (variance + noise_std**2) / gap)
        return min(1.0, (variance + self.estimator.mse(self.records)) / gap + float(self.failure))

    def error_bounds(self, noise_std: float | None = None) -> tuple[float, float]:
        """The bounds for the nearest of the nearly uniform columns, and for the nearest far one."""
        near, far = self.distance**2 / 2, self.distance**2
        return self.error_bound(near, noise_std), self.error_bound(far, noise_std)

    @property
    def event(self) -> PureEvent:
        """The cost of the release."""
        return PureEvent(self.epsilon)


# --- as a study -----------------------------------------------------------------------------------


def uniformity_test(
    kernel: Kernel, distance: Fraction, records: int, epsilon: Fraction
) -> UniformityTest:
    """The test for a study of the statistic `uniformity`, whose kernel is [x = y] - 1/m.

    Raises:
        StudyError: the kernel is another one, or a number is out of range.
        TooFewRecords: there are fewer than 4 records.
    """
    if len(kernel.fields) != 1 or kernel.degree != 2 or not kernel.interval.low < 0:
        raise _another_kernel(kernel)
    column = kernel.fields[0]
    categories = -1 / kernel.interval.low
    expected = f"(a.{column} == b.{column}) - 1/{categories}"
    if categories.denominator != 1 or Kernel.from_text(expected, kernel.schema) != kernel:
        raise _another_kernel(kernel)
    if records < LEAST_RECORDS:
        raise TooFewRecords(
            f"a test of uniformity needs at least {LEAST_RECORDS} records, {records} came"
        )
    return UniformityTest(column, int(categories), distance, records, epsilon)


def _another_kernel(kernel: Kernel) -> StudyError:
    return StudyError(
        'distance goes with statistic = "uniformity", the squared distance of a field to the '
        f"uniform law; got the kernel {kernel.text[:63]!r}. Remove distance, or take that statistic"
    )


def answer_of(test: UniformityTest, value: float, noise_std: float | None) -> str:
    """The answer and its error bounds, in words.

    Args:
        value: the private mean of [x = y] - 1/m.
        noise_std: as in `error_bound`.
    """
    threshold = float(test.threshold - Fraction(1, test.categories))
    uniform = value <= threshold
    return (
        f"the test {'accepts' if uniform else 'rejects'} that {test.column} is uniform: "
        f"{value:.4g} is {'at most' if uniform else 'above'} the threshold {threshold:.4g} for "
        f"distance {float(test.distance):g}. {describe_errors(test, noise_std)}"
    )


def describe_errors(test: UniformityTest, noise_std: float | None) -> str:
    """The error bounds in words."""
    near, far = test.error_bounds(noise_std)
    return (
        f"It wrongly rejects a nearly uniform column with a chance of at most {near:.2g}, and "
        f"wrongly accepts a far one with at most {far:.2g}"
    )
