"""Several tasks at once, of which the first failure counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager


async def together(jobs: Iterable[Coroutine[None, None, None]]) -> None:
    """All jobs at once; the first failure ends the others and is raised."""
    async with task_group() as group:
        for job in jobs:
            group.create_task(job)


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """asyncio.TaskGroup, but the first failure is raised itself instead of in a group."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
