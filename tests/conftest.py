"""Settings for all tests: one Hypothesis profile, and a line about optional data."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.support import tables

settings.register_profile("umpc", deadline=None)
settings.load_profile("umpc")
"""No example has a time limit: a busy machine may take any time for one."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which optional data sets were tested; the report header is hidden by `-q`."""
    terminalreporter.write_line(f"optional data: {tables.summary()}")
