"""A run beside its plan: error, bytes and memory. `python -m bench.planned`

`--grid` runs Kendall's tau over all pairs of 4 × 60,000 made-up records by the grid, as `umpc plan`
recommends. `--pairs 4000 8000` runs all pairs of so many records over two nodes, and shows each
process's peak memory beside the plan's. `--errors 40` compares the error of as many runs in memory.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from bench.harness import made_up, site
from bench.table import show
from umpc.coordinator.studyfile import load_study_file
from umpc.crypto.prg import Stream
from umpc.planning.prediction import attempt_over, reference_table_of
from umpc.planning.seconds import predict_memory
from umpc.protocols.base.one_message import uniform_columns
from umpc.protocols.grid.settings import GridSettings
from umpc.protocols.registry import protocol_of
from umpc.simulation import simulate
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant

GRID_RECORDS = 240_000
GRID_NODES = 4
Row = tuple[str, str, str, str]


def real_run(records: int, nodes: int, **changes: str) -> list[Row]:
    """Bytes and memory of a study over real processes, each beside its plan."""
    with site(made_up(records), nodes) as here:
        report = here.study(edges="all", **changes)
        memory = here.memory()
        file = sorted(Path(here.folder).glob("**/study.toml"))[-1]
        study = load_study_file(file).study("coordinator")
    counts = ",".join(map(str, report["records_by_node"]))
    attempt = attempt_over(study, counts)
    cost = protocol_of(study).cost(attempt)
    largest = max(size for name, size in memory.items() if name != "dealer")
    planned = predict_memory(attempt)
    name = f"{nodes} nodes, {records:,} records, {study.protocol}"
    bytes_planned = f"{cost.bytes_online:,} + {cost.bytes_offline:,}"
    bytes_run = f"{report['bytes_online']:,} + {report['bytes_offline']:,}"
    ratio = f"{planned / largest:.2f}"
    return [
        (f"{name}: bytes", bytes_planned, bytes_run, str(bytes_planned == bytes_run)),
        (f"{name}: largest node", _mebibytes(planned), _mebibytes(largest), ratio),
    ]


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def errors_in_memory(runs: int) -> Row:
    """The mean squared error of studies in memory, by the grid over 4 × 60,000 records."""
    fields = (FieldText("x", "0", "15", whole=True), FieldText("y", "0", "15", whole=True))
    kernel = "sign(a.x - b.x) * sign(a.y - b.y)"
    nodes = tuple(Participant(f"node-{number}", "") for number in range(GRID_NODES))
    study = Study(
        name="planned",
        statistic="kendall_tau",
        kernels=(kernel,),
        fields=fields,
        epsilon="1",
        max_colluding=GRID_NODES - 1,
        coordinator="coordinator",
        nodes=nodes,
        settings=GridSettings(dealer=Participant("dealer", ""), noise="in_mpc"),
    )
    counts = [GRID_RECORDS // GRID_NODES] * GRID_NODES
    attempt = attempt_over(study, ",".join(map(str, counts)))
    table = reference_table_of(attempt, None, ",")
    planned = protocol_of(study).error(attempt, table).mse
    stream = Stream(bytes(32))
    tables = [uniform_columns(study, count, stream) for count in counts]
    pooled = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    exact = _kendall(pooled["x"], pooled["y"])
    found = []
    for number in range(runs):
        again = study.replaced(name=f"planned {number}")
        found.append((simulate(again, tables, os.urandom).report.estimate - exact) ** 2)
    mse = float(np.mean(found))
    name = f"{GRID_NODES} × {counts[0]:,} records, grid, ε = 1: MSE of {runs} runs in memory"
    return name, f"{planned:.3g}", f"{mse:.3g}", f"{planned / mse:.2f}"


def _kendall(x: np.ndarray, y: np.ndarray) -> float:
    """Kendall's tau over all pairs, from the table of counts; the order of records is free."""
    counts = np.zeros((16, 16))
    np.add.at(counts, (x, y), 1)
    order = np.sign(np.subtract.outer(np.arange(16), np.arange(16)))
    total = float((counts * (order @ counts @ order.T)).sum()) / 2
    return total / (len(x) * (len(x) - 1) / 2)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.planned", description=__doc__)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--pairs", type=int, nargs="*", default=[])
    parser.add_argument("--errors", type=int, default=0, help="Runs in memory.")
    given = parser.parse_args()
    rows: list[Row] = []
    for records in given.pairs:
        rows += real_run(records, 2, backend="shared")
        print(*rows[-2:], sep="\n", flush=True)
    if given.grid:
        rows += real_run(GRID_RECORDS, GRID_NODES, backend="grid")
    if given.errors:
        rows.append(errors_in_memory(given.errors))
    show("A run beside its plan", ("", "planned", "run", "planned / run"), rows)


if __name__ == "__main__":
    main()
