"""The guard of a study's steps: a violation by a peer or by the dealer ends them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from umpc.errors import MpcError


class ViolationGuard:
    """The first violation of a study, and the end that it puts to the steps."""

    def __init__(self) -> None:
        self._violation: MpcError | None = None
        self._violated = asyncio.Event()
        self._has_settled = False

    async def run(self, steps: Coroutine[Any, Any, None]) -> None:
        """Run a study's steps; the violation of a peer or of the dealer ends them at once.

        A violation counts also while nobody waits for that process, but not after `settle`: what
        leaves the node is then made and may be paid.

        Raises: the violation, or the failure of the steps.
        """
        work = asyncio.create_task(steps)
        alarm = asyncio.create_task(self._violated.wait())
        try:
            await asyncio.wait({work, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if self._violation is not None and not work.done() and not self._has_settled:
                raise self._violation
            await work
        finally:
            alarm.cancel()
            work.cancel()
            await asyncio.gather(work, alarm, return_exceptions=True)

    def note(self, error: MpcError) -> None:
        """Take note of a violation. Only the first one counts."""
        self._violation = self._violation or error
        self._violated.set()

    def settle(self) -> None:
        """Look for a violation for the last time, before the charge. Raises: the violation."""
        if self._violation is not None:
            raise self._violation
        self._has_settled = True
