"""*prepare*: everything before the data, and the other processes that a run meets for it.

| row of docs/protocol.md, prepare | here |
|---|---|
| checks all signatures of the members; asks the dealer; expands E; reserves δ | `prepare` |
| is dealt its seed while it connects, sets up transfers, tosses coins | `_meet_and_deal` |
| draws the committee's noise from dealt material; has or stores material | `_prepare_mesh` |
| signs the attempt's id | `prepare` |

A side without a mesh talks to no other node. Its attempt needs its own steps only.

*Channels.* Chains of oblivious transfers: taken from an earlier study, and made for the next one.

Two nodes that set up a channel, for garbled edges or for coins, make another one from it over the
link that they still have, after both have released (`umpc/mpc/transfers/channels.py`). It
takes no curve points, a few milliseconds of both processors, and depends on nothing of a study. A
failure to make one is no failure of a study: the next study sets up a channel of its own.
`umpc/node/standing.py` keeps them between studies.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from umpc.crypto.prg import SEED_BYTES, derive, digest
from umpc.crypto.rounds import Protocol
from umpc.dp.events import Event
from umpc.errors import RemoteProtocolError, UmpcError
from umpc.failpoints import failpoint
from umpc.mpc.backends import backend_of
from umpc.mpc.chunks import AFTER, AHEAD, Chunk
from umpc.mpc.masked.material import dealt_bytes
from umpc.mpc.transfers.channels import MOST_PEERS, chain_receiver, chain_sender
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, fresh_delta
from umpc.mpc.triples.plan import TriplesPlan
from umpc.node.budget.budget_account import exact_delta
from umpc.node.run.chunks import evaluate_chunks
from umpc.node.run.context import RunContext, is_small
from umpc.node.run.link import PeerLink, RunLinks
from umpc.node.run.material import Material
from umpc.node.run.rounds import Rounds, blaming, drive
from umpc.node.shufflers import ShufflerStreams
from umpc.node.standing import MAKE_SECONDS, Chain, Channel, PreparedAttempt, Standing, StandingWith
from umpc.protocols.base.node import MeshSide, NodeSide
from umpc.protocols.registry import protocol_of
from umpc.study import messages as m
from umpc.study.attempt import Attempt
from umpc.study.messages import frame_of
from umpc.transport.patience import task_group, time_limit, together

TURNS_TO_ASK = 4
"""Turns of the event loop until a request leaves over a connection that was kept."""


class Others:
    """The processes that a run meets besides its coordinator: peers, dealer, shufflers.

    All that is open to them ends with the run.
    """

    def __init__(self, run: RunContext):
        self.links = RunLinks(run.guard.note)
        self.material = Material(run)
        self.shufflers: ShufflerStreams | None = None
        self.chains: Mapping[int, Chain] = NO_CHAINS
        """Where the channels of its preparation come from, by peer, if an earlier run made it."""
        self._run = run
        self._met: MeshSide | None = None

    @property
    def bytes_offline(self) -> int:
        """Bytes received from the dealer and sent to peers before the data, whenever that was."""
        return self.links.bytes_before + self.material.bytes_received

    def rounds(self, mesh: MeshSide) -> Rounds:
        """The rounds of a side over these links, with this run's material."""
        run, material = self._run, self.material
        source = material.spool if material.reader is None else material.reader
        computed = run.compute.in_thread, run.compute.briefly, run.stream.tell, run.site.workers
        return Rounds(mesh, self.links.made, source, *computed)

    def has_met(self, mesh: MeshSide) -> None:
        """Note that links and transfers are there, so that channels can be made in the end."""
        self._met = mesh

    def step(self, step: str) -> AbstractAsyncContextManager[None]:
        """Limit the time of a step. When it is up, note who is missing before all waiting ends."""

        def note() -> None:
            self._run.missing = self.links.waited_for() + self.material.waited_for(step)

        return time_limit(self._run.study.seconds_per_step, note)

    def end(self, *, is_good: bool) -> None:
        """End the run. A run that ended well makes channels for the next study before `close`.

        A preparation leaves that to its run, which may follow at once.

        Args: is_good: the run has taken all its steps.
        """
        run, standing = self._run, self._run.site.standing
        ended = []
        if is_good and self._met is not None and run.parked is None:
            ended = ended_links(standing, self._met, self.links.made, self.chains)
        if standing is None or not ended:
            self.close(is_good=is_good)
            return
        self.material.hang_up()
        making = make_channels(ended, run.compute.in_thread, self._close_later)
        standing.make([each.link.peer for each in ended], making)

    async def _close_later(self, made: bool) -> None:
        """End the run over whose links channels were made, or could not be."""
        if made:
            await self.links.finish()
        self.close(is_good=made)
        await self.links.ended()

    def close(self, *, is_good: bool) -> None:
        """End this run, and not what waits prepared. Args: is_good: nothing has failed."""
        self.material.close(keep_spool=self._run.parked is not None)
        self.links.close()
        standing = self._run.site.standing
        if self.links.made and not is_good and standing is not None:
            standing.end(self.links.names)
        if self.shufflers is not None:
            self.shufflers.close()
        self._run.compute.close()


async def prepare(
    run: RunContext, others: Others, side: NodeSide, begin: m.Begin, *, ahead: bool
) -> tuple[PreparedAttempt, m.Prepared]:
    """All before the data.

    Args: begin: everybody's opening, and signature of all members. ahead: all material is fetched
        or made, so that a later run needs the dealer no more.

    Returns: the attempt as it waits for the data; the answer, with its id, signed.
    """
    run.stream.step = "prepare"
    failpoint("before-prepare")
    await run.compute.for_nodes(side.check_agreed, begin.signatures)
    async with task_group() as group:
        # The dealer derives the attempt while this node does.
        group.create_task(others.material.ask(side, begin.openings))
        for _ in range(TURNS_TO_ASK):  # a busy thread would hold up the request
            await asyncio.sleep(0)
        attempt, delta, events = await run.compute.in_thread(_begin, run, side, begin.openings)
    # Not in a thread: no cancellation may come in between.
    run.site.ledger.reserve_delta(run.charged_as, delta, events)
    failpoint("after-reserve-delta")
    prepared = PreparedAttempt(side, begin.openings, [], None, 0, delta)
    if side.mesh is not None:
        async with others.step("prepare"):
            await _prepare_mesh(run, others, side.mesh, prepared, ahead)
        others.has_met(side.mesh)
    if run.study.shufflers:
        facts = attempt.id, attempt.members, begin.openings, side.signatures
        await reach_shufflers(run, others, *facts)
    failpoint("after-prepare")
    signature = side.sign_attempt()
    prepared.spool, prepared.bytes_offline = others.material.spool, others.bytes_offline
    prepared.chains = chains_of(run.site.standing, others.links.made)
    return prepared, m.Prepared(attempt.id, prepared.bytes_offline, signature=signature)


def _begin(
    run: RunContext, side: NodeSide, openings: tuple[bytes, ...]
) -> tuple[Attempt, Fraction, tuple[Event, ...]]:
    """Derive the attempt, and ask the site's rules for its δ.

    Returns: the attempt, and the δ and the mechanism that are to be reserved.
    """
    attempt = side.begin(openings)
    delta = exact_delta(side.delta)
    run.site.permit_delta(delta)
    return attempt, delta, protocol_of(run.study).events(attempt.sizes)


async def reach_shufflers(run: RunContext, others: Others, attempt: bytes, *facts: Any) -> None:
    """Streams to all shufflers, each of which has then derived the attempt and waits.

    Args: facts: the members, their openings, and their signatures of all members.
    """
    others.shufflers = ShufflerStreams(run.study, attempt, *facts)
    await run.site.dial_helper(others.shufflers)


async def _prepare_mesh(
    run: RunContext, others: Others, mesh: MeshSide, prepared: PreparedAttempt, ahead: bool
) -> None:
    """Seed, links, transfers, noise and material. It leaves the chunks that need data."""
    run.compute.is_small = is_small(mesh.attempt)
    chunks = await run.compute.briefly(lambda: list(mesh.attempt.chunks_of(mesh.index)))
    rounds = others.rounds(mesh)
    await _meet_and_deal(run, others, rounds, prepared, chunks, ahead)
    rounds.material = others.material.reader
    # The committee's coins from the dealer's material, before any data are touched.
    noise = [chunk for chunk in chunks if chunk.noise]
    prepared.chunks = chunks[len(noise) :]
    await evaluate_chunks(rounds, noise)
    others.links.count_as_prepared()
    if ahead and mesh.attempt.makes_ahead:
        await _make_ahead(others, rounds, prepared)
    else:
        await others.material.ready(len(prepared.chunks), rounds.tell)


async def _meet_and_deal(
    run: RunContext,
    others: Others,
    rounds: Rounds,
    prepared: PreparedAttempt,
    chunks: Sequence[Chunk],
    ahead: bool,
) -> None:
    """The node's seed, and links with the transfers over them, at the same time where possible."""
    mesh, links, material = rounds.session, others.links, others.material
    attempt = mesh.attempt
    standing = standing_of(run.site.standing, mesh)

    async def take_seed() -> None:
        if ahead and attempt.needs_dealer:
            await material.open_spool(mesh, chunks, dealt_bytes)
        facts = prepared.openings, prepared.side.signatures
        seed = await material.open(attempt, *facts, chunks)
        await run.compute.briefly(mesh.receive_seed, seed)

    async def connect() -> None:
        await links.connect(run.site, mesh, attempt.study, attempt.id, standing)

    async def set_up() -> None:
        """The rounds over the links that need no data. They need the node's seed."""
        links.bytes_before += set_up_before(mesh, links.made)
        await rounds.set_up(*mesh.peers)
        failpoint("after-set-up")
        await rounds.toss()

    async def meet() -> None:
        """Connect to all peers, set up transfers, and toss the committee's coins over them."""
        await connect()
        await set_up()

    if mesh.tosses_early:
        # The coins come from a seed of the node's own, so they need not wait for the dealer.
        await together([take_seed(), meet()])
    elif attempt.needs_dealer:
        await together([take_seed(), connect()])
        await set_up()
    else:
        await take_seed()
        await meet()


async def _make_ahead(others: Others, rounds: Rounds, prepared: PreparedAttempt) -> None:
    """The rounds of all chunks that need no data. The run then does the others only."""
    spool = await others.material.open_spool(
        rounds.session, prepared.chunks, TriplesPlan.triples_bytes
    )
    await rounds.make_ahead([replace(each, part=AHEAD) for each in prepared.chunks], spool)
    prepared.chunks = [replace(each, part=AFTER) for each in prepared.chunks]
    others.links.count_as_prepared()


# --- channels -------------------------------------------------------------------------------------

log = logging.getLogger("umpc.node")

REPORT_SECONDS = 0.01
"""Seconds after a study before its nodes make channels: its report is made meanwhile."""
NEXT_CHANNEL = 1
"""The chunk in whose name the set-up of the next study's channel goes; this one's is 0."""
NO_CHAINS: Mapping[int, Chain] = {}


def standing_of(standing: Standing | None, mesh: MeshSide) -> dict[int, StandingWith]:
    """The standing with each peer to which this run needs a channel, under its certificates."""
    if standing is None:
        return {}
    members = mesh.attempt.members
    own = members[mesh.index].certificate
    return {
        peer: StandingWith(standing, members[peer].name, (own, members[peer].certificate))
        for peer in mesh.channel_peers
    }


def set_up_before(mesh: MeshSide, links: Mapping[int, PeerLink]) -> int:
    """The bytes that set up the taken channels, after an earlier study; they count as this run's.

    Args: links: each with the channel that it took.
    """
    attempt, index = mesh.attempt, mesh.index
    frames = [
        frame_of(shape, (min(index, peer), max(index, peer)), 0)
        for peer, link in links.items()
        if link.channel is not None
        for shape in backend_of(attempt.study).set_up_shapes(attempt, index, peer)
    ]
    return sum(frame.wire_bytes for frame in frames)


def chains_of(standing: Standing | None, links: Mapping[int, PeerLink]) -> Mapping[int, Chain]:
    """Where the channels of a run come from, by peer: for a later run that goes on with it.

    Channels that were set up by points begin a chain now.
    """
    if standing is None:
        return NO_CHAINS
    now = standing.now()
    return {peer: _chain_of(link, now) for peer, link in links.items()}


def _chain_of(link: PeerLink, now: float) -> Chain:
    """The chain of what is made from the channel over a link, which by points begins now."""
    return link.channel.chain.longer if link.channel else Chain(now)


# --- made for the next study ----------------------------------------------------------------------


@dataclass(frozen=True)
class EndedLink:
    """A link of a run that has ended, and its channel. name: that of the channel to be made.

    owners: the places of both nodes in the study. chain: where the channel comes from.
    """

    link: PeerLink
    standing: StandingWith
    name: bytes
    owners: tuple[int, int]
    channel: Channel
    chain: Chain


def ended_links(
    standing: Standing | None,
    mesh: MeshSide,
    links: Mapping[int, PeerLink],
    chains: Mapping[int, Chain] = NO_CHAINS,
) -> list[EndedLink]:
    """The links of an ended run over which channels are to be made: none where there are many.

    Args: chains: those of the channels that the run's preparation has set up, by peer. The links
        of the preparation ended with it, so nothing else tells.
    """
    known = standing_of(standing, mesh)
    peers = [peer for peer in known if peer in links]
    if standing is None or len(peers) > MOST_PEERS:
        return []
    now = standing.now()
    own = mesh.attempt.members[mesh.index].name
    found = []
    for peer in peers:
        link = links[peer]
        chain = chains.get(peer) or _chain_of(link, now)
        if not chain.ends(now):
            owners = min(mesh.index, peer), max(mesh.index, peer)
            name = channel_name(mesh.attempt.id, own, link.peer)
            found.append(EndedLink(link, known[peer], name, owners, mesh.channel(peer), chain))
    return found


async def make_channels(
    ended: Sequence[EndedLink],
    compute: Callable[..., Awaitable[Any]],
    close: Callable[[bool], Awaitable[None]],
) -> None:
    """Make a channel over each of these links, and then end the run.

    A peer that breaks the protocol is named in the log; a peer that is gone or late is not.

    Args: compute: runs each step. close: ends the links; its argument says whether all channels
        were made.
    """
    made = False
    try:
        await asyncio.sleep(REPORT_SECONDS)
        async with time_limit(MAKE_SECONDS):
            for each in ended:
                peer = each.link.peer
                with blaming(peer, each.link.step):
                    opening = next_channel(each.channel, each.name, peer)
                    channel = await drive(each.link, opening, each.owners, compute, NEXT_CHANNEL)
                each.standing.keep(each.name, channel, each.chain)
                log.debug("a channel to %s waits for the next study", peer)
        made = True
    except RemoteProtocolError as error:
        log.warning("no channel to %s is kept for the next study: %s", error.culprit, error.message)
    except (UmpcError, TimeoutError) as error:
        log.debug("no channel is kept for the next study: %s", error)
    finally:
        await close(made)


def channel_name(attempt: bytes, *ends: str) -> bytes:
    """The name of the channel that two nodes make after an attempt, the same at both ends."""
    names = (end.encode() for end in sorted(ends))
    return digest(b"umpc next channel 1", attempt, *names)


def next_channel(last: Channel, name: bytes, peer: str) -> Protocol[Any]:
    """The messages that make one end of a channel from another one, with fresh seeds."""
    seed = os.urandom(SEED_BYTES)
    if isinstance(last, CorrelatedReceiver):
        return chain_receiver(last, derive(seed, "set-up"), name, peer)
    return chain_sender(last, derive(seed, "set-up"), fresh_delta(derive(seed, "delta")), name)
