"""A table's file or query, and errors about it that name the node and never show a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from umpc.errors import ConfigError, DataError, EmptyTable, UmpcError
from umpc.node.table.number_format import PLAIN, NumberFormat
from umpc.node.table.sql_source import SqlSource

CSV_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
PARQUET_SUFFIXES = (".parquet",)
DELIMITERS = ",;\t|"
ENCODING = "utf-8"

MISSING_MARKS = (
    *("?", "-", "--", ".", "*", "NA", "N/A", "n/a", "#N/A", "na", "NaN", "nan", "NAN"),
    *("NULL", "null", "Null", "None", "none", "missing", "Missing", "unknown", "Unknown"),
)
"""Words that often mark a missing value. A node suggests them, and decides nothing by them."""


@dataclass(frozen=True)
class TableSource:
    """A table's file and format.

    A `delimiter` of None means the one that splits the header most. A row with a word of `missing`
    in a field of the study is dropped, and so is a row with a NaN of a Parquet file. `encoding` is
    that of a CSV file, by Python's name. `numbers` says how texts write numbers. If the
    table is in a database, `sql` is the query, and `path` is the file that has it.
    """

    path: Path
    delimiter: str | None = None
    missing: tuple[str, ...] = ("", "nan", "NaN")
    encoding: str = ENCODING
    numbers: NumberFormat = field(default=PLAIN)
    sql: SqlSource | None = None

    @property
    def is_csv(self) -> bool:
        """Whether the file is CSV, by its suffix."""
        return self.path.name.lower().endswith(CSV_SUFFIXES)

    def unlisted_marks(self) -> tuple[str, ...]:
        """Return the marks of missing values that `missing` does not list."""
        return tuple(mark for mark in MISSING_MARKS if mark not in self.missing)


@dataclass(frozen=True)
class TableSite:
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
            "Parquet was expected, or text whose rows have as many values as its header, in "
            "the encoding that the node's configuration names (by default UTF-8), and the data "
            "file could not be read as such. The node's own log says where the reading stopped; "
            "correct the file there, or encoding under [data]",
            reason,
        )


def check_file(source: TableSource, site: TableSite) -> None:
    """Raises: ConfigError (no such file), DataError (another format), EmptyTable (no bytes)."""
    if not source.path.is_file():
        raise site.error(
            ConfigError,
            "the data file was expected, and there is no such file. Correct path "
            "under [data] in the node's own configuration",
        )
    suffixes = CSV_SUFFIXES + PARQUET_SUFFIXES
    if not source.path.name.lower().endswith(suffixes):
        raise site.error(
            DataError,
            f"the data file was expected to end in one of {', '.join(suffixes)}. Export the "
            "table to one of them",
        )
    if source.path.stat().st_size == 0:
        raise site.error(
            EmptyTable,
            "the data file is empty; a table with a header and at least one row was "
            "expected. Put the records into the file, or correct path under [data]",
        )
