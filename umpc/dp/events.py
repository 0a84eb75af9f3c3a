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

Events say what was done. `composition.py` says what they cost together, and
`reproduction/baselines` has an accountant with further theorems.

*Event text.* Events as text, one line each, for a site's ledger: `laplace 10 1` or `skellam 1/2,3
1,4`.

| line | event |
|---|---|
| `pure EPSILON` | `PureEvent` |
| `approximate EPSILON DELTA` | `ApproximateEvent` |
| `failure DELTA` | `FailureEvent` |
| `laplace SCALE SENSITIVITY` | `LaplaceEvent` |
| `gaussian VARIANCE,… SENSITIVITY,…` | `GaussianEvent` |
| `zcdp RHO` | `ConcentratedEvent` |
| `skellam VARIANCE,… SENSITIVITY,…` | `SkellamEvent` |

A line that comes several times is written once, with its number and `×` before it.

Tests that every calibration starts with: numbers must be exact and inside their range.

*Balls.* Fractions to certified balls and back. Every rounding of a calibration goes towards more
noise.

A ball (`flint.arb`) certainly holds the number it stands for, at any working precision. `above` is
the upper end of a ball as an exact fraction. So a bound that is computed in balls and rounded by
`above` is still a bound.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeGuard

from flint import arb, ctx, fmpq

from umpc.errors import EncodingError, InvalidEpsilon, LocalProtocolError, StudyError


def is_integer(value: object) -> TypeGuard[int]:
    """Whether the value is an int. True and False are not integers here."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_exact(value: object) -> TypeGuard[int | Fraction]:
    """Whether the value is an int or a Fraction. A float such as 0.1 is not the number written."""
    return is_integer(value) or isinstance(value, Fraction)


def check_epsilon(epsilon: object) -> Fraction:
    """An exact epsilon > 0, as a Fraction.

    Raises:
        InvalidEpsilon: epsilon is not exact, or not above 0.
    """
    if not is_exact(epsilon) or epsilon <= 0:
        raise InvalidEpsilon(
            f"epsilon must be an exact number above 0, such as 1 or 1/2, but {epsilon} came "
            f"(of type {type(epsilon).__name__})"
        )
    return Fraction(epsilon)


def check_delta(delta: object) -> Fraction:
    """An exact delta with 0 < delta < 1, as a Fraction.

    Raises:
        InvalidEpsilon: delta is not exact, or not between 0 and 1.
    """
    if not is_exact(delta) or not 0 < delta < 1:
        raise InvalidEpsilon(
            "delta must be an exact number between 0 and 1, such as Fraction(1, 10**6), "
            f"but {delta} came (of type {type(delta).__name__}); "
            "for no delta at all, take discrete Laplace noise"
        )
    return Fraction(delta)


def check_sensitivity(sensitivity: object) -> int:
    """A sensitivity in units of the sum: an integer, 0 or more.

    Raises:
        StudyError: the sensitivity is not an integer, or it is negative.
    """
    if not is_integer(sensitivity) or sensitivity < 0:
        raise StudyError(f"the sensitivity must be an integer, 0 or more, but {sensitivity!r} came")
    return sensitivity


def check_nodes(nodes: object, honest: object) -> None:
    """Check that 1 <= honest <= nodes.

    Raises:
        StudyError: one of them is not an integer, or is out of range.
    """
    if not (is_integer(nodes) and is_integer(honest) and 1 <= honest <= nodes):
        raise StudyError(
            "the nodes assumed honest must be at least 1 and at most all nodes, but "
            f"{honest!r} of {nodes!r} came; change the number of nodes that may collude"
        )


def check_tail(log2_probability: int) -> None:
    """Refuse a tail above 1/2. Raises: LocalProtocolError."""
    if log2_probability < 1:
        raise LocalProtocolError(f"expected a tail of at most 2^-1, got 2^-({log2_probability})")


# --- balls ----------------------------------------------------------------------------------------

PRECISION = 128
"""Working precision of calibrations and accountants, in bits. More would only narrow the balls."""

GRID = 40
"""Results are rounded up to multiples of 2^-40: short fractions, far below a useful epsilon."""


def ball(number: Fraction | int) -> arb:
    """The narrowest ball of the current precision around an exact number."""
    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def ball_at(number: Fraction, precision: int) -> arb:
    """The ball of an exact number, of so many bits."""
    with ctx.workprec(precision):
        return ball(number)


def above(number: arb, grid: int | None = GRID) -> Fraction:
    """A fraction certainly not below the number.

    Args:
        number: a ball.
        grid: the ball's upper end is rounded up to a multiple of 2^-grid. None: it is kept exactly.

    Raises:
        LocalProtocolError: the ball is not finite, so nothing is known about the number.
    """
    if not number.is_finite():
        raise LocalProtocolError(
            "expected a finite enclosure, got one that is not; raise the working precision"
        )
    # the upper end is a binary number, so it is a fraction exactly
    mantissa, exponent = (int(part) for part in number.upper().man_exp())
    exact = mantissa * Fraction(2) ** exponent
    if grid is None:
        return exact
    # rounded up: a bound stays a bound
    steps = -(-exact.numerator * (1 << grid) // exact.denominator)
    return Fraction(steps, 1 << grid)


def below(number: arb, grid: int | None = GRID) -> Fraction:
    """A fraction certainly not above the number. Arguments and errors are those of `above`."""
    return -above(-number, grid)


# --- events ---------------------------------------------------------------------------------------


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
        # Dwork et al. 2006: noise of scale s/epsilon is epsilon-DP
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
        # Canonne, Kamath & Steinke 2020, theorem 4; independent noise adds up
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


# --- event text -----------------------------------------------------------------------------------

LAWS: dict[str, type[Any]] = {
    "pure": PureEvent,
    "approximate": ApproximateEvent,
    "failure": FailureEvent,
    "laplace": LaplaceEvent,
    "gaussian": GaussianEvent,
    "zcdp": ConcentratedEvent,
    "skellam": SkellamEvent,
}
NAMES = {law: name for name, law in LAWS.items()}
TIMES = " × "


def encode_events(events: tuple[Event, ...]) -> str:
    """Return the events as text, equal ones together. Their order means nothing."""
    lines = []
    # equal events are written once, with their number
    for event, times in Counter(events).items():
        values = " ".join(_written(value) for value in vars(event).values())
        line = f"{NAMES[type(event)]} {values}"
        lines.append(line if times == 1 else f"{times}{TIMES}{line}")
    return "\n".join(lines)


def decode_events(text: str) -> tuple[Event, ...]:
    """Return the events of a text. Raises: EncodingError where it is none."""
    try:
        return tuple(event for line in text.splitlines() for event in _events(line))
    except (ValueError, KeyError, TypeError, ZeroDivisionError) as error:
        raise EncodingError(
            f"an event such as 'laplace 10 1' was expected, and {text[:80]!r} came. "
            "This is a fault; report it"
        ) from error


def _events(line: str) -> tuple[Event, ...]:
    times, _, event = line.rpartition(TIMES)
    name, *values = event.split(" ")
    law = LAWS[name]
    kinds = [field.type for field in dataclasses.fields(law)]
    # the class checks each parameter again, so a damaged line is refused
    arguments = [_read(kind, value) for kind, value in zip(kinds, values, strict=True)]
    return (law(*arguments),) * int(times or 1)


def _written(value: Fraction | int | tuple[Fraction | int, ...]) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _read(kind: object, value: str) -> Fraction | int | tuple[Fraction | int, ...]:
    """Read one parameter. Args: kind: its annotation in the event's class."""
    number = int if "int" in str(kind) else Fraction
    if str(kind).startswith("tuple"):
        return tuple(number(part) for part in value.split(","))
    return number(value)
