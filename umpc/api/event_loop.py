"""Run a coroutine from plain code, also where an event loop runs already, as in a notebook."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from umpc.errors import UmpcError

Outcome = TypeVar("Outcome")


def run_now(coroutine: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Run a coroutine to its end: in this thread, or in one of its own beside a running loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_interruptible(coroutine))
    ended: list[Outcome] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            ended.append(asyncio.run(_interruptible(coroutine)))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="umpc")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return ended[0]


async def _interruptible(coroutine: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Await a coroutine. Raises: CancelledError for any failure of one that was interrupted.

    A study that is cancelled closes its connections, and then its peers seem to be lost.
    """
    asyncio.get_running_loop().set_exception_handler(_tell)
    try:
        return await coroutine
    except UmpcError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from None
        raise


def _tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what went wrong in a callback, but for what gRPC says to the loop of an earlier run.

    It may tell a closed loop that a call has ended, in a callback of the present one. Nobody waits
    for that, and each later word of gRPC has a callback of its own.
    """
    is_of_grpc = "PollerCompletionQueue" in context.get("message", "")
    if not (is_of_grpc and isinstance(context.get("exception"), RuntimeError)):
        loop.default_exception_handler(context)
