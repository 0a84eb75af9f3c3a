"""This machine's seconds for an edge, from chunks of the study's own kernels on made-up records.

Only chunks are timed. The links of a small study are set up once, and then chunks of growing size
are dealt and evaluated until one takes long enough to tell.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass
from math import comb

from umpc.crypto.prg import Stream
from umpc.edges_in_memory import EdgesInMemory
from umpc.mpc.chunks import Chunk, pattern_of
from umpc.protocols.base.one_message import uniform_columns
from umpc.protocols.registry import protocol_of
from umpc.simulation import ready_for_edges
from umpc.study.document import Study
from umpc.ustat.hypergraph import Owners

TRIAL_RECORDS = 400
"""The most records of a node in a trial."""
OWN_SETS = 1 << 17
"""The most sets of a node's own records in a trial, which it evaluates before all others."""
FEWEST_EDGES = 16
"""The edges of the first chunk that is timed."""
LONG_ENOUGH = 0.03
"""By so many seconds a chunk takes longer than the first one before both tell of an edge."""
GROWTH = 8


Shares = tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """Seconds of work for one edge.

    dealing: at the dealer. evaluating: at all its owners together.
    """

    dealing: float
    evaluating: float


def measure_machine(study: Study) -> Machine:
    """The speed of this machine, from a trial of the study's own kernels on made-up records.

    The trial runs in this process and takes a fraction of a second.
    """
    if study.degree == 1:
        return Machine(0.0, 0.0)
    edges = _ready(study)
    if edges is None:
        return Machine(0.0, 0.0)
    largest, counts = _shapes_of_cells(edges)
    whole = sum(counts.values())
    dealing = evaluating = 0.0
    for shares, owners in largest.items():
        dealt, evaluated = _seconds_of_an_edge(edges, owners)
        dealing += dealt * counts[shares] / whole
        evaluating += evaluated * counts[shares] / whole
    return Machine(dealing, evaluating)


def machine_of_bytes(study: Study, bytes_online: int, edges: int) -> Machine | None:
    """The speed of a usual machine, where bytes tell it (`Protocol.byte_seconds`). No trial runs.

    Args: bytes_online: of the study's edges in all. edges: those with several owners.
    """
    seconds = protocol_of(study).byte_seconds(study)
    return None if seconds is None else Machine(0.0, seconds * bytes_online / max(1, edges))


def _ready(study: Study) -> EdgesInMemory | None:
    """A small study of the same kernels, up to its first edge."""
    nodes = study.nodes[: max(2, study.degree)]
    trial = protocol_of(study).trial_over_edges(study).replaced(nodes=nodes)
    stream, records = Stream(bytes(32)), TRIAL_RECORDS
    while comb(records, study.degree) > OWN_SETS:
        records -= records // 8
    tables = [uniform_columns(trial, records, stream) for _ in nodes]
    return ready_for_edges(trial, tables, os.urandom)


def _shapes_of_cells(edges: EdgesInMemory) -> tuple[dict[Shares, Owners], Counter[Shares]]:
    """For each number of records that owners have in an edge: its largest cell, and its edges."""
    largest: dict[Shares, Owners] = {}
    counts: Counter[Shares] = Counter()
    cells = edges.attempt.hypergraph.shared_cells
    for owners in sorted(cells, key=lambda owners: cells[owners].count):
        shares = tuple(sorted(Counter(owners).values()))
        largest[shares] = owners
        counts[shares] += cells[owners].count
    return largest, counts


def _seconds_of_an_edge(edges: EdgesInMemory, owners: Owners) -> tuple[float, float]:
    """Processor seconds to deal an edge of a cell, and to evaluate it at all its owners.

    The first chunk and the last one tell the cost of an edge and that of a chunk. No edge is
    evaluated twice.
    """
    cell = edges.attempt.hypergraph.cells[owners]
    most = min(edges.attempt.program.plans[pattern_of(owners)].chunk_edges, cell.count)
    chunk = Chunk(owners, 0, 0, min(FEWEST_EDGES, most))
    first = _seconds_of(edges, chunk)
    found = [(chunk.count, *first)]
    size = chunk.count * GROWTH
    if sum(first) < LONG_ENOUGH:
        size = chunk.count
        found = []  # what is made once may have taken most of it
    while (count := min(size, most, cell.count - chunk.stop)) > 0:
        chunk = Chunk(owners, chunk.number + 1, chunk.stop, chunk.stop + count)
        found.append((count, *_seconds_of(edges, chunk)))
        if count == most or sum(found[-1][1:]) - sum(found[0][1:]) >= LONG_ENOUGH:
            break
        size *= GROWTH
    found = found or [(chunk.count, *first)]
    return _of_an_edge(found, 1, most), _of_an_edge(found, 2, most)


def _seconds_of(edges: EdgesInMemory, chunk: Chunk) -> tuple[float, float]:
    """Processor seconds to deal a chunk, and to evaluate it."""
    started = time.process_time()
    dealt = edges.deal(chunk)
    then = time.process_time()
    edges.evaluate(chunk, dealt)
    return then - started, time.process_time() - then


def _of_an_edge(found: list[tuple[int, float, float]], column: int, most: int) -> float:
    """Seconds of an edge in a chunk of `most` edges, from (edges, seconds …) of some chunks."""
    first, last = min(found), max(found)
    if last[0] == first[0]:
        return last[column] / last[0]
    slope = max(0.0, last[column] - first[column]) / (last[0] - first[0])
    return slope + max(0.0, first[column] - slope * first[0]) / most
