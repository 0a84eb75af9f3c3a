"""The bank study over real processes: 4,521 records on 2 nodes, Kendall's tau of age and balance.

Over 2n pairs under shares, then without a dealer over so many pairs that 2n of them are of two nodes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from bench.table import show
from umpc.cli.deployment import UMPC, Deployment, ended_with_us
from umpc.cli.table import DemoTable, read_csv
from umpc.coordinator.studyfile import write_study_file
from umpc.mpc.garbled_plan import garbled_program
from umpc.mpc.ring import RINGS
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema
from umpc.ustat.statistics import find_statistic

BANK = Path(__file__).resolve().parents[2] / "shared" / "data" / "bank" / "bank.csv"
RECORDS = 4521
RUNS = 9
GARBLED = {"edges": "4n", "backend": "garbled", "preprocessing": "none"}


def main() -> None:
    table, source = _table()
    with tempfile.TemporaryDirectory() as name:
        reports, memory = _run(Path(name), table, {})
    with tempfile.TemporaryDirectory() as name:
        ahead, _ = _run(Path(name), table, {}, prepare=True)
    middle = {key: statistics.median(r[key] for r in reports) for key in reports[0] if key.startswith("seconds")}
    assert all(report["prepared"] for report in ahead)
    later = {key: statistics.median(r[key] for r in ahead) for key in middle}
    first = reports[0]
    fields = sum(report["bytes_online"] for report in reports) / RUNS
    edges = first["edges"]
    allowed = [_allowed_bytes(report) for report in reports]
    rows = [
        ("online, first masked field to last share", f"{1e3 * middle['seconds_online']:.1f} ms", "under 50 ms"),
        ("offline", f"{1e3 * middle['seconds_offline']:.1f} ms", ""),
        ("in all, certificates and commitments included", f"{1e3 * middle['seconds_total']:.1f} ms", ""),
        ("online, prepared ahead", f"{1e3 * later['seconds_online']:.1f} ms", "under 12 ms"),
        ("offline of a run prepared ahead", f"{1e3 * later['seconds_offline']:.1f} ms", ""),
        ("in all, prepared ahead", f"{1e3 * later['seconds_total']:.1f} ms", ""),
        ("bytes online", f"{fields:,.0f}", f"at most {statistics.mean(allowed):,.0f}"),
        (
            "bytes online, predicted",
            f"{first['bytes_online_predicted']:,} for the first run's {first['bytes_online']:,}",
            "equal",
        ),
        ("bytes offline", f"{first['bytes_offline']:,}", ""),
        ("bytes offline an edge", f"{first['bytes_offline'] / edges:.0f}", ""),
        ("a node's peak memory", f"{memory / 2**20:.0f} MiB", "under 150 MiB"),
    ]
    show(f"{source}: Kendall, 2 nodes, |E| = {edges:,}, medians of {RUNS} runs", ("", "measured", "target"), rows)


def garbled() -> None:
    """The same without a dealer. Every second of 4n pairs is garbled; what an edge takes is beside the formula."""
    table, source = _table()
    with tempfile.TemporaryDirectory() as name:
        reports, memory = _run(Path(name), table, GARBLED)
    middle = {key: statistics.median(r[key] for r in reports) for key in reports[0] if key.startswith("seconds")}
    first = reports[0]
    fields = [field.schema() for field in table.fields()]
    kernel = Kernel(find_statistic("kendall_tau").expressions(table.columns)[0], Schema(fields))
    (plan,) = garbled_program([kernel], RINGS[0], [(0, 1)]).plans.values()
    crossing = (first["bytes_online_predicted"] - 20 * 26 * RECORDS / 2) / (plan.edge_bits / 8)
    rows = [
        ("study, in all", f"{1e3 * middle['seconds_total']:.0f} ms", "under 2,000 ms"),
        ("online: labels, garbled edges, charge", f"{1e3 * middle['seconds_online']:.0f} ms", ""),
        ("offline: joint seed, E, oblivious transfers", f"{1e3 * middle['seconds_offline']:.0f} ms", ""),
        ("bytes online", f"{first['bytes_online']:,}", f"predicted {first['bytes_online_predicted']:,}"),
        ("bytes offline", f"{first['bytes_offline']:,}", f"predicted {first['bytes_offline_predicted']:,}"),
        ("pairs of two nodes, about", f"{crossing:,.0f}", "9,042 for comparison"),
        ("bytes of a garbled edge", f"{plan.edge_bits // 8:,}", "emp at 40 bits: 5,375"),
        ("a node's peak memory", f"{memory / 2**20:.0f} MiB", "under 200 MiB"),
    ]
    title = f"{source}: Kendall without a dealer, 2 nodes, |E| = {first['edges']:,}, medians of {RUNS} runs"
    show(title, ("", "measured", "target"), rows)


def _table() -> tuple[DemoTable, str]:
    """The bank data where they are, else a table of the same size and domains."""
    if BANK.exists():
        return read_csv(BANK, ";", ["age", "balance"]), "Bank data"
    rows = [(str(19 + (i * 7919) % 69), str((i * 104_729) % 74_502 - 3313)) for i in range(RECORDS)]
    return DemoTable(("age", "balance"), rows), "A made-up table of the bank data's size"


def _run(folder: Path, table: DemoTable, changes: dict, *, prepare: bool = False) -> tuple[list[dict], int]:
    """changes: what of the study is different. prepare: ahead, each study before its run."""
    deployment = Deployment(folder)
    with ended_with_us(deployment.processes):
        if not changes:
            deployment.start_dealer()
        paths = table.split(folder, 2)
        for path in paths:
            deployment.start_node(path.stem, path, "1000")
        served = deployment.wait_until_ready()
        reports = [_study(folder, table, served, number, changes, prepare) for number in range(RUNS)]
        memory = max(_peak_memory(served[path.stem].process.pid) for path in paths)
    return reports, memory


def _study(folder: Path, table: DemoTable, served: dict, number: int, changes: dict, prepare: bool) -> dict:
    facts = {"edges": "2n", "dealer": ("dealer", served["dealer"].address) if "dealer" in served else None}
    file = write_study_file(
        folder,
        name=f"bench-{number}",
        statistic="kendall_tau",
        columns=table.columns,
        fields=table.fields(),
        epsilon="1",
        nodes=[(name, served[name].address) for name in ("node-1", "node-2")],
        **(facts | changes),
    )
    for step in ("prepare", "run") if prepare else ("run",):
        command = [*UMPC, "study", step, str(file), "--format", "json"]
        ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(ended.stdout)


def _allowed_bytes(report: dict) -> float:
    """8 bits an edge, the masked fields (8 and 18 bits a record), and 10 % framing."""
    return 1.1 * (report["edges"] * 8 + report["records"] * (8 + 18)) / 8


def _peak_memory(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0
