"""A site's Dask cluster, over mutual TLS: workers on other machines compute the site's tasks.

The node or the dealer is the cluster's client. It gives tasks away in bundles (`bundles.py`). Their
state stays at the worker that began them, and the client holds a reference. When a worker dies, the
scheduler gives its calls to another one, which computes them again from their beginning: the state
is a pure function of the tasks (`tasks.py`), so the same bytes come out. The client takes one
result for each round and sends it once.

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
from umpc.compute.bundles import TASKS_OF_CALL, Bundles, CallAtCluster, RoundsAtCluster
from umpc.compute.cluster_tasks import TaskFailure
from umpc.errors import ConfigError, PeerUnavailable, UmpcError, installing
from umpc.mpc.masked.tasks import DealTask, OwnerBatch, OwnerTask

log = logging.getLogger("umpc.compute")
Client: TypeAlias = Any
"""A class of `distributed`, an extra that may be missing."""

TLS_FILES = ("ca.pem", "cert.pem", "key.pem")
CONNECT_SECONDS = 20
"""Seconds that the scheduler may take to answer."""
MOST_CALLS = 64
"""The most calls that wait for a result of the cluster at the same time."""
CALLS_OF_THREAD = 2
"""Calls for each thread of a worker: one that it computes, and one on its way."""
MOST_TASKS = 128
"""The most tasks that are given to the cluster at the same time. One takes 1 to 2 MB."""


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
            MOST_CALLS, thread_name_prefix="cluster"
        )
        self._client = self._connected()
        calls = min(CALLS_OF_THREAD * self._check_workers(self._client), MOST_CALLS)
        self._bundles = Bundles(self, calls)
        self.at_once = min(calls * TASKS_OF_CALL, MOST_TASKS)

    def __repr__(self) -> str:
        return f"DaskCluster({self._address})"

    # --- the executor --------------------------------------------------------------------------

    takes_turns = False

    def begin(self, task: OwnerTask | OwnerBatch) -> RoundsAtCluster:
        """Give an owner's task to a worker. The scheduler chooses it."""
        return RoundsAtCluster(self._bundles, task)

    async def deal(self, task: DealTask) -> list[list[bytes]]:
        """For each chunk the material of each owner."""
        return await self._bundles.deal(task)

    def close(self) -> None:
        """Let go of the cluster. It computes on for others."""
        self._waiting.shutdown(wait=False, cancel_futures=True)
        self._client.close(timeout=2)

    # --- calls ---------------------------------------------------------------------------------

    async def submit(self, function: Any, *arguments: Any) -> CallAtCluster:
        """Give a call to the cluster. Raises: PeerUnavailable."""
        return await self._in_thread(self._submit, function, *arguments)

    def _submit(self, function: Any, *arguments: Any) -> CallAtCluster:
        # Dask takes two calls with one key for one call, also of two clients.
        key = f"{function.__name__}-{self._name}-{next(self._numbers)}"
        with self._lock:
            if self._client.status != "running":
                self._client = self._connected()
            return self._client.submit(function, *arguments, key=key, pure=False)

    async def result(self, call: CallAtCluster) -> Any:
        """A call's result. Raises: the call's failure; PeerUnavailable where the cluster fails."""
        found = await self._in_thread(call.result)
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
        """The number of all workers' threads. Raises: ConfigError, PeerUnavailable."""
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
        return max(1, threads)

    def _gone(self) -> PeerUnavailable:
        # The message may reach other sites, and the address is nobody else's business.
        return PeerUnavailable(
            "this site's cluster does not compute: its scheduler or all its workers are gone. "
            "Start them, and run the study again",
            detail=self._address,
        )


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
            'compute = "dask://…" needs the extra `cluster`, which is not installed here: '
            + installing("cluster")
        ) from None
