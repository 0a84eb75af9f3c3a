"""A coordinator that says what it likes to one node, and hears what the node says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from umpc.errors import UmpcError
from umpc.node.run.context import RunContext, Site
from umpc.node.run.coordinator import CoordinatorStream
from umpc.node.run.study import run_study
from umpc.study import messages as m
from umpc.study.document import Study

Said = tuple[list[m.NodeMessage], UmpcError | None]
"""The node's messages, and how it ended."""


def run_of(
    site: Site,
    coordinator: str,
    receive: Callable[[], Awaitable[m.CoordinatorMessage]],
    send: Callable[[m.NodeMessage], Awaitable[None]],
) -> RunContext:
    """Return a run of a node with this coordinator; `run_study` takes its steps."""
    return RunContext(site, CoordinatorStream(site.name, coordinator, receive, send))


def talk_to(
    site: Site,
    study: Study,
    orders: Sequence[m.CoordinatorMessage],
    hear: Callable[[m.NodeMessage], None] = lambda message: None,
) -> Said:
    """Propose a study and say these things. Args: hear: looks at each message as it comes."""
    said: list[m.NodeMessage] = []
    waiting = [m.Propose(study.encode()), *orders]

    async def receive() -> m.CoordinatorMessage:
        if waiting:
            return waiting.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: m.NodeMessage) -> None:
        hear(message)
        said.append(message)

    async def whole() -> None:
        async with asyncio.timeout(5):
            await run_study(run_of(site, study.coordinator, receive, send))

    try:
        asyncio.run(whole())
    except UmpcError as error:
        return said, error
    return said, None
