"""Settings for all tests: a Hypothesis profile, long tests apart, a line about optional data."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support import tables
from tests.support.doors import Limit, limits
from tests.support.long_tests import runs_now
from umpc.native import field, garbled

os.environ.pop("COLUMNS", None)  # pytest-xdist sets 80, and tables would fold
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
"""Otherwise each worker, and each process that a test starts, compiles everything anew."""
signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell that starts the tests in the background lets them, and their children, ignore Ctrl-C."""
settings.register_profile("umpc", deadline=None)
settings.load_profile("umpc")
"""No example has a time limit: a busy machine may take any time for one."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests to `make long`, unless they are asked for by name."""
    if any("::" in argument for argument in config.args):
        return
    chosen = [item for item in items if runs_now(item.nodeid)]
    left = [item for item in items if not runs_now(item.nodeid)]
    config.hook.pytest_deselected(items=left)
    items[:] = chosen


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector pass over what was collected; it stays until the end."""
    gc.freeze()
    atexit.register(gc.unfreeze)  # otherwise duckdb complains of what is left at the end


@pytest.fixture
def limit() -> Iterator[Limit]:
    """Make limits of umpc small for this test."""
    with limits() as found:
        yield found


@pytest.fixture
def in_numpy(limit: Limit) -> None:
    """Garbled edges, transfers and the field in numpy, whose steps a test looks at or changes."""
    for module in (garbled, field):
        limit(module, CHOSEN=None)


@pytest.fixture(params=["numpy", "compiled"])
def both_ways(request: pytest.FixtureRequest, limit: Limit) -> None:
    """Garbled edges, transfers and the field in numpy, and then compiled where that can run."""
    for module in (garbled, field) if request.param == "numpy" else ():
        limit(module, CHOSEN=None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which optional data sets were tested; the report header is hidden by `-q`."""
    terminalreporter.write_line(f"optional data: {tables.summary()}")
