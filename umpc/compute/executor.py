"""A place that computes tasks: this thread, and threads of this process.

| class | computes in | for |
|---|---|---|
| `Executor` | the caller | tests, and to compare others with |
| `CoreThreads` | threads, one for each core | one machine |
| `cluster.DaskCluster` | workers of a Dask cluster | several machines of a site |

On one machine a task shares all arrays with its caller. AES, numpy's loops and the compiled sign
gate release the interpreter's lock. Short loops give little: the thread takes the lock again before
another one is awake (docs/cluster.md).

No task is given away that is smaller than its way there and back (`SMALLEST_TASK`).

*Place.* The place that a configuration names for the chunks of a node or a dealer.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from umpc.errors import ConfigError
from umpc.mpc.masked.tasks import Heard, OwnerBatch, Said, TaskRounds
from umpc.ustat.blocks import CORES

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

SMALLEST_TASK = 1024
"""Edges of the smallest chunk that is given away."""


class GivenRounds(Protocol):
    """The rounds of an owner's task that was given away."""

    async def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds. Raises: as `TaskRounds`; EncodingError."""
        ...

    def drop(self) -> None:
        """Nobody needs the task any more."""
        ...


class Executor:
    """This thread: a task is computed where it is awaited. Other places derive from it."""

    at_once = 1
    """The number of tasks that keep the place busy."""

    def begin(self, task: OwnerBatch) -> GivenRounds:
        """Give an owner's task away."""
        return RoundsHere(task, self.run)

    async def run(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """A function's result. Function and arguments may go to another machine of the site.

        Each call is given back once, however often it is computed.
        """
        return function(*arguments, **named)

    def close(self) -> None:
        """Let go of the place. Threads stay: other nodes of this process may use the same ones."""


class CoreThreads(Executor):
    """Threads of this process. Args: cores: how many compute at the same time.

    A thread begins when there is work for it, and ends with the object.
    """

    def __init__(self, cores: int):
        self.threads = ThreadPoolExecutor(cores, thread_name_prefix="chunks")
        self.at_once = cores

    async def run(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """A function's result, from one of the threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, lambda: function(*arguments, **named))


class RoundsHere:
    """The rounds of a task in this process. Args: run: computes, and is awaited."""

    def __init__(self, task: OwnerBatch, run: Callable[..., Any]):
        self._task = task
        self._run = run
        self._rounds: TaskRounds | None = None

    async def after(self, heard: Heard) -> Said:
        """Return what the owner says after these rounds."""
        said: Said = await self._run(self._after, heard)
        return said

    def _after(self, heard: Heard) -> Said:
        if self._rounds is None:
            self._rounds = TaskRounds(self._task)
        return self._rounds.after(heard)

    def drop(self) -> None:
        """Forget masks and shares."""
        self._rounds = None


@cache
def threads_of_process(cores: int) -> CoreThreads:
    """Return the threads of this process, the same for all nodes that it runs."""
    return CoreThreads(cores)


def own_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


# --- place ----------------------------------------------------------------------------------------

DASK = r"dask://(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]@]+):[0-9]{1,5}"
DASK_EXPECTED = 'a Dask scheduler, like "dask://scheduler:8786"'


@dataclass(frozen=True)
class ComputePlace:
    """Where a process computes.

    cores: at most so many of this machine; 0 for all. cluster: a scheduler's address, or empty.
    tls: the folder with the site's files for the cluster.
    """

    cores: int = 0
    cluster: str = ""
    tls: Path | None = None

    def open(self, identity: Path | None = None) -> Executor | None:
        """Open the place; None where one core computes everything, as each study's own thread does.

        From then on all cores compute blocks of operators and of edges in the clear, too, with a
        cluster as without one.

        Args: identity: the folder of the consortium's certificate.
        Raises: ConfigError, PeerUnavailable.
        """
        cores = min(self.cores or own_cores(), own_cores())
        threads = threads_of_process(cores) if cores > 1 else None
        CORES.use(threads.threads if threads else None, cores)
        if self.cluster:
            from umpc.compute.cluster import DaskCluster

            return DaskCluster(self.cluster.removeprefix("dask://"), self._checked_tls(identity))
        return threads

    def _checked_tls(self, identity: Path | None) -> Path:
        """The folder of the cluster's files, of another authority than the consortium's."""
        from umpc.compute.cluster import TLS_FILES

        if self.tls is None:
            raise ConfigError(
                'compute = "dask://…" needs compute_tls, the folder with the ca.pem, cert.pem and '
                "key.pem of the site's cluster. Add it"
            )
        absent = [name for name in TLS_FILES if not (self.tls / name).is_file()]
        if absent:
            raise ConfigError(
                f"{self.tls}: the cluster's {', '.join(TLS_FILES)} were expected, and "
                f"{', '.join(absent)} came not. Put them there, or correct compute_tls"
            )
        if identity is not None and _same_authority(self.tls, identity):
            raise ConfigError(
                f"{self.tls}: ca.pem is the consortium's. Every other member could then run code "
                "on this site's cluster. Make an authority of the site's own for it: "
                "`umpc ca init`"
            )
        return self.tls


THIS_MACHINE = ComputePlace()
"""All cores of this machine."""


def named_place(cores: int | None, compute: str | None, tls: Path | None) -> ComputePlace:
    """The place that a command line names. Raises: ConfigError."""
    if compute and not re.fullmatch(DASK, compute):
        raise ConfigError(
            f"--compute: {DASK_EXPECTED} was expected, and {compute!r} came. Correct it"
        )
    return ComputePlace(cores or 0, compute or "", tls)


def _same_authority(one: Path, other: Path) -> bool:
    """Whether two folders trust one authority, by the key that it signs with."""
    from cryptography import x509

    def key(folder: Path) -> object:
        return x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()).public_key()

    return key(one) == key(other)
