"""Run all batches of a figure on all cores or on a Dask cluster, except those of the store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from reproduction.figures import given
from reproduction.figures.draws import seed_of
from reproduction.figures.figure import Figure, Measured, Point, Row
from reproduction.figures.progress import Progress
from reproduction.figures.store import THEORY, Store, key_of

Job = tuple[Point, int]


def sweep(
    figure: Figure, store: Store, quick: bool = False, jobs: int = -1, cluster: Any = None
) -> list[Row]:
    """Measure what is missing, and return the figure's rows.

    jobs: joblib's n_jobs. -1 takes all cores, 1 stays in this process. Each worker has one BLAS
    thread, so that processor times are those of one core.
    cluster: a Dask client; its workers then measure, from the same checkout as this process. Start
    them with OMP_NUM_THREADS=1 and --nthreads 1.
    """
    points = list(figure.points(quick))
    missing = [job for job in _all_jobs(points) if store.get(figure.name, *job) is None]
    progress = Progress(figure.name, len(missing))
    for point, number, measured, seconds in _run(figure, missing, store.data, jobs, cluster):
        store.put(
            figure.name,
            point,
            number,
            measured,
            seconds,
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        progress.finished(point, number, seconds)
    return [_row(figure, point, store) for point in points]


def _all_jobs(points: Sequence[Point]) -> list[Job]:
    """All batches. Theory and the first batches come first, so that a mistake shows soon."""
    most = max(point.batches for point in points)
    return [
        (point, number)
        for number in range(THEORY, most)
        for point in points
        if number < point.batches
    ]


def _run(
    figure: Figure, missing: Sequence[Job], digest: str, jobs: int, cluster: Any
) -> Iterator[tuple[Point, int, Measured, float]]:
    work = partial(_work, figure.name, figure.measure, figure.predict, (figure.data, digest))
    if (jobs == 1 and cluster is None) or not missing:
        yield from (work(*job) for job in missing)
        return
    from joblib import Parallel, delayed, parallel_config

    place: dict[str, Any] = {"backend": "loky", "inner_max_num_threads": 1}
    if cluster is not None:
        place = {"backend": "dask", "client": cluster}
    with parallel_config(**place):
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        yield from parallel(delayed(work)(*job) for job in missing)


def _work(
    name: str, measure, predict, table: tuple[str, str], point: Point, number: int
) -> tuple[Point, int, Measured, float]:
    """Measure one batch, or predict, in a worker. The last value is its processor seconds.

    Args: table: the table's name and digest. Raises: SystemExit where the worker has another one.
    """
    data, digest = table
    if digest and given.digest_of(data) != digest:
        raise SystemExit(f"a worker has another table of the {data} data than this process")
    started = time.process_time()
    if number == THEORY:
        found = predict(point)
        measured: Measured = {} if found is None else {"predicted": [float(found)]}
    else:
        measured = measure(point, seed_of(key_of(name, point, number)))
    plain = {
        quantity: [float(value) for value in np.atleast_1d(values)]
        for quantity, values in measured.items()
    }
    return point, number, plain, time.process_time() - started


def _row(figure: Figure, point: Point, store: Store) -> Row:
    """One row from all batches of a point. A quantity with one value has a standard error of 0."""
    theory = store.get(figure.name, point, THEORY)["measured"]
    batches = [store.get(figure.name, point, number)["measured"] for number in range(point.batches)]
    values = {
        quantity: np.concatenate([batch[quantity] for batch in batches]) for quantity in batches[0]
    }
    means = {quantity: float(each.mean()) for quantity, each in values.items()}
    errors = {
        q: float(v.std(ddof=1) / len(v) ** 0.5) if len(v) > 1 else 0.0 for q, v in values.items()
    }
    predicted = theory["predicted"][0] if theory else None
    return Row(point, means, errors, len(values[figure.quantity]), predicted)


def entries_of(figure: Figure, store: Store, points: Sequence[Point]) -> list[Mapping[str, Any]]:
    """All stored entries of these points: batches and theory.

    Each has its processor `seconds`, its `version` and its `date`.
    """
    return [store.get(figure.name, *job) for job in _all_jobs(points)]
