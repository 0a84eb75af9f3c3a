"""The demo's table: read it, describe its fields, split it over the nodes.

Only the demo holds all records, so only the demo can compute the exact value.

The demo's own table: a file of real records that another library brings along.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from umpc.api.fields import (
    Bounds,
    DescribedColumn,
    columns_at,
    describe_column,
    field_of,
    plain_column,
    records_of,
)
from umpc.counts import COUNTED
from umpc.crypto.prg import Stream
from umpc.errors import ConfigError, DataError, EmptyTable, UmpcError, installing
from umpc.mpc.attempt import edges_of
from umpc.node.records import load_records
from umpc.node.table.batch import ReadColumn, complete
from umpc.node.table.conversions import PLAIN, NumberFormat, normal, typed
from umpc.node.table.reading import read_columns
from umpc.node.table.source import ENCODING, OwnersTable, TableSource, csv_header, is_encoding
from umpc.node.told_order import as_told
from umpc.protocols.base.seed_agreement import by_class
from umpc.protocols.registry import protocol_of
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.study.sizes import Sizes
from umpc.text_file import why_unread
from umpc.ustat.estimators import estimate
from umpc.ustat.hypergraph import Hypergraph, expand, expand_two_sample
from umpc.ustat.sampling import TWO_SAMPLE
from umpc.ustat.statistics import Statistic

EXACT_EDGES = 200_000_000
"""The demo computes the exact value over all sets of records if there are at most this many."""
EDGES_AT_ONCE = 1 << 18
Column = NDArray[np.int64]
Columns = dict[str, Column]
"""Field → (records,) int64: each record's value in steps of the field."""


@dataclass(frozen=True)
class DemoTable:
    """Rows of text without empty fields.

    Args:
        first_class: the column of a public label, and its class that should score higher.
        bounds: column → bounds that are public, as of `umpc.estimate`; others come from the rows.
        sites: the number of rows of each site; empty to split them evenly.
        classes: private label of the statistic → its number of classes.
    """

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    first_class: tuple[str, str] | None = None
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    sites: tuple[int, ...] = ()
    classes: Mapping[str, int] = field(default_factory=dict)

    def fields(self) -> tuple[FieldText, ...]:
        """The fields, with bounds and resolutions computed from the table itself.

        In a real study these are public knowledge, which the sites agree on beforehand.

        Raises: DataError for a column that is neither numbers nor categories.
        """
        return tuple(each.field for each in self.describe())

    def describe(self) -> tuple[DescribedColumn, ...]:
        """The fields, and why they have their resolutions.

        Raises: DataError for a column that is neither numbers nor categories.
        """
        columns = columns_at(self.source, self.columns)
        if self.first_class is None:
            return tuple(self._field(name, column) for name, column in columns.items())
        label, first = self.first_class[0], normal(self.first_class[1])
        found = {*columns.pop(label).texts.tolist()}
        if len(found) != 2 or first not in found:
            raise DataError(
                f"--label {label}={first}: the column must hold two different values, and "
                f"{first!r} must be one of them; it holds {', '.join(sorted(found)[:5])}"
            )
        labelled = FieldText.of_categories(label, (*(found - {first}), first), public=True)
        others = (self._field(name, column) for name, column in columns.items())
        return (*others, DescribedColumn(labelled, None))

    @property
    def source(self) -> TableSource:
        """The rows as a table that a node's own reader reads. None of their texts is missing."""
        values = {
            name: typed([row[place] for row in self.rows])
            for place, name in enumerate(self.columns)
        }
        return TableSource(Path("all sites"), missing=(), frame=values)

    def _field(self, name: str, column: ReadColumn) -> DescribedColumn:
        """A column's field, by its public bounds or by its own values."""
        if name not in self.bounds:
            return describe_column(name, column.texts.tolist(), self.classes.get(name, 0))
        return DescribedColumn(field_of(name, self.bounds[name], [column]), None, is_given=True)

    def warnings(self, fields: Sequence[FieldText]) -> list[str]:
        """Sentences about values that count as another one in fields with public bounds.

        Raises: NotNumeric where no value of a field is a number, or in any category.
        """
        given = [each.schema() for each in fields if each.name in self.bounds]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if given:
                records_of(self.source, given)
        return [str(each.message) for each in caught]

    def part(self, index: int, parts: int, path: Path) -> Path:
        """Write the consecutive rows of one node to a CSV file."""
        start, stop = (self._start(number, parts) for number in (index, index + 1))
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.columns)
            writer.writerows(self.rows[start:stop])
        return path

    def _start(self, index: int, parts: int) -> int:
        """The first row of a node."""
        return sum(self.sites[:index]) if self.sites else len(self.rows) * index // parts

    def split(self, folder: Path, parts: int) -> list[Path]:
        """Write one CSV file for each node: node-1.csv, node-2.csv, …"""
        paths = [folder / f"node-{index + 1}.csv" for index in range(parts)]
        return [self.part(index, parts, path) for index, path in enumerate(paths)]


def together(tables: Sequence[DemoTable]) -> DemoTable:
    """The tables of all sites as one table that splits into them again."""
    if len(tables) == 1:
        return tables[0]
    rows = [row for table in tables for row in table.rows]
    sites = tuple(len(table.rows) for table in tables)
    return replace(tables[0], rows=rows, sites=sites)


def read_csv(
    path: Path,
    delimiter: str | None,
    columns: Sequence[str] | None,
    *,
    missing: Sequence[str] = (),
    encoding: str = ENCODING,
    numbers: NumberFormat = PLAIN,
) -> DemoTable:
    """Read the chosen columns of a CSV file. Rows with a missing value are left out.

    Args:
        delimiter: None takes the one that splits the header most, as a node does.
        missing: further words of a missing value, beside those of a node.
        numbers: how the table writes numbers; the rows of the result have a decimal point and no
            separators.

    Raises:
        ConfigError: for another delimiter than one character, for an encoding that Python does
            not know, and for a file that is no CSV file.
        DataError: for a column that does not exist; EmptyTable where no complete row is left.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ConfigError(
            f"--delimiter must be one character such as ; or a tab, got {delimiter!r}"
        )
    if not is_encoding(encoding):
        raise ConfigError(
            f"--encoding must be the name of a text encoding such as latin-1, got {encoding!r}"
        )
    names = tuple(columns or ())
    try:
        path.open("rb").close()
    except OSError as error:
        raise ConfigError(f"{path}: a CSV file was expected, {why_unread(error)}") from error
    words = (*TableSource.missing, *missing) if missing else TableSource.missing
    source = TableSource(path, delimiter, words, encoding, numbers)
    site = _DemoSite("", path)
    _check_columns(path, names, csv_header(source, site)[0])
    found = complete(read_columns(source, names, site))
    texts = [plain_column(each.texts.tolist(), numbers) for each in found.values()]
    if not texts[0]:
        raise EmptyTable(
            f"{path}: no row has all of {', '.join(names)}; choose other fields or another file"
        )
    return DemoTable(names, list(zip(*texts, strict=True)))


class _DemoSite(OwnersTable):
    """The table of a demo, whose owner has options in place of a node's configuration."""

    def unreadable(self, reason: str) -> UmpcError:
        return ConfigError(
            f"{self.path}: a CSV file was expected, whose rows have as many values as its header, "
            f"and it could not be read as such: {reason}. Correct the file, or name its encoding "
            "by --encoding, such as latin-1"
        )


def _check_columns(path: Path, names: Sequence[str], known: Sequence[str]) -> None:
    """Raises: DataError if no column is chosen, or if one does not exist."""
    absent = [name for name in names if name not in known]
    if names and not absent:
        return
    missing = f"; there is no {', '.join(absent)}" if absent else ""
    raise DataError(
        f"{path}: --fields must name columns of the table, which are {', '.join(known)}{missing}"
    )


def pooled(study: Study, paths: Sequence[Path]) -> list[Columns]:
    """Each node's records, as the node reads and orders them.

    A node numbers its records by a secret order. A node that did not tell it (`told_order.py`)
    counts as one that keeps the table's order.
    """
    fields = [field.schema() for field in study.fields]
    tables = (
        load_records(
            TableSource(path, ",", ("",)), fields, node=path.stem, where=study.condition
        ).columns
        for path in paths
    )
    numbered = (as_told(table, path) for table, path in zip(tables, paths, strict=True))
    return [dict(by_class(study, table)[0]) for table in numbered]


def exact_value(study: Study, tables: Sequence[Columns], graph: Hypergraph) -> float | None:
    """The statistic over these edges, without noise. None where it has no value, such as 0/0."""
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
    return estimate(study.estimator, means, zeros, zeros, sets, study.pair_ends).value


def exact_values(
    study: Study, tables: Sequence[Columns], report: Report
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
    elif kind in ("bins", "all"):
        ordered, first = by_class(study, _together(tables))
        counted = [_classes(study, table) for table in tables]
        quantised = protocol.quantised(study, ordered, first, counted)
        if kind == "bins" or quantised is not None:
            values["quantised"] = quantised
    return values


def exact_over_all(study: Study, tables: Sequence[Columns]) -> float | None:
    """The statistic over all sets of the pooled records; None where there are too many."""
    ordered = dict(by_class(study, _together(tables))[0])
    classes = [_classes(study, ordered)]
    words = Stream(bytes(32)).words  # all sets take no randomness
    if study.two_sample:
        graph = expand_two_sample("all", classes, words)
    else:
        graph = expand("all", [sum(records) for records in classes], words, study.degree)
    return exact_value(study, [ordered], graph) if graph.edge_count <= EXACT_EDGES else None


def _together(tables: Sequence[Columns]) -> Columns:
    """The records of all tables, one after the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


def _classes(study: Study, table: Columns) -> tuple[int, int]:
    """Records of the first class, and all others."""
    first = by_class(study, table)[1]
    return first, len(next(iter(table.values()))) - first


# --- the demo's own table -------------------------------------------------------------------------


_MEASURED = (
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "symmetry",
    "fractal dimension",
)
BREAST_CANCER = (
    *(f"mean {name}" for name in _MEASURED),
    *(f"{name} error" for name in _MEASURED),
    *(f"worst {name}" for name in _MEASURED),
)
"""The numbers of the demo's own table, in the order of its file."""
DIAGNOSIS, CLASSES = "diagnosis", ("malignant", "benign")
"""The last column, and its classes as the file numbers them."""
COLUMNS = (*BREAST_CANCER, DIAGNOSIS)


def usual_columns(statistic: Statistic) -> tuple[list[str], str | None]:
    """A column for each argument, and the public label of a statistic of two classes.

    A label or a stratum is the diagnosis, and other arguments are the first numbers in order.
    """
    labels = {"label", "stratum", *(rule.argument for rule in statistic.rules if rule.classes)}
    numbers = iter(BREAST_CANCER)
    found = [DIAGNOSIS if each in labels else next(numbers) for each in statistic.arguments]
    return found, f"{DIAGNOSIS}={CLASSES[0]}" if statistic.sampling == TWO_SAMPLE else None


def usual_counted(name: str) -> list[str]:
    """A column for each role of a statistic of counts: the diagnosis for a group, or numbers."""
    statistic = COUNTED[name]
    groups, numbers = {*statistic.two_cells, "y", "group"}, iter(BREAST_CANCER)
    return [DIAGNOSIS if role in groups else next(numbers) for role in statistic.roles]


PATIENTS = 300


def made_up_survival(columns: Sequence[str]) -> DemoTable:
    """Made-up patients of two groups: the days until an event (1), or until they left (0).

    Both times are exponential. They are the same in every demo. Args: columns: of them.
    """
    words = Stream(bytes(32)).words(3 * PATIENTS).reshape(3, -1)
    event, left = -np.log((words[:2] >> np.uint64(11)) / 2**53 + 2**-54)
    is_old = words[2] >> np.uint64(63) == 1
    event *= np.where(is_old, 250, 400)
    left *= 600
    found = {
        "time": 1 + np.minimum(np.minimum(event, left), 999).astype(int),
        "event": (event <= left).astype(int),
        "group": np.where(is_old, "old", "young"),
    }
    rows = [tuple(map(str, row)) for row in zip(*(found[name] for name in columns), strict=True)]
    return DemoTable(tuple(columns), rows)


def breast_cancer(columns: Sequence[str] | None) -> DemoTable:
    """569 real records that ship with scikit-learn (Wolberg, Street, Mangasarian 1995).

    Only the file is read. The library itself would take two seconds to import.

    Raises: ConfigError without scikit-learn; DataError for a column that does not exist.
    """
    file = _file_of_scikit_learn("datasets/data/breast_cancer.csv")
    names = tuple(columns or ("mean radius", "mean texture"))
    absent = [name for name in names if name not in COLUMNS]
    if absent:
        raise DataError(
            f"the demo's table has no column {', '.join(absent)}; it has {', '.join(COLUMNS)}"
        )
    # The first line has counts and the classes' names; a line ends with the class.
    lines = file.read_text(encoding="utf-8").splitlines()[1:]
    rows = [_row(line.split(",")) for line in lines]
    places = [COLUMNS.index(name) for name in names]
    return DemoTable(names, [tuple(row[place] for place in places) for row in rows])


def _row(texts: Sequence[str]) -> list[str]:
    """The numbers of a line, and the word of its class."""
    *numbers, label = texts
    return [*(repr(float(text)) for text in numbers), CLASSES[int(label)]]


def _file_of_scikit_learn(path: str) -> Path:
    """A file of the installed library, which is not imported. Raises: ConfigError without it."""
    spec = find_spec("sklearn")
    file = Path(spec.origin).parent / path if spec and spec.origin else None
    if file is None or not file.exists():
        raise ConfigError(
            "the demo's own table is part of scikit-learn, which is not installed: "
            f"{installing('demo')}. Or name a table with --csv FILE --fields X,Y"
        )
    return file
