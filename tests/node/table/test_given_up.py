"""umpc.transport.patience: a reading ends when nobody waits for it, whatever the table is."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

from tests.support.files import key_file
from tests.support.small_s3 import BUCKET, small_s3
from umpc.errors import DataError, StudyAborted
from umpc.node.records import load_records
from umpc.node.table import object_store
from umpc.node.table.source import ObjectSource, TableSource
from umpc.node.table.sql_source import SqlSource
from umpc.transport.patience import ReadersWait, check_waited_for, ended_by, waited_for
from umpc.ustat.schema import FieldSchema

AGE = FieldSchema("age", Fraction(0), Fraction(120), Fraction(1))
NEVER = {
    "sqlite": "WITH RECURSIVE n(age) AS (SELECT 1 UNION ALL SELECT age % 99 + 1 FROM n) "
    "SELECT max(age) AS age FROM n",
    "duckdb": "SELECT max((a.range + b.range) % 99) AS age FROM range(10000000) AS a, "
    "range(10000000) AS b",
}
"""Queries that take for ever."""
SECONDS = 20


def loading(source: TableSource, ended: list[Exception]) -> Callable[[], None]:
    """Return a reading that adds to `ended` how it ended, if it failed."""

    def load() -> None:
        try:
            load_records(source, [AGE], node="north")
        except Exception as error:
            ended.append(error)

    return load


def reading_given_up(source: TableSource) -> Exception:
    """Read in a thread, give up while the reading goes on, and return how it ended."""
    ended: list[Exception] = []

    async def give_up() -> None:
        with waited_for():
            reading = asyncio.create_task(asyncio.to_thread(loading(source, ended)))
            await asyncio.sleep(0.2)
            assert not reading.done()
        await asyncio.wait_for(reading, SECONDS)

    asyncio.run(give_up())
    return ended[0]


@pytest.mark.parametrize("kind", NEVER)
def test_a_query_ends_when_its_study_ends(tmp_path, kind):
    file = tmp_path / "ward.db"
    (sqlite3 if kind == "sqlite" else duckdb).connect(file).close()
    sql = SqlSource(f"{kind}:///ward.db", NEVER[kind], folder=tmp_path)
    if kind == "sqlite":
        file.write_bytes(b"")
    error = reading_given_up(TableSource(tmp_path / "node.toml", sql=sql))
    assert isinstance(error, DataError | StudyAborted)


def test_no_further_piece_of_an_object_is_read_for_a_study_that_ended(tmp_path, limit):
    limit(object_store, PIECE=8)
    goes_on = threading.Event()
    with small_s3() as store:
        store.objects = {"a.csv": b"age\n" + b"31\n" * 100}
        store.before_read = lambda key: goes_on.wait(SECONDS) and None
        keys = key_file(tmp_path / "keys", "READERKEY", "hunter2-Zx")
        objects = ObjectSource(BUCKET, "a.csv", store.endpoint, credentials_file=keys)
        source = TableSource(Path(BUCKET, "a.csv"), objects=objects)
        ended: list[Exception] = []

        async def give_up() -> None:
            with waited_for():
                reading = asyncio.create_task(asyncio.to_thread(loading(source, ended)))
                while "a.csv" not in store.seen:
                    await asyncio.sleep(0.01)
            goes_on.set()
            await asyncio.wait_for(reading, SECONDS)

        asyncio.run(give_up())
        assert isinstance(ended[0], StudyAborted)
        assert store.seen.count("a.csv") == 1


def test_a_reading_that_nobody_gave_up_is_not_disturbed():
    calls: list[str] = []
    with ended_by(lambda: calls.append("outside")):
        check_waited_for()
    with waited_for(), ended_by(lambda: calls.append("inside")):
        check_waited_for()
    assert calls == []


def test_a_database_that_was_closed_meanwhile_prints_no_traceback(monkeypatch):
    """SQLite and DuckDB refuse to interrupt a closed connection, and a thread would print that."""
    printed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", printed.append)
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    called = threading.Event()

    def end() -> None:
        called.set()
        connection.interrupt()

    wait = ReadersWait()
    wait.add(end)
    connection.close()
    wait.give_up()
    assert called.wait(SECONDS)
    for thread in threading.enumerate():
        if thread.name == "umpc-given-up":
            thread.join(SECONDS)
    assert printed == []


def test_what_begins_after_the_end_does_not_begin():
    async def late() -> None:
        begin = threading.Event()

        def read() -> None:
            begin.wait(SECONDS)
            with ended_by(lambda: None):
                raise AssertionError("it began")

        with waited_for():
            reading = asyncio.create_task(asyncio.to_thread(read))
            await asyncio.sleep(0)
        begin.set()
        with pytest.raises(StudyAborted, match="ended while its table was read"):
            await reading

    asyncio.run(late())
