"""Fixtures of the node's tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger is made; the name needs quoting everywhere."""
    return tmp_path / "node a?-ledger.sqlite"
