"""umpc/node/records.py: a table of several batches gives what one batch gives."""

from __future__ import annotations

import os
import time

import numpy as np

from tests.support.site_tables import AGE, TENTHS
from umpc.node import records as module
from umpc.node.records import Records, load_records
from umpc.node.table.source import TableSource
from umpc.study.parts import Person
from umpc.testing import lying

TEXT = "age,x,id\n" + "\n".join(
    f"{i % 200},{'NA' if i % 5 == 3 else f'{i / 4}'},p{i % 9}" for i in range(60)
)


def test_batches_are_joined_with_their_misfits_people_and_hashes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)

    def read() -> Records:
        person = Person("id", 3)
        return load_records(TableSource(path), [AGE, TENTHS], node="a", person=person)

    whole = read()

    def small(honest, relation):
        for batch in honest(relation):
            for start in range(0, len(batch["present"]), 7):
                yield {name: each[start : start + 7] for name, each in batch.items()}

    with lying("process", batches=small):
        parts = read()
    assert parts.cohort == whole.cohort and parts.count == whole.count == 27
    for name, column in whole.columns.items():
        assert np.array_equal(parts.columns[name], column)
    assert whole.misfits and list(map(str, parts.misfits)) == list(map(str, whole.misfits))


def test_the_log_says_how_many_rows_are_read(tmp_path, limit, caplog):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    limit(module, PROGRESS_SECONDS=0)
    with caplog.at_level("INFO", "umpc.node"):
        load_records(TableSource(path), [AGE], node="a")
    assert "60 rows of the table are read" in caplog.text


def test_a_file_beside_the_ledger_says_so_while_the_table_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a-ledger.sqlite.reading"
    assert module.reading_beside(tmp_path / "a-ledger.sqlite") == path
    with module.ReadingProgress(path) as progress:
        progress.tell(60)
        assert not path.exists()  # a short reading writes nothing
        later = time.monotonic() + 60
        monkeypatch.setattr(time, "monotonic", lambda: later)
        progress.tell(70)
        assert module.rows_so_far(path) == (70, 60) and path.stat().st_mode & 0o77 == 0
        path.write_text("70 ro")
        assert module.rows_so_far(path) is None
        path.write_text("70 rows, 5 s\n")
        os.utime(path, (0, 0))  # of a process that has died
        assert module.rows_so_far(path) is None
    assert not path.exists() and module.rows_so_far(path) is None


def test_a_full_disk_does_not_end_a_reading(tmp_path, limit):
    limit(module, PROGRESS_SECONDS=0)
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    nowhere = tmp_path / "none" / "a.reading"
    assert load_records(TableSource(path), [AGE], node="a", progress=nowhere).count == 60
