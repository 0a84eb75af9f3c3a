"""`make cluster-demo`: two sites' chunks on two Dask clusters, workers killed in the middle.

Kendall's tau over all pairs of two nodes' records, in this process, twice with the same seeds: once
on this machine alone, and once with each node on a cluster of its own: a scheduler and two workers,
which speak TLS only and know another authority than those of the other site. A worker of the first
site is killed when a third of the chunks is done, and one of the second site after two thirds. The
two runs must agree in every sum and in every message that the nodes and the dealer sent, and the
sum must be that which numpy finds in the clear.

Nothing here protects anything: all parties are in one process.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import pickle
import resource
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.dask_sites import Cluster, cluster
from bench.kendall import kendall_study
from umpc.compute.executor import Executor, GivenRounds
from umpc.crypto.prg import Stream
from umpc.dealer.material import MaterialDealer
from umpc.edges_in_memory import EdgesInMemory
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.tasks import Heard, Said
from umpc.simulation import ready_for_edges
from umpc.ustat.cell_rows import AT_ONCE

EDGES = 100_000_000
"""About so many edges have a record of each site, and are computed under shares. All pairs do."""

Tables: TypeAlias = list[dict[str, NDArray[np.int64]]]


@dataclass(frozen=True)
class Outcome:
    """The result of a run, and a digest of all that was sent.

    sums: of the nodes' shares, in the ring. messages: how many. digest: of all of them.
    """

    sums: tuple[int, ...]
    messages: int
    digest: bytes
    chunks: int


async def evaluate(
    edges: EdgesInMemory,
    places: tuple[Executor, ...],
    done: Callable[[int], None] = lambda number: None,
) -> Outcome:
    """All chunks of a study, several at once. The memory is that of the chunks under way.

    Args: places: where each node computes, and last the dealer. done: called after each chunk.
    """
    most = max(place.at_once for place in places)
    modulus = 1 << edges.attempt.ring.bits
    sums: list[int] = []
    messages, count, digest = 0, 0, hashlib.sha256()
    under_way: deque[asyncio.Task[tuple[list[int], list[bytes]]]] = deque()

    async def take() -> None:
        nonlocal sums, messages, count
        found, sent = await under_way.popleft()
        sums = [
            (one + other) % modulus
            for one, other in zip(sums or [0] * len(found), found, strict=True)
        ]
        digest.update(b"".join(sent))
        messages, count = messages + len(sent), count + 1
        done(count)

    async with asyncio.TaskGroup() as group:
        for chunk in edges.attempt.chunks():
            under_way.append(group.create_task(_chunk(edges, chunk, places)))
            if len(under_way) >= most:
                await take()
        while under_way:
            await take()
    return Outcome(tuple(sums), messages, digest.digest(), count)


async def _chunk(
    edges: EdgesInMemory, chunk: Chunk, places: tuple[Executor, ...]
) -> tuple[list[int], list[bytes]]:
    """The sums over a chunk, and the digest of each message."""
    dealer = edges.dealer
    assert isinstance(dealer, MaterialDealer)
    (payloads,) = await places[-1].run(dealer.task(chunk).payloads)
    given: list[GivenRounds] = []
    for node, payload in zip(chunk.parties, payloads, strict=True):
        mesh = edges.meshes[node]
        assert mesh is not None
        task = mesh.batch([chunk], [payload])
        assert task is not None
        given.append(places[node].begin(task))
    sent = [hashlib.sha256(payload).digest() for payload in payloads]
    heard: list[Heard] = [()] * len(given)
    said = await _all(given, heard)
    while messages := [message for each in said if isinstance(each, list) for message in each]:
        sent += [hashlib.sha256(message.payload).digest() for message in messages]
        for party in range(len(given)):
            others = tuple(messages[:party] + messages[party + 1 :])
            heard[party] = (*heard[party], (others,))
        said = await _all(given, heard)
    for each in given:
        each.drop()
    shares = [each.result[0] for each in said if not isinstance(each, list)]
    return [sum(column) for column in zip(*shares, strict=True)], sent


async def _all(given: list[GivenRounds], heard: list[Heard]) -> list[Said]:
    return list(await asyncio.gather(*(g.after(h) for g, h in zip(given, heard, strict=True))))


def tables_of(records: int) -> Tables:
    """The tables of two nodes, the same at every call."""
    rng = np.random.default_rng(0)
    return [{name: rng.integers(0, 1000, records) for name in "xy"} for _ in range(2)]


def study_in_memory(records: int, edges: str = "all") -> EdgesInMemory:
    """A study of two nodes up to its first edge, the same at every call. edges: as in a study."""
    study = kendall_study(2, 1000, "1", edges=edges)
    found = ready_for_edges(study, tables_of(records), Stream(bytes(32)).bytes)
    assert found is not None
    return found


def bytes_an_edge() -> int:
    """Bytes of a node's task for each edge, pickled."""
    edges = study_in_memory(500)
    chunk = next(edges.attempt.chunks())
    node = chunk.parties[0]
    assert edges.dealer is not None
    mesh, material = edges.meshes[node], dict(edges.dealer.deal_one(chunk))[node].payload
    assert mesh is not None
    return len(pickle.dumps(mesh.batch([chunk], [material]))) // chunk.count


@dataclass
class Progress:
    """Print about every tenth of a run. Args: what: names it. chunks: all of the run."""

    what: str
    chunks: int

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._next = 1

    def __call__(self, done: int) -> None:
        """Tell that so many chunks are done."""
        if done * 10 >= self._next * self.chunks:
            self._next = done * 10 // self.chunks + 1
            seconds = time.monotonic() - self._began
            print(f"{self.what}: {done} of {self.chunks} chunks, {seconds:.0f} s", flush=True)


def sum_in_the_clear(edges: EdgesInMemory, tables: Tables) -> int:
    """The kernel's sum over the shared edges, by numpy alone, without a share or a mask."""
    total = 0
    for owners, cell in edges.attempt.hypergraph.shared_cells.items():
        for start in range(0, cell.count, AT_ONCE):
            rows = cell.edges(start, min(start + AT_ONCE, cell.count))
            signs = [
                np.sign(tables[owners[0]][name][rows[0]] - tables[owners[1]][name][rows[1]])
                for name in "xy"
            ]
            total += int((signs[0] * signs[1]).sum())
    return total


def alone(records: int) -> tuple[Outcome, bool]:
    """Run on this machine alone. Returns: the outcome, and whether its sum is the clear one."""
    study = study_in_memory(records)
    chunks = sum(1 for _ in study.attempt.chunks())
    began, computed = time.monotonic(), time.process_time()
    here = Executor()
    found = asyncio.run(evaluate(study, (here, here, here), Progress("this machine", chunks)))
    seconds, computed = time.monotonic() - began, time.process_time() - computed
    print(f"this machine alone: {seconds:.1f} s, {computed:.1f} processor seconds")
    clear = sum_in_the_clear(study, tables_of(records))
    print(f"the sum in the clear: {clear}")
    return found, clear % (1 << study.attempt.ring.bits) == found.sums[0]


def spread(records: int, chunks: int) -> tuple[Outcome, int]:
    """Run on two clusters, and kill a worker of each. Returns: the outcome, and workers killed."""
    with cluster() as north, cluster() as south:
        sites = north, south
        places = tuple(_opened(site) for site in sites)
        # chunks done → the site that then loses a worker
        due = {chunks // 3: north, 2 * chunks // 3: south}
        progress = Progress("two clusters", chunks)

        def done(count: int) -> None:
            progress(count)
            site = due.pop(count, None)
            if site is not None:
                site.kill_worker(0)
                print(f"a worker was killed after {count} of {chunks} chunks", flush=True)

        study = study_in_memory(records)
        began, computed = time.monotonic(), time.process_time()
        before = sum(site.processor_seconds() for site in sites)
        found = asyncio.run(evaluate(study, (*places, Executor()), done))
        own, all_of_them = time.process_time() - computed, sum(s.processor_seconds() for s in sites)
        print(
            f"two clusters: {time.monotonic() - began:.1f} s; processor seconds: {own:.1f} of this "
            f"process, {all_of_them - before:.1f} of schedulers and workers"
        )
        print(f"a scheduler or worker took {max(s.peak_mib() for s in sites)} MiB at most")
        for place in places:
            place.close()
    return found, 2 - len(due)


def main() -> int:
    """Run the demonstration. Returns: 0 where all runs agree."""
    records = ceil(sqrt(int(os.environ.get("EDGES") or EDGES)))
    print(f"{records**2:,} edges between the {records:,} records of each of two nodes")
    print(f"a task takes {bytes_an_edge()} bytes an edge to its worker", flush=True)
    one, is_clear = alone(records)
    two, killed = spread(records, one.chunks)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"this process took {peak} MiB at most")
    for name, run in (("alone", one), ("clusters", two)):
        print(f"{name:8} sum {run.sums[0]}  {run.messages} messages  {run.digest.hex()[:32]}")
    print("the same, bit for bit" if one == two else "THE RUNS DIFFER")
    print("the clear sum" if is_clear else "NOT THE CLEAR SUM")
    return 0 if one == two and is_clear and killed == 2 else 1


def _opened(site: Cluster) -> Executor:
    place = site.place.open()
    assert place is not None
    return place


if __name__ == "__main__":
    sys.exit(main())
