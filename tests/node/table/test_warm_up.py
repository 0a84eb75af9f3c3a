"""A node reads a made-up table before its first study, and opens DuckDB if a table needs it."""

from __future__ import annotations

import tempfile

import pytest

from umpc.node.table import columns, reading
from umpc.node.table import warm_up as module
from umpc.node.table.small_csv import SMALL_BYTES
from umpc.node.table.source import TableSource
from umpc.node.table.warm_up import warm_up


@pytest.fixture
def read(monkeypatch) -> list[object]:
    """The batches and records of all readings, and every opening of DuckDB."""
    found: list[object] = []
    read_batches, load_records = reading.read_batches, module.load_records

    def batches(*args):
        for batch in read_batches(*args):
            found.append("batch")
            yield batch

    def records(*args, **names):
        loaded = load_records(*args, **names)
        found.append(loaded.count)
        return loaded

    monkeypatch.setattr(reading, "read_batches", batches)
    monkeypatch.setattr(module, "load_records", records)
    monkeypatch.setattr(columns, "open_engine", lambda: found.append("engine"))
    return found


def test_a_node_of_small_tables_does_not_open_duckdb(tmp_path, monkeypatch, read):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = tmp_path / "own.csv"
    own.write_text("x\n1\n")
    warm_up([TableSource(own)])
    assert read == [1] and list(tmp_path.iterdir()) == [own]


@pytest.mark.parametrize("length", [0, SMALL_BYTES + 1])
def test_any_other_table_may_need_it(tmp_path, monkeypatch, read, length):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own, short = tmp_path / "own.csv", tmp_path / "short.csv"
    own.write_text("x" * length)
    short.write_text("x\n1\n")
    warm_up([TableSource(short), TableSource(own)])
    assert read == [1, "engine", "batch"]
    assert sorted(tmp_path.iterdir()) == [own, short]


def test_a_node_starts_without_room_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    warm_up([TableSource(tmp_path / "t.csv")])
