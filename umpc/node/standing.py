"""A node's standing with other nodes: what two processes keep between two studies, in memory.

After a study, two nodes that have a channel of oblivious transfers make another one from it
(`run/channels.py`). The node that dials offers it in its next greeting, and the other one answers
whether it has it, too. Otherwise they set up a channel by curve points. Nothing else of two
processes outlives a study: each study has connections of its own, and checks certificates anew.

| rule | reason |
|---|---|
| a channel leaves the store when it is offered, whatever comes of it | it serves one attempt |
| both ends fork it by the attempt's id | nothing of it is of use in another attempt |
| it serves under both certificates of its study | a renewed key vouches for no old one |
| a run that fails ends the standing with its peers | a failed check gives no second try |
| it is kept for KEPT_SECONDS, one of KEPT_AT_MOST | memory stays bounded |
| a chain ends after LONGEST studies, or CHAIN_SECONDS | what rests on one set of points is short |
| it is in memory alone, and `close` ends all of it | no restart and no disk has it |

`Standing.end` is the one place at which anything of it ends, but for an offer.
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
Certificates: TypeAlias = tuple[bytes, bytes]
"""This node's certificate and its peer's, as a study's members have them, which are verified."""


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
    """One end of a channel. name: the same at both ends. peer: the node at the other end.

    certificates: those of the study after which it was made.
    """

    peer: str
    name: bytes
    channel: Channel = field(repr=False)
    chain: Chain
    certificates: Certificates = field(repr=False)
    since: float = 0.0


class Standing:
    """All that this process keeps with other nodes for the next study.

    Args: seconds: the clock of the event loop, or of a test.
    """

    def __init__(self, seconds: Callable[[], float] | None = None):
        self.now = seconds or (lambda: asyncio.get_running_loop().time())
        self._kept: list[KeptChannel] = []
        self._making: dict[asyncio.Task[None], Sequence[str]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, made: KeptChannel) -> None:
        """Keep one end of a channel that was just made."""
        if not self._is_closed:
            self._kept.append(made)
        self.end()

    def end(self, peers: Sequence[str] = (), certificates: Certificates | None = None) -> None:
        """End what is old or too much, and the standing with these peers.

        Args: certificates: the present ones; what was made under these stays.
        """
        before = self.now() - KEPT_SECONDS
        stays = [
            kept
            for kept in self._kept
            if kept.since >= before
            and (kept.peer not in peers or kept.certificates == certificates)
        ]
        self._kept = stays[-KEPT_AT_MOST:]

    def close(self) -> None:
        """End all of it, with the process. A channel that is still being made is not kept."""
        self._is_closed = True
        self._kept.clear()

    def make(self, peers: Sequence[str], making: Coroutine[None, None, None]) -> None:
        """Let channels to these peers be made in the background."""
        task = asyncio.create_task(making)
        self._making[task] = peers
        task.add_done_callback(self._making.pop)

    def is_made_with(self, peer: str) -> bool:
        """Whether a channel to this peer is being made."""
        return any(peer in peers for peers in self._making.values())

    async def take(
        self,
        peer: str,
        certificates: Certificates,
        end: type[Channel],
        name: bytes | None = None,
    ) -> KeptChannel | None:
        """Take the newest channel to a peer, once it is made. Args: name: no other one than this.

        end: at which this node sends, or receives.
        """
        tasks = [task for task, peers in self._making.items() if peer in peers]
        if tasks:
            await asyncio.wait(tasks, timeout=MAKE_SECONDS)
        self.end([peer], certificates)
        for kept in reversed(self._kept):
            fits = kept.peer == peer and isinstance(kept.channel, end)
            if fits and name in (None, kept.name):
                self._kept.remove(kept)
                return kept
        return None

    def has(self, peer: str, certificates: Certificates) -> bool:
        """Whether a channel to this peer waits."""
        self.end([peer], certificates)
        return any(kept.peer == peer for kept in self._kept)


@dataclass(frozen=True)
class StandingWith:
    """The standing with one peer, as one study may use it. certificates: of that study."""

    all: Standing
    peer: str
    certificates: Certificates = field(repr=False)

    async def offer(self) -> KeptChannel | None:
        """Take the newest channel over which this node sends, once it is made."""
        return await self.all.take(self.peer, self.certificates, CorrelatedSender)

    async def accept(self, name: bytes) -> KeptChannel | None:
        """Take the channel of this name at which this node receives, once it is made."""
        return await self.all.take(self.peer, self.certificates, CorrelatedReceiver, name)

    def may_have(self) -> bool:
        """Whether a channel waits, or is being made."""
        return self.all.is_made_with(self.peer) or self.all.has(self.peer, self.certificates)

    def keep(self, name: bytes, channel: Channel, chain: Chain) -> None:
        """Keep one end of a channel that was just made."""
        now = self.all.now()
        self.all.keep(KeptChannel(self.peer, name, channel, chain, self.certificates, now))
