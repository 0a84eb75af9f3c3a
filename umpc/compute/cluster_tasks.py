"""The functions that a cluster's worker runs. Only `cluster.py` calls them, at a distance.

A worker says no instead of computing with another version of umpc, or where it may write what it
holds to its disk. It checks at every task, for workers come and go. A failure is a result here, and
no exception: Dask would log an exception together with its arguments, and try the task again.
"""

from __future__ import annotations

import importlib

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


def begin(task: OwnerTask | OwnerBatch, version: str) -> TaskRounds | TaskFailure:
    """Begin an owner's task. Args: version: of the node's umpc. The result stays at the worker."""
    try:
        check_worker(version)
        return TaskRounds(task)
    except UmpcError as error:
        return TaskFailure(error)


def after(rounds: TaskRounds | TaskFailure, heard: HeardMessages) -> Said | TaskFailure:
    """Return what the owner says after these rounds."""
    if isinstance(rounds, TaskFailure):
        return rounds
    try:
        return rounds.after(heard.messages)
    except UmpcError as error:
        return TaskFailure(error)


def deal(task: DealTask, version: str) -> list[list[bytes]] | TaskFailure:
    """For each chunk the material of each owner."""
    try:
        check_worker(version)
        return task.payloads()
    except UmpcError as error:
        return TaskFailure(error)


class HeardMessages:
    """Messages of other owners, without their content in any log of Dask's."""

    def __init__(self, messages: Heard):
        self.messages = messages

    def __repr__(self) -> str:
        return f"HeardMessages({len(self.messages)} rounds)"


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
