"""The functions that a cluster's worker runs. Only `cluster.py` calls them, at a distance.

A worker says no instead of computing with another version of umpc, or where it may write what it
holds to its disk. It checks at every task, for workers come and go. A failure is a result here, and
no exception: Dask would log an exception together with its arguments, and try the task again.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from umpc import __version__
from umpc.errors import ConfigError, UmpcError
from umpc.mpc.masked.tasks import DealTask, Heard, OwnerBatch, OwnerTask, Said, TaskRounds

NEVER_ON_DISK = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
}
"""Settings of every worker: masks and records stay in memory."""


class TaskFailure:
    """A failure of a task, as its result."""

    def __init__(self, error: UmpcError):
        self.error = error


class GivenTasks:
    """Tasks on their way to a worker, without their content in any log of Dask's.

    version: of the umpc that gives them.
    """

    def __init__(self, tasks: Sequence[Any]):
        self.tasks = tasks
        self.version = __version__

    def __repr__(self) -> str:
        return f"GivenTasks({len(self.tasks)} tasks, <redacted>)"


class TasksAtWorker:
    """Owners' tasks that began together. A copy goes to another worker as their tasks."""

    def __init__(self, rounds: Sequence[TaskRounds | TaskFailure]):
        self._rounds = rounds

    def __repr__(self) -> str:
        return f"TasksAtWorker({len(self._rounds)} tasks, <redacted>)"

    def __reduce__(self) -> tuple[Any, ...]:
        return TasksAtWorker, (self._rounds,)

    def __sizeof__(self) -> int:
        return sum(map(sys.getsizeof, self._rounds))

    def after(self, place: int, heard: Heard) -> Said | TaskFailure:
        """Return what the owner of one task says after these rounds."""
        rounds = self._rounds[place]
        if isinstance(rounds, TaskFailure):
            return rounds
        try:
            return rounds.after(heard)
        except UmpcError as error:
            return TaskFailure(error)


def begin(given: GivenTasks) -> TasksAtWorker | TaskFailure:
    """Begin owners' tasks. The result stays at the worker."""
    try:
        check_worker(given.version)
    except UmpcError as error:
        return TaskFailure(error)
    return TasksAtWorker([_begun(task) for task in given.tasks])


def _begun(task: OwnerTask | OwnerBatch) -> TaskRounds | TaskFailure:
    try:
        return TaskRounds(task)
    except UmpcError as error:
        return TaskFailure(error)


def after(
    tasks: TasksAtWorker | TaskFailure, heard: HeardMessages
) -> list[Said | TaskFailure] | TaskFailure:
    """Return what the owners say after these rounds, in the order of what they have heard."""
    if isinstance(tasks, TaskFailure):
        return tasks
    return [tasks.after(place, rounds) for place, rounds in heard.messages.items()]


def deal(given: GivenTasks) -> list[list[list[bytes]] | TaskFailure] | TaskFailure:
    """For each task, for each of its chunks, the material of each owner."""
    try:
        check_worker(given.version)
    except UmpcError as error:
        return TaskFailure(error)
    return [_dealt(task) for task in given.tasks]


def _dealt(task: DealTask) -> list[list[bytes]] | TaskFailure:
    try:
        return task.payloads()
    except UmpcError as error:
        return TaskFailure(error)


class HeardMessages:
    """Messages of other owners, without their content in any log of Dask's.

    Args: messages: for the place of each task that goes on, all that its owner has heard.
    """

    def __init__(self, messages: Mapping[int, Heard]):
        self.messages = messages

    def __repr__(self) -> str:
        return f"HeardMessages({len(self.messages)} tasks)"


def check_worker(version: str) -> None:
    """Check that this worker may compute. Raises: ConfigError."""
    if version != __version__:
        raise ConfigError(
            f"a worker of this site's cluster runs umpc {__version__}, and {version} gave it a "
            "task. Install one version on all machines of the site"
        )
    config = importlib.import_module("dask.config").get  # an extra: without types
    for key, value in NEVER_ON_DISK.items():
        if config(key, default=True) is not value:
            raise ConfigError(
                f"a worker of this site's cluster has {key} = {config(key, default=True)}, and "
                f"{value} was expected: what it holds must not reach its disk. Start it with that "
                "setting (docs/cluster.md)"
            )
