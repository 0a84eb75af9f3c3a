"""`umpc study check --table`: a study's fields beside a table of one's own.

Only the table's owner runs this, and it tells nobody else. A node says nothing about its values
before ε is paid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from umpc.coordinator.studyfile import load_field_entries, read_values
from umpc.coordinator.studyfile_entries import FieldEntry
from umpc.errors import ConfigError, EmptyTable, NotNumeric
from umpc.node.config import NodeConfig, choose_dataset, load_datasets
from umpc.node.table.reading import read_texts
from umpc.node.table.resolution import Resolution, count_merged, find_resolution, is_held
from umpc.node.table.source import OwnersTable, TableSource
from umpc.node.table.spelling import Spelling
from umpc.study.parts import exact

SHOWN = 3


def compare_table(study: Path, table: Path) -> Iterator[tuple[str, str]]:
    """Each field's name, and what its values in the table say about the study's field.

    Args: table: a CSV or Parquet file, or a node's configuration, whose [data] then counts,
        or that of its [[datasets]] which the study names.
    Raises: StudyError, ConfigError, DataError, UnknownField, EmptyTable; after the last field
        NotNumeric where a field of numbers would count mostly words.
    """
    entries = load_field_entries(study)
    source = _source(study, table)
    site = OwnersTable("", source.path)
    columns = read_texts(source, [entry.name for entry in entries], site)
    if entries and not columns[entries[0].name]:
        raise site.error(
            EmptyTable,
            "at least one row with a value in each field of the study was expected, and there is "
            "none. Put the records into the file, or correct missing under [data]",
        )
    of_words = []
    for entry in entries:
        found = _Column.of(columns, entry.name, source)
        yield entry.name, "; ".join(found.compare(entry))
        if entry.categories is None and found.is_mostly_words:
            of_words.append(entry.name)
    if of_words:
        raise site.error(
            NotNumeric,
            f"numbers were expected in {', '.join(map(repr, of_words))}, and most values are no "
            "numbers as they are written. The lines above say what to do",
        )


def _source(study: Path, table: Path) -> TableSource:
    """The table of the option --table. Raises: ConfigError, StudyError."""
    if not table.is_file():
        raise ConfigError(
            f"--table {table}: a CSV or Parquet file was expected, or a node's configuration, and "
            "there is no such file. Correct the path"
        )
    return _dataset(study, table).source if table.suffix == ".toml" else TableSource(table)


def _dataset(study: Path, node: Path) -> NodeConfig:
    """The data set of a node's file that the study names. Raises: ConfigError, StudyError."""
    found = load_datasets(node)
    named = read_values(study).get("dataset")
    if isinstance(named, dict):
        named = named.get(found[0].name)
    return choose_dataset(found, str(named) if named else None)


@dataclass(frozen=True)
class _Column:
    """The values of one column: its texts, its finite numbers, and how they are written."""

    texts: Sequence[str]
    numbers: Sequence[Decimal]
    spelling: Spelling

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[str]], name: str, source: TableSource) -> _Column:
        texts = columns[name]
        plain = [source.numbers.plain(text) for text in texts]
        numbers = [Decimal(text) for text in plain if text is not None]
        finite = [number for number in numbers if number.is_finite()]
        elsewhere: Counter[str] = Counter()
        if len(numbers) < len(texts):  # the format of the other columns counts, too
            for other in columns.keys() - {name}:
                elsewhere.update(Spelling(Counter(columns[other]), source.numbers).numbers)
        spelling = Spelling(Counter(texts), source.numbers, source.missing, elsewhere)
        return cls(texts, finite, spelling)

    @property
    def words(self) -> int:
        """The number of values that are no numbers."""
        return sum(self.spelling.words.values())

    @property
    def is_mostly_words(self) -> bool:
        """Whether more than half of the values are no numbers."""
        return 2 * self.words > len(self.texts)

    def compare(self, entry: FieldEntry) -> Iterator[str]:
        """Sentences about the column beside the study's field."""
        if entry.categories is not None:
            yield from _compare_labels(entry.categories, self.texts)
            return
        if self.words:
            yield (
                f"{self.words} of {len(self.texts)} value(s) are no numbers as they are written, "
                "and count as the lower bound"
            )
            yield from self.spelling.advice()
        if not self.numbers:
            yield "no value is a number"
            return
        distinct = set(map(Fraction, self.numbers))
        yield f"{min(self.numbers)} to {max(self.numbers)}"
        yield from _compare_bounds(entry, self.numbers)
        yield _compare_step(entry, distinct, find_resolution(self.numbers))


def _compare_labels(categories: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
    others = sorted({text for text in texts if text not in categories})
    if not others:
        yield "every value is one of the study's categories"
        return
    count = sum(text not in categories for text in texts)
    shown = ", ".join(map(repr, others[:SHOWN]))
    yield (
        f"{count} value(s) are none of the study's categories, such as {shown}, and count as "
        f"the last one"
    )


def _compare_bounds(entry: FieldEntry, numbers: Sequence[Decimal]) -> Iterator[str]:
    if entry.lower is None or entry.upper is None:
        yield "the study states no bounds"
        return
    lower, upper = (exact(str(bound), "a bound") for bound in (entry.lower, entry.upper))
    beyond = sum(not lower <= Fraction(number) <= upper for number in numbers)
    if beyond:
        yield (
            f"{beyond} value(s) lie outside the study's {entry.lower} to {entry.upper} and count "
            f"as the nearer bound"
        )


def _compare_step(entry: FieldEntry, distinct: set[Fraction], found: Resolution) -> str:
    """The study's resolution beside the one that holds the column."""
    good = "whole = true" if found.step == 1 else f'resolution = "{found.text}"'
    advice = f"{good} {found.keeps}"
    if not entry.states_step:
        return f"the study states no resolution; {advice}"
    step = Fraction(1) if entry.whole else exact(str(entry.resolution), "a resolution")
    stated = "whole = true" if entry.whole else f"resolution = {entry.resolution}"
    if step > 0 and is_held(distinct, step):
        return f"the study's {stated} holds every value"
    merged = count_merged(distinct, step) if step > 0 else len(distinct)
    return f"the study's {stated} rounds values and makes {merged} different ones equal; {advice}"
