"""All pairs by the grid, beside sampled pairs, in one run over real processes.

| job | what it measures |
|---|---|
| `bank` | the bank data at full resolution and in 1,024 bins of balance, and 2n pairs of it |
| `million` | 1,000,000 records in 2^17 cells, and 2n pairs of them; Knight's sum |
| `more` | 10,000,000 records in the same cells, beside 1,000,000 in the same minutes |
| `wide` | 1,000,000 records with two columns of 52 bits, at 17 levels |

`python -m bench.grid [JOB …]` runs some of the jobs. Each job prints its table and its figures when
it ends, so a job that fails loses its own figures only.

*In all* is the time of a study from its first connection to its report, without the start of its
processes. *After reading* is the part of it after all nodes have read their tables: dealing, masked
tables, noise and release. The servers of a site run on from study to study. Each node adds its own
part of the noise. One row shows what a committee's noise takes, which is no step of the grid.
"""

from __future__ import annotations

import sys
from statistics import median
from typing import Any

import numpy as np

from bench.harness import BANK, Site, bank_table, site
from bench.jobs import Job, figures_of
from bench.large import NARROW, WIDE, WIDE_FIELDS, LargeTable, kendall_sum
from bench.table import Figure, show
from umpc.coordinator.studyfile_text import field_entry
from umpc.study.parts import FieldText

NODES = 4
RUNS = 5
FEW_RUNS = 3
"""Runs over tables that take seconds to read."""
MANY, MORE = 1_000_000, 10_000_000
BINS = {"balance": 1024}
LEVELS = 17
EXACT_SUM = 516_843
"""The bank data's Σ sign(Δage)·sign(Δbalance) over all pairs."""
FIELDS = (
    FieldText("age", "0", "127", whole=True),
    FieldText("balance", "-10000", "110000", whole=True),
)
"""Bounds that are agreed on without a look at the data: 128 × 120,001 values."""
GRID = {
    "backend": "grid",
    "edges": "all",
    "fields": [field_entry(each) for each in FIELDS],
    "noise": "distributed",
}
COMMITTEE = {"noise": "in_mpc"}
PAIRS = {"backend": "shared", "edges": "2n", "fields": GRID["fields"]}
SILENT = {"epsilon": "1000000000"}
Row = tuple[str, ...]
COLUMNS = ("", "in all", "online", "offline", "processors", "bytes online of a node", "offline")


def main(names: list[str] | None = None) -> list[Figure]:
    """Run all jobs, or those of these names, and return their figures."""
    jobs: dict[str, Job] = {"bank": bank, "million": million, "more": more, "wide": wide}
    found = []
    for name in names or jobs:
        figures = figures_of(f"the grid, job {name}", jobs[name])
        for each in figures:
            found_out = each.failure or f"{each.measured} ({each.target})"
            print(f"{each.verdict}: {each.work}: {found_out}", flush=True)
        found += figures
    return found


def bank() -> list[Figure]:
    table, source = bank_table()
    with site(table, NODES) as here:
        exact = here.study(**GRID, **SILENT)
        pairs, _ = _runs(here, "2n pairs", PAIRS)
        binned, in_bins = _runs(here, "all pairs, 1,024 bins", {**GRID, "bins": BINS})
        full, whole = _runs(here, "all pairs, full resolution", GRID)
        memory = max(size for name, size in here.memory().items() if name != "dealer")
        drawn, _ = _runs(here, "the same, a committee's noise", {**GRID, "bins": BINS, **COMMITTEE})
    title = f"{source}: Kendall, {NODES} nodes and a dealer"
    show(title, COLUMNS, [pairs, binned, drawn, full])
    sent = max(in_bins["bytes_online_by_node"]) // 2
    total = round(exact["estimate"] * exact["edges"])
    found = [
        _seconds("bank, full resolution, in all", whole["seconds_total"], 2),
        _memory("bank, full resolution", memory, 400),
        _seconds("bank, 1,024 bins, in all", in_bins["seconds_total"], 0.3),
        Figure("bank, 1,024 bins: sent by a node", f"{sent:,}", "≤ 2,200,000", sent <= 2_200_000),
    ]
    if BANK.exists():
        name = "bank by the grid: sum without noise"
        found.append(Figure(name, f"{total:,}", f"{EXACT_SUM:,}", total == EXACT_SUM))
    return found


def million() -> list[Figure]:
    table = LargeTable(MANY, FIELDS, NARROW)
    with site(table, NODES) as here:
        exact = here.study(**GRID, **SILENT, bins=BINS)
        all_pairs, middle = _runs(here, "all pairs", {**GRID, "bins": BINS}, FEW_RUNS)
        pairs, _ = _runs(here, "2n pairs", PAIRS, 1)
    title = f"{MANY:,} made-up records, 2^17 cells, {NODES} nodes and a dealer"
    show(title, COLUMNS, [pairs, all_pairs])
    total = round(exact["estimate"] * exact["edges"])
    knight = _knight(table)
    name = f"{MANY:,} records: sum without noise, and Knight's"
    return [
        _seconds(f"{MANY:,} records, all pairs, after reading", _after_reading(middle), 1),
        Figure(name, f"{total:,}", f"{knight:,}", total == knight),
    ]


def _knight(table: LargeTable) -> int:
    """Knight's sum over the pooled records, in the bins of the study."""
    age, balance = table.columns()
    lower = int(FIELDS[1].lower)
    span = int(FIELDS[1].upper) - lower + 1
    bins = BINS["balance"]
    cuts = [lower + number * span // bins for number in range(1, bins)]
    return kendall_sum(age, np.searchsorted(cuts, balance, side="right"))


def more() -> list[Figure]:
    """Ten times as many records. Their reading takes longer, and nothing after it."""
    rows = []
    after = []
    for records in (MANY, MORE):
        with site(LargeTable(records, FIELDS, NARROW), NODES) as here:
            row, middle = _runs(here, f"{records:,}", {**GRID, "bins": BINS}, FEW_RUNS)
        rows.append(row)
        after.append(_after_reading(middle))
    title = f"All pairs of made-up records, 2^17 cells, {NODES} nodes and a dealer"
    show(title, COLUMNS, rows)
    ratio = after[1] / after[0]
    shown = f"× {ratio:.2f} ({after[1]:.2f} s)"
    name = f"{MORE:,} records, after reading, to {MANY:,}"
    return [Figure(name, shown, "× 1.1 at most", ratio <= 1.1)]


def wide() -> list[Figure]:
    fields = [field_entry(each) for each in WIDE_FIELDS]
    changes = {**GRID, "columns": ["x", "y"], "fields": fields, "levels": LEVELS}
    with site(LargeTable(MANY, WIDE_FIELDS, WIDE), NODES) as here:
        row, middle = _runs(here, f"{LEVELS} levels, all pairs", changes, FEW_RUNS)
        memory = max(here.memory().values())
    title = f"{MANY:,} made-up records of two columns of 52 bits, {NODES} nodes and a dealer"
    show(title, COLUMNS, [row])
    name = f"{LEVELS} levels of 52 bits, {MANY:,} records"
    return [
        _seconds(f"{name}, in all", middle["seconds_total"], 5),
        _memory(name, memory, 600),
    ]


def _runs(here: Site, label: str, changes: dict[str, Any], runs: int = RUNS) -> tuple[Row, Any]:
    """A row of medians of some studies, and the medians with the bytes of the last one."""
    before = sum(here.processor_seconds().values())
    reports = [here.study(**changes) for _ in range(runs)]
    processors = (sum(here.processor_seconds().values()) - before) / runs
    keys = ("seconds_total", "seconds_online", "seconds_offline")
    middle = {**reports[-1], **{key: median(each[key] for each in reports) for key in keys}}
    if middle["bytes_online"] != middle["bytes_online_predicted"]:
        raise AssertionError("the bytes online are not those that were predicted")
    bytes_of_node = f"{max(middle['bytes_online_by_node']):,}"
    seconds = (f"{number:.2f} s" for number in (*(middle[key] for key in keys), processors))
    return (label, *seconds, bytes_of_node, f"{middle['bytes_offline']:,}"), middle


def _after_reading(report: dict[str, Any]) -> float:
    """Seconds of the steps prepare, evaluate and release."""
    return report["seconds_offline"] + report["seconds_online"]


def _seconds(name: str, seconds: float, most: float) -> Figure:
    return Figure(name, f"{seconds:.2f} s", f"at most {most:g} s", seconds <= most)


def _memory(name: str, size: int, most: int) -> Figure:
    shown = f"{size / 2**20:.0f} MiB"
    return Figure(f"{name}: a node's memory", shown, f"at most {most} MiB", size <= most << 20)


if __name__ == "__main__":
    main(sys.argv[1:])
