"""A node reads a made-up table before its first study, and so opens DuckDB."""

from __future__ import annotations

import subprocess
import sys
import tempfile

from umpc.node.table.warm_up import warm_up

OPENED = """
import sys
from umpc.node.table.warm_up import warm_up

assert "duckdb" not in sys.modules
warm_up()
print("duckdb" in sys.modules)
"""


def test_the_reading_opens_duckdb_and_leaves_nothing_behind(tmp_path, monkeypatch):
    found = subprocess.run([sys.executable, "-c", OPENED], capture_output=True, text=True)
    assert found.stdout == "True\n", found.stderr
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    warm_up()
    assert not [*tmp_path.iterdir()]


def test_a_node_starts_without_room_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    warm_up()
