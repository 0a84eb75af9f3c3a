"""Real processes on loopback, each with its own certificate: those of a demo or of a notebook.

All of them end with the process that started them.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from umpc.errors import PeerUnavailable, UmpcError
from umpc.protocols.registry import protocol_of

if TYPE_CHECKING:
    from umpc.study.document import Study


class Process(Protocol):
    """The part of `subprocess.Popen` that is used here; a forked process has it too."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    @property
    def returncode(self) -> int | Any: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


Start = Callable[..., Process]
"""Start a process, with the arguments of `subprocess.Popen`."""
Environment = Mapping[str, Mapping[str, str]]

UMPC = (sys.executable, "-m", "umpc.cli.main")
MISSING = 'missing = [""]'
"""The line of [data] for tables that were written here: only an empty text is missing."""
START_SECONDS = 600
"""A process that ends is noticed at once. One that lives and says nothing may be slow only."""
STARTING = 8
"""Number of processes that start at the same time. With more, the first ones would be late."""
STOP_SECONDS = 5


@dataclass(frozen=True)
class Served:
    """A process that waits for calls. door: the address where people call; empty without one."""

    name: str
    address: str
    process: Process
    log: Path
    door: str = ""


@contextmanager
def ended_with_us(processes: list[Process]) -> Iterator[None]:
    """End every process in the list when the block ends, also after an error or SIGTERM.

    SIGTERM interrupts the block as Ctrl-C does. Processes may be added to the list in the block.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        stop(processes)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def stop(processes: Sequence[Process]) -> None:
    """End the processes with SIGTERM, and kill those that do not end within STOP_SECONDS."""
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
    deadline = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


class Deployment:
    """Certificates, a dealer, shufflers and nodes in subfolders of one folder.

    Args:
        environment: process name → environment variables to add; tests use it.
        popen: starts a process.
        address: returns the address at which the next process listens; tests reserve a port.
    """

    command = UMPC

    def __init__(
        self,
        folder: Path,
        environment: Environment | None = None,
        popen: Start = subprocess.Popen,
        address: Callable[[], str] = lambda: "127.0.0.1:0",
    ):
        from umpc.transport.authority import Authority

        self.folder = folder
        self.popen = popen
        self.address = address
        self.processes: list[Process] = []
        self._environment = environment or {}
        self.authority = Authority.create(folder / "authority")
        self.authority.issue("coordinator", "coordinator", folder / "coordinator")
        self._waiting: list[tuple[str, Process, Path, Sequence[str], bool]] = []
        self._ready: dict[str, Served] = {}
        self.plugins: list[str] = []
        """The protocols of other packages that the nodes may run."""
        self.hub: str | None = None
        """`hub:NAME@HOST:PORT` of the hub that all processes dial, or None if each listens."""

    def start_dealer(self, *, people: bool = False) -> None:
        """Start the dealer. Args: people: it also deals for studies of people."""
        self._start_helper("dealer", "dealer", people=people)

    def start_shuffler(self, name: str) -> None:
        self._start_helper("shuffler", name)

    def _start_helper(self, role: str, name: str, *, people: bool = False) -> None:
        self.authority.issue(name, role, self.folder / name)
        place = ["--hub", self.hub] if self.hub else ["--listen", self.address()]
        if people:
            place += ["--people", str(self.folder / "dealt"), "--people-listen", self.address()]
        identity = str(self.folder / name)
        self.start(name, [role, "start", "--identity", identity, *place], has_door=people)

    def start_hub(self, listen: str = "", grace: int = 30) -> Served:
        """Start a hub and wait for it. All processes that are started later dial it."""
        folder = self.folder / "hub"
        if not folder.exists():
            self.authority.issue("hub", "hub", folder)
        place = ["--identity", str(folder), "--listen", listen or self.address()]
        others, self._waiting = self._waiting, []
        self.start("hub", ["hub", "start", *place, "--grace", str(grace)])
        self._await_started()
        self._waiting = others
        served = self._ready.pop("hub")
        self.hub = f"hub:hub@{served.address}"
        return served

    def start_node(
        self,
        name: str,
        table: Path,
        epsilon: str,
        extra: str = "",
        more: str = "",
        delta: str | None = None,
    ) -> None:
        """Start a node over a CSV file.

        Args:
            epsilon, delta: the total budget; no delta means 0.
            extra: more lines of the section [data] of its TOML file.
            more: more sections of its TOML file.
        """
        data = f'path = {json.dumps(str(table))}\ndelimiter = ","\n{extra}'
        config = self._configure(self.folder, name, data, epsilon, more, delta)
        self.start(name, ["node", "start", "--config", str(config)])

    def start_aggregator(
        self, name: str, epsilon: str, more: str = "", delta: str | None = None
    ) -> None:
        """Start a node that holds shares of what people send. Args: as of `start_node`."""
        data = f"people = {json.dumps(f'{name}-people')}\n[people]\nlisten = "
        data += json.dumps(self.address())
        config = self._configure(self.folder, name, data, epsilon, more, delta)
        self.start(name, ["node", "start", "--config", str(config)], has_door=True)

    def start_many(
        self,
        name: str,
        tables: Mapping[str, Path],
        epsilon: str,
        more: str = "",
        delta: str | None = None,
    ) -> None:
        """Start one process that runs many nodes, each over a CSV file of its own.

        Args: name: the process's name, and that of its folder. tables: a file for each node's name.
            The others as of `start_node`.
        """
        folder = self.folder / name
        folder.mkdir()
        for node, table in tables.items():
            data = f'path = {json.dumps(str(table))}\ndelimiter = ","\n'
            self._configure(folder, node, data, epsilon, more, delta)
        self.start(name, ["node", "start", "--many", str(folder)], list(tables))

    def _configure(
        self,
        folder: Path,
        name: str,
        data: str,
        epsilon: str,
        more: str,
        delta: str | None,
    ) -> Path:
        """Write a node's certificate and TOML file. Args: data: the lines of its section [data].

        Returns: the path of the TOML file.
        """
        self.authority.issue(name, "node", folder / name)
        config = folder / f"{name}.toml"
        budget = f'delta = "{delta}"\n' if delta else ""
        if self.hub:
            hub_name, _, address = self.hub.removeprefix("hub:").partition("@")
            place = f"hub = {{name = {json.dumps(hub_name)}, address = {json.dumps(address)}}}\n"
        else:
            place = f"listen = {json.dumps(self.address())}\n"
        if self.plugins:
            place += f"plugins = {json.dumps(self.plugins)}\n"
        config.write_text(
            f"name = {json.dumps(name)}\nidentity = {json.dumps(name)}\n{place}\n"
            f'[data]\n{data}\n[budget]\nepsilon = "{epsilon}"\n{budget}{more}',
            encoding="utf-8",
        )
        return config

    def start(
        self,
        name: str,
        arguments: list[str],
        serves: Sequence[str] = (),
        *,
        has_door: bool = False,
    ) -> None:
        """Start a process. Args: serves: the names of its servers, if not its own.

        has_door: whether people call it, too.
        """
        if len(self._waiting) >= STARTING:
            self._await_started()
        log = self.folder / f"{name}.log"
        with log.open("ab") as file:
            process = self.popen(
                [*self.command, *arguments, "--while-stdin-open"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **self._environment.get(name, {})},
            )
        self.processes.append(process)
        self._waiting.append((name, process, log, serves or (name,), has_door))

    def wait_until_ready(self) -> dict[str, Served]:
        """Wait for all processes started since the last call, and return them by name.

        Raises: PeerUnavailable with the last line that a process wrote before it ended.
        """
        self._await_started()
        served, self._ready = self._ready, {}
        return served

    def _await_started(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        for name, process, log, serves, has_door in self._waiting:
            lines = [_first_line(process, deadline)]
            door = ""
            if process.stdout is not None and lines[0]:
                lines += [process.stdout.readline().decode() for _ in serves[1:]]
                if has_door:
                    *_, door = process.stdout.readline().decode().split()
            for line in lines:
                if not line.startswith("ready: "):
                    raise _why_not_ready(name, log)
                _, _, own, _, address = line.split()
                self._ready[own] = Served(own, address, process, log, door)
        self._waiting = []


def rules_for(study: Study) -> str:
    """The section [policy] of a site that allows this study, for sites that a command makes."""
    rules = []
    if protocol_of(study).discloses(study):
        rules.append("trusted_curator = true")
    labels = [field.name for field in study.fields if field.public]
    if labels:
        rules.append(f"public_labels = {json.dumps(labels)}")
    if study.condition is not None:
        rules.append(f"public_filters = {json.dumps(list(study.condition.fields))}")
    if study.people is not None:
        rules.append(f"person = {json.dumps(study.people.column)}")
    if study.max_colluding < len(study.nodes) - 1:
        rules.append(f"min_colluding = {study.max_colluding}")
    return "\n".join(["", "[policy]", *rules, ""]) if rules else ""


def _first_line(process: Process, deadline: float) -> str:
    """The first line of a process's output; empty if none comes before the deadline."""
    stdout = process.stdout
    if stdout is None:
        return ""
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        if not selector.select(max(0.0, deadline - time.monotonic())):
            return ""
    return stdout.readline().decode()


def _why_not_ready(name: str, log: Path) -> UmpcError:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    said = lines[-1].removeprefix("error: ") if lines else "it said nothing"
    return PeerUnavailable(f"{name} did not start: {said}", culprit=name)
