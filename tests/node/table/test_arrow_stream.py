"""umpc/node/table/reading.py: batches of DuckDB as numpy arrays."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from umpc.node.table.reading import batches

ROWS = 300_000


def test_batches_have_all_rows_in_order():
    with duckdb.connect(":memory:") as connection:
        query = """SELECT i::DOUBLE AS x, (i % 7)::UTINYINT AS k,
            CASE WHEN i % 3 = 1 THEN NULL ELSE 'é' || i END AS t FROM range($rows) AS r(i)"""
        found = [*batches(connection.sql(query, params={"rows": ROWS}))]
    assert len(found) > 1
    joined = {name: np.concatenate([each[name] for each in found]) for name in "xkt"}
    places = np.arange(ROWS)
    assert (joined["x"] == places).all() and (joined["k"] == places % 7).all()
    assert joined["t"][:5].tolist() == ["é0", "", "é2", "é3", ""] and len(joined["t"]) == ROWS


def test_no_rows_are_no_batch_or_an_empty_one():
    with duckdb.connect(":memory:") as connection:
        found = [*batches(connection.sql("SELECT 1.0::DOUBLE AS x WHERE false"))]
    assert sum(len(each["x"]) for each in found) == 0


def test_a_failure_in_the_middle_is_an_error_of_duckdb():
    with duckdb.connect(":memory:") as connection:
        query = "SELECT CASE WHEN i < 250000 THEN 1.0::DOUBLE ELSE error('no') END AS x"
        relation = connection.sql(f"{query} FROM range(300000) AS r(i)")
        with pytest.raises(duckdb.Error):
            list(batches(relation))
