"""Fixtures of the node's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from umpc.node.config_section import IDENTITY_FILES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger is made; the name needs quoting everywhere."""
    return tmp_path / "node a?-ledger.sqlite"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with an identity and a table, where a node's configuration is written."""
    (tmp_path / "id").mkdir()
    for name in IDENTITY_FILES:
        (tmp_path / "id" / name).write_text("pem")
    (tmp_path / "bank.csv").write_text("age\n30\n")
    return tmp_path
