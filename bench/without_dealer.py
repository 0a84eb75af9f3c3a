"""The grid without a dealer: bytes and seconds over cells, records and nodes.

Run `python -m bench.without_dealer`. Whole studies run in this process, with curve points and
without a network. Seconds are those of the processor, of all nodes together.
"""

from __future__ import annotations

import os
import resource
import time
from typing import NamedTuple

import numpy as np

from bench.kendall import kendall_study
from bench.table import show
from umpc.protocols.grid.settings import GridSettings
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.protocol import shared
from umpc.simulation import simulate


class Size(NamedTuple):
    """nodes, values of each of two fields, records of all nodes."""

    nodes: int
    values: int
    records: int


SIZES = (
    Size(2, 128, 4_000),
    Size(3, 128, 4_000),
    Size(2, 362, 4_000),
    Size(2, 362, 100_000),
    Size(2, 362, 1_000_000),
    Size(3, 362, 1_000_000),
)


def main() -> None:
    rows = [row(size) for size in SIZES]
    columns = ("", "cells", "records", "pairs", "ring", "bytes online", "seconds", "memory")
    show("Kendall's tau over all pairs without a dealer, ε = 1", columns, rows)


def row(size: Size) -> tuple[str, ...]:
    """Run one study."""
    settings = GridSettings(preprocessing="none", noise="distributed")
    study = kendall_study(size.nodes, size.values - 1, "1", noise="distributed")
    study = checked(study.replaced(settings=settings))
    rng = np.random.default_rng(1)
    each = size.records // size.nodes
    tables = [
        {name: rng.integers(0, size.values, each) for name in "xy"} for _ in range(size.nodes)
    ]
    started = time.process_time()
    run = simulate(study, tables, os.urandom)
    seconds = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (
        f"{size.nodes} nodes",
        f"{size.values**2:,}",
        f"{each * size.nodes:,}",
        f"{run.report.edges:,}",
        f"{shared(run.attempt).ring.bits}",
        f"{run.report.bytes_online:,}",
        f"{seconds:.1f}",
        f"{memory / 1024:.0f} MiB",
    )


if __name__ == "__main__":
    main()
