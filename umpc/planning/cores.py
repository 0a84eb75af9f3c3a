"""Independent pieces of planning on all cores of this machine."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

J = TypeVar("J")
R = TypeVar("R")

_inherited: list[tuple[Callable[[Any], Any], Sequence[Any]]] = []


def map_on_cores(work: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
    """The results of `work` over the jobs, in their order.

    The processes are forks of this one, so they have its caches and only results are copied. Where
    a fork is not possible, or there is one core, the jobs run one after the other in this process.

    Args: work: its results can be pickled, and it changes nothing that others read.
    """
    processes = min(_cores(), len(jobs))
    if processes < 2 or not _may_fork():
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(
        processes, multiprocessing.get_context("fork"), _inherit, (work, jobs)
    ) as pool:
        yield from pool.map(_run, range(len(jobs)))


def _inherit(work: Callable[[Any], Any], jobs: Sequence[Any]) -> None:
    """Called in each fork: arguments of its start are inherited, not pickled."""
    _inherited[:] = [(work, jobs)]


def _run(number: int) -> Any:
    work, jobs = _inherited[0]
    return work(jobs[number])


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def _may_fork() -> bool:
    """Whether no library runs threads that a fork would lose."""
    return "grpc" not in sys.modules
