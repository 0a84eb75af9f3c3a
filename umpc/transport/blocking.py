"""Streams of a call in a thread: its list for a job that blocks, and words of its progress.

A list ends with an empty part. gRPC shows a server no difference between a caller that has ended
its side and one that cancelled its call or died, so the end of a stream is no end of a list.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from umpc.errors import RemoteProtocolError, StepTimeout
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.patience import time_limit
from umpc.transport.tls import AnyContext, read

Found = TypeVar("Found")
Tell = Callable[[int, int], None]
TELL_SECONDS = 1.0
MESSAGE_SECONDS = 60.0
"""Seconds that a caller has for each part of a list."""
KEY_BYTES = 32
"""Bytes of the key of a place."""
THREADS = ThreadPoolExecutor(8, "people-calls")
"""For jobs that wait for callers: these hold up each other, and nothing else of the process."""


def progress(step: str, done: int, total: int) -> pb.PeopleOpening:
    """A word of progress."""
    return pb.PeopleOpening(progress=pb.Progress(step=step, done=done, total=total))


async def told(context: AnyContext, step: str, job: Callable[[Tell], Found]) -> Found:
    """Do a job in a thread, and tell the caller every second how far it is.

    It goes on to its end if the caller leaves.
    """
    so_far = [0, 0]

    def tell(done: int, total: int) -> None:
        so_far[:] = done, total

    working = asyncio.get_running_loop().run_in_executor(THREADS, job, tell)
    working.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was seen
    while not (await asyncio.wait({working}, timeout=TELL_SECONDS))[0]:
        await context.write(progress(step, *so_far))
    return working.result()


def pulled(
    context: AnyContext, caller: str, part: Callable[[Any], bytes], most: int
) -> Iterator[bytes]:
    """The parts of a list that a caller sends, for a thread that waits for each of them.

    Args: part: its bytes in a message. most: bytes of the longest list.

    Raises: in the thread, StepTimeout; RemoteProtocolError for a list that is too long, or that was
        cut before its end.
    """
    loop = asyncio.get_running_loop()

    async def received() -> bytes | None:
        async with time_limit(MESSAGE_SECONDS):
            message = await read(context)
        return None if message is None else part(message)

    def parts() -> Iterator[bytes]:
        left = most
        while data := _waited_for(caller, asyncio.run_coroutine_threadsafe(received(), loop)):
            left -= len(data)
            if left < 0:
                raise RemoteProtocolError(
                    f"{caller} was expected to send a list of at most {most} bytes, one entry a "
                    "place of the study, and more came: send the study's own list",
                    culprit=caller,
                )
            yield data

    return parts()


def _waited_for(caller: str, part: Future[bytes | None]) -> bytes:
    try:
        data = part.result()
    except TimeoutError as error:
        raise StepTimeout(
            f"{caller} was expected to send the next part of a list within {MESSAGE_SECONDS:.0f} "
            "s, and nothing came: call again",
            culprit=caller,
        ) from error
    # a list that was cut would be signed and stored as if it were whole
    if data is None:
        raise RemoteProtocolError(
            f"{caller} was expected to end its list with an empty part, and the call ended before: "
            "nothing was done with it; call again",
            culprit=caller,
        )
    return data
