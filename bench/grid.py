"""All pairs by the grid, beside sampled pairs, in one run over real processes.

| job | what it measures |
|---|---|
| `bank` | the bank data at full resolution and in 1,024 bins of balance, and 2n pairs of it |
| `million` | 1,000,000 and 10,000,000 records in 2^17 cells, and 2n pairs of the million |
| `wide` | 1,000,000 records with two columns of 52 bits, at 17 levels |
"""

from __future__ import annotations

from statistics import median
from typing import Any

from bench.harness import BANK, Site, bank_table, site
from bench.jobs import figures_of
from bench.large import NARROW, WIDE, WIDE_FIELDS, LargeTable, kendall_sum
from bench.table import Figure, show
from umpc.coordinator.studyfile_text import field_entry
from umpc.study.parts import FieldText

NODES = 4
RUNS = 5
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
GRID = {"backend": "grid", "edges": "all", "fields": [field_entry(each) for each in FIELDS]}
PAIRS = {"backend": "shared", "edges": "2n", "fields": GRID["fields"]}
SILENT = {"epsilon": "1000000000"}
Row = tuple[str, ...]
COLUMNS = ("", "in all", "online", "offline", "bytes online of a node", "bytes offline")


def main() -> list[Figure]:
    jobs = {"bank by the grid": bank, "a million by the grid": million, "wide columns": wide}
    return [figure for name, job in jobs.items() for figure in figures_of(name, job)]


def bank() -> list[Figure]:
    table, source = bank_table()
    with site(table, NODES) as here:
        exact = here.study(**GRID, **SILENT)
        pairs, _ = _runs(here, "2n pairs", PAIRS)
        binned, in_bins = _runs(here, "all pairs, 1,024 bins", {**GRID, "bins": BINS})
        full, whole = _runs(here, "all pairs, full resolution", GRID)
        memory = max(size for name, size in here.memory().items() if name != "dealer")
    show(f"{source}: Kendall, {NODES} nodes and a dealer", COLUMNS, [pairs, binned, full])
    sent = max(in_bins["bytes_online_by_node"]) // 2
    total = round(exact["estimate"] * exact["edges"])
    found = [
        _seconds("bank, full resolution, in all", whole["seconds_total"], 2),
        _memory("bank, full resolution", memory, 400),
        _seconds("bank, 1,024 bins, online", in_bins["seconds_online"], 0.3),
        Figure("bank, 1,024 bins: sent by a node", f"{sent:,}", "≤ 2,200,000", sent <= 2_200_000),
    ]
    if BANK.exists():
        name = "bank by the grid: sum without noise"
        found.append(Figure(name, f"{total:,}", f"{EXACT_SUM:,}", total == EXACT_SUM))
    return found


def million() -> list[Figure]:
    rows, after = [], []
    for records in (MANY, MORE):
        table = LargeTable(records, FIELDS, NARROW)
        with site(table, NODES) as here:
            if records == MANY:
                rows.append(_runs(here, f"{records:,} records, 2n pairs", PAIRS, 1)[0])
                exact = here.study(**GRID, **SILENT, bins=BINS)
            label = f"{records:,} records, all pairs"
            row, middle = _runs(here, label, {**GRID, "bins": BINS})
        rows.append(row)
        after.append(middle["seconds_online"])
        if records == MANY:
            age, balance = table.columns()
            span = int(FIELDS[1].upper) - int(FIELDS[1].lower) + 1
            cuts = [number * span // BINS["balance"] for number in range(1, BINS["balance"])]
            binned = sum((balance - int(FIELDS[1].lower) >= cut).astype("int64") for cut in cuts)
            knight = kendall_sum(age, binned)
            total = round(exact["estimate"] * exact["edges"])
    show(f"Made-up records, 2^17 cells, {NODES} nodes and a dealer", COLUMNS, rows)
    ratio = after[1] / after[0]
    return [
        _seconds(f"{MANY:,} records, all pairs, online", after[0], 1),
        Figure(
            f"{MANY:,} records: sum without noise", f"{total:,}", f"{knight:,}", total == knight
        ),
        Figure(f"{MORE:,} records, online", f"× {ratio:.2f}", "× 1.1 at most", ratio <= 1.1),
    ]


def wide() -> list[Figure]:
    fields = [field_entry(each) for each in WIDE_FIELDS]
    changes = {**GRID, "columns": ["x", "y"], "fields": fields, "levels": LEVELS}
    with site(LargeTable(MANY, WIDE_FIELDS, WIDE), NODES) as here:
        row, middle = _runs(here, f"{LEVELS} levels, all pairs", changes)
        memory = max(here.memory().values())
    title = f"{MANY:,} made-up records of two columns of 52 bits, {NODES} nodes and a dealer"
    show(title, COLUMNS, [row])
    name = f"{LEVELS} levels of 52 bits, {MANY:,} records"
    return [
        _seconds(
            f"{name}, online and offline", middle["seconds_online"] + middle["seconds_offline"], 5
        ),
        _memory(name, memory, 600),
    ]


def _runs(here: Site, label: str, changes: dict[str, Any], runs: int = RUNS) -> tuple[Row, Any]:
    """A row of medians of some studies, and the medians with the bytes of the last one."""
    reports = [here.study(**changes) for _ in range(runs)]
    keys = ("seconds_total", "seconds_online", "seconds_offline")
    middle = {**reports[-1], **{key: median(each[key] for each in reports) for key in keys}}
    if middle["bytes_online"] != middle["bytes_online_predicted"]:
        raise AssertionError("the bytes online are not those that were predicted")
    bytes_of_node = f"{max(middle['bytes_online_by_node']):,}"
    seconds = (f"{middle[key]:.2f} s" for key in keys)
    return (label, *seconds, bytes_of_node, f"{middle['bytes_offline']:,}"), middle


def _seconds(name: str, seconds: float, most: float) -> Figure:
    return Figure(name, f"{seconds:.2f} s", f"at most {most:g} s", seconds <= most)


def _memory(name: str, size: int, most: int) -> Figure:
    shown = f"{size / 2**20:.0f} MiB"
    return Figure(f"{name}: a node's memory", shown, f"at most {most} MiB", size <= most << 20)
