"""A node's part of one attempt, without network, disk or clock: it is told and answers.

    member = session.accept()                       propose: records, commitment, key
    opening = session.agree(members)                agree: joint seed
    attempt = session.begin(openings)               prepare: E, plan, noise and zero share
    session.receive_seed(node_seed)                          masks
    session.set_up(peer)                                     without a dealer: oblivious transfers
    session.toss()                                           … and the committee's noise
    session.fields_for(peer) / receive_fields       evaluate, round 1: records, masked or as labels
    session.protocol(chunk, material)                        the rounds of a chunk
    session.release()                               release: the noisy share

A call out of order is a LocalProtocolError. Randomness comes in as `entropy`. `add` may be called from another thread
than the rest: what is added up is appended to a list, never added in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from umpc.crypto.mesh import Mesh
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.rounds import Message, Protocol
from umpc.crypto.zero_shares import zero_shares
from umpc.errors import LocalProtocolError
from umpc.mpc.attempt import Attempt, Chunk
from umpc.mpc.backends import Cells, backend_of
from umpc.mpc.garbled.pair_noise import apply_all, words_of
from umpc.protocols.base.seed_agreement import Entropy, SeedAgreement
from umpc.protocols.u_mpc.noise_binding import noise_of
from umpc.study.document import Study
from umpc.ustat.hypergraph import Cell, Owners

INNER_CHUNK = 1 << 17
"""Edges inside the node that are evaluated at once."""


class NodeSession(SeedAgreement):
    """One node, one study, one attempt. Args: as of SeedAgreement."""

    def __init__(
        self,
        name: str,
        study: Study,
        columns: Mapping[str, np.ndarray],
        records: int,
        entropy: Entropy,
    ):
        super().__init__(name, study, columns, records, entropy)
        self._cells: Cells | None = None
        self._begun: set[Chunk] = set()
        self._parts: list[Sequence[int]] = []
        self._values: dict[tuple[Owners, int], np.ndarray] = {}
        self._chunks_added = 0
        self._toss_begun = self._tossed = False
        self._inner_begun = self._inner_done = False
        self._released = False

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """Expand everything that follows from the joint seed; draw noise before any data is touched.

        Raises: RemoteProtocolError where an opening does not fit, LocalProtocolError where a record has more edges
        than the noise covers.
        """
        attempt = self._attempt_of(openings)
        degree = int(attempt.hypergraph.degrees(self.index).max(initial=0))
        if degree > attempt.sizes.max_degree:
            raise LocalProtocolError(
                f"a record of this node is in {degree} edges, the noise covers {attempt.sizes.max_degree}; refused"
            )
        _ = attempt.program  # refused here, before anything is dealt, if the kernel is too large
        self._attempt = attempt
        self._noise = self._own_noise(attempt)
        own_coins = attempt.noise_chunks if self.index in attempt.committee else ()
        self._drawn = {chunk: self._random_words(chunk.count) for chunk in own_coins}
        names = [member.name for member in self._members]
        keys = [member.public_key for member in self._members]
        sums = len(self.study.kernels)
        self._zeros = zero_shares(
            self.index, names, keys, self._key, attempt.id, attempt.ring, sums
        )
        return attempt

    def _own_noise(self, attempt: Attempt) -> list[int]:
        """What this node adds to each sum itself; of a committee, the first member takes the offset."""
        if attempt.pair_noise:
            return [0] * len(attempt.pair_noise)
        if attempt.coins:
            return [-coins.offset * (self.index == attempt.committee[0]) for coins in attempt.coins]
        return [noise.draw(self._random_bits) for noise in noise_of(attempt.sizes)]

    def _random_words(self, count: int) -> np.ndarray:
        return np.frombuffer(self._entropy(8 * count), dtype="<u8").astype(np.uint64)

    @property
    def peers(self) -> tuple[int, ...]:
        """The nodes with which this one exchanges messages."""
        return self.attempt.peers(self.index)

    def receive_seed(self, node_seed: bytes) -> None:
        """The seed of all that this node keeps secret in its cells: the dealer's, or its own where nothing is dealt."""
        attempt = self.attempt
        if self._cells is not None:
            raise LocalProtocolError("the node's seed came before; masks are made once")
        self._cells = backend_of(self.study)(
            attempt, self.index, self.columns, node_seed, self._drawn
        )

    @property
    def cells(self) -> Cells:
        """This node's part in the edges that it shares with others."""
        if self._cells is None:
            raise LocalProtocolError("the node's seed has not come")
        return self._cells

    def set_up(self, peer: int) -> Protocol[None] | None:
        """What goes before all data between this node and a peer, if anything."""
        return self.cells.set_up(peer)

    def toss(self) -> Mesh[None] | None:
        """The committee's noise where nothing is dealt, once, after every set-up; None: no part in any."""
        if self._toss_begun:
            raise LocalProtocolError("the committee's coins were tossed before")
        protocol = self.cells.toss()
        self._toss_begun = True
        return None if protocol is None else self._add_tossed(protocol)

    def _add_tossed(self, protocol: Mesh[list[int]]) -> Mesh[None]:
        self._parts.append((yield from protocol))
        self._tossed = True

    def fields_for(self, peer: int) -> list[Message]:
        """Round 1: this node's records that occur in an edge with the peer, under masks or as labels."""
        return self.cells.fields_for(peer)

    def due_fields(self, peer: int) -> list[Message]:
        """What the peer must send in round 1, but for the content."""
        return backend_of(self.study).field_shapes(self.attempt, peer, self.index)

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Round 1 from a peer. Raises: EncodingError or RemoteProtocolError where not exactly its records came."""
        self.cells.receive_fields(peer, messages)

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Protocol[list[int]]:
        """The rounds of one chunk, once; the result goes to `add`. Raises: EncodingError on malformed material."""
        if chunk in self._begun or not self.cells.is_ready(chunk):
            raise LocalProtocolError("a chunk is evaluated once, after its peers' records came")
        protocol = self.cells.protocol(chunk, material, tree_hash)
        self._begun.add(chunk)
        return protocol

    def add(self, chunk: Chunk, shares: Sequence[int] | np.ndarray) -> None:
        """A chunk's result: its share of each sum; of noise, of its own sum; or of every edge's own values."""
        sums = len(self.study.kernels)
        if self.attempt.pair_noise:
            self._values[chunk.owners, chunk.start] = shares
        else:
            self._parts.append(
                [shares[0] * (number == chunk.sum) for number in range(sums)]
                if chunk.noise
                else shares
            )
        self._chunks_added += 1

    def evaluate_inner(self) -> None:
        """The edges inside this node, in the clear, inside this node."""
        for _ in self.inner_steps():
            pass

    def inner_steps(self) -> Iterator[None]:
        """The same in steps of at most INNER_CHUNK edges, or random words, so that whoever drives it can stop."""
        if self._inner_begun:
            raise LocalProtocolError("the edges inside this node were evaluated before")
        self._inner_begun = True
        owners = (self.index,) * self.study.degree
        cell: Cell | None = self.attempt.hypergraph.cells.get(owners)
        kernels = self.study.parsed_kernels
        step = max(1, INNER_CHUNK // max(1, words_of(self.attempt.pair_noise)))
        for start in range(0, cell.count if cell else 0, step):
            index = cell.edges(start, min(start + step, cell.count))
            records = [
                {name: column[side] for name, column in self.columns.items()} for side in index
            ]
            values = [kernel.evaluate(records) for kernel in kernels]
            if self.attempt.pair_noise:
                self._values[owners, start] = self._with_noise(values)
            else:
                self._parts.append([int(of.view(np.uint64).sum(dtype=np.uint64)) for of in values])
            yield
        self._inner_done = True

    def _with_noise(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """What leaves this node of pairs that are all its own: (sums, n) of the ring, by the law of every pair."""
        noises, count = self.attempt.pair_noise, len(values[0])
        words = self._random_words(words_of(noises) * count).reshape(-1, count)
        return np.stack(apply_all(values, noises, words)).astype(self.attempt.ring.dtype)

    def release(self) -> bytes:
        """The noisy shares under their zero shares, once: uniform to everybody, and all sum to sum + noise.

        With noise of every pair: shares of every pair's noisy values, uniform to whoever lacks the other owner's.
        """
        if self._released:
            raise LocalProtocolError("the share was released before")
        due = sum(1 for _ in self.attempt.chunks_of(self.index))
        if self._chunks_added != due or not self._inner_done:
            raise LocalProtocolError(
                f"{self._chunks_added} of {due} chunks are evaluated; the share is not complete"
            )
        if self._tossed != self.attempt.tosses(self.index):
            raise LocalProtocolError(
                "the committee's coins were not tossed; the share has no noise"
            )
        self._released = True
        ring = self.attempt.ring
        if self.attempt.pair_noise:
            return self._release_values().astype(ring.dtype.newbyteorder("<")).tobytes()
        totals = map(sum, zip(*self._parts, self._noise, self._zeros, strict=True))
        return b"".join(ring.encode(total).to_bytes(ring.bytes, "little") for total in totals)

    def _release_values(self) -> np.ndarray:
        """(sums, own edges) of the ring: cell after cell, edge after edge."""
        none = np.empty((len(self.study.kernels), 0), dtype=self.attempt.ring.dtype)
        return np.concatenate(
            [none, *(self._values[place] for place in sorted(self._values))], axis=1
        )
