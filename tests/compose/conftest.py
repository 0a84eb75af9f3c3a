"""The tests in this folder start containers: `make compose-test`, never `make test`.

Without a docker engine they are not collected, and the run says why.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest


def missing() -> str:
    """Return what is not at hand, or nothing."""
    if not compose_command():
        return "neither `docker compose` nor `docker-compose` is installed"
    engine = subprocess.run(["docker", "info"], capture_output=True, text=True)
    return "" if engine.returncode == 0 else f"no docker engine answers: {engine.stderr.strip()}"


def compose_command() -> tuple[str, ...]:
    """Return the command of Compose version 2, or of version 1."""
    if shutil.which("docker"):
        plugin = subprocess.run(["docker", "compose", "version"], capture_output=True)
        if plugin.returncode == 0:
            return ("docker", "compose")
    return ("docker-compose",) if shutil.which("docker-compose") else ()


MISSING = missing()
collect_ignore = ["test_compose.py"] if MISSING else []


@pytest.fixture(scope="session")
def compose() -> tuple[str, ...]:
    return compose_command()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if MISSING:
        terminalreporter.write_line(f"containers: not tested, {MISSING}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End with 0 where nothing could be collected: there was nothing to test."""
    if MISSING and session.testscollected == 0:
        session.exitstatus = pytest.ExitCode.OK
