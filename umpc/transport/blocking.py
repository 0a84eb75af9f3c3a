"""Streams of a call in a thread: its messages for a job that blocks, and words of its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.tls import AnyContext

Found = TypeVar("Found")
Tell = Callable[[int, int], None]
TELL_SECONDS = 1.0
KEY_BYTES = 32
"""Bytes of the key of a place."""


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

    working = asyncio.ensure_future(asyncio.to_thread(job, tell))
    working.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was seen
    while not (await asyncio.wait({working}, timeout=TELL_SECONDS))[0]:
        await context.write(progress(step, *so_far))
    return working.result()


def pulled(receive: Callable[[], Awaitable[Found | None]]) -> Iterator[Found]:
    """The messages of a stream, for a thread that waits for each of them."""
    loop = asyncio.get_running_loop()

    async def one() -> Found | None:
        return await receive()

    def messages() -> Iterator[Found]:
        while (message := asyncio.run_coroutine_threadsafe(one(), loop).result()) is not None:
            yield message

    return messages()


def take_places(disk: Any, study: Any, parts: Iterator[pb.PeopleList]) -> None:
    """Open a study with the key of each place, and read its list to the end in any case.

    Args: disk: of the dealer or an aggregator, with `open_study`.

    A key that is cut short is noticed by the list's digest.
    """
    disk.open_study(
        study,
        (
            part.keys[start : start + KEY_BYTES]
            for part in parts
            for start in range(0, len(part.keys), KEY_BYTES)
        ),
    )
    for _ in parts:
        pass
