"""The cost of a job as it grows: over |E|, over the number of nodes, over the number of records.

`make pictures` writes bench/pictures/*.png and *.csv. Every point is the median of RUNS studies
over real processes on loopback. All processes run on the cores of this one machine.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench.harness import Site, made_up, site
from bench.table import show

PICTURES = Path(__file__).parent / "pictures"
RUNS = 5
EDGES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
NODES = (2, 4, 8, 16, 32)
GRID = {"backend": "grid", "edges": "all"}
AGES = 69
"""The ages of a made-up table."""
BINS_OF_CELLS = (16, 256, 4_096, 65_536)
RECORDS = (1_000, 10_000, 100_000, 1_000_000)
Point = dict[str, float]
"""One line of a picture's CSV file: KEYS and their values."""
KEYS = (
    "size",
    "seconds_total",
    "seconds_online",
    "seconds_offline",
    "bytes_online",
    "bytes_offline",
    "memory",
    "node_memory",
)


def main() -> None:
    over_edges = sweep_edges()
    show_edges(over_edges)


def show_edges(rows: Sequence[Point]) -> None:
    """Print seconds, and what one more edge adds to them and to a node's peak memory."""
    shown = [(f"{rows[0]['size']:,}", f"{rows[0]['seconds_total']:.2f} s", "", "")]
    for smaller, larger in pairwise(rows):
        seconds, memory = (_added(smaller, larger, key) for key in ("seconds_total", "node_memory"))
        added = (f"{1e6 * seconds:.2f} µs", f"{memory:.0f} bytes")
        shown.append((f"{larger['size']:,}", f"{larger['seconds_total']:.2f} s", *added))
    columns = ("edges", "study", "an edge more", "memory of it")
    show("Kendall, 4,521 records, 2 nodes, over |E|", columns, shown)


def sweep_edges() -> list[Point]:
    with site(made_up(4521), 2) as here:
        return [_point(here, edges, {"edges": str(edges)}) for edges in EDGES]


def sweep_nodes() -> list[Point]:
    found = []
    for nodes in NODES:
        with site(made_up(4096), nodes) as here:
            found.append(_point(here, nodes, {"edges": "100000", "noise": "distributed"}))
    return found


def sweep_records() -> list[Point]:
    found = []
    for records in RECORDS:
        with site(made_up(records), 4) as here:
            found.append(_point(here, records, {"edges": "2n"}))
    return found


def sweep_records_by_grid() -> list[Point]:
    """Over all pairs of the tables of `sweep_records`, in 256 bins of balance."""
    found = []
    for records in RECORDS:
        with site(made_up(records), 4) as here:
            found.append(_point(here, records, {**GRID, "bins": {"balance": 256}}))
    return found


def sweep_cells() -> list[Point]:
    """Over the number of cells, which is that of bins of balance times 69 ages."""
    with site(made_up(4521), 4) as here:
        return [
            _point(here, AGES * bins, {**GRID, "bins": {"balance": bins}}) for bins in BINS_OF_CELLS
        ]


def _added(smaller: Point, larger: Point, key: str) -> float:
    """The growth of a figure by one more edge, between two sizes."""
    return (larger[key] - smaller[key]) / (larger["size"] - smaller["size"])


def _point(here: Site, size: int, changes: dict[str, Any]) -> Point:
    """Medians of the studies of one size."""
    runs = RUNS if size <= 1_000_000 else 1
    reports = [here.study(**changes) for _ in range(runs)]
    middle = {key: median(report[key] for report in reports) for key in KEYS[1:-2]}
    peaks = here.memory()
    of_nodes = max(peak for name, peak in peaks.items() if name != "dealer")
    return {"size": size, **middle, "memory": max(peaks.values()), "node_memory": of_nodes}


def picture(
    name: str, title: str, xlabel: str, rows: Sequence[Point], pairs: Sequence[Point] = ()
) -> None:
    """Write one CSV file, and one picture of seconds and bytes over the size.

    Args: pairs: the same sizes by sampled pairs, drawn beside them.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    PICTURES.mkdir(exist_ok=True)
    with (PICTURES / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, KEYS)
        writer.writeheader()
        writer.writerows(rows)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    sizes = [row["size"] for row in rows]
    seconds = {
        "seconds_total": "in all",
        "seconds_online": "online",
        "seconds_offline": "offline",
    }
    for key, label in seconds.items():
        left.loglog(sizes, [row[key] for row in rows], marker="o", label=label)
    _draw_pairs(left, pairs, {"seconds_total": "pairs, in all"})
    left.set(xlabel=xlabel, ylabel="seconds", title=title)
    for key, label in (("bytes_online", "online"), ("bytes_offline", "dealt")):
        right.loglog(sizes, [row[key] for row in rows], marker="o", label=label)
    _draw_pairs(right, pairs, {"bytes_online": "pairs, online", "bytes_offline": "pairs, dealt"})
    memory = max(row["memory"] for row in rows) / 2**20
    right.set(xlabel=xlabel, ylabel="bytes", title=f"largest process {memory:.0f} MiB")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(PICTURES / f"{name}.png", dpi=110)
    pyplot.close(figure)


def _draw_pairs(axes: Any, pairs: Sequence[Point], keys: Mapping[str, str]) -> None:
    """Draw the sampled pairs' figures, dashed. Args: keys: the figures with their labels."""
    sizes = [row["size"] for row in pairs]
    for key, label in keys.items() if pairs else ():
        axes.loglog(sizes, [row[key] for row in pairs], marker=".", linestyle="--", label=label)


def pictures() -> None:
    edges = sweep_edges()
    picture("edges", "Kendall, 2 nodes, 4,521 records", "edges |E|", edges)
    picture("nodes", "Kendall, 100,000 edges, 4,096 records", "nodes", sweep_nodes())
    by_pairs = sweep_records()
    picture("records", "Kendall, 4 nodes, |E| = 2n", "records", by_pairs)
    title = "All pairs by the grid, and 2n pairs"
    picture("grid-records", title, "records", sweep_records_by_grid(), by_pairs)
    picture("grid-cells", "Kendall by the grid, 4 nodes", "cells", sweep_cells())
    show_edges(edges)


if __name__ == "__main__":
    pictures()
