"""A field from a column's own values: its bounds and resolution, or its categories.

Only the owner of a table may do so. In a real study bounds and resolutions are public knowledge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from umpc.errors import DataError
from umpc.node.table.conversions import PLAIN, NumberFormat
from umpc.node.table.resolution import Resolution, find_resolution
from umpc.node.table.source import MISSING_MARKS
from umpc.study.parts import FieldText

MOST_CATEGORIES = 4096
"""A column of text with more different values is refused."""
SHOWN = 5


@dataclass(frozen=True)
class DescribedColumn:
    """A field, and the resolution that was found for it; None where none was looked for."""

    field: FieldText
    resolution: Resolution | None
    is_given: bool = False
    """Whether its bounds or categories were given, and not taken from the table."""

    def __str__(self) -> str:
        """One line for the table's owner."""
        if self.is_given:
            return f"field {self.field.name!r}: {self.field.values()}, as was said"
        if self.resolution is None:
            return f"field {self.field.name!r}: {len(self.field.categories)} categories"
        return (
            f"field {self.field.name!r}: {self.field.values()}; this resolution "
            f"{self.resolution.keeps}"
        )


def plain_column(values: Sequence[str], numbers: NumberFormat) -> list[str]:
    """The values; those that are numbers have a decimal point and no separators."""
    if numbers == PLAIN:
        return list(values)
    return [numbers.plain(value) or value for value in values]


def describe_column(name: str, values: Sequence[str], classes: int = 0) -> DescribedColumn:
    """A field with the column's own bounds, and the resolution that holds its values.

    A column without numbers, or with few of them, becomes a field of categories. A label becomes
    one, too, if it holds as many different whole numbers as it has classes, in their order.

    Args: classes: of a private label of the statistic; 0 for other columns.
    Raises: DataError for numbers among which there are words, and for infinite numbers.
    """
    texts = [PLAIN.plain(value) for value in values]
    if None in texts:
        _refuse_words(name, values, texts)
        return DescribedColumn(_describe_labels(name, {value.strip() for value in values}), None)
    numbers = [Decimal(text) for text in texts if text is not None]
    if not all(number.is_finite() for number in numbers):
        raise DataError(
            f"column {name!r} holds NaN or infinity; --fields needs columns of finite numbers"
        )
    labels = {value.strip(): number for value, number in zip(values, numbers, strict=True)}
    if len(labels) == classes and all(number == int(number) for number in numbers):
        ordered = sorted(labels, key=labels.__getitem__)
        return DescribedColumn(FieldText.of_categories(name, ordered), None)
    found = find_resolution(numbers)
    low, high = found.bounds(Fraction(min(numbers)), Fraction(max(numbers)))
    if found.step == 1:
        return DescribedColumn(FieldText(name, low, high, whole=True), found)
    return DescribedColumn(FieldText(name, low, high, found.text), found)


def _refuse_words(name: str, values: Sequence[str], texts: Sequence[str | None]) -> None:
    """Raises: DataError where the words of a column stand among numbers.

    Words that mark missing values are refused beside any number, others where most values are
    numbers: such a column is no list of categories.
    """
    words = [value.strip() for value, text in zip(values, texts, strict=True) if text is None]
    if len(words) == len(values):
        return
    distinct = sorted(set(words))
    shown = ", ".join(map(repr, distinct[:SHOWN]))
    if set(distinct) <= set(MISSING_MARKS):
        options = " ".join(f"--missing '{word}'" for word in distinct)
        raise DataError(
            f"column {name!r} holds numbers, and {len(words)} time(s) {shown}, which often marks a "
            f"missing value; add {options} to leave these rows out"
        )
    if 2 * len(words) < len(values):
        raise DataError(
            f"column {name!r} holds numbers, but {len(words)} of its {len(values)} values are "
            f"none: {shown}; correct them, add --missing for each word that marks a missing "
            f"value, or say with --decimal and --thousands how the table writes numbers"
        )


def _describe_labels(name: str, labels: set[str]) -> FieldText:
    if len(labels) > MOST_CATEGORIES:
        raise DataError(
            f"column {name!r} holds {len(labels)} different texts, "
            f"but a field has at most {MOST_CATEGORIES} categories"
        )
    return FieldText.of_categories(name, sorted(labels))
