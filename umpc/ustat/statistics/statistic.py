"""The definition of a statistic: its columns, parameters, kernel, sampling and estimator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

from umpc.errors import KernelError, RangeError
from umpc.ustat.expression import Expression
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.tracing import trace_all

KernelFunction: TypeAlias = Callable[..., Any]
"""A Python function over the records of an edge, which `tracing.py` turns into expressions."""

MOST_LISTED = 127
MAX_NUMBER = 40
"""The most characters of a parameter's number, and its largest decimal exponent."""


@dataclass(frozen=True)
class Parameter:
    """A public number of a statistic.

    Args:
        default: None where the number must be given.
        per_column: whether it is a list with one number for each feature column. A single number
            then stands for all of them.
        positive, whole: whether it must be above 0, and whether it must be a whole number.
        ascending: whether it is a list of 1 to MOST_LISTED ascending numbers, or these as text with
            blanks between them.
    """

    name: str
    default: int | str | None = None
    per_column: bool = False
    positive: bool = False
    whole: bool = False
    ascending: bool = False

    def read(self, given: Any, columns: int) -> Fraction | tuple[Fraction, ...]:
        """The parameter's number; with per_column, one number for each feature column.

        Args: given: as a study document has it. columns: the number of feature columns.
        Raises: KernelError where it is no such number, or there are too many or too few.
        """
        if self.ascending:
            texts = given if isinstance(given, list | tuple) else str(given).split()
            found = tuple(map(self._number, texts))
            if not 1 <= len(found) <= MOST_LISTED or list(found) != sorted(set(found)):
                raise KernelError(
                    f"{self.name} are 1 to {MOST_LISTED} ascending numbers, each once, such as "
                    f'["-1", "0", "1/2"]; got {len(found)}: {str(given)[:MAX_NUMBER]}'
                )
            return found
        if not self.per_column:
            return self._number(given)
        listed = given if isinstance(given, list | tuple) else [given] * columns
        numbers = tuple(self._number(number) for number in listed)
        if len(numbers) != columns:
            raise KernelError(
                f"{self.name}: one number for each of the {columns} feature columns was expected, "
                f"or a single number for all of them; {len(numbers)} were given"
            )
        return numbers

    def _number(self, given: Any) -> Fraction:
        number = _exact(given)
        if number is not None and self._allows(number):
            return number
        sign = "a positive" if self.positive else "a"
        kind = "whole number" if self.whole else "number"
        raise KernelError(
            f"{self.name} must be {sign} {kind}, as a whole number or as text such as "
            f'"0.5" or "1/3"; got {str(given)[:MAX_NUMBER]!r}'
        )

    def _allows(self, number: Fraction) -> bool:
        if self.positive and number <= 0:
            return False
        return not self.whole or number.denominator == 1


THRESHOLDS = Parameter("thresholds", default="-1 0 1", ascending=True)
"""Public thresholds of a pair median. A study without them takes them from its fields' bounds."""
TWO_CLASSES, THREE_CLASSES = 2, 3
SCORES_HIGHER = "{high} should score above {low}"


@dataclass(frozen=True)
class FieldRule:
    """A requirement of a statistic for one of its fields, beyond what its kernel compares.

    A kernel itself refuses categories where it needs an order or arithmetic (`kernel.py`).

    Args:
        argument: the statistic's argument that the field is given for.
        classes: a label's number of classes, which are the numbers 0, 1, … or the first categories.
            With two classes, all values but 1 and all categories but the second are one class, so
            labels of −1 and 1 are allowed. 0 for a field that is no label.
        meaning: what the classes of a label mean, with {high} for the class that counts as 1 and
            {low} for the others, or with {0}, {1}, … for the classes in order.
        positive_mean: whether values are at least 0 and their mean is above 0.
    """

    argument: str
    classes: int = 0
    meaning: str = ""
    positive_mean: bool = False

    def obstacle(self, field: FieldSchema) -> str:
        """The reason why a field with these public bounds does not fit; empty if it does."""
        if self.classes and field.categories:
            count = len(field.categories)
            if count >= self.classes:
                return ""
            return f"at least {self.classes} categories were expected, and {count} came"
        came = f"the bounds {float(field.lower):g} to {float(field.upper):g} came"
        if self.classes and not self._is_numbered(field):
            words = ", ".join(f'"{number}"' for number in self._labels(field))
            counts = "the second counts" if self.classes == TWO_CLASSES else "in their order"
            return (
                f"the numbers 0 to {self.classes - 1} or categories were expected, and {came}; "
                f"write categories = [{words}], {counts}"
            )
        if self.positive_mean and (field.lower < 0 or field.upper <= 0):
            return f"values of at least 0 with a mean above 0 were expected, and {came}"
        return ""

    def _is_numbered(self, field: FieldSchema) -> bool:
        """Whether numbers within the bounds are the classes' own, and no class is left out."""
        if self.classes == TWO_CLASSES:
            return field.lower >= -1 and field.upper <= 1
        return field.lower == 0 and field.upper == self.classes - 1

    def _labels(self, field: FieldSchema) -> list[str]:
        """The whole numbers of the field where there is one for each class; else an example."""
        low = field.lower
        numbers = [low + number for number in range(self.classes)]
        if low.denominator != 1 or numbers[-1] != field.upper:
            numbers = [Fraction(number + 1) for number in range(self.classes)]
        return list(map(str, numbers))

    def in_words(self, field: FieldSchema) -> str:
        """The meaning of the field's classes; empty where the rule says nothing of them."""
        numbers = map(str, range(self.classes))
        labels = [repr(label) for label in field.categories[: self.classes]] or list(numbers)
        if self.classes != TWO_CLASSES:
            return self.meaning.format(*labels)
        low, high = labels
        if field.categories and len(field.categories) > TWO_CLASSES:
            low = "any other category"
        elif not field.categories and (field.lower != 0 or field.resolution != 1):
            low = "any other value"
        return self.meaning.format(high=high, low=low)


@dataclass(frozen=True)
class Statistic:
    """A named statistic: one or several means over edges, and the number made of them.

    Args:
        arguments: the names of the columns; "x..." at the end stands for one or more feature
            columns.
        build: `build(*columns, **parameters)` gives the kernel over a table's columns. The kernel
            returns one value, or a tuple of values for several sums over the same edges.
        degree: the records of an edge.
        estimator: the name of the number that is made of the sums' means, see `estimators.py`.
        sampling: "balanced" for edges of any records and a symmetric kernel. With "two_sample" the
            kernel's first record is of the first class and its second record of the second. The
            classes are public, and the kernel need not be symmetric.
        null_variance: the variance of the first sum's mean over all edges, for continuous columns
            under the null hypothesis that the statistic tests. It is computed from the number of
            records (both classes' numbers for two_sample) and the parameters. None where it is not
            known or depends on the distribution.
        rules: what it requires of its fields.
    """

    name: str
    title: str
    arguments: tuple[str, ...]
    citation: str
    build: Callable[..., KernelFunction]
    degree: int = 2
    estimator: str = "mean"
    sampling: str = "balanced"
    parameters: tuple[Parameter, ...] = ()
    null_variance: Callable[..., Fraction] | None = None
    rules: tuple[FieldRule, ...] = ()

    @property
    def words(self) -> str:
        """Its usual name in a sentence, without what the title explains."""
        return re.split(r":|, (?:public|private) | on the same ", self.title)[0]

    @property
    def is_variadic(self) -> bool:
        """Whether it takes any number of feature columns."""
        return self.arguments[-1].endswith("...")

    def expressions(
        self, columns: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> tuple[Expression, ...]:
        """The kernel of each sum over these columns.

        Raises: KernelError for wrong columns or parameters.
        """
        numbers = self.read_parameters(columns, parameters)
        return trace_all(self.build(*columns, **numbers))

    def expression(self, columns: Sequence[str]) -> Expression:
        """The kernel of a statistic that is the mean of one kernel.

        Raises: KernelError for any other statistic.
        """
        expressions = self.expressions(columns)
        if len(expressions) > 1 or self.estimator != "mean":
            raise KernelError(
                f"{self.name} is not the mean of one kernel, "
                f"but a {self.estimator} of {len(expressions)}"
            )
        return expressions[0]

    def rules_of(self, columns: Sequence[str]) -> Iterator[tuple[str, FieldRule]]:
        """Each field of which the statistic requires something, and what."""
        for rule in self.rules:
            yield columns[self.arguments.index(rule.argument)], rule

    def check_fields(self, columns: Sequence[str], schema: Schema) -> None:
        """Whether fields with these public bounds can be what the statistic takes.

        Raises: RangeError naming the field.
        """
        for name, rule in self.rules_of(columns):
            if reason := rule.obstacle(schema[name]):
                raise RangeError(f"field {name!r}, the {rule.argument} of {self.name}: {reason}")

    def read_parameters(
        self, columns: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """All parameters as exact numbers: the given ones and the defaults of the others.

        Raises: KernelError for wrong columns, and for missing, unknown or wrong parameters.
        """
        self._check_columns(columns)
        given = dict(parameters or {})
        features = len(columns) - len(self.arguments) + 1
        values = {}
        for parameter in self.parameters:
            value = given.pop(parameter.name, parameter.default)
            if value is None:
                raise KernelError(
                    f"{self.name} needs the parameter {parameter.name}; give it under [parameters] "
                    f"of the study, or with --parameter {parameter.name}=VALUE"
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
            least = "at least " if self.is_variadic else ""
            raise KernelError(
                f"{self.name} takes {least}{expected} field(s) ({', '.join(self.arguments)}), "
                f"got {got}: {', '.join(columns)}"
            )


def _exact(given: Any) -> Fraction | None:
    """The number in a whole number, a fraction, a decimal, or a text such as "0.5" and "1/3".

    None if it is none of these, or too long.
    """
    if isinstance(given, Fraction | int) and not isinstance(given, bool):
        return Fraction(given)
    if not isinstance(given, str | Decimal) or len(str(given)) > MAX_NUMBER:
        return None
    try:
        numerator, slash, denominator = str(given).partition("/")
        if slash:
            return Fraction(int(numerator), int(denominator))
        value = Decimal(given)
        if not value.is_finite() or abs(value.adjusted()) > MAX_NUMBER:
            return None
        return Fraction(value)
    except (InvalidOperation, ValueError, ZeroDivisionError):
        return None
