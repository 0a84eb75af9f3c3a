"""A run beside its plan: error, bytes and memory. `python -m bench.planned`

`--grid` runs Kendall's tau over all pairs of 4 × 60,000 made-up records by the grid, as `umpc plan`
recommends. `--pairs 4000 8000` runs all pairs of so many records over two nodes, and shows each
process's peak memory beside the plan's. `--errors 200` compares the errors of as many runs in
memory, by the grid and by pairs of skewed ratings, with a standard error of each ratio.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
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
from umpc.protocols.u_mpc.settings import UMpcSettings
from umpc.simulation import Table, simulate
from umpc.study.document import Study
from umpc.study.parts import FieldText, Participant
from umpc.study.settings import Settings

GRID_RECORDS = 240_000
GRID_NODES = 4
RATINGS = (80, 60, 160, 500, 1200)
"""Records with 1 to 5 stars, as skewed as reviews of hotels are."""
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
    planned = predict_memory(attempt, cost)
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


def errors_of_grid(runs: int) -> Row:
    """Kendall's tau over all pairs of 4 × 60,000 records by the grid."""
    fields = (FieldText("x", "0", "15", whole=True), FieldText("y", "0", "15", whole=True))
    kernel = "sign(a.x - b.x) * sign(a.y - b.y)"
    settings = GridSettings(dealer=Participant("dealer", ""), noise="in_mpc")
    study = _study("kendall_tau", kernel, fields, settings, GRID_NODES)
    counts = [GRID_RECORDS // GRID_NODES] * GRID_NODES
    stream = Stream(bytes(32))
    tables = [uniform_columns(study, count, stream) for count in counts]
    pooled = {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}
    planned = _planned(study, counts, None)
    return _errors("grid", study, tables, planned, _kendall(pooled["x"], pooled["y"]), runs)


def errors_of_ratings(runs: int, edges: str) -> Row:
    """Gini's mean difference of skewed ratings, by sampled pairs of 2 × 1,000 records."""
    fields = (FieldText("stars", "1", "5", whole=True),)
    settings = UMpcSettings(dealer=Participant("dealer", ""), edges=edges, noise="in_mpc")
    study = _study("gini_mean_difference", "abs(a.stars - b.stars)", fields, settings, 2)
    counts = np.array(RATINGS)
    stars = np.repeat(np.arange(1, 6), counts)
    place = int(stars.size) // 2
    mixed = stars[np.argsort(Stream(bytes(32)).words(2 * place), kind="stable")]
    tables = [{"stars": mixed[:place]}, {"stars": mixed[place:]}]
    gaps = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    exact = float(counts @ gaps @ counts) / (2 * place * (2 * place - 1))
    with tempfile.TemporaryDirectory() as folder:
        like = Path(folder) / "ratings.csv"
        like.write_text("stars\n" + "".join(f"{each}\n" for each in mixed))
        planned = _planned(study, [place, place], like)
    return _errors(f"ratings, {edges} pairs", study, tables, planned, exact, runs)


def _study(
    statistic: str, kernel: str, fields: tuple[FieldText, ...], settings: Settings, nodes: int
) -> Study:
    return Study(
        name="planned",
        statistic=statistic,
        kernels=(kernel,),
        fields=fields,
        epsilon="1",
        max_colluding=nodes - 1,
        coordinator="coordinator",
        nodes=tuple(Participant(f"node-{number}", "") for number in range(nodes)),
        settings=settings,
    )


def _planned(study: Study, counts: Sequence[int], like: Path | None) -> float:
    """The mean squared error that the plan predicts. Args: like: a CSV file, or uniform records."""
    attempt = attempt_over(study, ",".join(map(str, counts)))
    return protocol_of(study).error(attempt, reference_table_of(attempt, like, ",")).mse


def _errors(
    name: str, study: Study, tables: Sequence[Table], planned: float, exact: float, runs: int
) -> Row:
    """The mean squared error of whole studies in memory, beside the plan."""
    squares = []
    for number in range(runs):
        again = study.replaced(name=f"planned {number}")
        squares.append((simulate(again, tables, os.urandom).report.estimate - exact) ** 2)
    mse, std = float(np.mean(squares)), float(np.std(squares) / np.sqrt(runs))
    ratio = f"{planned / mse:.2f} ± {std / mse * planned / mse:.2f}"
    return f"{name}, ε = 1: MSE of {runs} runs", f"{planned:.3g}", f"{mse:.3g}", ratio


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
        rows += [errors_of_ratings(given.errors, edges) for edges in ("2n", "10n")]
        rows.append(errors_of_grid(given.errors))
    show("A run beside its plan", ("", "planned", "run", "planned / run"), rows)


if __name__ == "__main__":
    main()
