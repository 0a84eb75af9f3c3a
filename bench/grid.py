"""All pairs by the grid, beside sampled pairs, in one run over real processes.

| job | what it measures |
|---|---|
| `bank` | the bank data at full resolution and in 1,024 bins of balance, and 2n pairs of it |
| `million` | 1,000,000 records in 2^17 cells, and 2n pairs of them; Knight's sum |
| `more` | 10,000,000 records in the same cells, beside 1,000,000 in the same minutes |
| `wide` | 1,000,000 records with two columns of 52 bits, at 17 levels |
| `verified` | both grades: the bank data and 1,000,000 records in 2^17 cells, and these in 2^20 |

`python -m bench.grid [JOB …]` runs some of the jobs.

*In all* is the time of a study from its first connection to its report, without the start of its
processes. The servers of a site run on from study to study. Each node adds its own
part of the noise. One row shows what a committee's noise takes, which is no step of the grid.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from bench.harness import Site, bank_table, site
from bench.large import NARROW, WIDE, WIDE_FIELDS, LargeTable, kendall_sum
from bench.table import show
from umpc.coordinator.studyfile_text import field_entry
from umpc.study.parts import FieldText

NODES = 4
RUNS = 5
FEW_RUNS = 3
"""Runs over tables that take seconds to read."""
MANY, MORE = 1_000_000, 10_000_000
BINS = {"balance": 1024}
LEVELS = 17
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
LIARS = {"adversary": "lying_nodes"}
VERIFIED = (
    "bank data in 2^17 cells",
    f"{MANY:,} records in 2^17 cells",
    f"{MANY:,} records in 2^20 cells",
)
PAIRS = {"backend": "shared", "edges": "2n", "fields": GRID["fields"]}
SILENT = {"epsilon": "1000000000"}
Row = tuple[str, ...]
COLUMNS = ("", "in all", "online", "offline", "processors", "bytes online of a node", "offline")


def main(names: Sequence[str] = ()) -> None:
    """Run all jobs, or those of these names."""
    jobs = {"bank": bank, "million": million, "more": more, "wide": wide, "verified": verified}
    for name in names or jobs:
        jobs[name]()


def bank() -> None:
    table, source = bank_table()
    with site(table, NODES) as here:
        exact = here.study(**GRID, **SILENT)
        rows = [
            _runs(here, "2n pairs", PAIRS)[0],
            _runs(here, "all pairs, 1,024 bins", {**GRID, "bins": BINS})[0],
            _runs(here, "the same, a committee's noise", {**GRID, "bins": BINS, **COMMITTEE})[0],
            _runs(here, "all pairs, full resolution", GRID)[0],
        ]
        memory = max(size for name, size in here.memory().items() if name != "dealer")
    show(f"{source}: Kendall, {NODES} nodes and a dealer", COLUMNS, rows)
    total = round(exact["estimate"] * exact["edges"])
    print(f"sum without noise: {total:,}; a node's memory: {memory / 2**20:.0f} MiB")


def million() -> None:
    table = LargeTable(MANY, FIELDS, NARROW)
    with site(table, NODES) as here:
        exact = here.study(**GRID, **SILENT, bins=BINS)
        all_pairs, _ = _runs(here, "all pairs", {**GRID, "bins": BINS}, FEW_RUNS)
        pairs, _ = _runs(here, "2n pairs", PAIRS, 1)
    title = f"{MANY:,} made-up records, 2^17 cells, {NODES} nodes and a dealer"
    show(title, COLUMNS, [pairs, all_pairs])
    total = round(exact["estimate"] * exact["edges"])
    print(f"sum without noise: {total:,}; Knight's: {_knight(table):,}")


def _knight(table: LargeTable) -> int:
    """Knight's sum over the pooled records, in the bins of the study."""
    age, balance = table.columns()
    lower = int(FIELDS[1].lower)
    span = int(FIELDS[1].upper) - lower + 1
    bins = BINS["balance"]
    cuts = [lower + number * span // bins for number in range(1, bins)]
    return kendall_sum(age, np.searchsorted(cuts, balance, side="right"))


def more() -> None:
    """Ten times as many records. Their reading takes longer, and nothing after it."""
    rows = []
    for records in (MANY, MORE):
        with site(LargeTable(records, FIELDS, NARROW), NODES) as here:
            rows.append(_runs(here, f"{records:,}", {**GRID, "bins": BINS}, FEW_RUNS)[0])
    title = f"All pairs of made-up records, 2^17 cells, {NODES} nodes and a dealer"
    show(title, COLUMNS, rows)


def wide() -> None:
    fields = [field_entry(each) for each in WIDE_FIELDS]
    changes = {**GRID, "columns": ["x", "y"], "fields": fields, "levels": LEVELS}
    with site(LargeTable(MANY, WIDE_FIELDS, WIDE), NODES) as here:
        row, _ = _runs(here, f"{LEVELS} levels, all pairs", changes, FEW_RUNS)
        memory = max(here.memory().values())
    title = f"{MANY:,} made-up records of two columns of 52 bits, {NODES} nodes and a dealer"
    show(f"{title}; most memory: {memory / 2**20:.0f} MiB", COLUMNS, [row])


def verified() -> dict[str, tuple[float, int]]:
    """Both grades in the same minute. Returns: of lying nodes: seconds in all, a node's bytes."""
    bank_data, source = bank_table()
    million_records = LargeTable(MANY, FIELDS, NARROW)
    tables = (bank_data, million_records, million_records)
    found, rows = {}, []
    for work, table, bins in zip(VERIFIED, tables, (1024, 1024, 8192), strict=True):
        changes = {**GRID, "bins": {"balance": bins}}
        with site(table, NODES) as here:
            for grade, more in (("honest", {}), ("lying_nodes", LIARS)):
                row, report = _runs(here, f"{work}, {grade}", {**changes, **more}, FEW_RUNS)
                most = max(size for name, size in here.memory().items() if name != "dealer")
                rows.append((*row[:5], *_up_and_down(report), f"{most / 2**20:.0f} MiB"))
        found[work] = report["seconds_total"], most
    title = f"Kendall, {NODES} nodes and a dealer; bytes and most memory of a node; {source}"
    show(title, (*COLUMNS[:5], "up", "down", "memory"), rows)
    return found


def _up_and_down(report: dict[str, Any]) -> tuple[str, str]:
    """Bytes online that a node sends, and gets, on average. One up of a relayed step goes to all.

    Signatures of the last step, some hundred bytes, count as those that a node gets.
    """
    steps = report["bytes_online_by_step"]
    relayed = sum(steps.get(step, 0) for step in ("list", "opening", "inverses", "proof"))
    up = (steps["histogram"] + steps["reveal"] + relayed / NODES) / NODES
    return f"{up:,.0f}", f"{report['bytes_online'] / NODES - up:,.0f}"


def _runs(here: Site, label: str, changes: dict[str, Any], runs: int = RUNS) -> tuple[Row, Any]:
    """A row of medians of some studies, and the medians with the bytes of the last one."""
    before = sum(here.processor_seconds().values())
    reports = [here.study(**changes) for _ in range(runs)]
    processors = (sum(here.processor_seconds().values()) - before) / runs
    keys = ("seconds_total", "seconds_online", "seconds_offline")
    middle = {**reports[-1], **{key: median(each[key] for each in reports) for key in keys}}
    for key in ("bytes_online", "bytes_online_by_node", "bytes_online_by_step"):
        if middle[key] != middle[f"{key}_predicted"]:
            raise AssertionError("the bytes online are not those that were predicted")
    bytes_of_node = f"{max(middle['bytes_online_by_node']):,}"
    seconds = (f"{number:.2f} s" for number in (*(middle[key] for key in keys), processors))
    return (label, *seconds, bytes_of_node, f"{middle['bytes_offline']:,}"), middle


if __name__ == "__main__":
    main(sys.argv[1:])
