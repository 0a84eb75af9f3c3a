"""The rates by which `backend = "auto"` chooses, beside this machine's.

Run `python -m bench.rates`. Whole studies run in this process, without a network and with curve
points. Each rate is a difference of two sizes, in processor seconds of all processes' work
together, so that it lacks all that does not grow. The last column counts for the choice,
which a faster or busier machine does not change much.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np

from bench.kendall import kendall_study
from bench.table import show
from umpc.protocols.auto import EDGE_SECONDS, GARBLED_SECONDS, TRANSFER_SECONDS
from umpc.protocols.grid.binding import OPERATION_SECONDS, grid_of, work_seconds
from umpc.protocols.grid.cross_terms import entry_ranges
from umpc.protocols.grid.settings import GridSettings
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.settings import UMpcSettings
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.study.parts import Participant

NODES = 2
EDGES = (20_000, 220_000)
GARBLED_EDGES = (1_000, 9_000)
VALUES = (128, 1_024)
CROSS_VALUES = (64, 256)
RECORDS = 4_000
DEALER = Participant("dealer", "dealer:1")
TABLES_WORKED_ON = NODES + 1
"""One process after the other works on a table here: the dealer, and all nodes."""


def main() -> None:
    edge = _rate(pairs, EDGES, lambda size: size / 2)
    garbled = _rate(garbled_pairs, GARBLED_EDGES, lambda size: size / 2)
    operation = _rate(grid, VALUES, lambda size: TABLES_WORKED_ON * _operations(size))
    transfer = _rate(cross_terms, CROSS_VALUES, _transfers)
    rows = [
        _row("an edge of two owners, dealt and evaluated", edge, EDGE_SECONDS, edge),
        _row("such an edge, garbled", garbled, GARBLED_SECONDS, edge),
        _row("an operation on a cell", operation, OPERATION_SECONDS, edge),
        _row("a transfer of a cross term", transfer, TRANSFER_SECONDS, edge),
    ]
    columns = ("", "measured", "in `auto`", "share of an edge", "in `auto`")
    show("Seconds of a processor, Kendall's tau", columns, rows)


def _row(name: str, measured: float, used: float, edge: float) -> tuple[str, ...]:
    shares = (f"{measured / edge:.2g}", f"{used / EDGE_SECONDS:.2g}")
    return (name, f"{measured:.2g} s", f"{used:.2g} s", *shares)


def _rate(
    run: Callable[[int], Study], sizes: tuple[int, int], units: Callable[[int], float]
) -> float:
    """Seconds of one more unit between two sizes. Each study runs twice, and the faster counts."""
    seconds = [min(_seconds(run(size), size) for _ in range(2)) for size in sizes]
    less, more = map(units, sizes)
    return (seconds[1] - seconds[0]) / (more - less)


def _seconds(study: Study, size: int) -> float:
    rng = np.random.default_rng(1)
    tables = [
        {
            field.name: rng.integers(0, field.upper_units + 1, RECORDS // NODES)
            for field in study.schema
        }
        for _ in range(NODES)
    ]
    started = time.process_time()
    simulate(study, tables, os.urandom)
    return time.process_time() - started


def pairs(edges: int) -> Study:
    return kendall_study(NODES, 127, "1", noise="distributed", edges=str(edges))


def garbled_pairs(edges: int) -> Study:
    settings = UMpcSettings(
        backend="garbled", preprocessing="none", noise="distributed", edges=str(edges)
    )
    return checked(_kendall(128).replaced(settings=settings))


def grid(values: int) -> Study:
    settings = GridSettings(noise="distributed", dealer=DEALER)
    return checked(_kendall(values).replaced(settings=settings))


def cross_terms(values: int) -> Study:
    settings = GridSettings(preprocessing="none", noise="distributed")
    return checked(_kendall(values).replaced(settings=settings))


def _kendall(values: int) -> Study:
    return kendall_study(NODES, values - 1, "1", noise="distributed")


def _operations(values: int) -> float:
    return work_seconds(grid_of(grid(values))) / OPERATION_SECONDS


def _transfers(values: int) -> float:
    ranges = entry_ranges(grid_of(cross_terms(values)))
    return sum((part.stop - part.start) * part.bits(RECORDS // NODES, 31) for part in ranges)


if __name__ == "__main__":
    main()
