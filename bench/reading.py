"""`python -m bench.reading`: how a node reads a table of 10^7 rows, next to DuckDB alone.

A node parses every value of two fields, and turns it into the integers of a study. DuckDB alone
sums the two columns. Each reading is a process of its own. ROWS=1000000 takes another size.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import duckdb

from umpc.node.records import load_records
from umpc.node.table.source import TableSource
from umpc.ustat.schema import FieldSchema

ROWS = 10_000_000
KIBIBYTES_A_MEBIBYTE = 1024
FIELDS = (
    FieldSchema("age", Fraction(0), Fraction(127), Fraction(1)),
    FieldSchema("balance", Fraction(-5000), Fraction(15_000), Fraction(1, 100)),
)
COLUMNS = (
    "(16 + i * 7919 % 84)::INTEGER AS age, "
    "((i * 104729 % 2000000) / 100 - 5000)::DECIMAL(9, 2) AS balance, "
    "(i % 12)::INTEGER AS month"
)


def write_tables(folder: Path, rows: int) -> tuple[Path, ...]:
    """Write one table as a Parquet file and as a CSV file."""
    paths = folder / "table.parquet", folder / "table.csv"
    with duckdb.connect(":memory:") as connection:
        for path in paths:
            _write(connection, path, rows)
    return paths


def write_csv(path: Path, rows: int) -> None:
    """Write the first rows of that table as a CSV file."""
    with duckdb.connect(":memory:") as connection:
        _write(connection, path, rows)


def _write(connection: duckdb.DuckDBPyConnection, path: Path, rows: int) -> None:
    connection.execute(f"COPY (SELECT {COLUMNS} FROM range({rows}) AS r(i)) TO '{path}'")


def read(reader: str, path: Path) -> str:
    """Read a table in this process, and return what it took."""
    before, began = _peak(), time.process_time()
    if reader == "node":
        rows = load_records(TableSource(path), FIELDS, node="north").count
    else:
        with duckdb.connect(":memory:", config={"threads": 2}) as connection:
            query = f"SELECT count(*), sum(age), sum(balance) FROM '{path}'"
            rows = connection.execute(query).fetchall()[0][0]
    seconds = time.process_time() - began
    return f"{rows} {seconds:.2f} {_peak() - before:.0f}"


def _peak() -> float:
    """The most memory that this process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIBIBYTES_A_MEBIBYTE


def main() -> int:
    """Print the processor's seconds and the memory of each reader. Returns: the exit code."""
    if len(sys.argv) > 2:
        print(read(sys.argv[1], Path(sys.argv[2])))
        return 0
    rows = int(os.environ.get("ROWS") or ROWS)
    with tempfile.TemporaryDirectory() as folder:
        for path in write_tables(Path(folder), rows):
            seconds = {}
            for reader in ("duckdb", "node"):
                command = [sys.executable, "-m", "bench.reading", reader, str(path)]
                said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found, used, peak = said.split()
                assert int(found) == rows
                seconds[reader] = float(used)
                print(f"{path.suffix:9} {rows:,} rows  {reader:7} {used} s of CPU  {peak} MiB more")
            ratio = seconds["node"] / max(seconds["duckdb"], 0.01)
            print(f"{path.suffix:9} the node takes {ratio:.1f} times as long as DuckDB alone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
