"""A site's Dask cluster, over mutual TLS: workers on other machines compute the site's tasks.

The node or the dealer is the cluster's client. A chunk's state stays at the worker that began it,
and the client holds a reference. When a worker dies, the scheduler gives its tasks to another one,
which computes them again from their beginning: the state is a pure function of the task
(`tasks.py`), so the same bytes come out. The client takes one result for each round and sends it
once.

Whoever has a certificate of the cluster's authority can run code on the cluster and sees all that
the site sees. So it is an authority of the site's own, and never the consortium's.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import logging
import secrets
import threading
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from umpc import __version__
from umpc.compute import cluster_tasks
from umpc.compute.cluster_tasks import HeardMessages, TaskFailure
from umpc.errors import ConfigError, PeerUnavailable, UmpcError
from umpc.mpc.masked.tasks import DealTask, Heard, OwnerBatch, OwnerTask, Said

log = logging.getLogger("umpc.compute")
Client: TypeAlias = Any
Future: TypeAlias = Any
"""Classes of `distributed`, an extra that may be missing."""

TLS_FILES = ("ca.pem", "cert.pem", "key.pem")
CONNECT_SECONDS = 20
"""Seconds that the scheduler may take to answer."""
MOST_AT_ONCE = 64
"""The most tasks that wait for a result of the cluster at the same time."""
TASKS_OF_THREAD = 2
"""Tasks for each thread of a worker: one that it computes, and one on its way."""


class DaskCluster:
    """A cluster, connected. Its workers must be there.

    Args: address: the scheduler's host:port. tls: a folder with the site's TLS_FILES.
    Raises: ConfigError, PeerUnavailable.
    """

    def __init__(self, address: str, tls: Path):
        self._address = f"tls://{address}"
        self._tls = tls
        self._name = secrets.token_hex(16)
        self._numbers = count()
        self._lock = threading.Lock()
        self._waiting = concurrent.futures.ThreadPoolExecutor(
            MOST_AT_ONCE, thread_name_prefix="cluster"
        )
        self._client = self._connected()
        self.at_once = self._check_workers(self._client)

    def __repr__(self) -> str:
        return f"DaskCluster({self._address})"

    # --- the executor --------------------------------------------------------------------------

    def begin(self, task: OwnerTask | OwnerBatch) -> RoundsAtCluster:
        """Give an owner's task to a worker. The scheduler chooses it."""
        return RoundsAtCluster(self, task)

    async def deal(self, task: DealTask) -> list[list[bytes]]:
        """For each chunk the material of each owner."""
        future = await self.submit(cluster_tasks.deal, task, __version__)
        payloads: list[list[bytes]] = await self.result(future)
        return payloads

    def close(self) -> None:
        """Let go of the cluster. It computes on for others."""
        self._waiting.shutdown(wait=False, cancel_futures=True)
        self._client.close(timeout=2)

    # --- futures -------------------------------------------------------------------------------

    async def submit(self, function: Any, *arguments: Any) -> Future:
        """Give a call to the cluster. Raises: PeerUnavailable."""
        return await self._in_thread(self._submit, function, *arguments)

    def _submit(self, function: Any, *arguments: Any) -> Future:
        # Dask takes two calls with one key for one call, also of two clients.
        key = f"{function.__name__}-{self._name}-{next(self._numbers)}"
        with self._lock:
            if self._client.status != "running":
                self._client = self._connected()
            return self._client.submit(function, *arguments, key=key, pure=False)

    async def result(self, future: Future) -> Any:
        """A call's result. Raises: the task's failure; PeerUnavailable where the cluster fails."""
        found = await self._in_thread(future.result)
        if isinstance(found, TaskFailure):
            raise found.error
        return found

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        """A call that waits for the cluster. Dask's own errors end here."""

        def guarded() -> Any:
            try:
                return function(*arguments)
            except UmpcError:
                raise
            except (Exception, asyncio.CancelledError) as error:
                log.warning("the cluster %s: %s", self._address, type(error).__name__)
                raise self._gone() from None

        return await asyncio.get_running_loop().run_in_executor(self._waiting, guarded)

    # --- connecting ----------------------------------------------------------------------------

    def _connected(self) -> Client:
        distributed = _library()
        security = distributed.Security(
            tls_ca_file=str(self._tls / "ca.pem"),
            tls_client_cert=str(self._tls / "cert.pem"),
            tls_client_key=str(self._tls / "key.pem"),
            require_encryption=True,
        )
        try:
            return distributed.Client(
                self._address,
                security=security,
                timeout=CONNECT_SECONDS,
                set_as_default=False,
                name="umpc",
            )
        except (OSError, TimeoutError, ValueError) as error:
            unavailable = self._gone()
            unavailable.detail = f"{self._address}: {type(error).__name__}: {error}"
            raise unavailable from None

    def _check_workers(self, client: Client) -> int:
        """The tasks that keep all workers busy. Raises: ConfigError, PeerUnavailable."""
        workers = client.scheduler_info(n_workers=-1)["workers"]
        open_ones = [address for address in workers if not address.startswith("tls://")]
        if open_ones:
            raise ConfigError(
                f"the workers {', '.join(open_ones)} of the cluster {self._address} listen without "
                "TLS. Start them with --protocol tls and their certificates (docs/cluster.md)"
            )
        if not workers:
            raise PeerUnavailable(f"the cluster {self._address} has no worker. Start one")
        for refusal in client.run(_refusal, __version__).values():
            if refusal:
                raise ConfigError(refusal)
        threads: int = sum(worker["nthreads"] for worker in workers.values())
        return max(1, min(TASKS_OF_THREAD * threads, MOST_AT_ONCE))

    def _gone(self) -> PeerUnavailable:
        # The message may reach other sites, and the address is nobody else's business.
        return PeerUnavailable(
            "this site's cluster does not compute: its scheduler or all its workers are gone. "
            "Start them, and run the study again",
            detail=self._address,
        )


class RoundsAtCluster:
    """The rounds of a task whose state is at a worker."""

    def __init__(self, cluster: DaskCluster, task: OwnerTask | OwnerBatch):
        self._cluster = cluster
        self._task: OwnerTask | OwnerBatch | None = task
        self._state: Future | None = None
        self._last: Future | None = None

    async def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds."""
        cluster = self._cluster
        if self._state is None:
            self._state = await cluster.submit(cluster_tasks.begin, self._task, __version__)
            self._task = None  # the scheduler keeps it until the state is dropped
        self._last = await cluster.submit(cluster_tasks.after, self._state, HeardMessages(heard))
        said: Said = await cluster.result(self._last)
        return said

    def drop(self) -> None:
        """Let the workers forget the task, also while they compute it."""
        for future in (self._last, self._state):
            if future is not None:
                future.release() if future.done() else future.cancel()
        self._last = self._state = None


def _refusal(version: str) -> str:
    """Why a worker may not compute, or nothing."""
    try:
        cluster_tasks.check_worker(version)
    except ConfigError as error:
        return error.message
    return ""


def _library() -> Any:
    """The module `distributed`. Raises: ConfigError where the extra is missing."""
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise ConfigError(
            'compute = "dask://…" needs the extra umpc[cluster], which is not installed here. '
            "Install it: pip install 'umpc[cluster]'"
        ) from None
