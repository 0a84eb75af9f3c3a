"""A release as data: its mechanism's parameters, all exact, and the relation they hold for.

The relation is replace-one: neighbours have the same number of records and differ in one of them.
(A guarantee with parameter epsilon for adding or removing a record is a guarantee with 2 epsilon
for replacing one, because a replacement is two such steps.)

| event | mechanism |
|---|---|
| `PureEvent` | any epsilon-DP mechanism, such as randomised response |
| `ApproximateEvent` | any (epsilon, delta)-DP mechanism, such as binomial noise |
| `FailureEvent` | with probability delta, whatever the data, nothing is protected |
| `LaplaceEvent` | discrete Laplace noise on one sum, central or in shares |
| `GaussianEvent` | discrete Gaussian noise on several sums |
| `ConcentratedEvent` | any rho-zCDP mechanism |
| `SkellamEvent` | Skellam noise on several sums |

Events say what was done. `composition.py` says what they cost together, `event_text.py` writes them
as text, and `bench/baselines` has an accountant with further theorems.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from umpc.dp.checks import check_delta, check_epsilon, check_sensitivity, is_exact
from umpc.errors import InvalidEpsilon, StudyError


@dataclass(frozen=True)
class PureEvent:
    """A release that is epsilon-DP, such as randomised response.

    Args:
        epsilon: > 0, exact.

    Raises:
        InvalidEpsilon: epsilon is not an exact number above 0.
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))


@dataclass(frozen=True)
class ApproximateEvent:
    """A release that is (epsilon, delta)-DP, with nothing else known about it.

    Args:
        epsilon: > 0, exact.
        delta: 0 < delta < 1, exact.
    """

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))


@dataclass(frozen=True)
class LaplaceEvent:
    """Noise P(x) ~ exp(-|x|/scale) on the integers, on one sum.

    Args:
        scale: > 0, exact, in units of the sum.
        sensitivity: s >= 1, most by which replacing one record changes the sum, in its units.
    """

    scale: Fraction
    sensitivity: int

    def __post_init__(self) -> None:
        if not is_exact(self.scale) or self.scale <= 0:
            raise InvalidEpsilon(
                f"the scale of noise must be an exact number above 0, but {self.scale} came"
            )
        object.__setattr__(self, "scale", Fraction(self.scale))
        if not check_sensitivity(self.sensitivity):
            raise StudyError("a sum of sensitivity 0 is public: leave its event out")

    @property
    def epsilon(self) -> Fraction:
        """s/scale, exact and pure."""
        return self.sensitivity / self.scale


@dataclass(frozen=True)
class _VectorEvent:
    variances: tuple[Fraction, ...]
    sensitivities: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.variances or len(self.variances) != len(self.sensitivities):
            raise StudyError(
                "noise on several sums needs one variance and one sensitivity for each, at least "
                f"one, but {len(self.variances)} and {len(self.sensitivities)} came"
            )
        for variance, sensitivity in zip(self.variances, self.sensitivities, strict=True):
            _check_variance(variance, sensitivity)
        object.__setattr__(self, "variances", tuple(Fraction(v) for v in self.variances))
        object.__setattr__(self, "sensitivities", tuple(self.sensitivities))


def _check_variance(variance: Fraction, sensitivity: int) -> None:
    """A variance may be 0 only where the sensitivity is 0."""
    if not is_exact(variance) or variance < 0 or (not variance and check_sensitivity(sensitivity)):
        raise InvalidEpsilon(f"a variance must be an exact number above 0, but {variance} came")
    check_sensitivity(sensitivity)


@dataclass(frozen=True)
class GaussianEvent(_VectorEvent):
    """Discrete Gaussian noise, P(x) ~ exp(-x^2/(2 variance)), independent on each of several sums.

    Args:
        variances: the parameter sigma^2 on each sum, > 0, exact, squared units.
        sensitivities: s_i >= 0, most by which replacing one record changes sum i, all at once.
    """

    @property
    def rho(self) -> Fraction:
        """Sum of s^2/(2 sigma^2): the release is rho-zCDP. Exact."""
        pairs = zip(self.variances, self.sensitivities, strict=True)
        return sum((s * s / (2 * v) for v, s in pairs if s), Fraction(0))


@dataclass(frozen=True)
class SkellamEvent(_VectorEvent):
    """Poisson(variance/2) - Poisson(variance/2) noise, independent on each of several sums.

    Args:
        variances: mu of each sum, only from honest nodes' noise; > 0, exact, squared units.
        sensitivities: s_i >= 0, most by which replacing one record changes sum i, all at once.
    """


@dataclass(frozen=True)
class FailureEvent:
    """An accident that does not depend on data, and after which nothing is protected.

    Args:
        delta: its probability, 0 < delta < 1, exact.
    """

    delta: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", check_delta(self.delta))


@dataclass(frozen=True)
class ConcentratedEvent:
    """A release that is rho-zCDP: its Rényi divergence of order alpha is at most rho alpha.

    Args:
        rho: > 0, exact.
    """

    rho: Fraction

    def __post_init__(self) -> None:
        if not is_exact(self.rho) or self.rho <= 0:
            raise InvalidEpsilon(f"rho must be an exact number above 0, but {self.rho} came")
        object.__setattr__(self, "rho", Fraction(self.rho))


Event = (
    PureEvent
    | ApproximateEvent
    | FailureEvent
    | LaplaceEvent
    | GaussianEvent
    | ConcentratedEvent
    | SkellamEvent
)
"""Events that a site's ledger keeps."""
