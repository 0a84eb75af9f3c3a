"""`make cluster-demo`: two sites' chunks on two Dask clusters, workers killed in the middle.

Kendall's tau over pairs of two nodes, in this process, twice with the same seeds: once on this
machine alone, and once with each node on a cluster of its own: a scheduler and two workers, which
speak TLS only and know another authority than those of the other site. A worker of the first site
is killed when a third of the chunks is done, and one of the second site after two thirds. The two
runs must agree in every sum and in every message that the nodes and the dealer sent.

Nothing here protects anything: all parties are in one process.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.kendall import kendall_study
from umpc.compute.executor import Executor, GivenRounds, InlineExecutor
from umpc.compute.place import ComputePlace
from umpc.crypto.prg import Stream
from umpc.crypto.rounds import Message
from umpc.dealer.session import DealerSession
from umpc.edges_in_memory import EdgesInMemory
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.tasks import Heard, Said
from umpc.protocols.base.node import GivesTasks
from umpc.simulation import ready_for_edges
from umpc.transport.authority import Authority

RECORDS = 20_000
"""The records of each node."""
SECONDS = 120
"""The most seconds for the cluster to start."""
WORKER_SETTINGS = {
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
}


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
    assert isinstance(dealer, DealerSession)
    (payloads,) = await places[-1].deal(dealer.task(chunk))
    given: list[GivenRounds] = []
    for node, payload in zip(chunk.parties, payloads, strict=True):
        mesh = edges.meshes[node]
        assert isinstance(mesh, GivesTasks)
        task = mesh.task(chunk, payload)
        assert task is not None
        given.append(places[node].begin(task))
    sent = [hashlib.sha256(payload).digest() for payload in payloads]
    heard: list[Heard] = [()] * len(given)
    said = await _all(given, heard)
    while all(isinstance(each, Message) for each in said):
        messages = [each for each in said if isinstance(each, Message)]
        sent += [hashlib.sha256(message.payload).digest() for message in messages]
        for party in range(len(given)):
            others = tuple(messages[:party] + messages[party + 1 :])
            heard[party] = (*heard[party], others)
        said = await _all(given, heard)
    for each in given:
        each.drop()
    shares = [each.result for each in said if not isinstance(each, Message)]
    return [sum(column) for column in zip(*shares, strict=True)], sent


async def _all(given: list[GivenRounds], heard: list[Heard]) -> list[Said]:
    return list(await asyncio.gather(*(g.after(h) for g, h in zip(given, heard, strict=True))))


def study_in_memory(edges: int, records: int = RECORDS) -> EdgesInMemory:
    """A study of two nodes up to its first edge, the same at every call."""
    rng = np.random.default_rng(0)
    tables = [{name: rng.integers(0, 1000, records) for name in "xy"} for _ in range(2)]
    study = kendall_study(2, 1000, "1", edges=str(edges))
    found = ready_for_edges(study, tables, Stream(bytes(32)).bytes)
    assert found is not None
    return found


def bytes_an_edge() -> int:
    """Bytes of a node's task for each edge, pickled."""
    edges = study_in_memory(20_000, 500)
    chunk = next(edges.attempt.chunks())
    node = chunk.parties[0]
    assert edges.dealer is not None
    mesh, material = edges.meshes[node], dict(edges.dealer.deal_one(chunk))[node].payload
    assert isinstance(mesh, GivesTasks)
    return len(pickle.dumps(mesh.task(chunk, material))) // chunk.count


# --- the cluster -------------------------------------------------------------------------------


class Cluster:
    """A scheduler and workers on this machine, with certificates of an authority of their own."""

    def __init__(self, folder: Path, workers: int, **settings: str):
        authority = Authority.create(folder / "cluster-authority")
        self.tls = folder / "cluster"
        authority.issue("cluster", "node", self.tls)
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self._start(
            "scheduler",
            "--scheduler-file",
            str(self._file),
            "--port",
            "0",
            "--no-show",
            "--no-dashboard",
            "--host",
            "tls://127.0.0.1",
        )
        for number in range(workers):
            self.start_worker(number, **settings)

    def start_worker(self, number: int, **settings: str) -> None:
        """Start a worker of one process, which Dask does not start again when it dies."""
        self._start(
            "worker",
            "--scheduler-file",
            str(self._file),
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--name",
            f"worker-{number}",
            "--local-directory",
            str(self._folder),
            **settings,
        )

    def _start(self, kind: str, *arguments: str, **settings: str) -> None:
        files = ("--tls-ca-file", "ca.pem"), ("--tls-cert", "cert.pem"), ("--tls-key", "key.pem")
        tls = [text for key, file in files for text in (key, str(self.tls / file))]
        command = [sys.executable, "-m", "distributed.cli.dask_" + kind, *tls, *arguments]
        environment = {**os.environ, **WORKER_SETTINGS, **settings}
        log = (self._folder / f"{kind}-{len(self.processes)}.log").open("wb")
        self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))

    @property
    def place(self) -> ComputePlace:
        """The place that a configuration would name, as soon as the scheduler serves."""
        import json

        deadline = time.monotonic() + SECONDS
        while not self._file.exists() or not self._file.read_text().strip():
            if time.monotonic() > deadline:
                raise TimeoutError("the scheduler did not start")
            time.sleep(0.1)
        address = json.loads(self._file.read_text())["address"].removeprefix("tls://")
        return ComputePlace(cluster=f"dask://{address}", tls=self.tls)

    def wait_for_workers(self) -> None:
        """Wait until every worker has come."""
        with self._client() as client:
            client.wait_for_workers(len(self.processes) - 1, timeout=SECONDS)

    def begun_at(self, number: int) -> int:
        """The number of tasks that the scheduler has given to a worker, without a result yet."""
        with self._client() as client:
            workers = client.scheduler_info(n_workers=-1)["workers"]
            names = {worker["name"]: address for address, worker in workers.items()}
            return len(client.processing()[names[f"worker-{number}"]])

    def _client(self) -> Any:
        from distributed import Client, Security

        security = Security(
            tls_ca_file=str(self.tls / "ca.pem"),
            tls_client_cert=str(self.tls / "cert.pem"),
            tls_client_key=str(self.tls / "key.pem"),
            require_encryption=True,
        )
        address = self.place.cluster.replace("dask://", "tls://")
        return Client(address, security=security, set_as_default=False)

    def kill_worker(self, number: int) -> None:
        """End a worker at once, as a failure of its machine does."""
        self.processes[1 + number].send_signal(signal.SIGKILL)

    def close(self) -> None:
        """End all processes."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()


@contextlib.contextmanager
def cluster(workers: int = 2, **settings: str) -> Iterator[Cluster]:
    """A cluster that is gone at the end. Args: settings: of the workers' environment."""
    with tempfile.TemporaryDirectory() as folder:
        found = Cluster(Path(folder), workers, **settings)
        try:
            found.wait_for_workers()
            yield found
        finally:
            found.close()


def main() -> int:
    """Run the demonstration. Returns: 0 where both runs agree."""
    edges = int(os.environ.get("EDGES") or 1_000_000)
    here = InlineExecutor()
    print(f"{edges:,} edges of two nodes with {RECORDS:,} records each")
    print(f"a task takes {bytes_an_edge()} bytes an edge to its worker")
    began = time.monotonic()
    alone = asyncio.run(evaluate(study_in_memory(edges), (here, here, here)))
    print(f"this machine alone: {alone.chunks} chunks in {time.monotonic() - began:.1f} s")
    with cluster() as north, cluster() as south:
        places = tuple(_opened(site) for site in (north, south))
        # chunks done → the site that then loses a worker
        due = {alone.chunks // 3: north, 2 * alone.chunks // 3: south}

        def kill(done: int) -> None:
            site = due.pop(done, None)
            if site is not None:
                site.kill_worker(0)
                print(f"a worker was killed after {done} of {alone.chunks} chunks")

        began = time.monotonic()
        spread = asyncio.run(evaluate(study_in_memory(edges), (*places, here), kill))
        print(f"two clusters: {spread.chunks} chunks in {time.monotonic() - began:.1f} s")
        for place in places:
            place.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"this process took {peak} MiB at most")
    for name, run in (("alone", alone), ("cluster", spread)):
        print(f"{name:8} sum {run.sums[0]}  {run.messages} messages  {run.digest.hex()[:32]}")
    print("the same, bit for bit" if alone == spread else "THE RUNS DIFFER")
    return 0 if alone == spread and not due else 1


def _opened(site: Cluster) -> Executor:
    place = site.place.open()
    assert place is not None
    return place


if __name__ == "__main__":
    sys.exit(main())
