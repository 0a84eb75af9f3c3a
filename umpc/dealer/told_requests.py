"""Large requests to the dealer, told once by one node of an attempt.

A request of many nodes holds N members, openings and signatures, the same bytes at every node. A
node therefore names it by its SHA-256. The dealer asks the first node that names it for the whole
request, by an empty frame, and lets all others wait. If that node does not tell it in time, it is
refused, and the dealer asks the next one; also if it goes away.

    node                                 dealer
    Deal(digest)                -->
                                <--      an empty frame, to one node
    Tell(digest, piece), ...    -->
                                <--      DealTold
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator
from hashlib import sha256

from umpc.errors import EncodingError, RemoteProtocolError, StepTimeout
from umpc.proto.checks import parse
from umpc.proto.named_messages import MOST_BYTES
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.patience import time_limit

TELL_SECONDS = 20
"""Seconds that a node has to tell a request; then the next node is asked."""
MOST_KEPT = 4


class ToldRequests:
    """The last large requests of one dealer, by their digests."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, pb.DealRequest] = OrderedDict()
        self._asked: dict[bytes, asyncio.Event] = {}

    def get(self, digest: bytes) -> pb.DealRequest:
        """Return a request that `awaited` has waited for."""
        return self._kept[digest]

    async def awaited(self, digest: bytes, caller: str) -> AsyncGenerator[None, None]:
        """Wait until a request is told. Yields: where the caller is to be asked for it.

        Raises: StepTimeout for a caller that was asked and did not tell it.
        """
        while digest not in self._kept:
            if digest in self._asked:
                await self._asked[digest].wait()
                continue
            event = self._asked[digest] = asyncio.Event()
            try:
                yield
                async with time_limit(TELL_SECONDS):
                    await event.wait()
            except TimeoutError:
                raise StepTimeout(
                    f"{caller} did not tell its request within {TELL_SECONDS} s",
                    culprit=caller,
                    step="prepare",
                ) from None
            finally:
                self._asked.pop(digest).set()

    async def take(self, pieces: AsyncIterator[pb.DealPiece], caller: str) -> None:
        """Take the pieces of a request that some node was asked for.

        Raises: RemoteProtocolError for one that nobody was asked for, EncodingError.
        """
        digest = b""
        body = bytearray()
        async for part in pieces:
            digest = digest or part.digest
            if part.digest != digest or digest not in self._asked:
                raise RemoteProtocolError(
                    f"{caller} told a request that it was not asked for", culprit=caller
                )
            body += part.piece
            if len(body) > MOST_BYTES:
                raise EncodingError(f"a request has at most {MOST_BYTES} bytes, more came")
        if sha256(body).digest() != digest:
            raise EncodingError("the pieces of a request are not those of its digest")
        self._kept[digest] = parse(pb.DealRequest, bytes(body))
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        if digest in self._asked:
            self._asked[digest].set()
