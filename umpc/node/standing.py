"""A node's standing with other nodes: what two processes keep between two studies, in memory.

After a study, two nodes that have a channel of oblivious transfers make another one from it
(`run/prepare.py`). The node that dials offers it in its next greeting, and the other one answers
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

*Prepared attempts.* They wait for their run in this process's memory, for a limited time.

A prepared attempt keeps its reservation of ε and δ, so the run finds its budget. Each is taken
once. It then belongs to the run, which uses it up whether or not it comes to an end. Where an
attempt is dropped, expires, or is left when the process ends, its reservation is returned. Another
process cannot run it: side and key are in memory alone. The Store of the ledger tells the site's
commands what is reserved (`umpc/node/budget/store.py`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from umpc.errors import (
    LedgerError,
    LocalProtocolError,
    PreparationError,
    PreparationLost,
    RemoteProtocolError,
)
from umpc.mpc.chunks import Chunk
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.node.budget.ledger import Ledger
from umpc.node.spool import Spool
from umpc.protocols.base.node import NodeSide
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.sizes import Member

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

    def keep(self, name: bytes, channel: Channel, chain: Chain) -> None:
        """Keep one end of a channel that was just made."""
        now = self.all.now()
        self.all.keep(KeptChannel(self.peer, name, channel, chain, self.certificates, now))


# --- prepared attempts ----------------------------------------------------------------------------

log = logging.getLogger("umpc.node")


@dataclass
class PreparedAttempt:
    """One attempt up to *prepared*. It repeats its answers to the same messages, and says no more.

    spool: the material of `chunks`, in their order; None where nothing is dealt.
    bytes_offline: the bytes of its preparation. delta: the reserved δ.
    chains: where its channels of transfers come from, by peer; their links end with it.
    seconds: how long it waited, from 1, once it was taken.
    """

    side: NodeSide
    openings: tuple[bytes, ...]
    chunks: list[Chunk] = field(repr=False)
    spool: Spool | None
    bytes_offline: int
    delta: Fraction
    chains: Mapping[int, Chain] = field(default_factory=dict)
    seconds: int = 0

    @property
    def study_hash(self) -> bytes:
        """The hash under which the study is charged, whoever survives."""
        return self.side.study.whole.hash

    @property
    def attempt(self) -> Attempt:
        return self.side.attempt

    def waiting(self) -> m.WaitingAttempt:
        """Return the messages of this node in the preparation, for its coordinator.

        No node goes on with these openings and other members, so it may hear them at once.
        """
        opened = m.Opened(self.openings[self.side.index], self.side.sign_members())
        signature = self.side.sign_attempt()
        prepared = m.Prepared(self.attempt.id, self.bytes_offline, True, signature)
        return m.WaitingAttempt(opened, prepared, self.seconds)

    def agree(self, members: Sequence[Member]) -> bytes:
        """Its opening again, where all members are those of the preparation.

        The opening was shown before. Other members must not see it, because they could choose
        theirs by it.

        Raises: PreparationLost naming a node that came with another member; RemoteProtocolError.
        """
        ours = self.attempt.members
        if [member.name for member in members] != [member.name for member in ours] or (
            members[self.side.index] != ours[self.side.index]
        ):
            raise self._altered(
                "other nodes than the study's, or another entry than this node's own", "agree"
            )
        for member, before in zip(members, ours, strict=True):
            if member != before:
                raise PreparationLost(
                    f"{member.name} no longer has what was prepared for this study (it was "
                    f"started again, or time was up), so the others drop theirs; the study runs "
                    f"from the start, or prepare it again",
                    culprit=member.name,
                    step="agree",
                )
        return self.openings[self.side.index]

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """The attempt, where all openings are those of the preparation.

        Raises: RemoteProtocolError for other openings: seed and material would not be its own.
        """
        if tuple(openings) != self.openings:
            raise self._altered("other openings than those of the preparation", "prepare")
        return self.attempt

    def close(self) -> None:
        if self.spool is not None:
            self.spool.close()

    def _altered(self, what: str, step: str) -> RemoteProtocolError:
        culprit = self.side.study.coordinator
        return RemoteProtocolError(f"the coordinator passed on {what}", culprit=culprit, step=step)


@dataclass
class _Place:
    parked: PreparedAttempt
    until: float
    timer: asyncio.TimerHandle


class PreparedAttempts:
    """All prepared attempts of a node.

    Args:
        most: how many attempts may wait at once. seconds: how long each may wait.
        clock, later: those of the event loop, or of a test.
    """

    def __init__(
        self,
        ledger: Ledger,
        most: int,
        seconds: float,
        clock: Callable[[], float] = time.time,
        later: Callable[[float, Callable[[], None]], asyncio.TimerHandle] | None = None,
    ):
        self.seconds = seconds
        self._ledger, self._most, self._clock = ledger, most, clock
        self._later = later or (
            lambda delay, act: asyncio.get_running_loop().call_later(delay, act)
        )
        self._places: dict[bytes, _Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    def holds(self, study: bytes) -> bool:
        """Return whether an attempt of the study waits. Any thread may ask."""
        return study in self._places

    def check_room(self) -> None:
        """Drop what has no reservation any more. Raises: PreparationError that says what to do."""
        for study, place in list(self._places.items()):
            if self._ledger.reservation(study) is None:
                self.drop(place.parked, "was refused by the administrator")
        if len(self._places) < self._most:
            return
        if not self._most:
            raise PreparationError(
                "it prepares no studies ahead (most = 0 under [prepare]); run the study without"
            )
        first = min(place.until for place in self._places.values()) - self._clock()
        raise PreparationError(
            f"{len(self._places)} prepared studies wait there already, which is the most; run one "
            f"of them, or this one without preparation, or come back in "
            f"{max(0.0, first) / 3600:.1f} h, when the next one's time is up"
        )

    def put(self, parked: PreparedAttempt) -> None:
        """Keep it, and its reservation. Raises: PreparationError, LedgerError."""
        self.check_room()
        if parked.study_hash in self._places:
            raise LocalProtocolError("the study is prepared already")
        until = self._clock() + self.seconds
        self._ledger.prepare(parked.study_hash, until)
        timer = self._later(self.seconds, lambda: self.drop(parked, "was not run in time"))
        self._places[parked.study_hash] = _Place(parked, until, timer)

    def take(self, study_hash: bytes) -> PreparedAttempt | None:
        """Take the attempt that waits for this study; the taker closes it and its reservation."""
        place = self._places.get(study_hash)
        # The timer stands still while a machine sleeps, the clock does not.
        if place is not None and self._clock() >= place.until:
            self.drop(place.parked, "was not run in time")
            return None
        if place is not None:
            del self._places[study_hash]
            place.timer.cancel()
            waited = self.seconds - (place.until - self._clock())
            place.parked.seconds = max(1, round(waited))
            return place.parked
        return None

    def drop(self, parked: PreparedAttempt, why: str) -> None:
        """It is gone and its reservation returned, unless it was taken before."""
        place = self._places.get(parked.study_hash)
        if place is None or place.parked is not parked:
            return
        del self._places[parked.study_hash]
        place.timer.cancel()
        parked.close()
        study = parked.side.study
        log.info(
            "study %r (%s): what was prepared is dropped, it %s",
            study.name,
            study.hash.hex()[:8],
            why,
        )
        try:
            self._ledger.cancel(parked.study_hash)
        except LedgerError as error:
            log.warning("its reservation stays until the next start: %s", error.message)

    def close(self) -> None:
        """The process ends."""
        for place in list(self._places.values()):
            self.drop(place.parked, "ends with the node")
