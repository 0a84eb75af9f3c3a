"""A first reading of a made-up table, at a node's start and not in its first study.

DuckDB opens, starts its threads and loads its reader of CSV files at the first query. That takes
some 30 ms of a processor, and a coordinator would wait for it.
"""

from __future__ import annotations

import contextlib
import tempfile
from fractions import Fraction
from pathlib import Path

from umpc.errors import UmpcError
from umpc.node.records import load_records
from umpc.node.table.source import TableSource
from umpc.ustat.schema import FieldSchema


def warm_up() -> None:
    """Read a table of one row. A disk that takes no file costs the first study."""
    field = FieldSchema("x", Fraction(0), Fraction(1), Fraction(1))
    with contextlib.suppress(OSError, UmpcError), tempfile.TemporaryDirectory() as folder:
        made_up = TableSource(Path(folder) / "table.csv")
        made_up.path.write_text("x\n1\n", encoding="ascii")
        load_records(made_up, [field], node="")
