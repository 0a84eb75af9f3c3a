"""`umpc study check --table`: a study's fields beside a table of one's own.

Only the table's owner runs this, and it tells nobody else. A node says nothing about its values
before ε is paid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite, isinf, isnan
from pathlib import Path

from umpc.coordinator.studyfile import load_field_entries, load_study_file, read_values
from umpc.coordinator.studyfile_entries import FieldEntry
from umpc.errors import ConfigError, EmptyTable, NotNumeric
from umpc.node.config import NodeConfig, choose_dataset, load_datasets
from umpc.node.table.batch import ReadColumn, complete
from umpc.node.table.reading import read_columns
from umpc.node.table.resolution import Resolution, count_merged, find_resolution, is_held
from umpc.node.table.source import OwnersTable, TableSource
from umpc.node.table.survey import Spelling
from umpc.protocols.registry import protocol_of
from umpc.study.parts import exact
from umpc.ustat.schema import check_words

SHOWN = 3


def compare_table(study: Path, table: Path) -> Iterator[tuple[str, str]]:
    """Each field's name, and what its values in the table say about the study's field.

    Args: table: a CSV or Parquet file, or a node's configuration, whose [data] then counts,
        or that of its [[datasets]] which the study names.
    Raises: StudyError, ConfigError, DataError, UnknownField, EmptyTable; after the last field
        NotNumeric where most values of a field do not fit, in whatever way.
    """
    source = _source(study, table)
    entries = _entries(study, table)
    misfits = yield from compare_fields(entries, source)
    if misfits:
        raise OwnersTable("", source.path).error(
            NotNumeric,
            f"values that fit were expected in {', '.join(map(repr, misfits))}, and most values do "
            "not. The lines above say what came, and what to do",
        )


def compare_fields(
    entries: Sequence[FieldEntry], source: TableSource
) -> Generator[tuple[str, str], None, list[str]]:
    """Yield each field's name and what its values say. Returns: the fields that most do not fit."""
    site = OwnersTable("", source.path)
    categories = {each.name: each.categories for each in entries if each.categories is not None}
    for name, own in categories.items():
        check_words(name, own)
    columns = complete(read_columns(source, [each.name for each in entries], site, categories))
    if entries and not len(columns[entries[0].name].texts):
        raise site.error(
            EmptyTable,
            "at least one row with a value in each field of the study was expected, and there is "
            "none. Put the records into the file, or correct missing under [data]",
        )
    misfits = []
    for entry in entries:
        found = _Column.of(columns, entry.name, source)
        yield entry.name, "; ".join(found.compare(entry))
        if 2 * found.misfits(entry) > len(found.texts):
            misfits.append(entry.name)
    return misfits


def _entries(study: Path, table: Path) -> list[FieldEntry]:
    """The study's fields; of linked rows only those of the table's site.

    Raises: as `compare_table`.
    """
    entries = load_field_entries(study)
    if "linked" not in read_values(study):
        return entries
    if table.suffix != ".toml":
        raise ConfigError(
            f"--table {table}: a node's configuration was expected. The fields of linked rows lie "
            "at two sites, and the node's name tells which ones are in its table"
        )
    document = load_study_file(study).study("coordinator")
    own = protocol_of(document).columns_read(document, _dataset(study, table).name)
    return [entry for entry in entries if entry.name in own]


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
    """The values of one column, as a study reads them.

    numbers: those that are finite, exactly. unknown: the texts that are no number, or no category.
    infinite: how many numbers are infinite.
    """

    texts: Sequence[str]
    numbers: Sequence[Decimal]
    unknown: Sequence[str]
    infinite: int
    spelling: Spelling

    @classmethod
    def of(cls, columns: Mapping[str, ReadColumn], name: str, source: TableSource) -> _Column:
        texts = columns[name].texts.tolist()
        pairs = [*zip(texts, columns[name].numbers.tolist(), strict=True)]
        unknown = [text for text, number in pairs if isnan(number)]
        finite = [_exact(text, number, source) for text, number in pairs if isfinite(number)]
        elsewhere: Counter[str] = Counter()
        if unknown:  # the format of the other columns counts, too
            for other in columns.keys() - {name}:
                counts = Counter(columns[other].texts.tolist())
                elsewhere.update(Spelling(counts, source.numbers).numbers)
        typed = {text for text, number in pairs if not isnan(number)}
        written = {text for text in typed if source.numbers.plain(text) is None}
        counts = Counter(text for text in texts if text not in written)
        others = len(texts) - sum(counts.values())
        spelling = Spelling(counts, source.numbers, source.missing, elsewhere, others)
        infinite = sum(isinf(number) for _, number in pairs)
        return cls(texts, finite, unknown, infinite, spelling)

    def misfits(self, entry: FieldEntry) -> int:
        """The number of values that count as another one, without those that are rounded."""
        return len(self.unknown) + self.infinite + self._beyond(entry)

    def _beyond(self, entry: FieldEntry) -> int:
        """The number of finite values outside the bounds."""
        if entry.lower is None or entry.upper is None:
            return 0
        lower, upper = (exact(str(bound), "a bound") for bound in (entry.lower, entry.upper))
        return sum(not lower <= Fraction(number) <= upper for number in self.numbers)

    def compare(self, entry: FieldEntry) -> Iterator[str]:
        """Sentences about the column beside the study's field."""
        if entry.categories is not None:
            yield from self._compare_labels(entry.categories)
            return
        if self.unknown:
            yield (
                f"{len(self.unknown)} of {len(self.texts)} value(s) are no numbers as they are "
                "written, and count as the lower bound"
            )
            yield from self.spelling.advice()
        if self.infinite:
            yield f"{self.infinite} value(s) are infinite, and count as a bound"
        if not self.numbers:
            yield "no value is a finite number"
            return
        distinct = set(map(Fraction, self.numbers))
        yield f"{min(self.numbers)} to {max(self.numbers)}"
        if entry.lower is None or entry.upper is None:
            yield "the study states no bounds"
        elif beyond := self._beyond(entry):
            most = ". Are they in another unit?" if 2 * beyond > len(self.texts) else ""
            yield (
                f"{beyond} value(s) lie outside the study's {entry.lower} to {entry.upper} and "
                f"count as the nearer bound{most}"
            )
        yield _compare_step(entry, distinct, find_resolution(self.numbers))

    def _compare_labels(self, categories: Sequence[str]) -> Iterator[str]:
        if not self.unknown:
            yield "every value is one of the study's categories"
            return
        others = sorted({*self.unknown})
        shown = ", ".join(map(repr, others[:SHOWN]))
        yield (
            f"{len(self.unknown)} of {len(self.texts)} value(s) are none of the study's "
            f"categories, such as {shown}, and count as the last one; if such a word is one of "
            f"{', '.join(map(repr, categories[:SHOWN]))}, say so under [data] of node.toml, as "
            f'words = {{"{others[0]}" = "{categories[0]}"}}'
        )


def _exact(text: str, number: float, source: TableSource) -> Decimal:
    """A number as its text has it, or where its column has a type, by its shortest decimals."""
    plain = source.numbers.plain(text)
    return Decimal(plain if plain is not None and float(plain) == number else repr(number))


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
