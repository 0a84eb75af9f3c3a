"""umpc.node.table.conversions: texts have one form in DuckDB and in Python."""

from __future__ import annotations

from itertools import product

import duckdb

from umpc.node.table.conversions import BLANKS, normal, normal_sql, trimmed_sql

PARTS = ("", "a", "é", "1 2", " ", "\t", "\r", "\n", "\v", "\x00", "!", "\u00a0", "\u0301")
WORDS = (
    "TRUE",
    "tRue",
    "False",
    "1.0",
    "-20.00",
    "+1.0",
    "-0.0",
    "1.50",
    "1.0e5",
    "e\u0301",
    "Å",
    "ﬁ",
)


def test_the_trimmed_text_is_pythons():
    texts = ["".join(parts) for parts in product(PARTS, repeat=3)]
    with duckdb.connect(":memory:") as connection:
        query = f"SELECT {trimmed_sql('t')} FROM (SELECT unnest($texts::VARCHAR[]) AS t)"
        found = [row[0] for row in connection.execute(query, {"texts": texts}).fetchall()]
        assert found == [text.strip(BLANKS) for text in texts]
        assert connection.execute(f"SELECT {trimmed_sql('NULL::VARCHAR')}").fetchall() == [(None,)]


def test_the_normal_text_is_pythons():
    texts = [*WORDS, *("".join(parts) for parts in product(PARTS, repeat=2))]
    with duckdb.connect(":memory:") as connection:
        inner = f"SELECT {trimmed_sql('s')} AS t FROM (SELECT unnest($texts::VARCHAR[]) AS s)"
        query = f"SELECT {normal_sql('t')} FROM ({inner})"
        found = [row[0] for row in connection.execute(query, {"texts": texts}).fetchall()]
    assert found == [*map(normal, texts)]
    assert found[:7] == ["true", "true", "false", "1", "-20", "+1.0", "0"]
