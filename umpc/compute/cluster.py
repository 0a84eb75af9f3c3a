"""A site's Dask cluster, over mutual TLS: workers on other machines compute the site's tasks.

The node or the dealer is the cluster's client. It gives each task away in one call, and each later
round of the task in one more. The state of a task stays at the worker that began it, and the client
holds a reference. When a worker dies, the scheduler gives its calls to another one, which computes
them again from their beginning: the state is a pure function of the task (`tasks.py`), so the same
bytes come out. The client takes one result for each round and sends it once.

A worker refuses to compute with another version of umpc, or where it may write what it holds to its
disk. A failure is a result here, and no exception: Dask would log an exception together with its
arguments, and try the task again.

Whoever has a certificate of the cluster's authority can run code on the cluster and sees all that
the site sees. So it is an authority of the site's own, and never the consortium's.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

from umpc import __version__
from umpc.compute.executor import Executor
from umpc.errors import ConfigError, PeerUnavailable, UmpcError, installing
from umpc.mpc.masked.tasks import Heard, OwnerBatch, Said, TaskRounds

log = logging.getLogger("umpc.compute")
CallAtCluster: TypeAlias = Any
"""A `distributed.Future`. The library is an extra that may be missing."""
TLS_FILES = ("ca.pem", "cert.pem", "key.pem")
CONNECT_SECONDS = 20
"""Seconds that the scheduler may take to answer."""
MOST_CALLS = 64
"""The most calls that wait for a result of the cluster at the same time. A task takes 1 to 2 MB."""
CALLS_OF_THREAD = 4
"""Calls for each thread of a worker: one that it computes, and some on their way."""
NEVER_ON_DISK = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
}
"""Settings of every worker: masks and records stay in memory."""


class DaskCluster(Executor):
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
        self._waiting = ThreadPoolExecutor(MOST_CALLS, thread_name_prefix="cluster")
        self._client = self._connected()
        self.at_once = min(CALLS_OF_THREAD * self._check_workers(self._client), MOST_CALLS)

    def __repr__(self) -> str:
        return f"DaskCluster({self._address})"

    def begin(self, task: OwnerBatch) -> RoundsAtCluster:
        """Give an owner's task to a worker. The scheduler chooses it."""
        return RoundsAtCluster(self, task)

    async def run(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """A function's result, from a worker that has the function's module."""
        call = partial(function, *arguments, **named)
        return await self.result(await self.submit(_run, Redacted(call)))

    def close(self) -> None:
        """Let go of the cluster. It computes on for others."""
        self._waiting.shutdown(wait=False, cancel_futures=True)
        self._client.close(timeout=2)

    async def submit(self, function: Callable[..., Any], *arguments: Any) -> CallAtCluster:
        """Give a call to the cluster. Raises: PeerUnavailable."""
        return await self._in_thread(self._submit, function, *arguments)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> CallAtCluster:
        # Dask takes two calls with one key for one call, also of two clients.
        key = f"{function.__name__}-{self._name}-{next(self._numbers)}"
        with self._lock:
            if self._client.status != "running":
                self._client = self._connected()
            return self._client.submit(function, *arguments, key=key, pure=False)

    async def result(self, call: CallAtCluster) -> Any:
        """A call's result. Raises: the task's failure; PeerUnavailable where the cluster fails."""
        found = await self._in_thread(call.result)
        if isinstance(found, UmpcError):
            raise found
        return found

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
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

    def _connected(self) -> Any:
        distributed = _library()
        security = distributed.Security(
            tls_ca_file=str(self._tls / "ca.pem"),
            tls_client_cert=str(self._tls / "cert.pem"),
            tls_client_key=str(self._tls / "key.pem"),
            require_encryption=True,
        )
        settings = {"timeout": CONNECT_SECONDS, "set_as_default": False, "name": "umpc"}
        try:
            return distributed.Client(self._address, security=security, **settings)
        except (OSError, TimeoutError, ValueError) as error:
            unavailable = self._gone()
            unavailable.detail = f"{self._address}: {type(error).__name__}: {error}"
            raise unavailable from None

    def _check_workers(self, client: Any) -> int:
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
        for refused in client.run(refusal, __version__).values():
            if refused:
                raise refused
        threads: int = sum(worker["nthreads"] for worker in workers.values())
        return max(1, threads)

    def _gone(self) -> PeerUnavailable:
        # The message may reach other sites, and the address is nobody else's business.
        return PeerUnavailable(
            "this site's cluster does not compute: its scheduler or all its workers are gone. "
            "Start them, and run the study again",
            detail=self._address,
        )


class RoundsAtCluster:
    """The rounds of a task whose state is at a worker."""

    def __init__(self, cluster: DaskCluster, task: OwnerBatch):
        self._cluster = cluster
        self._task: OwnerBatch | None = task
        self._calls: list[CallAtCluster] = []
        """The call whose result is the state, and the call of the last round."""

    async def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds."""
        if self._task is not None:
            given, self._task = Redacted(self._task), None
            self._calls = [await self._cluster.submit(_begin, given)]
        call = await self._cluster.submit(_after, self._calls[0], Redacted(heard))
        self._calls[1:] = [call]
        said: Said = await self._cluster.result(call)
        return said

    def drop(self) -> None:
        """Let the workers forget the task, also while they compute it."""
        for call in self._calls:
            call.release() if call.done() else call.cancel()
        self._calls = []


# --- what a worker runs ------------------------------------------------------------------------


class Redacted:
    """An argument on its way to a worker, without its content in any log of Dask's.

    version: of the umpc that gives it.
    """

    def __init__(self, content: Any):
        self.content = content
        self.version = __version__

    def __repr__(self) -> str:
        return "Redacted()"


def _begin(given: Redacted) -> TaskRounds | UmpcError:
    """Begin an owner's task. The result stays at the worker."""
    return refusal(given.version) or _tried(TaskRounds, given.content)


def _after(rounds: TaskRounds | UmpcError, heard: Redacted) -> Said | UmpcError:
    """Return what the owner says after these rounds."""
    if isinstance(rounds, UmpcError):
        return rounds
    said: Said | UmpcError = _tried(rounds.after, heard.content)
    return said


def _run(given: Redacted) -> Any:
    """A function's result."""
    return refusal(given.version) or _tried(given.content)


def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    """A function's result, or its failure."""
    try:
        return function(*arguments)
    except UmpcError as error:
        return error


def refusal(version: str) -> ConfigError | None:
    """Why this worker may not compute for a client of this version; None if it may."""
    if version != __version__:
        return ConfigError(
            f"a worker of this site's cluster runs umpc {__version__}, and {version} gave it a "
            "task. Install one version on all machines of the site"
        )
    config = importlib.import_module("dask.config").get  # an extra: without types
    for key, value in NEVER_ON_DISK.items():
        if config(key, default=True) is not value:
            return ConfigError(
                f"a worker of this site's cluster has {key} = {config(key, default=True)}, and "
                f"{value} was expected: what it holds must not reach its disk. Start it with that "
                "setting (docs/cluster.md)"
            )
    return None


def _library() -> Any:
    """The module `distributed`. Raises: ConfigError where the extra is missing."""
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise ConfigError(
            'compute = "dask://…" needs the extra `cluster`, which is not installed here: '
            + installing("cluster")
        ) from None
