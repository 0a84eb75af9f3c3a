"""Large requests to the dealer, told by one node of an attempt.

A request of many nodes holds N members, openings and signatures, the same bytes at every node. A
node therefore names it by its SHA-256. The dealer asks the first node that names it for the whole
request, by an empty frame, and lets all others wait. A node that does not tell it soon may be slow:
the dealer asks the next one as well, and takes what comes first. So nobody can hold up the others
for longer than TELL_SECONDS, and nobody is refused who is only slow.

Where members are in a hash tree, its name is the attempt's id: no node but the one that is asked
has the whole request, so only the dealer can tell whether it fits. A node that tells another one is
refused, and the next one is asked at once.

    node                                 dealer
    Deal(digest)                -->
                                <--      an empty frame, to one node
    Tell(digest, piece), ...    -->
                                <--      DealTold
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from umpc.errors import EncodingError, RemoteProtocolError, StepTimeout, UmpcError
from umpc.proto.checks import parse
from umpc.proto.member_codec import MOST_BYTES
from umpc.proto.v1 import umpc_pb2 as pb
from umpc.transport.patience import time_limit

TELL_SECONDS = 20
"""Seconds that a node has to tell a request until the next node is asked as well."""
LONGEST_SECONDS = 600
"""Seconds that a node which was asked waits for the request, from whomever it comes."""
MOST_KEPT = 4


Check = Callable[[pb.DealRequest, str], Awaitable[None]]
"""Checks a request under the name of an attempt. Arguments: what was told, by whom.

Raises: UmpcError."""


class RequestName(NamedTuple):
    """The name of a request: one of these, the other one is empty.

    A digest and an id never name the same request, whatever their bytes are.
    """

    digest: bytes = b""
    attempt: bytes = b""

    @classmethod
    def of(cls, message: pb.DealRequest | pb.DealPiece, caller: str) -> RequestName:
        """The name in a message. Raises: RemoteProtocolError naming the caller, for two names."""
        if message.digest and message.attempt:
            raise RemoteProtocolError(
                f"{caller} named a request by a digest and by an attempt", culprit=caller
            )
        return cls(message.digest, message.attempt)


@dataclass
class _Wanted:
    """A request that nobody has told yet.

    check: of a request under the name of an attempt; None where the name is a digest.
    callers: those that were asked and told nothing wrong.
    asked: the one of them that was asked last, less than TELL_SECONDS ago; empty for none.
    changed: set, and replaced, as soon as one of these changes or the request is there.
    """

    check: Check | None = None
    callers: set[str] = field(default_factory=set)
    asked: str = ""
    waiting: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def let_go(self, caller: str) -> None:
        """Ask the next one in place of this caller, if it is the one that is asked."""
        if self.asked == caller:
            self.asked = ""
            self.change()

    def change(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class ToldRequests:
    """The last large requests of one dealer, by their names."""

    def __init__(self) -> None:
        self._kept: OrderedDict[RequestName, pb.DealRequest] = OrderedDict()
        self._wanted: dict[RequestName, _Wanted] = {}

    def get(self, name: RequestName) -> pb.DealRequest:
        """Return a request that `awaited` has waited for."""
        return self._kept[name]

    async def awaited(
        self, name: RequestName, caller: str, check: Check | None = None
    ) -> AsyncGenerator[None, None]:
        """Wait until a request is told. Yields: where the caller is to be asked for it.

        Args: check: where the name is the id of an attempt.

        Raises: StepTimeout where neither the caller, which was asked, nor another one told it.
        """
        if name in self._kept:
            return
        wanted = self._wanted.setdefault(name, _Wanted(check))
        wanted.waiting += 1
        try:
            while wanted.asked and name not in self._kept:
                await wanted.changed.wait()
            if name in self._kept:
                return
            wanted.callers.add(caller)
            wanted.asked = caller
            try:
                yield
                await self._told(name, wanted, TELL_SECONDS)
            finally:
                wanted.let_go(caller)
            if not await self._told(name, wanted, LONGEST_SECONDS):
                raise StepTimeout(
                    f"{caller} was asked for its request, and nobody told it within "
                    f"{LONGEST_SECONDS} s",
                    culprit=caller,
                    step="prepare",
                )
        finally:
            wanted.waiting -= 1
            if not wanted.waiting and self._wanted.get(name) is wanted:
                del self._wanted[name]

    async def _told(self, name: RequestName, wanted: _Wanted, seconds: float) -> bool:
        """Wait for a request. Returns: whether it came in time."""
        try:
            async with time_limit(seconds):
                while name not in self._kept:
                    await wanted.changed.wait()
        except TimeoutError:
            return False
        return True

    async def take(self, pieces: AsyncIterator[pb.DealPiece], caller: str) -> None:
        """Take the pieces of a request that some node was asked for; a later copy says nothing new.

        Raises: RemoteProtocolError for one that nobody was asked for, EncodingError.
        """
        name = RequestName()
        body = bytearray()
        async for part in pieces:
            named = RequestName.of(part, caller)
            name = name if any(name) else named
            if named != name or not (name in self._kept or self._was_asked(name, caller)):
                raise RemoteProtocolError(
                    f"{caller} told a request that it was not asked for", culprit=caller
                )
            body += b"" if name in self._kept else part.piece
            if len(body) > MOST_BYTES:
                raise EncodingError(f"a request has at most {MOST_BYTES} bytes, more came")
        if name not in self._kept:
            await self._keep(name, bytes(body), caller)

    def _was_asked(self, name: RequestName, caller: str) -> bool:
        return name in self._wanted and caller in self._wanted[name].callers

    async def _keep(self, name: RequestName, body: bytes, caller: str) -> None:
        """Keep a request that fits its name. Raises: as `take`."""
        wanted = self._wanted.get(name)
        if wanted is None:  # nobody waits any more
            return
        if wanted.check is None and sha256(body).digest() != name.digest:
            raise EncodingError("the pieces of a request are not those of its digest")
        try:
            request = parse(pb.DealRequest, body)
            if wanted.check is not None:
                await wanted.check(request, caller)
        except UmpcError as error:
            error.culprit = error.culprit or caller
            wanted.callers.discard(caller)
            wanted.let_go(caller)  # the next one is asked now
            raise
        self._kept[name] = request
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        wanted.change()
