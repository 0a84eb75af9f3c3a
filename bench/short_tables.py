"""`python -m bench.short_tables`: short CSV files, read with and without DuckDB, in alternation.

Rows, bytes, and for each reader the median milliseconds of the processor. Each row of the table is
31 readings by each, after a first one.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from bench.reading import FIELDS, write_csv
from umpc.node import records
from umpc.node.records import TableSource, load_records
from umpc.node.table.small_csv import SMALL_BYTES, is_small

ROWS = (1, 100, 500, 1_000)
TIMES = 31
READERS = {"DuckDB": lambda source, site: False, "without": is_small}


def milliseconds(reader: str, path: Path) -> float:
    """The processor's time of one reading."""
    records.is_small = READERS[reader]
    begun = time.process_time()
    load_records(TableSource(path), FIELDS, node="north")
    return 1e3 * (time.process_time() - begun)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        for rows in ROWS:
            write_csv(path, rows)
            size = path.stat().st_size
            assert size <= SMALL_BYTES
            spent: dict[str, list[float]] = {reader: [] for reader in READERS}
            for _ in range(TIMES + 1):
                for reader, each in spent.items():
                    each.append(milliseconds(reader, path))
            told = "  ".join(f"{name} {median(each[1:]):.1f} ms" for name, each in spent.items())
            print(f"{rows:5,} rows  {size:6,} bytes  {told}", flush=True)


if __name__ == "__main__":
    main()
