"""A laboratory of real processes on loopback: dealer, nodes, coordinator, and failures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support import tables
from tests.support.ports import reserved_address
from tests.system.forked import Forked
from umpc.api.study import run_now
from umpc.coordinator.studyfile import load_study_file
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.deployment.processes import UMPC, Deployment, Served, stop
from umpc.errors import PeerLost, UmpcError
from umpc.node.budget.ledger import Ledger
from umpc.node.budget.ledger_place import Place
from umpc.node.budget.ledgerfile import read_beside
from umpc.protocols.registry import PROTOCOLS, USUAL
from umpc.study.document import Study
from umpc.study.parts import FieldText
from umpc.study.report import Report
from umpc.study.settings import keys_of
from umpc.transport.identity import Identity, load_identity
from umpc.ustat.statistics import LIBRARY

Led = TypeVar("Led")
FIELDS = (FieldText("age", "0", "127", whole=True), FieldText("balance", "-100", "1000", "0.5"))
TABLE = "age,balance\n" + "".join(f"{(7 * i) % 50},{(13 * i) % 90 - 20.5}\n" for i in range(60))
SHUFFLERS = ("shuffler-1", "shuffler-2")
LOUD = re.compile(r"WARNING|ERROR|Traceback|[EWF]\d{4} \d\d:")
"""A line of a log by this program, by Python, or by gRPC, that warns of something."""
collect_ignore = [] if tables.HEART.exists() else ["test_heart_data.py"]


@pytest.fixture(scope="session", params=tables.AT_HAND, ids=lambda table: table.name)
def bank(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tables.Table:
    """Provide a made table like the bank data; where they are at hand, also the data themselves."""
    return request.param.place(tmp_path_factory.mktemp("table"))


def _used(entries: Mapping) -> list[FieldText]:
    """Return the statistic's fields, and the label of two classes; of a kernel's file all."""
    columns = entries["columns"]
    if columns is None:
        return list(entries["fields"])
    found = LIBRARY.get(entries["statistic"])
    has_label = found is not None and found.sampling == "two_sample"
    fields = entries["fields"]
    return [each for each in fields if each.name in columns or (each.public and has_label)]


def _participant(pair: tuple[str, str]) -> dict[str, str]:
    return dict(zip(("name", "address"), pair, strict=True))


@dataclass(frozen=True)
class Outcome:
    """The end of the coordinator: exit code, output, errors, and duration."""

    code: int
    output: str
    error: str
    seconds: float

    @property
    def report(self) -> dict:
        return json.loads(self.output)

    @property
    def last_line(self) -> str:
        """The failure's line for people, before the JSON object that --format json adds."""
        lines = self.error.strip().splitlines()
        return lines[-2] if lines[-1].startswith('{"error"') else lines[-1]


SURVIVE_SECONDS = 100
"""A failure ends a study within so many seconds, also on a busy machine, where limits grow
(docs/network.md). A step that waits in vain takes 600."""


def costs_what_was_predicted(report: Report, rounds: int) -> None:
    """Check a report's rounds, and its bytes by node and by step."""
    assert report.bytes_online_by_node == report.bytes_online_by_node_predicted
    assert report.bytes_online_by_step == report.bytes_online_by_step_predicted
    assert report.bytes_offline == report.bytes_offline_predicted
    assert report.rounds == report.rounds_predicted == rounds


def names_who_was_lost(outcome: Outcome, node: str) -> None:
    """Check that a study ended in time with the name of a lost node, without result or charge."""
    assert outcome.code == PeerLost.exit_code, outcome.error
    assert node in outcome.last_line and "no epsilon was charged" in outcome.last_line
    assert outcome.output == "" and outcome.seconds < SURVIVE_SECONDS


def command(*arguments: str, check: bool = False) -> subprocess.CompletedProcess:
    """Run `umpc` with these arguments to its end."""
    with Forked(
        [*UMPC, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            ended = subprocess.CompletedProcess(
                process.args, None, *process.communicate(timeout=60)
            )
        finally:
            stop([process])
    ended.returncode = process.returncode
    if check:
        ended.check_returncode()
    return ended


class Lab:
    """Some running nodes and a dealer, and studies over them."""

    def __init__(
        self, folder: Path, nodes: int, environment: Mapping[str, Mapping[str, str]] | None = None
    ):
        self.folder = folder
        self.environment: dict[str, Mapping[str, str]] = {"coordinator": {}, **(environment or {})}
        self.deployment = Deployment(folder, self.environment, Forked, reserved_address)
        self.names = [f"node-{number + 1}" for number in range(nodes)]
        self.served: dict[str, Served] = {}

    def start(
        self, epsilon: str = "10", more: str = "", *, dealer: bool = True, shufflers: bool = False
    ) -> Lab:
        """Start all processes and wait until they serve.

        Args: more: further sections of every node's configuration.
        """
        if dealer:
            self.deployment.start_dealer()
        for name in SHUFFLERS if shufflers else ():
            self.deployment.start_shuffler(name)
        for name in self.names:
            self.table(name).write_text(TABLE)
            self.deployment.start_node(name, self.table(name), epsilon, more=more)
        self.served.update(self.deployment.wait_until_ready())
        return self

    def arm(self, name: str, failpoint: str) -> None:
        """Let the next process of this name fail, at “point:kill” or “point:stop”."""
        self.environment[name] = {"UMPC_FAILPOINT": failpoint}

    def disarm(self) -> None:
        """Start all further processes without a failpoint."""
        for name in self.environment:
            self.environment[name] = {}

    def table(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    def study_file(self, **changes) -> Path:
        """Write study.toml over all processes.

        The changes replace entries; None leaves one out. Participants are given as (name, address)
        and fields as FieldText. A protocol gets those usual entries that it has, and a statistic
        gets those fields that it takes: a study may have no others.
        """
        address = {name: served.address for name, served in self.served.items()}
        settings = {
            "edges": "2n",
            "dealer": ("dealer", address.get("dealer", "127.0.0.1:1")),
        }
        if not changes.keys() & {"protocol", "backend", "preprocessing"}:
            settings["backend"] = "shared"  # otherwise the cheaper of pairs and the grid
        known = keys_of(PROTOCOLS[changes.get("protocol") or USUAL].settings)
        values = {
            "name": "lab",
            "identity": "coordinator",
            "statistic": "kendall_tau",
            "columns": ["age", "balance"],
            "fields": FIELDS,
            "epsilon": "1",
            "nodes": [(name, address[name]) for name in self.names],
            **{key: value for key, value in settings.items() if key in known},
            **changes,
        }
        values["fields"] = [field_entry(field) for field in _used(values)]
        for key in ("nodes", "shufflers"):
            values[key] = [_participant(each) for each in values.get(key) or ()]
        if values.get("dealer"):
            values["dealer"] = _participant(values["dealer"])
        return write_study_file(self.folder, values)

    def coordinate(self, file: Path, command: str = "run") -> subprocess.Popen:
        """Start the coordinator's process, which awaits no lost site. The command: run, prepare."""
        environment = {**os.environ, **self.environment["coordinator"]}
        patience = ["--await-site", "0"] if command == "run" else []
        return Forked(
            [*UMPC, "study", command, str(file), "--format", "json", *patience],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, *, command: str = "run", **changes) -> Outcome:
        """Run a study to its end, which must come within two minutes."""
        started = time.monotonic()
        process = self.coordinate(self.study_file(**changes), command)
        try:
            output, error = process.communicate(timeout=120)
        finally:
            stop([process])
        return Outcome(process.returncode, output, error, time.monotonic() - started)

    def lead(self, job: Callable[[Study, Identity], Coroutine[Any, Any, Led]], **changes) -> Led:
        """Lead a study with the coordinator in this process: a start takes longer than a study."""
        entries = load_study_file(self.study_file(**changes))
        identity = load_identity(entries.identity, "coordinator")
        try:
            return run_now(job(entries.study(identity.name), identity))
        except UmpcError as error:
            error.add_note(f"for the coordinator's own log: {error.detail}")
            raise

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def loud_lines(self) -> list[str]:
        """Return the lines of all logs that warn; a study that succeeded leaves none."""
        return [
            f"{file.stem}: {line}"
            for file in sorted(self.folder.glob("*.log"))
            for line in file.read_text().splitlines()
            if LOUD.search(line)
        ]

    def wait_for_log(self, name: str, text: str, seconds: float = SURVIVE_SECONDS) -> str:
        """Return the process's log once it contains the text; fail after that many seconds."""
        deadline = time.monotonic() + seconds
        while text not in self.log(name):
            assert time.monotonic() < deadline, (
                f"{name} did not say {text!r} in {seconds} s: {self.log(name)}"
            )
            time.sleep(0.05)
        return self.log(name)

    def wait_until_stopped(self, name: str) -> None:
        """Wait until a process stands still at its failpoint; fail if it ends instead."""
        process = self.served[name].process
        seen = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert seen is not None and seen.si_code == os.CLD_STOPPED, f"{name} ended: {seen}"

    def stop(self) -> None:
        stop(self.deployment.processes)

    def spent(self, name: str) -> Fraction:
        """Return what the node's ledger counts as spent, after the node has ended."""
        ledger = Ledger(self.folder / f"{name}-ledger.sqlite", name, Fraction(10))
        try:
            return ledger.balance().spent
        finally:
            ledger.close()

    def reserved_by_the_living(self, name: str) -> int:
        """Return the number of attempts that a running node holds, and reserves for, on disk."""
        place = Place.of(self.folder / f"{name}-ledger.sqlite")
        return len(read_beside(place).account.open)


@contextmanager
def running(
    folders: pytest.TempPathFactory, nodes: int, *budget_and_rules: str, **how: Any
) -> Iterator[Lab]:
    """A laboratory that runs for a while. The other arguments are those of `Lab.start`."""
    lab = Lab(folders.mktemp("lab"), nodes)
    try:
        yield lab.start(*budget_and_rules, **how)
    finally:
        lab.stop()


@pytest.fixture
def lab(tmp_path) -> Iterator:
    """Provide lab(nodes, environment), whose laboratories are stopped after the test."""
    made: list[Lab] = []

    def make(nodes: int = 2, environment: Mapping[str, Mapping[str, str]] | None = None) -> Lab:
        made.append(Lab(tmp_path, nodes, environment))
        return made[-1]

    yield make
    for each in made:
        each.stop()
