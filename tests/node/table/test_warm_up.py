"""A node opens DuckDB, and reads a made-up table, before its first study."""

from __future__ import annotations

import tempfile

from umpc.node.table import warm_up as module
from umpc.node.table.warm_up import warm_up


def test_it_reads_one_row_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = []
    read = module.read_batches

    def counted(*args):
        for batch in read(*args):
            rows.append(batch)
            yield batch

    monkeypatch.setattr(module, "read_batches", counted)
    warm_up()
    assert len(rows) == 1 and not list(tmp_path.iterdir())


def test_a_node_starts_without_room_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    warm_up()
