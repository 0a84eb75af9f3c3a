"""The parts of a node's site in memory: streams, material and a ledger that no disk blurs.

For measurements only. Nothing here protects anything.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from umpc.errors import UmpcError
from umpc.node.budget.ledger_store import StoredRelease
from umpc.node.budget.store import HELD, StoredEntry
from umpc.study.messages import Frame
from umpc.transport.stream_reader import StreamReader, lost
from umpc.transport.tls import EOF


class MemoryStream:
    """One end of a stream between two nodes, with the methods of RpcStream that a link uses."""

    def __init__(self, peer: str, arrived: Callable[[], None]):
        self.peer = peer
        self.step = "prepare"
        self.other: MemoryStream | None = None
        self._arrived = arrived
        self._inbox: asyncio.Queue[Any] = asyncio.Queue()

    async def send(self, message: Any, step: str) -> None:
        assert self.other is not None
        self._arrived()
        self.other._inbox.put_nowait(message)

    async def read(self) -> Any:
        message = await self._inbox.get()
        return EOF if message is None else message

    def feed(self, sink: Callable[[Any], None], takes: Callable[[], bool]) -> StreamReader[Any]:
        """Give each message to a sink, as `RpcStream.feed` does."""
        return _fed(self, sink, takes)

    def violation(self, action: str) -> UmpcError:
        raise AssertionError(action)

    def cancel(self, keep: bool = False) -> None:
        self._inbox.put_nowait(None)


class MemoryDealer:
    """A node's end of its call to a dealer whose material is at hand.

    Args: frames: all frames for the node, asked for when it reads.
    """

    peer = "dealer"

    def __init__(self, frames: Callable[[], deque[Frame]]):
        self._frames = frames
        self.channel = self

    def stream_stream(self, *_: Any, **__: Any) -> Callable[[], None]:
        """Answer as a channel does from which a stub is made."""
        return lambda: None

    unary_unary = unary_stream = stream_stream

    def begin(self, call: Any) -> None: ...

    async def write(self, request: Any) -> None: ...

    async def next(self, step: str) -> list[Frame]:
        return [self._frames().popleft()]

    async def read(self) -> list[Frame]:
        return await self.next("prepare")

    def feed(self, sink: Callable[[Any], None], takes: Callable[[], bool]) -> StreamReader[Any]:
        """Give each message to a sink, as `RpcStream.feed` does."""
        return _fed(self, sink, takes)

    def violation(self, action: str) -> UmpcError:
        raise AssertionError(action)

    def cancel(self) -> None: ...


def _fed(
    source: MemoryStream | MemoryDealer, sink: Callable[[Any], None], takes: Callable[[], bool]
) -> StreamReader[Any]:
    reader: StreamReader[Any] = StreamReader(
        source, lambda message: message, None, lambda _: None, lambda: lost(source.peer, "prepare")
    )
    reader.feed(sink, takes)
    return reader


class MemoryLedger:
    """A ledger that takes every reservation, and keeps the held shares in memory."""

    hold_seconds = 3600

    def __init__(self) -> None:
        self._shares: dict[bytes, bytes] = {}

    def released(self, study: bytes) -> None: ...

    def held(self, study: bytes) -> None: ...

    def reserve(self, study: bytes, epsilon: Fraction, **facts: Any) -> None: ...

    def reserve_delta(self, study: bytes, delta: Fraction, events: tuple = ()) -> None: ...

    def cancel(self, study: bytes) -> None: ...

    def hold(self, study: bytes, attempt: bytes, share: bytes, table: bytes) -> StoredEntry:
        self._shares[attempt] = share
        return StoredEntry(HELD, study, attempt, share, "", Fraction(1), Fraction(0))

    def charge(self, study: bytes, attempt: bytes) -> StoredRelease:
        return StoredRelease(attempt, self._shares.pop(attempt))


class NoParking:
    """Nothing is prepared ahead."""

    def holds(self, study: bytes) -> bool:
        return False

    def take(self, study: bytes) -> None: ...
