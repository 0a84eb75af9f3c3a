"""Dask clusters on this machine: each is a site's own, with a scheduler, workers and an authority.

They speak mutual TLS only, as docs/cluster.md tells a site.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from umpc.compute.place import ComputePlace
from umpc.transport.authority import Authority

SECONDS = 120
"""The most seconds for the cluster to start."""
WORKER_SETTINGS = {
    "DASK_DISTRIBUTED__WORKER__MEMORY__TARGET": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__SPILL": "False",
    "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
}


class Cluster:
    """A scheduler and workers on this machine, with certificates of an authority of their own."""

    def __init__(self, folder: Path, workers: int, **settings: str):
        authority = Authority.create(folder / "cluster-authority")
        self.tls = folder / "cluster"
        authority.issue("cluster", "node", self.tls)
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self._seconds: dict[int, float] = {}
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

    def processor_seconds(self) -> float:
        """The seconds that the processes have computed, those that are dead among them."""
        for number, process in enumerate(self.processes):
            with contextlib.suppress(OSError, IndexError):  # it is dead
                fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
                ticks = int(fields[11]) + int(fields[12])
                self._seconds[number] = ticks / os.sysconf("SC_CLK_TCK")
        return sum(self._seconds.values())

    def peak_mib(self) -> int:
        """The most memory that one of the processes took, in MiB."""
        peaks = [0]
        for process in self.processes:
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
                peaks += [int(line.split()[1]) // 1024 for line in lines if "VmHWM" in line]
        return max(peaks)

    def kill_worker(self, number: int) -> None:
        """End a worker at once, as a failure of its machine does."""
        self.processor_seconds()
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
