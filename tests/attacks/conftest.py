"""A laboratory with liars, and the table of attacks that the run prints at its end.

A test says with `@attack(line, grade, outcome)` which line of the list it attacks, in which grade,
and what must come of it: *refused* before anything, *noticed* with an error and no result,
*bounded* by an audited ε, or *outside* the promise of that grade.

It says with `@lies(strategy, …)` which lies must be told while it runs. It fails where one of them
was not told, and where a process lied that was to be honest. A test without it runs no liar.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.lies import FILE, Record, check
from tests.attacks.parties import Tale, telling
from tests.system.conftest import Lab, lab
from umpc.coordinator.client import run_study
from umpc.coordinator.studyfile import load_study_file
from umpc.deployment.processes import Deployment
from umpc.errors import UmpcError
from umpc.study.report import Report
from umpc.testing import lying
from umpc.transport.identity import load_identity

__all__ = ["lab"]
ROOT = Path(__file__).parents[2]
LIARS = (sys.executable, "-m", "tests.attacks.parties")
SECONDS = 20


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "attack(line, grade, outcome): a row of the table")
    config.addinivalue_line("markers", "lies(strategy, …): the lies that must be told")


@pytest.fixture(scope="session")
def all_lies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Record]:
    """Provide the record of all lies, whose file the environment names for every process."""
    file = tmp_path_factory.mktemp("lies") / "told"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FILE, str(file))
        yield Record(file)


@pytest.fixture(autouse=True)
def record(all_lies: Record) -> Record:
    """Let every test have the record; `pytest_runtest_call` reads it."""
    return all_lies


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose lies were not told, or that saw others. It is a part of the test itself."""
    record: Record = item.funcargs["record"]  # type: ignore[attr-defined]
    try:
        result = yield
    except BaseException:
        record.new()  # the lies of a test that failed are not those of the next one
        raise
    due = {name for marker in item.iter_markers("lies") for name in marker.args}
    check(due, record.new())
    return result


@pytest.fixture(autouse=True)
def row(request: pytest.FixtureRequest, record_property: Any) -> None:
    """Remember the row of a test, for the table."""
    marker = request.node.get_closest_marker("attack")
    if marker is not None:
        record_property("attack", marker.args)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table: attack, grade, outcome."""
    rows: dict[tuple[str, str, str], bool] = {}
    for kind in ("passed", "failed", "error"):
        for report in terminalreporter.getreports(kind):
            properties = dict(getattr(report, "user_properties", ()))
            if "attack" in properties:
                key = tuple(properties["attack"])
                rows[key] = rows.get(key, True) and kind == "passed"
    if not rows:
        return
    terminalreporter.section("attacks")
    for (line, grade, outcome), holds in sorted(rows.items()):
        shown = outcome if holds else f"NOT DEFENDED (expected: {outcome})"
        terminalreporter.write_line(f"{line:<58} {grade:<12} {shown}")


class AttackLab(Lab):
    """Two honest nodes and a lying one, and a dealer that lies when a study's name says so."""

    def start_with_liars(self, epsilon: str, more: str = "") -> AttackLab:
        """Start the lying dealer and node-3; the other nodes are honest."""
        self.environment |= {name: {"PYTHONPATH": str(ROOT)} for name in ("dealer", "node-3")}
        deployment = self.deployment
        deployment.command = LIARS
        deployment.start_dealer()
        self._start_node("node-3", epsilon, more)
        deployment.command = Deployment.command
        for name in ("node-1", "node-2"):
            self._start_node(name, epsilon, more)
        self.served.update(deployment.wait_until_ready())
        return self

    def _start_node(self, name: str, epsilon: str, more: str) -> None:
        number = int(name[-1])
        rows = "".join(f"{(7 * i + number) % 50},{(13 * i) % 90}\n" for i in range(12))
        self.table(name).write_text("age,balance\n" + rows)
        self.deployment.start_node(name, self.table(name), epsilon, more=more)

    def attempt(self, tale: Tale | None = None, **changes: Any) -> Report | UmpcError:
        """Run a study with the coordinator in this process: its report, or how it ended."""
        file = load_study_file(self.study_file(**{"seconds_per_step": SECONDS, **changes}))
        identity = load_identity(file.identity, "coordinator")
        study = file.study(identity.name)
        with lying_coordinator(tale, study.name) if tale else nullcontext():
            try:
                return asyncio.run(run_study(study, identity))
            except UmpcError as error:
                return error

    def charged(self, name: str, study: str) -> bool:
        """Whether the node said that it charged this study."""
        return any(
            f"'{study}'" in line and "charged, the share leaves" in line
            for line in self.log(name).splitlines()
        )


def lying_coordinator(tale: Tale, study: str) -> AbstractContextManager[None]:
    """Let the coordinator tell this tale, and go on whatever the nodes sign and prepare."""

    def take_unchecked(honest: Any, side: Any, answers: Any) -> None:
        honest(side, [replace(answer, attempt=side.attempt.id) for answer in answers])

    return lying(
        "coordinator",
        ask=telling(tale, study),
        check_prepared=take_unchecked,
        check_signed=lambda honest, *given: None,
    )


@pytest.fixture(scope="session")
def liars(tmp_path_factory: pytest.TempPathFactory, all_lies: Record) -> Iterator[AttackLab]:
    """Provide node-1 and node-2, which are honest, and liars."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
    lab = AttackLab(tmp_path_factory.mktemp("liars"), 3)
    try:
        yield lab.start_with_liars("1000000000000000")
    finally:
        lab.stop()
