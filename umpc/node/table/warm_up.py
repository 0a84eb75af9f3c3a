"""A first reading of a made-up table, at a node's start and not in its first study.

DuckDB opens, starts its threads and loads its reader of CSV files at the first query. That takes
some 30 ms of a processor, and a coordinator would wait for it. A node whose tables are all small
does not need it (`small_csv.py`).
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from umpc.errors import UmpcError
from umpc.node.records import load_records
from umpc.node.table.small_csv import is_small
from umpc.node.table.source import TableSite, TableSource
from umpc.ustat.schema import FieldSchema


def warm_up(sources: Iterable[TableSource]) -> None:
    """Read a table of one row, as the node's tables are read. Args: sources: these tables.

    A disk that takes no file costs the first study.
    """
    field = FieldSchema("x", Fraction(0), Fraction(1), Fraction(1))
    with contextlib.suppress(OSError, UmpcError), tempfile.TemporaryDirectory() as folder:
        made_up = TableSource(Path(folder) / "table.csv")
        made_up.path.write_text("x\n1\n", encoding="ascii")
        load_records(made_up, [field], node="")
        if not all(map(_is_small, sources)):
            _warm_up_duckdb(made_up, field)


def _warm_up_duckdb(made_up: TableSource, field: FieldSchema) -> None:
    from umpc.node.table.columns import open_engine
    from umpc.node.table.reading import read_batches

    open_engine()
    for _ in read_batches(made_up, (field,), TableSite("", made_up.path), None):
        pass


def _is_small(source: TableSource) -> bool:
    """Whether a table is small now. One that cannot be read yet may become any table."""
    try:
        return is_small(source, TableSite("", source.path))
    except UmpcError:
        return False
