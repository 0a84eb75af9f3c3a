"""A million records over 4 nodes, two million pairs: `python -m bench.million`.

The first study of the processes gives the wall time, from the start of the coordinator's process to
its end, and the memory. RUNS studies follow in the same processes. The least seconds of these, from
connected to the report, are held against the target: all that a study computes is in them, and no
process that starts. Other work on the machine adds to them.
"""

from __future__ import annotations

from bench.harness import made_up, site
from bench.table import Figure, show, show_targets

RECORDS, EDGES, NODES = 1_000_000, 2_000_000, 4
RUNS = 3
MOST_WALL, MOST_SECONDS, MOST_MEMORY = 40, 3.5, 600 << 20


def main() -> list[Figure]:
    """Print the table. Returns: every figure with its target."""
    with site(made_up(RECORDS), NODES) as here:
        report = here.study(edges=str(EDGES))
        memory = here.memory()
        warm = [here.study(edges=str(EDGES)) for _ in range(RUNS)]
    seconds = min(each["seconds_total"] for each in warm)
    rows = [
        ("wall", f"{report['wall']:.1f} s"),
        ("offline: joint seed, E, first material", f"{report['seconds_offline']:.1f} s"),
        ("online", f"{report['seconds_online']:.1f} s"),
        (f"connected to report, least of {RUNS} more studies", f"{seconds:.2f} s"),
        ("bytes online", f"{report['bytes_online']:,}"),
        ("bytes offline", f"{report['bytes_offline']:,}"),
        *((f"{name}, most memory", f"{size / 2**20:.0f} MiB") for name, size in memory.items()),
    ]
    show(
        f"Kendall over {RECORDS:,} records, |E| = {EDGES:,}, {NODES} nodes and a dealer",
        ("", "measured"),
        rows,
    )
    return figures_of(report["wall"], seconds, max(memory.values()))


def figures_of(wall: float, seconds: float, memory: int) -> list[Figure]:
    """Every target's line.

    Args: wall: of the first study. seconds: from connected to report, of a later one. memory: bytes
        of the largest process.
    """
    name = f"{RECORDS:,} records, |E| = {EDGES:,}"
    return [
        Figure(f"{name}: wall", f"{wall:.1f} s", f"under {MOST_WALL} s", wall < MOST_WALL),
        Figure(
            f"{name}: connected to report",
            f"{seconds:.2f} s",
            f"at most {MOST_SECONDS} s",
            seconds <= MOST_SECONDS,
        ),
        Figure(
            f"{name}: largest process",
            f"{memory / 2**20:.0f} MiB",
            f"under {MOST_MEMORY >> 20} MiB",
            memory < MOST_MEMORY,
        ),
    ]


if __name__ == "__main__":
    show_targets(main())
