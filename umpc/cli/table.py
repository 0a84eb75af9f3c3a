"""The demo's table: read, described, split over the nodes; and the exact value, which only the demo can know."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path

import numpy as np

from umpc.crypto.prg import Stream
from umpc.errors import ConfigError, DataError, EmptyTable
from umpc.mpc.attempt import edges_of
from umpc.node.records import TableSource, load_records
from umpc.protocols.base.seed_agreement import by_class
from umpc.protocols.registry import protocol_of
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.study.sizes import Sizes
from umpc.ustat.estimators import estimate
from umpc.ustat.hypergraph import Hypergraph, expand, expand_two_sample

EXACT_EDGES = 200_000_000
"""Up to so many sets of records the demo computes the exact value over all of them."""
EDGES_AT_ONCE = 1 << 18
MOST_CATEGORIES = 4096
"""A column of text with more different values is no category."""


@dataclass(frozen=True)
class DemoTable:
    """Rows as text, complete in the chosen columns."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    first_class: tuple[str, str] | None = None
    """(the column of a public label, the value of its first class)"""

    def fields(self) -> tuple[FieldText, ...]:
        """Bounds and resolution of the table itself. In a real study they are public knowledge, agreed beforehand."""
        columns = {name: [row[i] for row in self.rows] for i, name in enumerate(self.columns)}
        if self.first_class is None:
            return tuple(_describe(name, values) for name, values in columns.items())
        label, first = self.first_class
        found = {value.strip() for value in columns.pop(label)}
        if len(found) != 2 or first not in found:
            raise DataError(
                f"--label {label}={first}: the column must hold two different values and {first!r} be one of them; "
                f"it holds {', '.join(sorted(found)[:5])}"
            )
        labelled = FieldText.of_categories(label, (first, *(found - {first})), public=True)
        return (*(_describe(name, values) for name, values in columns.items()), labelled)

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
        raise ConfigError(
            f"--delimiter must be one character such as ; or a tab, got {delimiter!r}"
        )
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
        raise EmptyTable(
            f"{path}: no row has all of {', '.join(names)}; choose other fields or another file"
        )
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
        raise DataError(
            f"the demo's table has no column {', '.join(absent)}; it has {', '.join(known)}"
        )
    chosen = data.data[:, [known.index(name) for name in names]]
    return DemoTable(names, [tuple(repr(float(value)) for value in row) for row in chosen])


def _describe(name: str, values: list[str]) -> FieldText:
    try:
        numbers = [Decimal(value.strip()) for value in values]
    except InvalidOperation:
        return _describe_labels(name, {value.strip() for value in values})
    if not all(number.is_finite() for number in numbers):
        raise DataError(
            f"column {name!r} holds NaN or infinity; --fields needs columns of finite numbers"
        )
    digits = max(0, *(-number.normalize().as_tuple().exponent for number in numbers))
    resolution = Fraction(1, 10**digits)
    low, high = Fraction(min(numbers)), Fraction(max(numbers))
    return FieldText(name, str(low), str(high), str(resolution))


def _describe_labels(name: str, labels: set[str]) -> FieldText:
    if len(labels) > MOST_CATEGORIES:
        raise DataError(
            f"column {name!r} holds {len(labels)} different texts, too many for categories"
        )
    return FieldText.of_categories(name, sorted(labels))


def pooled(study: Study, paths: Sequence[Path]) -> list[dict[str, np.ndarray]]:
    """Every node's records as the node reads and orders them."""
    fields = [field.schema() for field in study.fields]
    tables = (
        load_records(TableSource(path, ","), fields, node=path.stem).columns for path in paths
    )
    return [dict(by_class(study, table)[0]) for table in tables]


def exact_value(
    study: Study, tables: Sequence[dict[str, np.ndarray]], graph: Hypergraph
) -> float | None:
    """The statistic over a set of edges, in the clear; None where it cannot be told, as 0/0."""
    kernels = study.parsed_kernels
    totals = [0] * len(kernels)
    for owners, cell in graph.cells.items():
        for start in range(0, cell.count, EDGES_AT_ONCE):
            index = cell.edges(start, min(start + EDGES_AT_ONCE, cell.count))
            records = [
                {name: column[rows] for name, column in tables[owner].items()}
                for owner, rows in zip(owners, index, strict=True)
            ]
            for number, kernel in enumerate(kernels):
                totals[number] += int(kernel.evaluate(records).sum(dtype=object))
    means = [
        float(total * k.unit / graph.edge_count) for total, k in zip(totals, kernels, strict=True)
    ]
    zeros = [0.0] * len(means)
    classes = [_classes(study, table) for table in tables]
    sets = Sizes(study, sum(map(sum, classes)), sum(first for first, _ in classes)).sets
    return estimate(study.estimator, means, zeros, zeros, sets).value


def exact_values(
    study: Study, tables: Sequence[dict[str, np.ndarray]], report: Report
) -> dict[str, float | None]:
    """The values without noise that the report is compared with.

    exact: over all sets. exact_over_edges: over the report's E. quantised: of the records' bins, in
    protocols that have any.
    """
    protocol = protocol_of(study)
    exact = exact_over_all(study, tables)
    values = {"exact": exact, "exact_over_edges": exact}
    kind = protocol.exact_over_edges()
    if kind == "edges":
        counts = zip(report.first_class_by_node, report.records_by_node, strict=True)
        classes = [(first, count - first) for first, count in counts]
        graph = edges_of(study, bytes.fromhex(report.joint_seed), classes)
        values["exact_over_edges"] = exact_value(study, tables, graph)
    elif kind == "none" and report.edges != report.sets:
        values["exact_over_edges"] = None
    elif kind == "bins":
        ordered, first = by_class(study, _together(tables))
        counted = [_classes(study, table) for table in tables]
        values["quantised"] = protocol.quantised(study, ordered, first, counted)
    return values


def exact_over_all(study: Study, tables: Sequence[dict[str, np.ndarray]]) -> float | None:
    """The statistic over all sets of the pooled records; None where there are too many."""
    ordered = dict(by_class(study, _together(tables))[0])
    classes = [_classes(study, ordered)]
    words = Stream(bytes(32)).words  # all sets take no randomness
    if study.two_sample:
        graph = expand_two_sample("all", classes, words)
    else:
        graph = expand("all", [sum(records) for records in classes], words, study.degree)
    return exact_value(study, [ordered], graph) if graph.edge_count <= EXACT_EDGES else None


def _together(tables: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The records of all tables, one after the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _classes(study: Study, table: dict[str, np.ndarray]) -> tuple[int, int]:
    """Records of the first class, and all others."""
    first = by_class(study, table)[1]
    return first, len(next(iter(table.values()))) - first
