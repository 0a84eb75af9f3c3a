"""How much faster chunks are on two cores, and at what price: `python -m bench.cores`.

*Chunks in one process*: dealing, and all rounds of both owners, by one and by two threads of
`CoreThreads`, in turn. A thread takes as many chunks at a time as a node and a dealer give it. Each
turn is a few milliseconds, and the least of many counts, so other work on the machine does not hide
the speed-up as long as both cores are free now and then. The first row, SHA-256 alone, shows
whether they were: the other rows can hardly be faster. Processor seconds are the least of the
turns, too.

*Held* is the part of a chunk's processor time for which its thread may hold the interpreter's lock:
that of chunks of FEW edges, which take the same calls of Python and numpy. Long loops of numpy
and AES release the lock. Two threads that hold it for a part h of their time wait for each other
during h/2 of it, about. So two cores are at most 2/(1 + h/2) times as fast. They are slower than
that: a thread that gives the lock away for some microseconds has it again before the other one is
awake.

*Blocks of one computation*: an operator of the grid over 2^22 cells, and values of pairs in the
clear, by the calling thread alone and with a second one (`umpc/ustat/blocks.py`).

*A whole study* (left out by `--no-study`): 10^7 pairs of two nodes, with the dealer and both nodes
on one core, and then on all. It needs an idle machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import islice

import numpy as np

from bench.cluster_demo import study_in_memory
from bench.harness import made_up, site
from bench.table import Figure, show, show_targets
from umpc.cli.memory import tune_memory
from umpc.compute.executor import CoreThreads, own_cores
from umpc.dealer.session import DealerSession
from umpc.edges_in_memory import EdgesInMemory
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.tasks import Heard, OwnerBatch, TaskRounds
from umpc.protocols.grid.operators import compile_grid
from umpc.protocols.u_mpc.node import UMpcNode
from umpc.ustat.blocks import CORES
from umpc.ustat.clear import evaluate_clear
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import FieldSchema, Schema

EDGES, CHUNKS, RECORDS = 1_400_000, 32, 4_521
"""Enough edges that a node computes several chunks together, as in a study of 10^7."""
FEW = 8
HASHED_BYTES = 1 << 21
TURNS, LEAST_TURNS, TURNS_SECONDS = 60, 5, 15
"""Turns of one comparison, and the seconds after which a busy machine takes fewer."""
CELLS_BITS, CLEAR_EDGES, BLOCK_TURNS = 22, 1 << 20, 20
KENDALL = "sign(a.x - b.x) * sign(a.y - b.y)"
STUDY_EDGES, STUDY_RUNS = 10_000_000, 2
SPEED_UP = 1.8
MORE_WORK = 1.1
"""The most processor seconds of two threads, as a multiple of those of one."""
SECONDS_OF_STUDY = 4

Work = Callable[[], object]


@dataclass(frozen=True)
class Taken:
    """Seconds of a list of tasks: by the clock on the wall, and of the processor."""

    wall: float
    processor: float


def main(arguments: Sequence[str] = ()) -> list[Figure]:
    """Print both tables. Returns: every figure with its target."""
    if own_cores() < 2:
        print("this process may use one core only, so there is nothing to compare")
        return []
    tune_memory()
    figures = show_chunks(chunk_jobs()) + show_blocks(block_jobs())
    if "--no-study" not in arguments:
        figures += show_study()
    return figures


# --- chunks in one process ---------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Tasks that any thread may compute. few: the same of FEW edges each."""

    tasks: Sequence[Work]
    few: Sequence[Work] = ()


def chunk_jobs(edges: int = EDGES, chunks: int = CHUNKS) -> dict[str, Job]:
    """The tasks of a few full chunks: dealing them, and evaluating them."""
    study = study_in_memory(RECORDS, str(edges))
    first = list(islice(study.attempt.chunks(), chunks))
    short = [replace(chunk, stop=chunk.start + FEW) for chunk in first]
    (dealing, evaluating), (few_dealt, few_evaluated) = (
        _tasks(study, [[chunk] for chunk in each]) for each in (first, short)
    )
    return {
        "dealing": Job(dealing, few_dealt),
        "evaluating, both owners": Job(evaluating, few_evaluated),
    }


def _tasks(
    study: EdgesInMemory, batches: Sequence[Sequence[Chunk]]
) -> tuple[list[Work], list[Work]]:
    """The tasks that deal these batches of chunks, and those that evaluate them."""
    assert isinstance(study.dealer, DealerSession)
    dealing: list[Work] = []
    evaluating: list[Work] = []
    for batch in batches:
        deal = study.dealer.task(*batch)
        dealing.append(deal.payloads)
        of_nodes = list(zip(*deal.payloads(), strict=True))
        owners = []
        for node, payloads in zip(batch[0].parties, of_nodes, strict=True):
            side = study.meshes[node]
            assert isinstance(side, UMpcNode)
            owners.append(side.cells.batch(batch, payloads))
        evaluating.append(partial(evaluate, owners))
    return dealing, evaluating


def evaluate(owners: Sequence[OwnerBatch]) -> list[object]:
    """All rounds of the two owners of a batch. Returns: their results."""
    rounds = [TaskRounds(owner) for owner in owners]
    said = [each.after(()) for each in rounds]
    heard: list[Heard] = [(), ()]
    while isinstance(said[0], list):
        for party, other in enumerate(reversed(said)):
            assert isinstance(other, list)
            heard[party] = (*heard[party], tuple((message,) for message in other))
        said = [each.after(before) for each, before in zip(rounds, heard, strict=True)]
    return list(said)


def show_chunks(jobs: Mapping[str, Job], turns: int = TURNS) -> list[Figure]:
    """Print the table of chunks. Returns: their figures."""
    data = bytes(HASHED_BYTES)
    hashed = Job([lambda: hashlib.sha256(data).digest()] * CHUNKS)
    rows, figures = [], []
    for name, job in {"SHA-256 alone": hashed, **jobs}.items():
        one, two = asyncio.run(in_turn(job.tasks, turns))
        few, _ = asyncio.run(in_turn(job.few, turns))
        faster, more = one.wall / two.wall, two.processor / one.processor
        held = few.processor / one.processor
        rows.append(
            (
                name,
                *(f"{1e3 * seconds:.1f}" for seconds in (one.wall, two.wall)),
                *(f"{1e3 * seconds:.1f}" for seconds in (one.processor, two.processor)),
                f"{faster:.2f}",
                f"{held:.0%}" if job.few else "",
                f"{2 / (1 + held / 2):.2f}" if job.few else "",
            )
        )
        if job.few:
            bound = 2 / (1 + held / 2)
            least = f"at least {SPEED_UP}"
            figures += _figures(name, faster, more)
            figures.append(
                Figure(f"{name}: bound by the lock", f"{bound:.2f}", least, bound >= SPEED_UP)
            )
    columns = ("", "one, ms", "two, ms", "processor", "processor", "speed-up", "held", "at most")
    show(f"{CHUNKS} chunks by one and by two threads, least of at most {turns}", columns, rows)
    return figures


def _figures(name: str, faster: float, more: float) -> list[Figure]:
    least, most = f"at least {SPEED_UP}", f"at most {MORE_WORK} times"
    return [
        Figure(f"{name}: two cores", f"{faster:.2f} times", least, faster >= SPEED_UP),
        Figure(f"{name}: processor time of both", f"{more:.2f} times", most, more <= MORE_WORK),
    ]


async def in_turn(tasks: Sequence[Work], turns: int) -> tuple[Taken, Taken]:
    """The least seconds of all tasks, by one thread and by two."""
    places = CoreThreads(1), CoreThreads(2)
    taken: tuple[list[Taken], list[Taken]] = ([], [])
    deadline = time.monotonic() + TURNS_SECONDS
    for number in range(turns):
        if number >= LEAST_TURNS and time.monotonic() > deadline:
            break
        for place, found in zip(places, taken, strict=True):
            wall, processor = time.perf_counter(), time.process_time()
            await asyncio.gather(*(place.run(task) for task in tasks))
            found.append(Taken(time.perf_counter() - wall, time.process_time() - processor))
    return _least(taken[0]), _least(taken[1])


def _least(found: Sequence[Taken]) -> Taken:
    return Taken(min(each.wall for each in found), min(each.processor for each in found))


# --- blocks of one computation -----------------------------------------------------------------


def block_jobs(cells_bits: int = CELLS_BITS, edges: int = CLEAR_EDGES) -> dict[str, Work]:
    """Computations that `in_blocks` divides: an operator of the grid, and values in the clear."""
    bits = cells_bits // 2, cells_bits - cells_bits // 2
    fields = tuple(
        FieldSchema(name, Fraction(0), Fraction((1 << size) - 1), Fraction(1))
        for name, size in zip("xy", bits, strict=True)
    )
    schema = Schema(fields)
    kernel = Kernel.from_text(KENDALL, schema)
    (form,) = compile_grid([kernel], schema).forms
    vector = np.arange(1 << cells_bits, dtype=np.uint32) * np.uint32(0x9E3779B1)
    places = np.arange(2 * edges, dtype=np.int64) * 7919
    records = [
        {name: places[slot::2] % (1 << size) for name, size in zip("xy", bits, strict=True)}
        for slot in range(2)
    ]
    return {
        f"grid operator, 2^{cells_bits} cells": partial(form.apply, vector),
        f"clear values, {edges:,} pairs": partial(
            evaluate_clear, kernel.expression, schema, records, kernel.unit
        ),
    }


def show_blocks(jobs: Mapping[str, Work], turns: int = BLOCK_TURNS) -> list[Figure]:
    """Print the table of blocks. Returns: their figures."""
    threads = ThreadPoolExecutor(2)
    places: tuple[tuple[ThreadPoolExecutor | None, int], ...] = ((None, 1), (threads, 2))
    rows, figures = [], []
    for name, job in jobs.items():
        taken: tuple[list[Taken], list[Taken]] = ([], [])
        for _ in range(turns):
            for place, found in zip(places, taken, strict=True):
                CORES.use(*place)
                wall, processor = time.perf_counter(), time.process_time()
                job()
                found.append(Taken(time.perf_counter() - wall, time.process_time() - processor))
        CORES.use(None, 1)
        one, two = map(_least, taken)
        faster, more = one.wall / two.wall, two.processor / one.processor
        seconds = (one.wall, two.wall, one.processor, two.processor)
        rows.append((name, *(f"{1e3 * each:.1f}" for each in seconds), f"{faster:.2f}"))
        figures += _figures(name, faster, more)
    columns = ("", "one, ms", "two, ms", "processor", "processor", "speed-up")
    show(f"Blocks by one and by two threads, least of {turns}", columns, rows)
    return figures


# --- a whole study -----------------------------------------------------------------------------


def show_study(edges: int = STUDY_EDGES, runs: int = STUDY_RUNS) -> list[Figure]:
    """Print a study's seconds on one core and on all. Returns: their figures."""
    everything = os.sched_getaffinity(0)
    found: dict[str, Taken] = {}
    for label, cores in (("one core", {min(everything)}), ("all cores", everything)):
        os.sched_setaffinity(0, cores)  # the processes of the site inherit it
        try:
            found[label] = _study(edges, runs)
        finally:
            os.sched_setaffinity(0, everything)
    rows = [(name, f"{t.wall:.2f}", f"{t.processor:.2f}") for name, t in found.items()]
    job = f"Kendall, {edges:,} pairs of 2 nodes and a dealer, least of {runs}"
    show(job, ("", "seconds", "processor"), rows)
    one, all_of_them = found.values()
    faster = one.wall / all_of_them.wall
    name = f"{edges:,} pairs, 2 nodes"
    most = f"at most {SECONDS_OF_STUDY} s"
    is_soon = all_of_them.wall <= SECONDS_OF_STUDY
    return [
        Figure(f"{name}: in all", f"{all_of_them.wall:.2f} s", most, is_soon),
        Figure(
            f"{name}: all cores",
            f"{faster:.2f} times",
            f"at least {SPEED_UP}",
            faster >= SPEED_UP,
        ),
    ]


def _study(edges: int, runs: int) -> Taken:
    """The least seconds of a study in which everything is warm, and of its servers' processors."""
    with site(made_up(RECORDS), 2) as here:
        here.study(edges=str(edges // 10))
        taken = []
        for _ in range(runs):
            before = sum(here.processor_seconds().values())
            report = here.study(edges=str(edges))
            after = sum(here.processor_seconds().values())
            taken.append(Taken(report["seconds_total"], after - before))
    return Taken(min(each.wall for each in taken), min(each.processor for each in taken))


if __name__ == "__main__":
    show_targets(main(sys.argv[1:]))
