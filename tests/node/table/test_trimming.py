"""umpc.node.table.columns: a text loses blanks at its ends, wherever DuckDB is asked for them."""

from __future__ import annotations

from itertools import product

import duckdb

from umpc.node.table.columns import _trimmed

PARTS = ("", "a", "é", "1 2", " ", "\t", "\r", "\n", "\v", "\x00", "!", "\u00a0", "\u0301")


def test_the_trimmed_text_is_pythons():
    texts = ["".join(parts) for parts in product(PARTS, repeat=3)]
    with duckdb.connect(":memory:") as connection:
        query = f"SELECT {_trimmed('t')} FROM (SELECT unnest($texts::VARCHAR[]) AS t)"
        found = [row[0] for row in connection.execute(query, {"texts": texts}).fetchall()]
        assert found == [text.strip(" \t\r\n") for text in texts]
        assert connection.execute(f"SELECT {_trimmed('NULL::VARCHAR')}").fetchall() == [(None,)]
