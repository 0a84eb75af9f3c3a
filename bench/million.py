"""A million records over 4 nodes, two million pairs."""

from __future__ import annotations

from bench.harness import made_up, site
from bench.table import Figure, show

RECORDS, EDGES, NODES = 1_000_000, 2_000_000, 4


def main() -> list[Figure]:
    with site(made_up(RECORDS), NODES) as here:
        report = here.study(edges=str(EDGES))
        memory = here.memory()
    largest = max(memory.values())
    rows = [
        ("wall", f"{report['wall']:.1f} s"),
        ("offline: joint seed, E, first material", f"{report['seconds_offline']:.1f} s"),
        ("online", f"{report['seconds_online']:.1f} s"),
        ("bytes online", f"{report['bytes_online']:,}"),
        ("bytes offline", f"{report['bytes_offline']:,}"),
        *((f"{name}, most memory", f"{size / 2**20:.0f} MiB") for name, size in memory.items()),
    ]
    show(
        f"Kendall over {RECORDS:,} records, |E| = {EDGES:,}, {NODES} nodes and a dealer",
        ("", "measured"),
        rows,
    )
    name = f"{RECORDS:,} records, |E| = {EDGES:,}"
    return [
        Figure(f"{name}: wall", f"{report['wall']:.1f} s", "under 40 s", report["wall"] < 40),
        Figure(
            f"{name}: largest process",
            f"{largest / 2**20:.0f} MiB",
            "under 600 MiB",
            largest < 600 << 20,
        ),
    ]
