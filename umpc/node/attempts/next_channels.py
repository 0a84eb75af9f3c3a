"""Channels of transfers that wait in a node for the next study with a peer, each used once.

`run_channels.py` makes them after a study. The node that dials offers one in its next greeting,
and the other one answers whether it has it, too. Otherwise they set up a channel by curve points.

| rule | reason |
|---|---|
| a channel leaves the store when it is offered, whatever comes of it | it serves one attempt |
| both ends fork it by the attempt's id | nothing of it is of use in another attempt |
| a run that fails drops all channels to its peers | a failed check gives no second try |
| it is kept for KEPT_SECONDS, one of KEPT_AT_MOST | memory stays bounded |
| a chain ends after LONGEST studies, or CHAIN_SECONDS | what rests on one set of points is short |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender

KEPT_SECONDS = 600.0
"""Seconds for which a channel waits for a study."""
KEPT_AT_MOST = 64
"""Channels of one node. One more ends the oldest."""
MAKE_SECONDS = 5.0
"""Seconds that two nodes may take to make one, and that the next study waits for that at most."""
CHAIN_SECONDS = 3600.0
"""Seconds after base transfers by curve points for which channels are made that go back to them."""
LONGEST = 256
"""Studies that may follow each other from one set of base transfers by curve points."""

Channel: TypeAlias = CorrelatedSender | CorrelatedReceiver


@dataclass(frozen=True)
class Chain:
    """Where a channel comes from.

    born: seconds of the clock at the base transfers by points. length: studies since then.
    """

    born: float
    length: int = 1

    def ends(self, now: float) -> bool:
        """Whether no further channel may go back to these points."""
        return self.length >= LONGEST or now >= self.born + CHAIN_SECONDS

    @property
    def longer(self) -> Chain:
        """The chain with one study more."""
        return Chain(self.born, self.length + 1)


@dataclass(frozen=True)
class KeptChannel:
    """One end of a channel. name: the same at both ends. peer: the node at the other end."""

    peer: str
    name: bytes
    channel: Channel = field(repr=False)
    chain: Chain
    since: float = 0.0


class NextChannels:
    """The channels of one node that wait for a study.

    Args: seconds: the clock of the event loop, or of a test.
    """

    def __init__(self, seconds: Callable[[], float] | None = None):
        self.now = seconds or (lambda: asyncio.get_running_loop().time())
        self._kept: list[KeptChannel] = []
        self._making: dict[asyncio.Task[None], Sequence[str]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def offer(self, peer: str) -> KeptChannel | None:
        """Return the newest channel over which this node sends to a peer, once, when it is made."""
        return await self._taken(peer, CorrelatedSender)

    async def accept(self, peer: str, name: bytes) -> KeptChannel | None:
        """Return the channel of this name at which this node receives, once, when it is made."""
        return await self._taken(peer, CorrelatedReceiver, name)

    def may_have(self, peer: str) -> bool:
        """Whether a channel to this peer waits, or is being made."""
        self._expire()
        making = any(peer in peers for peers in self._making.values())
        return making or any(kept.peer == peer for kept in self._kept)

    async def _taken(
        self, peer: str, end: type[Channel], name: bytes | None = None
    ) -> KeptChannel | None:
        await self.settled(peer)
        self._expire()
        for kept in reversed(self._kept):
            fits = kept.peer == peer and isinstance(kept.channel, end)
            if fits and name in (None, kept.name):
                self._kept.remove(kept)
                return kept
        return None

    def keep(self, made: KeptChannel) -> None:
        """Keep one end of a channel that was just made."""
        self._expire()
        self._kept.append(made)
        del self._kept[: max(0, len(self._kept) - KEPT_AT_MOST)]

    def drop(self, peers: Sequence[str]) -> None:
        """Forget all channels to these nodes."""
        self._kept = [kept for kept in self._kept if kept.peer not in peers]

    async def settled(self, peer: str) -> None:
        """Wait until no channel to this peer is being made."""
        tasks = [task for task, peers in self._making.items() if peer in peers]
        if tasks:
            await asyncio.wait(tasks, timeout=MAKE_SECONDS)

    def make(self, peers: Sequence[str], making: Coroutine[None, None, None]) -> None:
        """Let channels to these peers be made in the background."""
        task = asyncio.create_task(making)
        self._making[task] = peers
        task.add_done_callback(self._making.pop)

    def _expire(self) -> None:
        before = self.now() - KEPT_SECONDS
        self._kept = [kept for kept in self._kept if kept.since >= before]
