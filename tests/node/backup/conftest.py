"""A site for every test of backups."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.backup_sites import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "north")
