"""A site's table, read into the integers that the study computes with.

CSV and Parquet go through DuckDB. Only the study's columns are read; a row that lacks one of them is
dropped; a row that does not fit the study's schema stops the node.

*Reveals*: nothing by itself. The message of an error may travel to the coordinator, so it names the node,
the field and the bounds, which everybody knows, and never a value, a count, a row or a file. Those go into
the error's `detail`, which only this site's administrator reads.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np

from umpc.errors import (
    ConfigError,
    DataError,
    EmptyTable,
    NotANumber,
    NotNumeric,
    OutOfBounds,
    RangeError,
    UmpcError,
    UnknownField,
)
from umpc.ustat.schema import FieldSchema

DELIMITERS = ",;\t|"
CSV_SUFFIXES = (".csv", ".tsv")
PARQUET_SUFFIXES = (".parquet",)
ROWS_LISTED = 20
LARGEST_TERM = 10**100
"""A resolution's numerator and denominator stay below this, far from a double's overflow."""


@dataclass(frozen=True)
class TableSource:
    """Where a table is and how it is written. `delimiter` None: the one that splits the header most."""

    path: Path
    delimiter: str | None = None
    missing: tuple[str, ...] = ("",)


@dataclass(frozen=True)
class Records:
    """A node's records. `columns[name]`: (count,) int64, value / resolution, rounded half to even."""

    columns: dict[str, np.ndarray] = field(repr=False)
    count: int
    dropped: int = field(repr=False)


def load_records(
    source: TableSource, fields: Sequence[FieldSchema], *, node: str, clip: bool = False
) -> Records:
    """The study's fields of every complete row, in the table's order, as integers in units of resolution.

    Args: `clip`: move a value beyond its bounds to the nearer bound instead of refusing it.
    Returns: Records with lower_units <= column <= upper_units. If every row is dropped, count is 0.
    Raises: ConfigError (no such file), DataError (unreadable, other format), EmptyTable, UnknownField,
    NotNumeric, NotANumber, OutOfBounds, RangeError (a resolution beyond a double).
    """
    site = _Site(node, source.path)
    try:
        present, values = _read(source, fields, site)
    except duckdb.Error as error:
        raise site.unreadable(str(error)) from None
    if not len(present):
        raise site.error(
            EmptyTable,
            "the table has a header and no rows; at least one row was expected. "
            "Put the records into the file, or correct path under [data]",
        )
    rows = np.flatnonzero(present)
    columns = {f.name: _units(values[f.name][rows], rows + 1, f, site, clip) for f in fields}
    return Records(columns, count=len(rows), dropped=len(present) - len(rows))


def _read(
    source: TableSource, fields: Sequence[FieldSchema], site: _Site
) -> tuple[np.ndarray, dict[str, np.ma.MaskedArray]]:
    """`present`: (rows,) bool, no field is missing; per field (rows,) float64, masked where not a number."""
    with _connect() as connection:
        table = _open(connection, source, site)
        texts = [_trimmed(table.column(f.name, site)) for f in fields]
        known = [f"({text} IS NOT NULL AND NOT list_contains($missing, {text}))" for text in texts]
        numbers = [
            f"nullif(list_position($categories{i}, {text}), 0)::DOUBLE - 1"
            if field.categories
            else f"TRY_CAST({text} AS DOUBLE)"
            for i, (field, text) in enumerate(zip(fields, texts, strict=True))
        ]
        labels = {
            f"categories{i}": list(field.categories)
            for i, field in enumerate(fields)
            if field.categories
        }
        chosen = ", ".join(
            [
                f"({' AND '.join(['true', *known])}) AS present",
                *(f"{number} AS v{i}" for i, number in enumerate(numbers)),
            ]
        )
        # $missing must occur in every statement that is given it; list_contains also types an empty list.
        query = f"SELECT {chosen} FROM {table.relation} WHERE len($missing::VARCHAR[]) >= 0"
        parameters = {**table.parameters, **labels, "missing": list(source.missing)}
        found = connection.execute(query, parameters).fetchnumpy()
    return np.asarray(found["present"]), {
        f.name: np.ma.asarray(found[f"v{i}"]) for i, f in enumerate(fields)
    }


def _connect() -> duckdb.DuckDBPyConnection:
    """In memory, in the file's order, no extension from the network, nothing spilled to disk."""
    return duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "preserve_insertion_order": True,
            "temp_directory": "",
            "threads": 2,
        },
    )


# --- the two formats -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """A file as SQL: its columns' exact names, beside the expression that yields each as VARCHAR."""

    names: list[str]
    expressions: list[str]
    relation: str
    parameters: dict[str, str]

    def column(self, name: str, site: _Site) -> str:
        if name not in self.names:
            close = difflib.get_close_matches(name, self.names, n=1, cutoff=0.5)
            hint = f"; did the study mean {close[0]!r}?" if close else ""
            raise site.error(
                UnknownField,
                f"the study's field {name!r} was expected as a column of the "
                "table, letter by letter, and is not there. Rename one of the two",
                f"columns: {', '.join(map(repr, self.names))}{hint}",
            )
        if self.names.count(name) > 1:
            raise site.error(
                DataError,
                f"field {name!r} was expected once among the table's columns, and is "
                "there more than once. Rename or remove the others",
            )
        return self.expressions[self.names.index(name)]


def _open(connection: duckdb.DuckDBPyConnection, source: TableSource, site: _Site) -> _Table:
    """Names the file's columns, by its suffix."""
    if not source.path.is_file():
        raise site.error(
            ConfigError,
            "the data file was expected, and there is no such file. Correct path "
            "under [data] in the node's own configuration",
        )
    suffix = source.path.suffix.lower()
    if suffix not in CSV_SUFFIXES + PARQUET_SUFFIXES:
        raise site.error(
            DataError,
            f"the data file was expected to end in one of "
            f"{', '.join(CSV_SUFFIXES + PARQUET_SUFFIXES)}. Export the table to one of them",
        )
    if source.path.stat().st_size == 0:
        raise site.error(
            EmptyTable,
            "the data file is empty; a table with a header and at least one row was "
            "expected. Put the records into the file, or correct path under [data]",
        )
    return _open_csv(source, site) if suffix in CSV_SUFFIXES else _open_parquet(connection, source)


def _open_csv(source: TableSource, site: _Site) -> _Table:
    """The header is read here and exactly: DuckDB would rename `age` beside `Age`."""
    headers: dict[str, list[str]] = {}
    reason = ""
    for delimiter in [source.delimiter] if source.delimiter else DELIMITERS:
        try:
            headers[delimiter] = _header(source.path, delimiter)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            reason = f"the header with delimiter {delimiter!r}: {error}"
    if not headers:
        raise site.unreadable(reason)
    delimiter, names = max(headers.items(), key=lambda item: len(item[1]))
    if not names:
        raise site.error(
            EmptyTable,
            "the first line of the data file is blank; the columns' names were "
            "expected there. Remove blank lines above the header",
        )
    columns = [f"c{i}" for i in range(len(names))]
    types = ", ".join(f"'{column}': 'VARCHAR'" for column in columns)
    relation = (
        f"read_csv($path, auto_detect=false, header=true, delim=$delimiter, quote='\"', escape='\"', "
        f"columns={{{types}}})"
    )
    return _Table(names, columns, relation, {"path": _literal(source.path), "delimiter": delimiter})


def _header(path: Path, delimiter: str) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=delimiter, strict=True), [])


def _open_parquet(connection: duckdb.DuckDBPyConnection, source: TableSource) -> _Table:
    relation, parameters = "read_parquet($path)", {"path": _literal(source.path)}
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}", parameters).fetchall()
    names = [row[0] for row in described]
    expressions = [f"CAST({_quoted(name)} AS VARCHAR)" for name in names]
    return _Table(names, expressions, relation, parameters)


def _literal(path: Path) -> str:
    """The path such that DuckDB reads this file and no other: its * ? [ would be patterns."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in str(path.resolve()))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _trimmed(text: str) -> str:
    return f"trim({text}, E' \\t\\r\\n')"


# --- numbers to units ----------------------------------------------------------------------------------


def _units(
    column: np.ma.MaskedArray, rows: np.ndarray, schema: FieldSchema, site: _Site, clip: bool
) -> np.ndarray:
    """(count,) float64, masked where text, to (count,) int64 in units of the resolution; or a refusal."""
    where = f"field {schema.name!r}:"
    if max(schema.resolution.numerator, schema.resolution.denominator) > LARGEST_TERM:
        raise site.error(
            RangeError,
            f"{where} a resolution of at most 100 digits was expected, and a longer "
            "one came. Take a simpler resolution in the study",
        )
    expected = f"{where} numbers from {schema.lower} to {schema.upper} were expected, and"
    text, values = np.ma.getmaskarray(column), np.ma.getdata(column)
    if schema.categories:
        site.refuse(
            OutOfBounds,
            rows[text],
            f"{where} one of {len(schema.categories)} categories was expected, and another word came. Correct the "
            "table, or add the word to the study's categories",
        )
    site.refuse(
        NotNumeric,
        rows[text],
        f"{expected} text came. Correct the table, or add the word that "
        "stands for a missing value to missing in the node's own configuration",
    )
    site.refuse(
        NotANumber,
        rows[~np.isfinite(values)],
        f"{expected} NaN or infinity came. Correct the "
        "table, or add that word to missing in the node's own configuration",
    )
    lower, upper = float(schema.lower), float(schema.upper)
    if not clip:
        site.refuse(
            OutOfBounds,
            rows[(values < lower) | (values > upper)],
            f"{expected} a number beyond these bounds came. Widen the bounds in the study, or set "
            "clip = true in the node's own configuration",
        )
    units = _round_half_even(np.clip(values, lower, upper), schema.resolution)
    return np.clip(units, schema.lower_units, schema.upper_units)


def _round_half_even(values: np.ndarray, resolution: Fraction) -> np.ndarray:
    """values / resolution as int64: exact for the decimal that was written, not for the double nearest to it.

    0.35 / 0.1 is a tie and goes to 4, although the double 0.35 lies below it. Only quotients within a few
    roundings of a tie are computed again, as fractions, each distinct value once.
    """
    quotients = values * float(resolution.denominator) / float(resolution.numerator)
    units = np.rint(quotients).astype(np.int64)
    to_tie = np.abs(quotients - np.floor(quotients) - 0.5)
    near = to_tie <= 2.0**-50 * np.maximum(np.abs(quotients), 1)
    distinct, where = np.unique(values[near], return_inverse=True)
    exact = [round(Fraction(repr(value)) / resolution) for value in distinct.tolist()]
    units[near] = np.array(exact, dtype=np.int64)[where]
    return units


# --- refusals ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Site:
    """Whom an error is about: the node's name for everybody, the file for its administrator."""

    node: str
    path: Path

    def error(self, cls: type[UmpcError], message: str, detail: str = "") -> UmpcError:
        return cls(
            f"node {self.node!r}: {message}.",
            culprit=self.node,
            detail=f"{self.path}: {detail}" if detail else str(self.path),
        )

    def unreadable(self, reason: str) -> UmpcError:
        return self.error(
            DataError,
            "Parquet was expected, or UTF-8 text whose rows have as many values as "
            "its header, and the data file could not be read as such. The node's own log says "
            "where the reading stopped; correct the file there",
            reason,
        )

    def refuse(self, cls: type[UmpcError], rows: np.ndarray, message: str) -> None:
        if len(rows):
            listed = ", ".join(map(str, rows[:ROWS_LISTED]))
            more = f" and {len(rows) - ROWS_LISTED} more" if len(rows) > ROWS_LISTED else ""
            raise self.error(
                cls, message, f"data rows {listed}{more} (the first row below the header is 1)"
            )
