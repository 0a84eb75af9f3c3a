"""A site that is lost after it was ready: the run waits until it is there again.

From *ready* on, a node has its finished attempt on disk, and a node that starts again offers it
(`node/attempts/held_run.py`). So the coordinator proposes the same study once more: each node then
releases the bytes that it holds, or sends those that it has released, and no node charges twice.
That is also what a second `umpc study run` does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from umpc.errors import PeerUnavailable, UmpcError
from umpc.study.parts import Participant

log = logging.getLogger("umpc.coordinator")
RETURN_SECONDS = 30.0
"""Seconds for which a run waits by default. A service manager starts a node again sooner."""
PAUSE_SECONDS = 1.0
"""Seconds between two proposals, in case a node dies at each of them."""

Reach = Callable[[Participant, float], Awaitable[None]]
"""Reach a node that may take so many seconds to start. Raises: PeerUnavailable."""


class Returning:
    """The patience of one run. Args: seconds: for all losses of the run together."""

    def __init__(self, reach: Reach, seconds: float):
        self._reach = reach
        self._seconds = seconds
        self._until: float | None = None

    async def wait_for(self, node: Participant, error: UmpcError) -> None:
        """Wait until a lost node answers again. Raises: the error, if it does not in time."""
        now = asyncio.get_running_loop().time()
        self._until = now + self._seconds if self._until is None else self._until
        left = self._until - now
        if left <= 0:
            raise error
        log.warning(
            "%s was lost after it was ready; the run waits up to %.0f s for it to start again",
            node.name,
            left,
        )
        try:
            await self._reach(node, left)
        except PeerUnavailable:
            raise error from None
        await asyncio.sleep(min(left, PAUSE_SECONDS))
