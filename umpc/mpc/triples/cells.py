"""One node's part in cells that their owners evaluate by triples: `backend = "triples"`.

Before the data, every two nodes whose records decide a gate together set up transfers. No records
are sent: a node's bits are its own shares. Each chunk has channels of its own, forked from those of
its owners, and makes its triples right before it uses them. So a node holds the
triples of a few chunks only. In a study that is prepared ahead a chunk makes them in the
preparation; they wait on the node's disk, and its run has other channels. A committee's coins take
forks of the same channels.

*Evaluation.* One owner's computation for a chunk of edges that its owners evaluate by triples.

Papers: Goldreich, Micali & Wigderson 1987 (evaluation gate by gate on XOR shares); Beaver 1991
(triples); Gilboa 1999 (transfers that make products).

Every bit of a circuit is the ⊕ of its parties' shares. The owner of a record has the record's bits
as its shares, and all others have 0, so inputs take no message. XOR is local. An AND of several
parties takes one triple a, b, c = a ∧ b of shared random bits:

    d = x ⊕ a, e = y ⊕ b opened       x ∧ y = c ⊕ d·b ⊕ e·a ⊕ d·e

At the end a bit becomes a number, one party after the other: s ⊕ b = s + b − 2·s·b, where all
parties before have additive shares of s and the next one has the share b. A sum over edges is then
a sum of shares.

Reveals, to any parties but one together:

- Extensions of transfers: pseudorandom whatever the choices are (`correlated_ot.py`). They choose
  by bits of triples and by shares.
- Corrections: each under a pad that is pseudorandom to whoever lacks Δ (`ot_products.py`). So the
  shares that they make are uniform to their holder.
- Opened bits: every party of the support adds its own random bits to a and b. They serve one AND,
  and appear in nothing else that is opened. So d and e are uniform, independent of x and y.
- Additive shares: uniform to their holder, but for their sum. They leave the node only in its sum
  over all edges, under a zero share.

No bit of a record and no bit made of records is opened. A party sees nothing of gates whose support
it is not in. Semi-honest: a party that deviates can flip the outcome of a gate. It can also send
any number in the place of its share at the end, and read there what the others' shares of the bit
are. Nothing of this is noticed. A receiver of transfers that tests bits of Δ is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from umpc.crypto.prg import FixedKeyHash, Stream, derive
from umpc.crypto.rounds import (
    Finished,
    Incoming,
    Mesh,
    Message,
    Outgoing,
    Protocol,
    Result,
    check_reply,
    resume,
    side_by_side,
)
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.arrays import BitArray, IndexArray, WordArray
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.cells import Cells
from umpc.mpc.chunks import AFTER, AHEAD, Chunk, require
from umpc.mpc.transfers.channels import Channels, CommitteeMember
from umpc.mpc.transfers.coins_from_transfers import toss
from umpc.mpc.transfers.message_shapes import link_shapes, open_message
from umpc.mpc.transfers.ot_products import (
    BitTriples,
    correct,
    receive_corrected,
    receive_multiples,
    receiver_pads,
    send_multiples,
    sender_pads,
)
from umpc.mpc.triples.plan import TriplesPlan, numbered


class TriplesCells(Cells):
    """The cells of edges that are evaluated by triples. Nothing is sent in round 1."""

    def _begin(self) -> None:
        names = [member.name for member in self.attempt.members]
        seed = derive(self._seed, "links")
        self._links = Channels(self.node, names, self.attempt.id, seed)

    @staticmethod
    def set_up_shapes(attempt: SharedAttempt, sender: int, receiver: int) -> list[Message]:
        """The set-up of two nodes that evaluate gates or toss coins together."""
        return link_shapes(sender, receiver) if attempt.needs_transfers(sender, receiver) else []

    def set_up(self, peer: int) -> Protocol[None] | None:
        """The set-up of transfers with a peer; None where the two need none."""
        return self._links.set_up(peer) if self.attempt.needs_transfers(self.node, peer) else None

    def toss(self) -> Mesh[list[int]] | None:
        """This node's part in the committee's coins; None where it tosses none."""
        plan = self.attempt.toss_plan
        if plan is None or not self.attempt.tosses(self.node):
            return None
        # forks of all owners' channels for this chunk
        seat = self._links.forked(self.attempt.committee, "toss")
        return toss(plan, seat, derive(self._coin_seed, "toss"))

    def receive_fields(self, peer: int, messages: Sequence[Message]) -> None:
        """Raises: EncodingError where a message came."""
        if messages:
            raise EncodingError(
                f"edges by triples take no records, {len(messages)} message(s) came"
            )

    def protocol(
        self, chunk: Chunk, material: bytes, tree_hash: FixedKeyHash
    ) -> Mesh[list[int]] | Mesh[bytes]:
        """The rounds of a chunk; of part AHEAD the result is its triples, packed.

        Args: material: the triples, for part AFTER; else nothing.

        Raises: EncodingError where other material came.
        """
        if material and chunk.part != AFTER:
            raise EncodingError(f"edges by triples take no material, {len(material)} bytes came")
        plan = require(self.attempt.plan(chunk), TriplesPlan)
        place = (len(chunk.owners), *chunk.owners, chunk.number)
        # Each part has channels of its own, so that no hash is asked for twice.
        seat = self._links.forked(chunk.parties, chunk.part or "chunk", *place)
        seed = self.attempt.chunk_seed(self._seed, chunk)
        if chunk.part == AHEAD:
            # no input is read before the data
            nothing = np.zeros((0, chunk.count), dtype=np.uint8)
            return prepare_chunk(ChunkOwner(plan, seat, nothing, seed))
        owner = ChunkOwner(plan, seat, self._shares(plan, chunk), seed)
        if chunk.part != AFTER:
            return evaluate_chunk(owner)
        return evaluate_chunk(owner, unpack_triples(owner, material))

    def _shares(self, plan: TriplesPlan, chunk: Chunk) -> BitArray:
        """This node's shares of the input wires: its own records' bits, and 0 elsewhere."""
        # GMW 1987: the owner's bits are its shares
        index = self.attempt.hypergraph.cells[chunk.owners].edges(chunk.start, chunk.stop)
        shares = np.zeros((len(plan.circuit.inputs), chunk.count), dtype=np.uint8)
        for row, (slot, field, bit) in zip(shares, plan.circuit.inputs, strict=True):
            if chunk.owners[slot] == self.node:
                # all others have 0
                row[:] = self.columns[field][index[slot]] >> bit & 1
        return shares


# --- evaluation -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChunkOwner:
    """One party's part in one chunk.

    seat: its place among the chunk's parties, with channels for this chunk alone.
    inputs: its shares of the input wires: (inputs, n) uint8, 0 for others' records.
    seed: 32 uniform bytes of its own, for this chunk alone.
    """

    plan: TriplesPlan
    seat: CommitteeMember
    inputs: BitArray
    seed: bytes

    def __repr__(self) -> str:
        return f"ChunkOwner({self.seat.names[self.seat.number]}, <redacted>)"

    @property
    def count(self) -> int:
        """The number of edges."""
        return len(self.inputs.T)

    def and_rows(self, peer: int) -> IndexArray:
        """The ANDs that concern this party and a peer."""
        return self.plan.and_rows(self.seat.number, peer)

    def output_rows(self, peer: int) -> IndexArray:
        """The bits of sums that concern this party and a peer."""
        return self.plan.output_rows(self.seat.number, peer)


def evaluate_chunk(owner: ChunkOwner, triples: BitTriples | None = None) -> Mesh[list[int]]:
    """This party's additive share of each sum over the chunk's edges, as ring elements.

    Args: triples: those that `prepare_chunk` made; None to make them in the first rounds.

    Raises: RemoteProtocolError on a message of another shape.
    """
    plan = owner.plan
    # additive shares of every bit that a sum reads
    bits = yield from evaluate_bits(owner, triples)
    ring = plan.ring
    rows = {wire: row for row, wire in enumerate(plan.outputs)}
    totals = bits.sum(axis=1, dtype=np.uint64)
    shares = []
    for constant, terms in plan.circuit.sums:
        # sums of edges are linear in these shares
        total = sum(weight * int(totals[rows[wire]]) for wire, weight in terms)
        # the public constant is added once
        if owner.seat.leads:
            total += constant * owner.count
        shares.append(ring.encode(total))
    return shares


def prepare_chunk(owner: ChunkOwner) -> Mesh[bytes]:
    """The triples of a chunk, before any data: packed, as `unpack_triples` takes them.

    Raises: RemoteProtocolError on a message of another shape.
    """
    if not owner.plan.ands:
        return b""
    return _packed(owner, (yield from _in_rounds(owner, make_triples(owner))))


def evaluate_bits(owner: ChunkOwner, triples: BitTriples | None = None) -> Mesh[WordArray]:
    """Additive shares of the bits that sums read, edge by edge: (outputs, n) uint64.

    Args: triples: as in `evaluate_chunk`.
    """
    return (yield from _in_rounds(owner, _evaluated(owner, triples)))


def _evaluated(owner: ChunkOwner, triples: BitTriples | None) -> Mesh[WordArray]:
    """The gates level by level, and then the numbers."""
    plan = owner.plan
    wires = np.empty((len(plan.supports), owner.count), dtype=np.uint8)
    # GMW 1987: gate by gate on XOR shares
    wires[: len(owner.inputs)] = owner.inputs
    _local(plan, wires, 0)
    if plan.ands:
        if triples is None:
            triples = yield from make_triples(owner)
        for stage, level in enumerate(plan.levels, 1):
            gates = [plan.circuit.gates[wire - len(owner.inputs)] for wire in plan.ands[level]]
            x = wires[[gate.left for gate in gates]]
            y = wires[[gate.right for gate in gates]]
            # all ANDs of one depth in one round
            product = yield from open_level(owner, level, x, y, triples)
            wires[list(plan.ands[level])] = product
            _local(plan, wires, stage)
    # spec/checked_bits.py, `as_numbers`, without its check
    return (yield from as_numbers(owner, wires[list(plan.outputs)]))


def _local(plan: TriplesPlan, wires: BitArray, stage: int) -> None:
    """The gates that need no message, after the ANDs of a level.

    A product of one party's bits is the product of its shares, because the others' shares are 0.
    """
    first = len(plan.circuit.inputs)
    for wire in plan.local_gates[stage]:
        gate = plan.circuit.gates[wire - first]
        # XOR is local; AND too, where one party has all bits
        combine = np.bitwise_and if gate.is_and else np.bitwise_xor
        combine(wires[gate.left], wires[gate.right], out=wires[wire])


def make_triples(owner: ChunkOwner) -> Mesh[BitTriples]:
    """XOR shares of random a, b and of a ∧ b among each AND's parties: (ands, n) uint8 each."""
    shape = (len(owner.plan.ands), owner.count)
    mine = np.zeros((shape[0], 1), dtype=np.uint8)
    # no share in triples that concern others
    mine[owner.plan.rows(owner.plan.ands, owner.seat.number)] = 1
    a, b = (Stream(derive(owner.seed, name)).bits(shape[0] * shape[1]) for name in "ab")
    a, b = a.reshape(shape) & mine, b.reshape(shape) & mine
    # GMW: a·b is the sum of all a_i·b_i, and of a_i·b_j + a_j·b_i of each pair
    c = a & b
    # cross terms by transfers of width 1
    halves = yield from _with_peers(owner, 2, owner.and_rows, lambda p: _crossed(owner, p, a, b))
    for peer, half in halves.items():
        first, second = half.astype(np.uint8).reshape(2, -1, owner.count)
        # XOR of both cross terms' shares
        c[owner.and_rows(peer)] ^= first ^ second
    return BitTriples(a, b, c)


def _packed(owner: ChunkOwner, triples: BitTriples) -> bytes:
    """A party's triples of the ANDs that concern it. Its shares of the others are 0."""
    rows = owner.plan.rows(owner.plan.ands, owner.seat.number)
    bits = np.stack([part[rows] for part in (triples.a, triples.b, triples.c)])
    return np.packbits(bits, bitorder="little").tobytes()


def unpack_triples(owner: ChunkOwner, packed: bytes) -> BitTriples:
    """The triples that `prepare_chunk` packed.

    Raises: EncodingError where their number is not that of the chunk.
    """
    plan, number = owner.plan, owner.seat.number
    due = plan.triples_bytes(number, owner.count)
    if len(packed) != due:
        raise EncodingError(f"{due} bytes of triples were due, {len(packed)} bytes came")
    rows = plan.rows(plan.ands, number)
    bits = np.unpackbits(
        np.frombuffer(packed, dtype=np.uint8),
        count=3 * len(rows) * owner.count,
        bitorder="little",
    )
    whole = np.zeros((3, len(plan.ands), owner.count), dtype=np.uint8)
    whole[:, rows] = bits.reshape(3, len(rows), owner.count)
    return BitTriples(*whole)


def _crossed(owner: ChunkOwner, peer: int, a: BitArray, b: BitArray) -> Protocol[WordArray]:
    """Shares of a_i·b_j, then of b_i·a_j, for i before j."""
    seat = owner.seat
    rows = owner.and_rows(peer)
    if seat.number < peer:
        # Gilboa 1999, width 1
        numbers = np.concatenate([a[rows], b[rows]]).ravel().astype(np.uint64)
        return send_multiples(seat.senders[peer], numbers, 1)
    choices = np.concatenate([b[rows], a[rows]]).ravel()
    return receive_multiples(seat.receivers[peer], choices, 1, seat.names[peer])


def open_level(
    owner: ChunkOwner, level: slice, x: BitArray, y: BitArray, triples: BitTriples
) -> Mesh[BitArray]:
    """XOR shares of x ∧ y for the ANDs of a level, by one round: (ANDs, n) uint8."""
    a, b, c = (part[level] for part in (triples.a, triples.b, triples.c))
    # Beaver 1991: open d = x ⊕ a and e = y ⊕ b
    masked = np.stack([x ^ a, y ^ b])
    opened = masked.copy()
    rows = {peer: _within(owner.and_rows(peer), level) for peer in owner.seat.peers}
    parts = {peer: masked[:, own].ravel() for peer, own in rows.items()}
    came = yield {
        peer: open_message(np.packbits(part, bitorder="little").tobytes(), len(part))
        for peer, part in parts.items()
        if len(part)
    }
    for peer, message in came.items():
        theirs = np.unpackbits(
            np.frombuffer(message.payload, dtype=np.uint8), count=message.count, bitorder="little"
        )
        # d and e: XOR of all shares, public to the AND's parties
        opened[:, rows[peer]] ^= theirs.reshape(2, -1, owner.count)
    d, e = opened
    # d·e is public, so one party adds it
    leads = _leads(owner, level)
    # Beaver 1991: x·y = c ⊕ d·b ⊕ e·a ⊕ d·e
    product: BitArray = c ^ (d & b) ^ (e & a) ^ (d & e & leads)
    return product


def _within(rows: IndexArray, level: slice) -> IndexArray:
    """The rows of a level, counted from its first."""
    found: IndexArray = rows[(rows >= level.start) & (rows < level.stop)] - level.start
    return found


def _leads(owner: ChunkOwner, level: slice) -> BitArray:
    """1 for each AND of a level of whose parties this one is the first: (ANDs, 1) uint8."""
    wires = owner.plan.ands[level]
    firsts = [min(owner.plan.supports[wire]) for wire in wires]
    leads: BitArray = (np.array(firsts) == owner.seat.number).astype(np.uint8)[:, None]
    return leads


def as_numbers(owner: ChunkOwner, bits: BitArray) -> Mesh[WordArray]:
    """Additive shares mod 2^w of bits of which the parties have XOR shares: (outputs, n) uint64.

    Member 0 of a bit's support has its share as a number. The others follow one by one.
    """
    plan = owner.plan
    width = plan.ring.bits - 1
    shares = bits.astype(np.uint64)
    if not plan.converts:
        return shares
    # transfers chosen by the later party's share
    pads = yield from _with_peers(
        owner, 1, owner.output_rows, lambda peer: _pads(owner, peer, bits, width)
    )
    for member in range(1, plan.parties):
        # s ⊕ b = s + b − 2·s·b, for the share b of this member
        ends = _corrections(owner, member, pads, shares, bits)
        products = yield from _in_lockstep(ends, 1)
        for peer, product in products.items():
            rows = owner.output_rows(peer)
            # − 2·s·b, by shares of the product
            shares[rows] -= product.reshape(-1, owner.count) << np.uint64(1)
    return shares & np.uint64((1 << plan.ring.bits) - 1)


def _pads(owner: ChunkOwner, peer: int, bits: BitArray, width: int) -> Protocol[WordArray]:
    """The pads of the products with one peer."""
    seat = owner.seat
    own = bits[owner.output_rows(peer)].ravel()
    if seat.number < peer:
        return sender_pads(seat.senders[peer], len(own), width)
    return receiver_pads(seat.receivers[peer], own, width, seat.names[peer])


def _corrections(
    owner: ChunkOwner,
    member: int,
    pads: Mapping[int, WordArray],
    shares: WordArray,
    bits: BitArray,
) -> dict[int, Protocol[WordArray]]:
    """The products by one member's bits: every party before it sends to it."""
    seat = owner.seat
    width = owner.plan.ring.bits - 1
    if seat.number < member:
        if member not in pads:
            return {}
        # Gilboa 1999: own share of s against the member's bit
        numbers = shares[owner.output_rows(member)].ravel()
        return {member: correct(pads[member], numbers, width, seat.names[member])}
    if seat.number > member:
        return {}
    return {
        peer: receive_corrected(pad, bits[owner.output_rows(peer)].ravel(), width, seat.names[peer])
        for peer, pad in pads.items()
        if peer < member
    }


def _with_peers(
    owner: ChunkOwner,
    rounds: int,
    rows: Callable[[int], IndexArray],
    end: Callable[[int], Protocol[Result]],
) -> Mesh[dict[int, Result]]:
    """Run a protocol with each peer with which this party has rows."""
    ends = {peer: end(peer) for peer in owner.seat.peers if len(rows(peer))}
    return (yield from _in_lockstep(ends, rounds))


def _in_lockstep(ends: Mapping[int, Protocol[Result]], rounds: int) -> Mesh[dict[int, Result]]:
    """Run protocols side by side; a party without any waits for as many rounds."""
    if ends:
        return (yield from side_by_side(ends))
    for _ in range(rounds):
        yield {}
    return {}


def _in_rounds(owner: ChunkOwner, mesh: Mesh[Result]) -> Mesh[Result]:
    """Run a mesh, whose messages leave and come as those of the chunk's rounds.

    Raises: RemoteProtocolError on a message of another shape than the plan's.
    """
    plan = owner.plan
    own = owner.seat.number
    due = {peer: plan.own_messages(peer, own, owner.count) for peer in owner.seat.peers}
    incoming: Incoming | None = None
    for number in count(1):
        sent: Outgoing | Finished[Result] = resume(mesh, incoming)
        if isinstance(sent, Finished):
            return sent.result
        came = yield {peer: numbered(said, number) for peer, said in sent.items()}
        for peer, message in came.items():
            shape = plan.shape_to(number, peer, own, owner.count)
            # public shapes: another message names its sender
            check_reply(message, shape, owner.seat.names[peer])
        incoming = {
            peer: replace(due[peer][number - 1], payload=message.payload)
            for peer, message in came.items()
        }
    raise LocalProtocolError("a chunk's rounds ended without a result")
