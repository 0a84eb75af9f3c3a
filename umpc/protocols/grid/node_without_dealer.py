"""The node's side of a grid without a dealer: its own pairs, and cross terms with other nodes.

| step | what is new |
|---|---|
| prepare | with each other node a channel of transfers, from a seed of the node's own |
| evaluate | for each chunk of cells an extension and corrections (`cross_terms.py`) |
| | the own records counted by cell: h; then hᵀA h − ⟨diagonal, h⟩ |
| release | its share of 2·S, and twice the noise, under zero shares |

*Reveals*: extensions and corrections are pseudorandom to the node that gets them. Shares leave the
node under noise and zero shares only.

Memory: h, and A·h of each sum, one 64-bit word for each cell; those of an operator; and at most
eight chunks of a cross term, each a few MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from umpc.crypto.prg import FixedKeyHash, derive, digest
from umpc.crypto.rounds import Finished, Message, Protocol, resume
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.arrays import Words
from umpc.mpc.chunks import Chunk, require
from umpc.mpc.transfers.channels import Channels
from umpc.mpc.transfers.ot_inner_products import (
    End,
    channel_for,
    receive_inner_products,
    send_inner_products,
)
from umpc.protocols.grid.cross_terms import SET_UP_ROUND, CrossPair, DealerlessAttempt
from umpc.protocols.grid.masked_form import PairSum, masked_forms
from umpc.protocols.u_mpc.node import UMpcNode


@dataclass(frozen=True)
class OwnTable:
    """A node's table h: (cells,) uint64; for each sum A·h, and hᵀA h − ⟨diagonal, h⟩."""

    table: Words
    images: list[Words]
    own: list[int]

    def __repr__(self) -> str:
        return "OwnTable(<redacted>)"


class DealerlessNode(UMpcNode):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    _own_table: OwnTable | None = None

    @property
    def dealerless_attempt(self) -> DealerlessAttempt:
        """The attempt, once it has begun."""
        return require(self.attempt, DealerlessAttempt)

    # --- prepare -------------------------------------------------------------------------------

    def receive_seed(self, node_seed: bytes) -> None:
        """The seed of this node's channels, which it draws itself."""
        super().receive_seed(node_seed)
        attempt = self.dealerless_attempt
        self._sums = [0] * attempt.sums
        self._links = {
            peer: self._link(pair, peer, node_seed)
            # a channel for each node with which it has a cross term
            for nodes, pair in attempt.pairs.items()
            for peer in nodes
            if self.index in nodes and peer != self.index
        }

    def _link(self, pair: CrossPair, peer: int, node_seed: bytes) -> Channels:
        """This node's end of a channel; the sender of the cross term sends in transfers."""
        ends = (pair.sender, pair.chooser)
        names = [self.attempt.members[end].name for end in ends]
        # names the channel, the same at both ends
        purpose = digest(b"umpc cross terms 1", self.attempt.id)
        seed = derive(node_seed, "cross terms", peer)
        return Channels(ends.index(self.index), names, purpose, seed)

    def set_up(self, peer: int) -> Protocol[None] | None:
        """The channel of the cross term with a peer, then that of the committee's coins."""
        # a committee's coins have a channel of their own
        coins = super().set_up(peer)
        link = self._links.get(peer)
        if link is None:
            return coins
        return _one_after_the_other(link.set_up(self._place(peer)), coins)

    def _place(self, peer: int) -> int:
        """A peer's place in the channel of its cross term: 0 for the sender."""
        return int(self._pair(peer).chooser == peer)

    def _pair(self, peer: int) -> CrossPair:
        nodes = (min(self.index, peer), max(self.index, peer))
        return self.dealerless_attempt.pairs[nodes]

    # --- evaluate ------------------------------------------------------------------------------

    @property
    def counted(self) -> OwnTable:
        """The own records by cell, counted at the first use."""
        if self._own_table is None:
            grid = self.dealerless_attempt.grid
            # h, then A·h of each sum
            table = grid.tabulate(self.columns)
            images = []
            own = []
            for each in masked_forms(grid, self.attempt.ring):
                form = require(each, PairSum).form
                images.append(form.apply(table))
                # hᵀ A h − ⟨diagonal, h⟩: pairs inside the node
                own.append(self.attempt.ring.inner(table, images[-1]) + each.own(table))
            self._own_table = OwnTable(table, images, own)
        return self._own_table

    def protocol(self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash) -> Protocol[Any]:
        """The two rounds of a chunk of cells, once. Raises: EncodingError where material came."""
        if chunk in self._begun:
            raise LocalProtocolError("a chunk of a cross term is evaluated once")
        if material:
            raise EncodingError(f"cross terms take no material, {len(material)} bytes came")
        self._begun.add(chunk)
        (peer,) = set(chunk.owners) - {self.index}
        pair = self._pair(peer)
        attempt = self.dealerless_attempt
        plan = attempt.plan(chunk)
        cells = slice(chunk.start, chunk.stop)
        own = self.counted
        seat = self._links[peer].seat()
        # Gilboa 1999: sender has (A·h)_c, chooser the bits of h'_c
        if self.index == pair.sender:
            sender = _of_chunk(seat.senders[1], chunk)
            vectors = [image[cells] for image in own.images]
            return send_inner_products(sender, vectors, plan.bits, plan.width)
        receiver = _of_chunk(seat.receivers[0], chunk)
        # entries less their least value: fewer bits to choose by
        offset = pair.records * attempt.range_of(chunk).low
        entries = own.table[cells] - np.uint64(offset % (1 << 64))
        if plan.bits == plan.width:
            entries &= np.uint64((1 << plan.width) - 1)
        name = seat.names[0]
        # spec/grid.py, `inner_products`
        return receive_inner_products(receiver, entries, plan.bits, plan.width, plan.sums, name)

    def _keep(self, chunk: Chunk, shares: Any) -> None:
        """The shares of a chunk's inner products count twice."""
        # A is symmetric: hᵀAh' + h'ᵀAh
        self._sums = [total + 2 * share for total, share in zip(self._sums, shares, strict=True)]

    def own_steps(self) -> Iterator[None]:
        """The pairs inside this node, and what a sender adds back for its choosers' offsets."""
        if self._inner_begun:
            raise LocalProtocolError("the records of this node were counted before")
        self._inner_begun = True
        own = self.counted
        yield
        for place, image in enumerate(own.images):
            # the sender adds the offset's part back
            self._sums[place] += own.own[place] + 2 * self._added_back(image)
        self._inner_done = True
        yield

    def _added_back(self, image: Words) -> int:
        """Σ over this node's choosers and ranges of n·low·Σ (A·h), modulo 2^64."""
        attempt = self.dealerless_attempt
        chosen = sum(p.records for p in attempt.pairs.values() if p.sender == self.index)
        return sum(
            chosen * part.low * int(image[part.start : part.stop].sum(dtype=np.uint64))
            for part in attempt.ranges
            if part.low
        )

    # --- release -------------------------------------------------------------------------------

    def _totals(self) -> list[int]:
        """2·(S + noise), shared: uniform given the sum over all nodes."""
        noises = map(sum, zip(*self.parts, self.noise, strict=True))
        factor = self.dealerless_attempt.factor
        parts = zip(self._sums, noises, self.zeros, strict=True)
        totals = [share + factor * noise + zero for share, noise, zero in parts]
        self._own_table = None
        return totals


def _of_chunk(channel: End, chunk: Chunk) -> End:
    """The channel of one chunk: a fork for each but the first."""
    return channel_for(channel, chunk.number) if chunk.number else channel


def _one_after_the_other(cross: Protocol[None], coins: Protocol[None] | None) -> Protocol[None]:
    """Both set-ups of one link. The messages of the first have another round number."""
    replies: list[Message] | None = None
    while True:
        message = resume(cross, replies)
        if isinstance(message, Finished):
            break
        came = yield replace(message, round=SET_UP_ROUND)
        replies = [replace(reply, round=0) for reply in came]
    if coins is not None:
        yield from coins
