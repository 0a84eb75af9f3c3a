"""A node's side of U-MPC: its records' edges with other nodes, and the noisy share.

    side.begin(openings), …                prepare
    side.fields_for(peer) / receive_fields evaluate, round 1: records, masked or as labels
    side.protocol(chunk, material)         the rounds of a chunk
    side.own_steps()                       edges inside the node, in the clear
    side.release()                         release: the noisy share

`add` may be called from another thread than the rest: results are appended to a list, never added
in place.

*Prepare.* E, noise, seed, channels and coins.

    attempt = side.begin(openings)         E, plans, noise and zero share
    side.receive_seed(node_seed)           masks
    side.set_up(peer), or take_up(…)       oblivious transfers, where there are some
    side.toss()                            the committee's noise, from transfers

No message of *prepare* depends on the records' values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from umpc.crypto.prg import SEED_BYTES, FixedKeyHash
from umpc.crypto.rounds import Mesh, Message, Protocol
from umpc.crypto.signing import Credentials
from umpc.crypto.zero_shares import zero_shares
from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.backends import backend_of, tosses_apart, transfers_of
from umpc.mpc.cells import Cells
from umpc.mpc.chunks import AHEAD, Chunk, require
from umpc.mpc.garbled.cells import GarbledCells
from umpc.mpc.masked.cells import CommitteeTransfers, SharedCells
from umpc.mpc.masked.tasks import OwnerBatch
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.protocols.base.node import MeshSide, NodeSide
from umpc.protocols.base.seed_agreement import Entropy
from umpc.protocols.u_mpc.noise_binding import NodeNoise
from umpc.study import messages as m
from umpc.study.document import Study
from umpc.ustat.cell_rows import Owners
from umpc.ustat.clear import Columns

INNER_CHUNK = 1 << 17
"""Edges inside the node that are evaluated at once."""


class UMpcNode(NodeSide, MeshSide):
    """One node, one study, one attempt. Args: as in SeedAgreement."""

    _attempt: SharedAttempt | None = None
    noise: Sequence[int] = ()
    """This node's own part of each sum's noise, in units; nodes that collude subtract it."""

    def __init__(
        self, own: Credentials, study: Study, columns: Columns, records: int, entropy: Entropy
    ):
        super().__init__(own, study, columns, records, entropy)
        self._cells: Cells | None = None
        self.parts: list[Sequence[int]] = []
        self._toss_begun = False
        self._tossed = False
        self._begun: set[Chunk] = set()
        self._chunks_added = 0
        self._inner_begun = False
        self._inner_done = False
        self._is_released = False

    @property
    def attempt(self) -> SharedAttempt:
        return require(super().attempt, SharedAttempt)

    def begin(self, openings: Sequence[bytes]) -> SharedAttempt:
        """Expand everything that follows from the joint seed; draw noise before any data.

        Raises: RemoteProtocolError where an opening does not fit, LocalProtocolError where a record
        has more edges than the noise covers.
        """
        # Sinh & Ramon 2025, section 3: one random E, from the joint seed
        attempt = require(self._begin(openings), SharedAttempt)
        # noise is calibrated for δ_max: check it on E itself
        degree = int(attempt.hypergraph.degrees(self.index).max(initial=0))
        if degree > attempt.sizes.max_degree:
            raise LocalProtocolError(
                f"a record of this node is in {degree} edges, the noise covers "
                f"{attempt.sizes.max_degree}; refused"
            )
        _ = attempt.program  # a kernel that is too large is refused before anything is dealt
        self._attempt = attempt
        # spec/noise.py, `own_share`: drawn before any record is looked at
        self.noise = self.own_noise(attempt)
        # a member's words for coins that the dealer deals for
        own_coins = attempt.noise_chunks if self.index in attempt.committee else ()
        self._drawn = {chunk: self.random_words(chunk.count) for chunk in own_coins}
        # The coins' own seed: the dealer, who may know the other seed, never sees this one.
        self.coin_seed = self._entropy(SEED_BYTES) if attempt.tosses(self.index) else b""
        # They use that seed, or the cells do.
        self._transfers = transfers_of(self.study, attempt, self.index, self.coin_seed)
        names = [member.name for member in attempt.members]
        # spec/zero_shares.py, `neighbours`
        masked_with = set(attempt.zero_share_peers(self.index))
        keys = [
            member.public_key if other in masked_with else b""
            for other, member in enumerate(attempt.members)
        ]
        # Bonawitz et al. 2017: shares are uniform given their sum
        self.zeros = zero_shares(
            self.index, names, keys, self._key, attempt.id, attempt.ring, attempt.sums
        )
        return attempt

    def own_noise(self, attempt: SharedAttempt) -> list[int]:
        """The number that this node adds to each sum; in a committee the first member's offset."""
        if attempt.coins:
            # the public offset counts once
            is_first = self.index == attempt.committee[0]
            return [-coins.offset * is_first for coins in attempt.coins]
        laws = self.own_protocol.noise(attempt.sizes)
        # own part of each sum's noise (Balle et al. 2020 for discrete Laplace)
        return [law.draw(self._random_bits) for law in laws if isinstance(law, NodeNoise)]

    def random_words(self, count: int) -> np.ndarray:
        return np.frombuffer(self._entropy(8 * count), dtype="<u8").astype(np.uint64)

    @property
    def peers(self) -> tuple[int, ...]:
        return self.attempt.peers(self.index)

    @property
    def asks_early(self) -> bool:
        """Whether the edges of this study need material, unless no two nodes share one."""
        study = self.study
        return tosses_apart(study) and study.degree > 1 and len(study.nodes) > 1

    @cached_property
    def tosses_early(self) -> bool:
        return self.attempt.needs_dealer and tosses_apart(self.study)

    def receive_seed(self, node_seed: bytes) -> None:
        """The seed of all that this node keeps secret in its cells.

        The dealer sends it; where nothing is dealt, the node draws it itself.
        """
        if self._cells is not None:
            raise LocalProtocolError("the node's seed came before; masks are made once")
        # masks follow from this seed, so it comes once
        backend = backend_of(self.study)
        self._cells = backend(
            self.attempt, self.index, self.columns, node_seed, self._drawn, self.coin_seed
        )

    @property
    def cells(self) -> Cells:
        """This node's part in the edges that it shares with others."""
        if self._cells is None:
            raise LocalProtocolError("the node's seed has not come")
        return self._cells

    def set_up(self, peer: int) -> Protocol[None] | None:
        """The messages between this node and a peer that go before all data, if any."""
        if self._transfers is not None:
            # coins' channels need no seed of the dealer's
            return self._transfers.set_up(peer)
        return None if self.tosses_early else self.cells.set_up(peer)

    @property
    def _channels(self) -> GarbledCells | CommitteeTransfers | None:
        """The part of this node with channels of transfers, if former ones may serve it."""
        if type(self).set_up is not UMpcNode.set_up:
            return None
        return self._cells if isinstance(self._cells, GarbledCells) else self._transfers

    @property
    def channel_peers(self) -> tuple[int, ...]:
        """The nodes to which this one has a channel, for garbled edges or for coins alone."""
        channels = self._channels
        return tuple(filter(channels.has_channel, self.peers)) if channels else ()

    def channel(self, peer: int) -> CorrelatedSender | CorrelatedReceiver:
        return self._with_channels().channel(peer)

    def take_up(self, peer: int, channel: CorrelatedSender | CorrelatedReceiver) -> None:
        self._with_channels().take_up(peer, channel)

    def _with_channels(self) -> GarbledCells | CommitteeTransfers:
        if self._channels is None:
            raise LocalProtocolError("this study takes no channel that was made before")
        return self._channels

    def toss(self) -> Mesh[None] | None:
        """The committee's noise from transfers, once, after every set-up."""
        if self._toss_begun:
            raise LocalProtocolError("the committee's coins were tossed before")
        if self._transfers is not None:
            protocol = self._transfers.toss()
        else:
            protocol = None if self.tosses_early else self.cells.toss()
        self._toss_begun = True
        return None if protocol is None else self._add_tossed(protocol)

    def _add_tossed(self, protocol: Mesh[list[int]]) -> Mesh[None]:
        # a share of the noise: it enters the sum unseen
        self.parts.append((yield from protocol))
        self._tossed = True

    @property
    def mesh(self) -> MeshSide:
        return self

    # --- evaluate ------------------------------------------------------------------------------

    def fields_for(self, peer: int) -> list[Message]:
        # Sinh & Ramon 2025, 3.1, step 1: records under masks, or labels
        return self.cells.fields_for(peer)

    def due_fields(self, peer: int) -> list[Message]:
        return backend_of(self.study).field_shapes(self.attempt, peer, self.index)

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        self.cells.receive_fields(peer, messages)

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Protocol[Any] | Mesh[Any]:
        """The rounds of one chunk, once; the result goes to `add`.

        Raises: EncodingError on malformed material.
        """
        with self._beginning(chunk):
            # Sinh & Ramon 2025, 3.1, step 2: shares of the chunk's kernel values
            return self.cells.protocol(chunk, material, tree_hash)

    def batch(self, chunks: Sequence[Chunk], materials: Sequence[bytes]) -> OwnerBatch | None:
        """The rounds of a chunk, or of small ones, as a value, once, in place of `protocol`.

        None where this backend's chunks share a state, or a subclass evaluates them in its own way:
        only this process evaluates those, by `protocol`.
        """
        if self.evaluates_in_own_way or not isinstance(self.cells, SharedCells):
            return None
        with self._beginning(*chunks):
            return self.cells.batch(chunks, materials)

    @property
    def evaluates_in_own_way(self) -> bool:
        return type(self).protocol is not UMpcNode.protocol

    @contextmanager
    def _beginning(self, *chunks: Chunk) -> Iterator[None]:
        """Begin chunks, each once, whether or not its triples were made before."""
        # a chunk's masks serve once, in whatever parts it is run
        work = {chunk if chunk.part in ("", AHEAD) else replace(chunk, part="") for chunk in chunks}
        is_new = len(work) == len(chunks) and self._begun.isdisjoint(work)
        if not is_new or not all(map(self.cells.is_ready, chunks)):
            raise LocalProtocolError("a chunk is evaluated once, after its peers' records came")
        yield
        self._begun |= work

    def add(self, chunk: Chunk, shares: Any) -> None:
        """A chunk's result: its share of each sum, or of noise its share of the noise's own sum."""
        if chunk.noise:
            sums = range(len(self.study.kernels))
            # coins of one sum add nothing to the others
            shares = [shares[0] * (number == chunk.sum) for number in sums]
        self._keep(chunk, shares)
        self._chunks_added += 1

    def _keep(self, chunk: Chunk, shares: Any) -> None:
        self.parts.append(shares)

    def own_steps(self) -> Iterator[None]:
        """The edges inside this node, in the clear, at most INNER_CHUNK at a step."""
        if self._inner_begun:
            raise LocalProtocolError("the edges inside this node were evaluated before")
        self._inner_begun = True
        owners = (self.index,) * self.study.degree
        # step 2 for edges of one owner: no message
        cell = self.attempt.hypergraph.cells.get(owners)
        count = cell.count if cell else 0
        step = self._edges_at_once
        for start in range(0, count, step):
            if cell is None:
                break
            index = cell.edges(start, min(start + step, count))
            records = [
                {name: column.take(side) for name, column in self.columns.items()} for side in index
            ]
            self._keep_inner(owners, start, self.edge_values(records))
            yield
        self._inner_done = True

    def edge_values(self, records: Sequence[Columns]) -> list[np.ndarray]:
        """The value of each edge by each kernel. Args: records: of each place in an edge."""
        # the plaintext oracle, on this node's own records
        return [kernel.evaluate(records) for kernel in self.study.parsed_kernels]

    @property
    def _edges_at_once(self) -> int:
        return INNER_CHUNK

    def _keep_inner(self, owners: Owners, start: int, values: list[np.ndarray]) -> None:
        # mod 2^64, hence right mod 2^32 as well
        totals = [int(column.view(np.uint64).sum(dtype=np.uint64)) for column in values]
        self.parts.append(totals)

    # --- release -------------------------------------------------------------------------------

    def release(self) -> m.Released:
        """The noisy shares under their zero shares, once.

        They are uniform to everybody, and the shares of all nodes add up to sum + noise.
        """
        if self._is_released:
            raise LocalProtocolError("the share was released before")
        due = sum(1 for _ in self.attempt.chunks_of(self.index))
        # an incomplete share would shift the result unnoticed
        if self._chunks_added != due or not self._inner_done:
            raise LocalProtocolError(
                f"{self._chunks_added} of {due} chunks are evaluated; the share is not complete"
            )
        # without coins there would be no noise
        if self._tossed != self.attempt.tosses(self.index):
            raise LocalProtocolError(
                "the committee's coins were not tossed; the share has no noise"
            )
        self._is_released = True
        # Sinh & Ramon 2025, 3.1, step 4: the noisy share, once
        return self._released(self._share())

    def _share(self) -> bytes:
        return self._encoded(self._totals())

    def _encoded(self, totals: Sequence[int]) -> bytes:
        """Numbers as elements of the ring."""
        ring = self.attempt.ring
        return b"".join(ring.encode(total).to_bytes(ring.bytes, "little") for total in totals)

    def _totals(self) -> list[int]:
        """The node's share of each sum, with its noise and its zero share."""
        # S_u + noise_u + zero share, mod 2^w
        return list(map(sum, zip(*self.parts, self.noise, self.zeros, strict=True)))
