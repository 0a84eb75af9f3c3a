"""Channels of transfers that two nodes set up after one study, for the next one, and use once.

The set-up of a channel takes 128 base transfers, some ten milliseconds of both processors, and
depends on nothing of a study (`umpc/mpc/transfers/correlated_ot.py`). Two nodes that have just
tossed coins together therefore make another channel over the link that they still have, after both
have released. The node that dials offers it in its next greeting, and the other one answers whether
it has it, too. Otherwise they set up a channel as before.

| rule | reason |
|---|---|
| a channel leaves the store when it is offered, whatever comes of it | it serves one attempt |
| both ends fork it by the attempt's id | nothing of it is of use in another attempt |
| its seeds are drawn anew from the system | it depends on no study, and on no dealer |
| only after a run that ended well, with few peers | a failed peer, or many, cost no work |
| it is kept for KEPT_SECONDS, one of KEPT_AT_MOST | memory stays bounded |

A failure to make one is no failure of a study: the next study sets up a channel of its own.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from umpc.crypto.prg import SEED_BYTES, derive, digest
from umpc.crypto.rounds import Protocol
from umpc.errors import UmpcError
from umpc.mpc.transfers.correlated_ot import (
    CorrelatedReceiver,
    CorrelatedSender,
    fresh_delta,
    open_receiver,
    open_sender,
)
from umpc.node.attempts.peers import PeerLink
from umpc.transport.patience import time_limit

log = logging.getLogger("umpc.node")
KEPT_SECONDS = 600.0
"""Seconds for which a channel waits for a study."""
KEPT_AT_MOST = 64
"""Channels of one node. One more ends the oldest."""
MAKE_SECONDS = 5.0
"""Seconds that two nodes may take to make one, and that the next study waits for that at most."""
MOST_PEERS = 3
"""Other members of a committee, up to which a node makes channels ahead."""

Channel = CorrelatedSender | CorrelatedReceiver
Compute = Callable[..., Awaitable[Any]]
Drive = Callable[[PeerLink, Protocol[Any]], Awaitable[Any]]
"""Runs the messages of a set-up over a link, and returns its result."""


@dataclass(frozen=True)
class _WaitingChannel:
    """One end of a channel. name: the same at both ends. peer: the node at the other end."""

    peer: str
    name: bytes
    channel: Channel
    since: float


class NextChannels:
    """The channels of one node that wait for a study.

    Args: seconds: the clock of the event loop, or of a test.
    """

    def __init__(self, seconds: Callable[[], float] | None = None):
        self._seconds = seconds or (lambda: asyncio.get_running_loop().time())
        self._kept: list[_WaitingChannel] = []
        self._making: dict[asyncio.Task[None], tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def offer(self, peer: str) -> tuple[bytes, CorrelatedSender] | None:
        """Return the newest channel over which this node sends to a peer, and its name, once."""
        self._expire()
        for kept in reversed(self._kept):
            if kept.peer == peer and isinstance(kept.channel, CorrelatedSender):
                self._kept.remove(kept)
                return kept.name, kept.channel
        return None

    def accept(self, peer: str, name: bytes) -> CorrelatedReceiver | None:
        """Return the channel of this name at which this node receives from the peer, once."""
        self._expire()
        for kept in self._kept:
            is_named = kept.peer == peer and kept.name == name
            if is_named and isinstance(kept.channel, CorrelatedReceiver):
                self._kept.remove(kept)
                return kept.channel
        return None

    def keep(self, peer: str, name: bytes, channel: Channel) -> None:
        """Keep one end of a channel that was just made."""
        self._kept.append(_WaitingChannel(peer, name, channel, self._seconds()))
        del self._kept[: max(0, len(self._kept) - KEPT_AT_MOST)]

    async def settled(self, peer: str) -> None:
        """Wait until no channel to this peer is being made."""
        tasks = [task for task, peers in self._making.items() if peer in peers]
        if tasks:
            await asyncio.wait(tasks, timeout=MAKE_SECONDS)

    def make(
        self,
        own: str,
        attempt: bytes,
        links: Mapping[str, tuple[PeerLink, bool]],
        drive: Drive,
        close: Callable[[bool], Awaitable[None]],
    ) -> None:
        """Make a channel to each of these peers in the background, then end the run's links.

        Args: own: this node's name. attempt: the id of the attempt that has ended. links: the link
            to each peer, and whether this node is the sender. close: ends the links; its argument
            says whether their connections may serve another run.
        """
        task = asyncio.create_task(self._make(own, attempt, links, drive, close))
        self._making[task] = tuple(links)
        task.add_done_callback(self._making.pop)

    async def _make(
        self,
        own: str,
        attempt: bytes,
        links: Mapping[str, tuple[PeerLink, bool]],
        drive: Drive,
        close: Callable[[bool], Awaitable[None]],
    ) -> None:
        made = False
        try:
            async with time_limit(MAKE_SECONDS):
                for peer, (link, sends) in links.items():
                    name = channel_name(attempt, own, peer)
                    self.keep(peer, name, await drive(link, _opening(name, peer, sends)))
                    log.debug("a channel to %s waits for the next study", peer)
            made = True
        except (UmpcError, TimeoutError) as error:
            log.debug("no channel is kept for the next study: %s", error)
        finally:
            await close(made)

    def _expire(self) -> None:
        before = self._seconds() - KEPT_SECONDS
        self._kept = [kept for kept in self._kept if kept.since >= before]


def channel_name(attempt: bytes, *ends: str) -> bytes:
    """The name of the channel that two nodes make after an attempt, the same at both ends."""
    names = (end.encode() for end in sorted(ends))
    return digest(b"umpc next channel 1", attempt, *names)


def _opening(name: bytes, peer: str, sends: bool) -> Protocol[Any]:
    """The messages that make one end of a channel, from seeds of its own."""
    seed = os.urandom(SEED_BYTES)
    if not sends:
        return open_receiver(derive(seed, "set-up"), name, peer)
    return open_sender(derive(seed, "set-up"), fresh_delta(derive(seed, "delta")), name, peer)
