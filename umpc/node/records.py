"""A site's table, read into the integers that the study computes with.

DuckDB reads CSV and Parquet. Only the study's columns are read. A row that lacks one of them is
dropped. Every other row counts, whatever it holds:

| a value | counts as |
|---|---|
| beyond its field's bounds, also infinite | the nearer bound |
| text or NaN, where a number was expected | the lower bound |
| a word that is none of the field's categories | the last category |

Whether a value is missing depends on the table and on the administrator's `missing`, and on nothing
that a study says. Otherwise a coordinator could choose bounds or categories, and read a count of
values from the number of complete records.

*Reveals*: the number of complete records, and whether the file can be read and has the study's
columns. The message of an error may travel to the coordinator. It names the node and the field, and
never a value, a count, a row or a file. Those are in `Records.misfits` and in the error's `detail`,
which only this site's administrator reads.
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
from numpy.typing import NDArray

from umpc.errors import (
    ConfigError,
    DataError,
    EmptyTable,
    NotNumeric,
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
"""Bound on a resolution's numerator and denominator, far below a double's overflow."""

Floats = np.ma.MaskedArray[tuple[int], np.dtype[np.float64]]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class TableSource:
    """A table's file and format.

    A `delimiter` of None means the one that splits the header most. A row with a word of `missing`
    in a field of the study is dropped, and so is a row with a NaN of a Parquet file.
    """

    path: Path
    delimiter: str | None = None
    missing: tuple[str, ...] = ("", "nan", "NaN")


@dataclass(frozen=True)
class Misfit:
    """The values of one field that count as something else. Only the administrator may see it.

    `beyond` has the rows of values outside the bounds. `unknown` has the rows of values that are no
    number, or none of the categories. Both are (rows,) int64, and the first row is 1.
    """

    name: str
    expected: str
    substitute: str
    beyond: Rows = field(repr=False)
    unknown: Rows = field(repr=False)

    def __str__(self) -> str:
        """One line with counts and row numbers, and without values."""
        parts = []
        if len(self.beyond):
            parts.append(f"data rows {_listed(self.beyond)} count as the nearer bound")
        if len(self.unknown):
            parts.append(f"data rows {_listed(self.unknown)} count as {self.substitute}")
        count = len(self.beyond) + len(self.unknown)
        return (
            f"field {self.name!r}: {self.expected} were expected; values that do not fit: {count}; "
            f"{'; '.join(parts)} (the first row below the header is 1)"
        )


@dataclass(frozen=True)
class Records:
    """A node's records.

    `columns[name]` is (count,) int64: value / resolution, rounded half to even. `misfits` has one
    entry for each field with values that count as something else.
    """

    columns: dict[str, NDArray[np.int64]] = field(repr=False)
    count: int
    dropped: int = field(repr=False)
    misfits: tuple[Misfit, ...] = field(default=(), repr=False)


def load_records(source: TableSource, fields: Sequence[FieldSchema], *, node: str) -> Records:
    """Read the study's fields of every complete row, as integers in units of the resolution.

    Returns: Records in the table's order, with lower_units <= column <= upper_units. The count is 0
        if every row is dropped.
    Raises: ConfigError (no such file), DataError (unreadable, other format), EmptyTable,
        UnknownField, RangeError (resolution beyond a double). None of them depends on a value.
    """
    site = _Site(node, source.path)
    for schema in fields:
        _check_resolution(schema, site)
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
    complete = {schema.name: values[schema.name][rows] for schema in fields}
    columns = {schema.name: _units(complete[schema.name], schema) for schema in fields}
    found = (_misfit(complete[schema.name], rows + 1, schema) for schema in fields)
    misfits = tuple(each for each in found if len(each.beyond) or len(each.unknown))
    return Records(columns, len(rows), len(present) - len(rows), misfits)


def require_numbers(records: Records, *, node: str) -> Records:
    """Return the records, if none of their values counts as a number that it is not.

    This is for commands of the table's own owner. A node must not ask: its answer would tell.
    Raises: NotNumeric.
    """
    for misfit in records.misfits:
        if len(misfit.unknown):
            raise NotNumeric(f"{node}: {misfit}. Correct the table, or name the word as missing")
    return records


def _read(
    source: TableSource, fields: Sequence[FieldSchema], site: _Site
) -> tuple[NDArray[np.bool_], dict[str, Floats]]:
    """Read the fields of all rows.

    Returns: `present`, (rows,) bool, true where no field is missing; and for each field (rows,)
        float64, masked where the value is not a number.
    """
    with _connect() as connection:
        table = _open(connection, source, site)
        texts = [_trimmed(table.column(schema.name, site)) for schema in fields]
        chosen = [_present(texts), *map(_number, range(len(fields)), fields, texts)]
        # $missing must occur in every statement that gets it; list_contains types an empty list.
        query = (
            f"SELECT {', '.join(chosen)} FROM {table.relation} WHERE len($missing::VARCHAR[]) >= 0"
        )
        labels = {
            f"categories{i}": list(schema.categories)
            for i, schema in enumerate(fields)
            if schema.categories
        }
        parameters = {**table.parameters, **labels, "missing": list(source.missing)}
        found = connection.execute(query, parameters).fetchnumpy()
    values = {schema.name: np.ma.asarray(found[f"v{i}"]) for i, schema in enumerate(fields)}
    return np.asarray(found["present"]), values


def _present(texts: Sequence[str]) -> str:
    """Return the SQL column `present`: no text of the row is missing."""
    known = [f"({text} IS NOT NULL AND NOT list_contains($missing, {text}))" for text in texts]
    return f"({' AND '.join(['true', *known])}) AS present"


def _number(index: int, schema: FieldSchema, text: str) -> str:
    """Return the SQL column `v<index>`: the field's number, or a category's place."""
    if schema.categories:
        number = f"nullif(list_position($categories{index}, {text}), 0)::DOUBLE - 1"
    else:
        number = f"TRY_CAST({text} AS DOUBLE)"
    return f"{number} AS v{index}"


def _connect() -> duckdb.DuckDBPyConnection:
    """Open DuckDB in memory, without extensions from the network and without files on disk.

    It keeps the order of the rows.
    """
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


# --- the two formats --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """A file as SQL: the exact names of its columns, and an expression of each as VARCHAR."""

    names: list[str]
    expressions: list[str]
    relation: str
    parameters: dict[str, str]

    def column(self, name: str, site: _Site) -> str:
        """Return the expression of a column. Raises: UnknownField, DataError (name not unique)."""
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
    """Find the file's columns, by the format that its suffix names.

    Raises: ConfigError, DataError, EmptyTable.
    """
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
    """Find the columns of a CSV file, whose names are kept as they are.

    DuckDB would rename one of `age` and `Age`, so the header is read here.
    """
    headers: dict[str, list[str]] = {}
    reason = ""
    candidates = [source.delimiter] if source.delimiter else list(DELIMITERS)
    for delimiter in candidates:
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
        "read_csv($path, auto_detect=false, header=true, delim=$delimiter, "
        f"quote='\"', escape='\"', columns={{{types}}})"
    )
    return _Table(names, columns, relation, {"path": _literal(source.path), "delimiter": delimiter})


def _header(path: Path, delimiter: str) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, delimiter=delimiter, strict=True), [])


def _open_parquet(connection: duckdb.DuckDBPyConnection, source: TableSource) -> _Table:
    relation, parameters = "read_parquet($path)", {"path": _literal(source.path)}
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}", parameters).fetchall()
    names = [row[0] for row in described]
    expressions = [_parquet_text(_quoted(row[0]), row[1]) for row in described]
    return _Table(names, expressions, relation, parameters)


def _parquet_text(column: str, kind: str) -> str:
    """Return a column's text. A NaN of a column of numbers is missing, as NULL is."""
    text = f"CAST({column} AS VARCHAR)"
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({column}) THEN NULL ELSE {text} END"
    return text


def _literal(path: Path) -> str:
    """Return the path with * ? [ escaped, which DuckDB would take for patterns."""
    return "".join(
        f"[{character}]" if character in "*?[" else character for character in str(path.resolve())
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _trimmed(text: str) -> str:
    return f"trim({text}, E' \\t\\r\\n')"


# --- numbers to units -------------------------------------------------------------------------


def _units(column: Floats, schema: FieldSchema) -> NDArray[np.int64]:
    """Convert a field's values to integers in units of its resolution.

    Args: column: (count,) float64, masked where the table has no number and no category.
    Returns: (count,) int64, within the field's bounds.
    """
    lower, upper = float(schema.lower), float(schema.upper)
    substitute = upper if schema.categories else lower
    values = np.where(_is_unknown(column), substitute, np.ma.getdata(column))
    units = _round_half_even(np.clip(values, lower, upper), schema.resolution)
    return np.clip(units, schema.lower_units, schema.upper_units)


def _is_unknown(column: Floats) -> NDArray[np.bool_]:
    """Return where a value is no number and no category."""
    return np.ma.getmaskarray(column) | np.isnan(np.ma.getdata(column))


def _misfit(column: Floats, rows: Rows, schema: FieldSchema) -> Misfit:
    """Return the rows whose values count as something else. Args: as `_units`, rows: (count,)."""
    unknown, values = _is_unknown(column), np.ma.getdata(column)
    lower, upper = float(schema.lower), float(schema.upper)
    beyond = ~unknown & ((values < lower) | (values > upper))
    expected = f"numbers from {schema.lower} to {schema.upper}"
    substitute = f"the lower bound {schema.lower}"
    if schema.categories:
        expected = f"words of {len(schema.categories)} categories"
        substitute = f"the last category {schema.categories[-1]!r}"
    return Misfit(schema.name, expected, substitute, rows[beyond], rows[unknown])


def _check_resolution(schema: FieldSchema, site: _Site) -> None:
    """Raises: RangeError where the field's resolution lies beyond a double."""
    if max(schema.resolution.numerator, schema.resolution.denominator) > LARGEST_TERM:
        raise site.error(
            RangeError,
            f"field {schema.name!r}: a resolution of at most 100 digits was expected, and a longer "
            "one came. Take a simpler resolution in the study",
        )


def _listed(rows: Rows) -> str:
    """Return the first ROWS_LISTED row numbers, and how many more there are."""
    more = f" and {len(rows) - ROWS_LISTED} more" if len(rows) > ROWS_LISTED else ""
    return ", ".join(map(str, rows[:ROWS_LISTED])) + more


def _round_half_even(values: NDArray[np.float64], resolution: Fraction) -> NDArray[np.int64]:
    """Return values / resolution as int64, exact for the decimals in the table.

    0.35 / 0.1 is a tie and goes to 4, although the double 0.35 lies below 0.35. Only quotients
    within a few roundings of a tie are computed again, as fractions, each distinct value once.
    """
    quotients = values * float(resolution.denominator) / float(resolution.numerator)
    units: NDArray[np.int64] = np.rint(quotients).astype(np.int64)
    to_tie = np.abs(quotients - np.floor(quotients) - 0.5)
    near = to_tie <= 2.0**-50 * np.maximum(np.abs(quotients), 1)
    distinct, where = np.unique(values[near], return_inverse=True)
    exact = [round(Fraction(repr(value)) / resolution) for value in distinct.tolist()]
    units[near] = np.array(exact, dtype=np.int64)[where]
    return units


# --- refusals ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Site:
    """The site that an error is about: the node's name, and for its administrator the file."""

    node: str
    path: Path

    def error(self, cls: type[UmpcError], message: str, detail: str = "") -> UmpcError:
        """Return an error that names the node. `detail` is for the administrator only."""
        return cls(
            f"node {self.node!r}: {message}.",
            culprit=self.node,
            detail=f"{self.path}: {detail}" if detail else str(self.path),
        )

    def unreadable(self, reason: str) -> UmpcError:
        """Return the error for a file that could not be read."""
        return self.error(
            DataError,
            "Parquet was expected, or UTF-8 text whose rows have as many values as "
            "its header, and the data file could not be read as such. The node's own log says "
            "where the reading stopped; correct the file there",
            reason,
        )
