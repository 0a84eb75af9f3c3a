"""Run tasks concurrently; the first failure cancels the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager


async def together(jobs: Iterable[Coroutine[None, None, None]]) -> None:
    """Run all jobs at once. The first failure cancels the others and is raised."""
    async with task_group() as group:
        for job in jobs:
            group.create_task(job)


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """An asyncio.TaskGroup that raises the first failure itself, not a group of failures."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def cancelled(task: asyncio.Task[None]) -> None:
    """Cancel a task that has not ended, and wait for its end. Its failure is left to its owner."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()
