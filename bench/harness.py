"""Real processes for a benchmark: a dealer, nodes over parts of a table, and studies.

The figures of a process are its processor seconds and its peak memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from bench.jobs import JobFailed
from umpc.cli.table import DemoTable, read_csv
from umpc.coordinator.studyfile_text import field_entry, write_study_file
from umpc.deployment.processes import Deployment, Served, Start, ended_with_us
from umpc.study.parts import FieldText

BANK = Path(__file__).resolve().parents[2] / "shared" / "data" / "bank" / "bank.csv"
RECORDS = 4521
BUDGET = "1000000000000"
RULES = "\n[policy]\nmin_colluding = 0\n"
"""Studies of the benchmarks may have the least noise."""


def bank_table() -> tuple[DemoTable, str]:
    """Age and balance of the bank data, and the name of the source.

    Without the bank data the table is made up, with the same size and the same domains.
    """
    if BANK.exists():
        return read_csv(BANK, ";", ["age", "balance"]), "Bank data"
    return made_up(RECORDS), "A made-up table of the bank data's size"


def made_up(records: int) -> DemoTable:
    """A table with the bank data's domains: differences of 8 and of 18 bits."""
    rows = [(str(19 + (i * 7919) % 69), str((i * 104_729) % 74_502 - 3313)) for i in range(records)]
    return DemoTable(("age", "balance"), rows)


@dataclass
class Site:
    """Processes that run, and studies over them.

    fields: the table's fields. runs: the number of studies so far.
    """

    folder: Path
    served: Mapping[str, Served]
    names: Sequence[str]
    fields: Sequence[FieldText]
    runs: int = field(default=0)

    def study(
        self,
        addresses: Mapping[str, str] | None = None,
        prepare: bool = False,
        **changes: Any,
    ) -> dict[str, Any]:
        """Run one study with a coordinator process of its own, and return its report.

        The report has one more entry, `wall`: the seconds from the process's start to its end.

        Args:
            addresses: each server's address, if it is not where the server listens.
            prepare: run `umpc study prepare` first, outside the measured seconds.
            changes: settings of the study that differ from Kendall's tau over 2n pairs at ε = 1.

        Raises: JobFailed with the coordinator's own last line.
        """
        file = self.study_file(addresses, **changes)
        if prepare:
            self._command("prepare", file)
        started = time.perf_counter()
        report = self._command("run", file)
        return report | {"wall": time.perf_counter() - started}

    def study_file(self, addresses: Mapping[str, str] | None = None, **changes: Any) -> Path:
        """Write the file of a study with a new name. Args: as of `study`."""
        self.runs += 1
        at = addresses or {name: served.address for name, served in self.served.items()}
        dealer = {"name": "dealer", "address": at["dealer"]} if "dealer" in at else None
        entries: dict[str, Any] = {
            "name": f"bench-{self.runs}",
            "statistic": "kendall_tau",
            "columns": [each.name for each in self.fields],
            "fields": [field_entry(each) for each in self.fields],
            "edges": "2n",
            "epsilon": "1",
            "identity": "coordinator",
            "dealer": dealer,
            "nodes": [{"name": name, "address": at[name]} for name in self.names],
        }
        return write_study_file(self.folder, entries | changes)

    def _command(self, command: str, file: Path) -> dict[str, Any]:
        ended = subprocess.run(
            [*Deployment.command, "study", command, str(file), "--format", "json"],
            capture_output=True,
            text=True,
        )
        if ended.returncode:
            said = ended.stderr.strip().splitlines() or ["it said nothing"]
            reason = said[-1].removeprefix("error: ")
            raise JobFailed(f"`umpc study {command}`, exit code {ended.returncode}: {reason}")
        return json.loads(ended.stdout)

    def processor_seconds(self) -> dict[str, float]:
        """Processor seconds of every server so far, by name."""
        return {name: processor_seconds(each.process.pid) for name, each in self.served.items()}

    def memory(self) -> dict[str, int]:
        """Peak memory of every server so far, in bytes, by name."""
        return {name: peak_memory(each.process.pid) for name, each in self.served.items()}


@contextmanager
def site(
    table: DemoTable,
    nodes: int,
    dealer: bool = True,
    hub: bool = False,
    popen: Start = subprocess.Popen,
    command: Sequence[str] | None = None,
) -> Iterator[Site]:
    """Run nodes over equal parts of a table until the block ends.

    Args: hub: they dial a hub. command: starts their processes, in place of `umpc`.
    """
    fields = table.fields()
    with tempfile.TemporaryDirectory(prefix="umpc-bench-") as name:
        deployment = Deployment(Path(name), popen=popen)
        deployment.command = tuple(command or Deployment.command)
        with ended_with_us(deployment.processes):
            relay = {"hub": deployment.start_hub()} if hub else {}
            paths = table.split(Path(name), nodes)
            if dealer:
                deployment.start_dealer()
            for path in paths:
                half = str(Fraction(1, 2))
                deployment.start_node(path.stem, path, BUDGET, more=RULES, delta=half)
            served = relay | deployment.wait_until_ready()
            yield Site(Path(name), served, [path.stem for path in paths], fields)


def peak_memory(pid: int) -> int:
    """A process's largest memory so far, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def processor_seconds(pid: int) -> float:
    """Processor seconds that a process has used so far, over all its threads."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    user, system = after_name.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def cores() -> int:
    return os.cpu_count() or 1
