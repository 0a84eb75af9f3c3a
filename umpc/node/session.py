"""A node's part of one attempt, without network, disk or clock: it is told and answers.

    member = session.accept()                       propose: records, commitment, key
    opening = session.agree(members)                agree: joint seed
    attempt = session.begin(openings)               prepare: E, plan, noise and zero share
    session.receive_seed(node_seed)                          masks
    session.fields_for(peer) / receive_fields       evaluate, round 1: masked records
    session.protocol(chunk, material)                        round 2, per chunk
    session.release()                               release: the noisy share

A call out of order is a LocalProtocolError. Randomness comes in as `entropy`. `add` may be called from another thread
than the rest: what is added up is appended to a list, never added in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from umpc.agreement import attempt_of, noise_of
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.attempt import Attempt, Chunk, Member, commit
from umpc.mpc.evaluation import ChunkInputs, evaluate_chunk, fields_messages, read_fields
from umpc.mpc.masks import masked_wires, wire_masks
from umpc.mpc.material import DealtPart, SeededPart, chunk_seed
from umpc.mpc.prg import SEED_BYTES, FixedKeyHash, derive
from umpc.mpc.rounds import Message, Protocol
from umpc.mpc.zero_shares import KeyAgreement, zero_share
from umpc.study import Study
from umpc.ustat.hypergraph import Cell, Owners
from umpc.ustat.local import evaluate_local

Entropy = Callable[[int], bytes]
"""Number of bytes → uniform bytes."""

INNER_CHUNK = 1 << 17
"""Edges inside the node that are evaluated at once."""


class NodeSession:
    """One node, one study, one attempt.

    Args:
        columns: field → (records,) int64 in steps of the resolution.
        records: how many records the columns have.
        entropy: the node's randomness: opening, key, noise.
    """

    def __init__(self, name: str, study: Study, columns: Mapping[str, np.ndarray], records: int, entropy: Entropy):
        self.study, self.columns, self.records = study, columns, records
        self.index = study.index_of(name)
        self._entropy = entropy
        self._opening = entropy(SEED_BYTES)
        self._key = KeyAgreement(entropy(SEED_BYTES))
        self._member = Member(name, records, commit(study.hash, name, self._opening), self._key.public_key)
        self._members: tuple[Member, ...] | None = None
        self._attempt: Attempt | None = None
        self._node_seed: bytes | None = None
        self._begun: set[Chunk] = set()
        self._parts: list[int] = []
        self._chunks_added = 0
        self._inner_begun = self._inner_done = False
        self._released = False

    def __repr__(self) -> str:
        return f"NodeSession({self._member.name}, study {self.study.hash.hex()[:8]}, <redacted>)"

    def accept(self) -> Member:
        """What the node says of itself when it accepts the study."""
        return self._member

    def agree(self, members: Sequence[Member]) -> bytes:
        """Take everybody's commitment, give one's own opening: only once, and only if one's own entry is intact."""
        if self._members is not None:
            raise LocalProtocolError("the members were agreed on before")
        names = [node.name for node in self.study.nodes]
        if [member.name for member in members] != names or members[self.index] != self._member:
            raise RemoteProtocolError(
                "the coordinator passed on other nodes than the study's, or another entry than this node's own",
                culprit=self.study.coordinator,
                step="agree",
            )
        self._members = tuple(members)
        return self._opening

    def begin(self, openings: Sequence[bytes]) -> Attempt:
        """Expand everything that follows from the joint seed; draw noise before any data is touched.

        Raises: RemoteProtocolError where an opening does not fit, LocalProtocolError where a record has more edges
        than the noise covers.
        """
        if self._members is None or self._attempt is not None:
            raise LocalProtocolError("begin comes once, after agree")
        if len(openings) != len(self._members) or openings[self.index] != self._opening:
            raise RemoteProtocolError(
                "the coordinator changed this node's opening, or left out others",
                culprit=self.study.coordinator,
                step="prepare",
            )
        attempt = attempt_of(self.study, self._members, openings)
        degree = int(attempt.hypergraph.degrees(self.index).max(initial=0))
        if degree > attempt.sizes.max_degree:
            raise LocalProtocolError(
                f"a record of this node is in {degree} edges, the noise covers {attempt.sizes.max_degree}; refused"
            )
        _ = attempt.plan  # refused here, before anything is dealt, if the kernel is too large
        self._attempt = attempt
        self._noise = noise_of(attempt.sizes).draw(self._random_bits)
        names = [member.name for member in self._members]
        keys = [member.public_key for member in self._members]
        self._zero = zero_share(self.index, names, keys, self._key, attempt.id, attempt.ring)
        return attempt

    def _random_bits(self, count: int) -> int:
        return int.from_bytes(self._entropy((count + 7) // 8), "little") >> (-count % 8)

    @property
    def attempt(self) -> Attempt:
        if self._attempt is None:
            raise LocalProtocolError("the attempt has not begun")
        return self._attempt

    @property
    def peers(self) -> dict[int, Owners]:
        """The nodes with which this one shares a cell: index → owners of the cell."""
        cells = self.attempt.hypergraph.shared_cells
        return {owners[1 - owners.index(self.index)]: owners for owners in cells if self.index in owners}

    def receive_seed(self, node_seed: bytes) -> None:
        """The dealer's seed for this node: its masks and its part of every chunk. Masks the node's wires."""
        plan = self.attempt.plan
        if self._node_seed is not None:
            raise LocalProtocolError("the dealer's seed came before; masks are made once")
        self._node_seed = node_seed
        self._masks = wire_masks(plan, derive(node_seed, "masks"), self.records)
        self._masked = masked_wires(plan, self.columns, self._masks, self.records)
        self._theirs: dict[int, list[np.ndarray]] = {}
        self._local = [
            evaluate_local(of, self.columns, self.records).view(np.uint64)
            for of in (plan.first_local, plan.second_local)
        ]

    def fields_for(self, peer: int) -> list[Message]:
        """Round 1: this node's masked records that occur in an edge with the peer."""
        self._check_seeded()
        owners = self.peers[peer]
        cell = self.attempt.hypergraph.cells[owners]
        return fields_messages(self.attempt.plan, self._masked, cell.records(owners.index(self.index)))

    def expected_fields(self, peer: int) -> np.ndarray:
        """The peer's records that it must send in round 1, ascending."""
        owners = self.peers[peer]
        return self.attempt.hypergraph.cells[owners].records(owners.index(peer))

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Round 1 from a peer, into a table indexed as the peer numbers its records.

        Raises: EncodingError where not exactly its records of the cell came.
        """
        self._check_seeded()
        plan, records = self.attempt.plan, self.expected_fields(peer)
        values = read_fields(plan, messages)
        if any(len(sent) != len(records) for sent in values):
            raise EncodingError(f"{len(values[0])} masked records came, {len(records)} were due")
        table = [np.zeros(self.attempt.members[peer].records, dtype=np.uint64) for _ in plan.wires]
        for column, sent in zip(table, values, strict=True):
            column[records] = sent
        self._theirs[peer] = table

    def protocol(self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash) -> Protocol[int]:
        """Round 2 of one chunk, once; its result goes to `add`. Raises: EncodingError on malformed material."""
        self._check_seeded()
        plan, party = self.attempt.plan, chunk.owners.index(self.index)
        cell = self.attempt.hypergraph.cells[chunk.owners]
        index = cell.edges(chunk.start, chunk.stop)
        theirs = self._theirs.get(chunk.owners[1 - party], [])
        if chunk in self._begun or len(theirs) != len(plan.wires):
            raise LocalProtocolError("a chunk is evaluated once, after its peer's masked records came")
        tables = (self._masked, theirs)
        first, second = tables if party == 0 else tables[::-1]
        inputs = ChunkInputs(
            first=[values[index[0]] for values in first],
            second=[values[index[1]] for values in second],
            own_masks=[values[index[party]] for values in self._masks],
            count=chunk.count,
        )
        dealt = DealtPart.decode(plan, material, party, chunk.count)
        seed = chunk_seed(self._node_seed, chunk.owners, chunk.number)
        seeded = SeededPart.expand(plan, seed, party, chunk.count)
        self._begun.add(chunk)
        self._parts.append(int(self._local[party][index[party]].sum(dtype=np.uint64)))
        if party == 0:
            self._parts.append(plan.constant * chunk.count)
        return evaluate_chunk(party, plan, inputs, dealt, seeded, tree_hash)

    def add(self, share: int) -> None:
        """A chunk's result."""
        self._parts.append(share)
        self._chunks_added += 1

    def evaluate_inner(self) -> None:
        """The edges inside this node, in the clear, inside this node."""
        for _ in self.inner_steps():
            pass

    def inner_steps(self) -> Iterator[None]:
        """The same in steps of at most INNER_CHUNK edges, so that whoever drives it can stop in between."""
        if self._inner_begun:
            raise LocalProtocolError("the edges inside this node were evaluated before")
        self._inner_begun = True
        cell: Cell | None = self.attempt.hypergraph.cells.get((self.index, self.index))
        kernel = self.study.parsed_kernel
        for start in range(0, cell.count if cell else 0, INNER_CHUNK):
            index = cell.edges(start, min(start + INNER_CHUNK, cell.count))
            records = [{name: column[side] for name, column in self.columns.items()} for side in index]
            self._parts.append(int(kernel.evaluate(records).view(np.uint64).sum(dtype=np.uint64)))
            yield
        self._inner_done = True

    def release(self) -> bytes:
        """The noisy share under its zero share, once: uniform to everybody, and all shares sum to sum + noise."""
        if self._released:
            raise LocalProtocolError("the share was released before")
        due = sum(1 for _ in self.attempt.chunks_of(self.index))
        if self._chunks_added != due or not self._inner_done:
            raise LocalProtocolError(f"{self._chunks_added} of {due} chunks are evaluated; the share is not complete")
        self._released = True
        ring = self.attempt.ring
        return ring.encode(sum(self._parts) + self._noise + self._zero).to_bytes(ring.bytes, "little")

    def _check_seeded(self) -> None:
        if self._node_seed is None:
            raise LocalProtocolError("the dealer's seed has not come")
