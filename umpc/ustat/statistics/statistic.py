"""What is said of a statistic: the columns and numbers it takes, its kernel, and how its sums become one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from umpc.errors import KernelError
from umpc.ustat.expression import Expression
from umpc.ustat.tracing import trace_all

MAX_NUMBER = 40
"""Characters of a parameter's number, and its decimal exponent, at most."""


@dataclass(frozen=True)
class Parameter:
    """A public number of a statistic.

    default: None where it must be given. per_column: a list with one number for each feature column; a single
    number stands for all of them. positive, whole: what else is asked of it.
    """

    name: str
    default: int | str | None = None
    per_column: bool = False
    positive: bool = False
    whole: bool = False

    def read(self, given: Any, columns: int) -> Fraction | tuple[Fraction, ...]:
        """The parameter's number, or for per_column as many as there are feature columns. Raises: KernelError."""
        if not self.per_column:
            return self._number(given)
        numbers = tuple(
            map(self._number, given if isinstance(given, list | tuple) else [given] * columns)
        )
        if len(numbers) != columns:
            raise KernelError(
                f"{self.name}: one number for each of the {columns} feature columns was expected, or a single number "
                f"for all of them; {len(numbers)} were given"
            )
        return numbers

    def _number(self, given: Any) -> Fraction:
        number = _exact(given)
        if (
            number is None
            or (self.positive and number <= 0)
            or (self.whole and number.denominator != 1)
        ):
            kind = ("a positive " if self.positive else "a ") + (
                "whole number" if self.whole else "number"
            )
            raise KernelError(
                f'{self.name} must be {kind}, as a whole number or as text such as "0.5" or "1/3"; got '
                f"{str(given)[:MAX_NUMBER]!r}"
            )
        return number


@dataclass(frozen=True)
class Statistic:
    """A named statistic of means over edges: `build(*columns, **parameters)` gives its kernel over a table's columns.

    arguments: names of the columns; "x..." at the end stands for one or more feature columns.
    build: the kernel returns one value, or a tuple of values: several sums over the same edges.
    degree: records of an edge. estimator: what is made of the sums' means, see `estimators.py`.
    sampling: "balanced", edges of any records and a symmetric kernel; or "two_sample", the kernel's first record is of
    the first class and the second of the second, who is in which is public, and the kernel need not be symmetric.
    null_variance: of the first sum's mean over all edges, from the number of records (two_sample: both numbers) and the
    statistic's parameters, for continuous columns under the null hypothesis that the statistic tests; None: not known,
    or it depends on the distribution.
    """

    name: str
    title: str
    arguments: tuple[str, ...]
    citation: str
    build: Callable[..., Callable[..., Any]]
    degree: int = 2
    estimator: str = "mean"
    sampling: str = "balanced"
    parameters: tuple[Parameter, ...] = ()
    null_variance: Callable[..., Fraction] | None = None

    @property
    def is_variadic(self) -> bool:
        """Whether it takes any number of feature columns."""
        return self.arguments[-1].endswith("...")

    def expressions(
        self, columns: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> tuple[Expression, ...]:
        """The kernel of each sum over these columns. Raises: KernelError for wrong columns or parameters."""
        return trace_all(self.build(*columns, **self.read_parameters(columns, parameters)))

    def expression(self, columns: Sequence[str]) -> Expression:
        """The kernel of a statistic that is the mean of one kernel. Raises: KernelError for any other."""
        expressions = self.expressions(columns)
        if len(expressions) > 1 or self.estimator != "mean":
            raise KernelError(
                f"{self.name} is not the mean of one kernel, but a {self.estimator} of {len(expressions)}"
            )
        return expressions[0]

    def read_parameters(
        self, columns: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """All parameters, exact: the given ones and the defaults of the others. Raises: KernelError."""
        self._check_columns(columns)
        given = dict(parameters or {})
        features = len(columns) - len(self.arguments) + 1
        values = {}
        for parameter in self.parameters:
            value = given.pop(parameter.name, parameter.default)
            if value is None:
                raise KernelError(
                    f"{self.name} needs the parameter {parameter.name}; give it under [parameters]"
                )
            values[parameter.name] = parameter.read(value, features)
        if given:
            known = ", ".join(parameter.name for parameter in self.parameters) or "none"
            raise KernelError(
                f"{self.name} has no parameter {', '.join(sorted(given))}; its parameters: {known}"
            )
        return values

    def _check_columns(self, columns: Sequence[str]) -> None:
        expected, got = len(self.arguments), len(columns)
        if got < expected or (got > expected and not self.is_variadic):
            raise KernelError(
                f"{self.name} takes {'at least ' if self.is_variadic else ''}{expected} field(s) "
                f"({', '.join(self.arguments)}), got {got}: {', '.join(columns)}"
            )


def _exact(given: Any) -> Fraction | None:
    """An exact number from a whole number, a decimal, or text such as "0.5" and "1/3"; None if it is neither."""
    if isinstance(given, Fraction | int) and not isinstance(given, bool):
        return Fraction(given)
    if not isinstance(given, str | Decimal) or len(str(given)) > MAX_NUMBER:
        return None
    try:
        numerator, slash, denominator = str(given).partition("/")
        if slash:
            return Fraction(int(numerator), int(denominator))
        value = Decimal(given)
        return (
            Fraction(value) if value.is_finite() and abs(value.adjusted()) <= MAX_NUMBER else None
        )
    except (InvalidOperation, ValueError, ZeroDivisionError):
        return None
