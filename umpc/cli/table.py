"""The demo's table: read, described, split over the nodes; and the exact value, which only the demo can know."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np

from umpc.errors import ConfigError, DataError, EmptyTable
from umpc.node.records import TableSource, load_records
from umpc.study import FieldText, Study

EXACT_PAIRS = 200_000_000
"""Up to so many pairs the demo computes the exact value over all of them."""
PAIRS_AT_ONCE = 1 << 20
MOST_CATEGORIES = 4096
"""A column of text with more different values is no category."""


@dataclass(frozen=True)
class DemoTable:
    """Rows as text, complete in the chosen columns."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def fields(self) -> tuple[FieldText, ...]:
        """Bounds and resolution of the table itself. In a real study they are public knowledge, agreed beforehand."""
        return tuple(_describe(name, [row[i] for row in self.rows]) for i, name in enumerate(self.columns))

    def part(self, index: int, parts: int, path: Path) -> Path:
        """One node's consecutive rows, as a CSV file."""
        start, stop = (len(self.rows) * number // parts for number in (index, index + 1))
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows[start:stop])
        return path

    def split(self, folder: Path, parts: int) -> list[Path]:
        """All rows into one CSV file per node: node-1.csv, node-2.csv, …"""
        return [self.part(index, parts, folder / f"node-{index + 1}.csv") for index in range(parts)]


def read_csv(path: Path, delimiter: str, columns: Sequence[str] | None) -> DemoTable:
    """The chosen columns of a CSV file; rows with an empty field are left out."""
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise ConfigError(f"--delimiter must be one character such as ; or a tab, got {delimiter!r}")
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, delimiter=delimiter)
            names = tuple(columns or ())
            absent = [name for name in names if name not in (reader.fieldnames or ())]
            if not names or absent:
                raise DataError(
                    f"{path}: --fields must name columns of the table, which are {', '.join(reader.fieldnames or ())}"
                    + (f"; there is no {', '.join(absent)}" if absent else "")
                )
            rows = [tuple(row[name] for name in names) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path}: a readable CSV file was expected: {error}") from error
    complete = [row for row in rows if all(value and value.strip() for value in row)]
    if not complete:
        raise EmptyTable(f"{path}: no row has all of {', '.join(names)}; choose other fields or another file")
    return DemoTable(names, complete)


def breast_cancer(columns: Sequence[str] | None) -> DemoTable:
    """569 real records that ship with scikit-learn (Wolberg, Street, Mangasarian 1995)."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError as error:
        raise ConfigError(
            "the demo's own table ships with scikit-learn, which is not installed; install 'umpc[demo]', or name a "
            "table with --csv FILE --fields X,Y"
        ) from error
    data = load_breast_cancer()
    known = [str(name) for name in data.feature_names]
    names = tuple(columns or ("mean radius", "mean texture"))
    absent = [name for name in names if name not in known]
    if absent:
        raise DataError(f"the demo's table has no column {', '.join(absent)}; it has {', '.join(known)}")
    chosen = data.data[:, [known.index(name) for name in names]]
    return DemoTable(names, [tuple(repr(float(value)) for value in row) for row in chosen])


def _describe(name: str, values: list[str]) -> FieldText:
    try:
        numbers = [Decimal(value.strip()) for value in values]
    except InvalidOperation:
        return _describe_labels(name, {value.strip() for value in values})
    if not all(number.is_finite() for number in numbers):
        raise DataError(f"column {name!r} holds NaN or infinity; --fields needs columns of finite numbers")
    digits = max(0, *(-number.normalize().as_tuple().exponent for number in numbers))
    resolution = Fraction(1, 10**digits)
    low, high = Fraction(min(numbers)), Fraction(max(numbers))
    return FieldText(name, str(low), str(high), str(resolution))


def _describe_labels(name: str, labels: set[str]) -> FieldText:
    if len(labels) > MOST_CATEGORIES:
        raise DataError(f"column {name!r} holds {len(labels)} different texts, too many for categories")
    return FieldText.of_categories(name, sorted(labels))


def pooled(study: Study, paths: Sequence[Path]) -> list[dict[str, np.ndarray]]:
    """All nodes' records as the nodes read them, one after the other."""
    fields = [field.schema() for field in study.fields]
    return [load_records(TableSource(path, ","), fields, node=path.stem).columns for path in paths]


def exact_all_pairs(study: Study, tables: Sequence[dict[str, np.ndarray]]) -> float | None:
    """The statistic over all pairs of the pooled records; None where there are too many."""
    from umpc.ustat.hypergraph import TriangleCell

    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    cell = TriangleCell(len(next(iter(columns.values()))))
    if not 0 < cell.count <= EXACT_PAIRS:
        return None
    total = 0
    for start in range(0, cell.count, PAIRS_AT_ONCE):
        index = cell.edges(start, min(start + PAIRS_AT_ONCE, cell.count))
        total += sum_over(study, columns, columns, index)
    return float(total * study.parsed_kernel.unit / comb(cell.size, 2))


def sum_over(study: Study, first: dict, second: dict, index: tuple[np.ndarray, np.ndarray]) -> int:
    """Σ kernel in units over these pairs, in the clear."""
    records = [{n: c[rows] for n, c in columns.items()} for columns, rows in zip((first, second), index, strict=True)]
    return int(study.parsed_kernel.evaluate(records).sum(dtype=object))
