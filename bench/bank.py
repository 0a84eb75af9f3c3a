"""The bank study over real processes: 4,521 records on 2 nodes, Kendall's tau of age and balance.

The first job evaluates 2n pairs under shares. The second has no dealer: it takes 4n pairs, so that
about 2n of them have records of two nodes and are garbled.
"""

from __future__ import annotations

from statistics import mean, median
from typing import Any

from bench.harness import RECORDS, bank_table, site
from bench.jobs import figures_of
from bench.table import Figure, show
from umpc.crypto.ring import RINGS
from umpc.mpc.garbled.plan import garbled_program
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema
from umpc.ustat.statistics import find_statistic

RUNS = 9
GARBLED = {"edges": "4n", "backend": "garbled", "preprocessing": "none"}


def main() -> list[Figure]:
    return figures_of("bank under shares", shared) + figures_of("bank without a dealer", garbled)


def shared() -> list[Figure]:
    """Measure the study under shares, first on demand and then prepared ahead."""
    table, source = bank_table()
    with site(table, 2) as here:
        reports = [here.study() for _ in range(RUNS)]
        memory = here.memory()
        ahead = [here.study(prepare=True) for _ in range(RUNS)]
    later = _medians(ahead)
    first, middle = reports[0], _medians(reports)
    online = mean(report["bytes_online"] for report in reports)
    allowed = mean(_allowed_bytes(report) for report in reports)
    node = max(size for name, size in memory.items() if name != "dealer")
    rows = [
        ("online, first masked field to last share", f"{1e3 * middle['seconds_online']:.1f} ms"),
        ("offline", f"{1e3 * middle['seconds_offline']:.1f} ms"),
        (
            "in all, certificates and commitments included",
            f"{1e3 * middle['seconds_total']:.1f} ms",
        ),
        ("online, prepared ahead", f"{1e3 * later['seconds_online']:.1f} ms"),
        ("in all, prepared ahead", f"{1e3 * later['seconds_total']:.1f} ms"),
        ("bytes online, mean", f"{online:,.0f}"),
        (
            "bytes online of the first run",
            f"{first['bytes_online']:,}, predicted {first['bytes_online_predicted']:,}",
        ),
        (
            "bytes offline",
            f"{first['bytes_offline']:,}, {first['bytes_offline'] / first['edges']:.0f} an edge",
        ),
        ("a node's peak memory", f"{node / 2**20:.0f} MiB"),
    ]
    show(
        f"{source}: Kendall, 2 nodes, |E| = {first['edges']:,}, medians of {RUNS} runs",
        ("", "measured"),
        rows,
    )
    name = f"bank, |E| = {first['edges']:,}, 2 nodes"
    seconds, soon = middle["seconds_online"], later["seconds_online"]
    return [
        Figure(f"{name}: online", f"{1e3 * seconds:.1f} ms", "under 50 ms", seconds < 0.05),
        Figure(f"{name}: online, prepared", f"{1e3 * soon:.1f} ms", "under 12 ms", soon < 0.012),
        Figure(
            f"{name}: bytes of a prepared run", f"{online:,.0f}", "under 40,000", online < 40_000
        ),
        Figure(
            f"{name}: bytes online", f"{online:,.0f}", f"at most {allowed:,.0f}", online <= allowed
        ),
        Figure(
            f"{name}: a node's memory", f"{node / 2**20:.0f} MiB", "under 150 MiB", node < 150 << 20
        ),
    ]


def garbled() -> list[Figure]:
    """Measure the study without a dealer. Every second pair of 4n is garbled.

    An edge's bytes are those of the formula.
    """
    table, source = bank_table()
    with site(table, 2, dealer=False) as here:
        reports = [here.study(**GARBLED) for _ in range(RUNS)]
        memory = max(here.memory().values())
    first, middle = reports[0], _medians(reports)
    kernel = Kernel(
        find_statistic("kendall_tau").expressions(table.columns)[0],
        Schema(f.schema() for f in table.fields()),
    )
    (plan,) = garbled_program([kernel], RINGS[0], [(0, 1)]).plans.values()
    crossing = (first["bytes_online_predicted"] - 4 * 26 * RECORDS / 2) / (plan.edge_bits / 8)
    rows = [
        ("study, in all", f"{1e3 * middle['seconds_total']:.0f} ms"),
        ("online: labels, garbled edges, charge", f"{1e3 * middle['seconds_online']:.0f} ms"),
        (
            "offline: joint seed, E, oblivious transfers, noise",
            f"{1e3 * middle['seconds_offline']:.0f} ms",
        ),
        (
            "bytes online",
            f"{first['bytes_online']:,}, predicted {first['bytes_online_predicted']:,}",
        ),
        (
            "bytes offline",
            f"{first['bytes_offline']:,}, predicted {first['bytes_offline_predicted']:,}",
        ),
        ("pairs of two nodes, about", f"{crossing:,.0f}"),
        ("bytes of a garbled edge", f"{plan.edge_bits // 8:,} (emp at 40 bits: 5,375)"),
        ("a node's peak memory", f"{memory / 2**20:.0f} MiB"),
    ]
    title = f"{source}: Kendall without a dealer, 2 nodes, |E| = {first['edges']:,}"
    show(f"{title}, medians of {RUNS} runs", ("", "measured"), rows)
    seconds = middle["seconds_total"]
    name = f"bank without a dealer, {crossing:,.0f} garbled pairs"
    return [Figure(name, f"{1e3 * seconds:.0f} ms", "under 2,000 ms", seconds < 2)]


def _medians(reports: list[dict[str, Any]]) -> dict[str, float]:
    """The median over all reports of each entry in seconds."""
    return {
        key: median(report[key] for report in reports)
        for key in reports[0]
        if key.startswith("seconds")
    }


def _allowed_bytes(report: dict[str, Any]) -> float:
    """The target: 8 bits an edge, masked fields of 8 and 18 bits a record, and 10 % framing."""
    return 1.1 * (report["edges"] * 8 + report["records"] * (8 + 18)) / 8
