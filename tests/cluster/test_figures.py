"""`make figures` on a cluster: the same figures, measured by its workers."""

from __future__ import annotations

import os
from pathlib import Path

from bench.dask_sites import cluster
from reproduction.figures.__main__ import client_of
from reproduction.figures.figure import Agreement, Figure, Point
from reproduction.figures.store import Store
from reproduction.figures.sweep import sweep


def figure_of(folder: Path) -> Figure:
    """A tiny figure, whose measurement leaves the number of its process in a folder."""

    def measure(point: Point, seed: bytes) -> dict[str, list[float]]:
        (folder / str(os.getpid())).touch()
        return {"squared_error": [point.x + seed[0]]}

    return Figure(
        name="000-figure-1",
        title="tiny",
        quantity="squared_error",
        claim="one",
        points=lambda quick: [Point("one", float(x), 2, {"runs": 1}) for x in range(4)],
        measure=measure,
        predict=lambda point: None,
        agreement=lambda rows: Agreement("agrees", ""),
        draw=lambda rows, path, note: None,
    )


def test_workers_of_a_cluster_measure_the_same(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    alone = sweep(figure_of(here), Store(tmp_path / "alone.jsonl", "one"), jobs=1)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    with cluster() as site:
        workers = {str(process.pid) for process in site.processes[1:]}
        with client_of(site.place.cluster, str(site.tls)) as client:
            store = Store(tmp_path / "spread.jsonl", "one")
            assert sweep(figure_of(there), store, cluster=client) == alone
    assert {path.name for path in here.iterdir()} == {str(os.getpid())}
    assert {path.name for path in there.iterdir()} <= workers and list(there.iterdir())
