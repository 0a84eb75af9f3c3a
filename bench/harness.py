"""Real processes for a benchmark: a dealer, nodes with parts of a table, studies, and what each process took."""

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

from umpc.cli.deployment import Deployment, Served, ended_with_us
from umpc.cli.table import DemoTable, read_csv
from umpc.coordinator.studyfile import write_study_file
from umpc.study.parts import FieldText

BANK = Path(__file__).resolve().parents[2] / "shared" / "data" / "bank" / "bank.csv"
RECORDS = 4521
BUDGET = "1000000000000"


def bank_table() -> tuple[DemoTable, str]:
    """Age and balance of the bank data where they are, else of a table of the same size and domains."""
    if BANK.exists():
        return read_csv(BANK, ";", ["age", "balance"]), "Bank data"
    return made_up(RECORDS), "A made-up table of the bank data's size"


def made_up(records: int) -> DemoTable:
    """So many records of the bank data's domains: differences of 8 and of 18 bits."""
    rows = [(str(19 + (i * 7919) % 69), str((i * 104_729) % 74_502 - 3313)) for i in range(records)]
    return DemoTable(("age", "balance"), rows)


@dataclass
class Site:
    """Processes that run, and studies over them. fields: of the table; runs: how many studies ran."""

    folder: Path
    served: Mapping[str, Served]
    names: Sequence[str]
    fields: Sequence[FieldText]
    runs: int = field(default=0)

    def study(
        self, addresses: Mapping[str, str] | None = None, prepare: bool = False, **changes
    ) -> dict:
        """One study, a coordinator's process of its own: its report, with `wall`, its seconds from start to end.

        addresses: where to find the servers, if not where they listen. prepare: ahead, before the run.
        """
        self.runs += 1
        at = addresses or {name: served.address for name, served in self.served.items()}
        dealer = ("dealer", at["dealer"]) if "dealer" in at else None
        facts = {"edges": "2n", "epsilon": "1", "dealer": dealer, "statistic": "kendall_tau"}
        facts["columns"] = [each.name for each in self.fields]
        facts["nodes"] = [(name, at[name]) for name in self.names]
        file = write_study_file(
            self.folder, name=f"bench-{self.runs}", fields=self.fields, **(facts | changes)
        )
        if prepare:
            self._command("prepare", file)
        started = time.perf_counter()
        report = self._command("run", file)
        return report | {"wall": time.perf_counter() - started}

    def _command(self, command: str, file: Path) -> dict:
        ended = subprocess.run(
            [*Deployment.command, "study", command, str(file), "--format", "json"],
            capture_output=True,
            text=True,
        )
        if ended.returncode:
            raise SystemExit(
                f"exit code {ended.returncode} of a study: {ended.stderr.strip().splitlines()[-1]}"
            )
        return json.loads(ended.stdout)

    def processor_seconds(self) -> dict[str, float]:
        """Of every process so far."""
        return {name: processor_seconds(each.process.pid) for name, each in self.served.items()}

    def memory(self) -> dict[str, int]:
        """Peak bytes of every process so far."""
        return {name: peak_memory(each.process.pid) for name, each in self.served.items()}


@contextmanager
def site(table: DemoTable, nodes: int, dealer: bool = True) -> Iterator[Site]:
    """A table split over nodes, until the block ends."""
    fields = table.fields()
    with tempfile.TemporaryDirectory(prefix="umpc-bench-") as name:
        deployment = Deployment(Path(name))
        with ended_with_us(deployment.processes):
            if dealer:
                deployment.start_dealer()
            paths = table.split(Path(name), nodes)
            for path in paths:
                deployment.start_node(path.stem, path, BUDGET, delta=str(Fraction(1, 2)))
            served = deployment.wait_until_ready()
            yield Site(Path(name), served, [path.stem for path in paths], fields)


def peak_memory(pid: int) -> int:
    """Bytes of memory that a process had at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0


def processor_seconds(pid: int) -> float:
    """Seconds that a process has taken of all processors."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def cores() -> int:
    return os.cpu_count() or 1
