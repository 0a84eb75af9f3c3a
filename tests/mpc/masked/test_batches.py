"""Chunks that are computed together: each deals, sends and ends as it does alone, bit for bit."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.support.kernels import KERNELS, TRIPLE_KERNELS, corner_edges, random_records, take
from tests.support.mpc_studies import program_of, seed_of
from tests.support.studies import generator
from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import Finished, Message, run_in_memory
from umpc.errors import EncodingError, LocalProtocolError, RemoteProtocolError
from umpc.mpc.masked.edge_layout import masked_wires, wire_masks
from umpc.mpc.masked.material import ChunkInputs
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_items import RecordPlace
from umpc.mpc.masked.tasks import DealTask, OwnerBatch, TaskRounds
from umpc.ustat.kernel import Kernel

COUNTS = (1, 8, 3, 16, 1, 5, 7)
"""Edges of the chunks: fewer than a byte's bits, as many, and more."""
CASES = [(KERNELS, name, pattern) for name in KERNELS for pattern in ((0, 1), (1, 0))]
CASES += [
    (TRIPLE_KERNELS, name, pattern)
    for name in TRIPLE_KERNELS
    for pattern in ((0, 1, 2), (2, 0, 1), (0, 0, 1), (1, 0, 1))
]
TREE_KEY = bytes(range(32))


@dataclass
class Chunks:
    """The chunks of a plan, with masks, seeds and inputs of all owners.

    known: the mask of each place of a record. places: its masked values. records: of each slot.
    """

    plan: Plan
    known: dict[int, np.ndarray]
    places: dict[int, np.ndarray]
    records: list[dict[str, np.ndarray]]
    counts: tuple[int, ...] = COUNTS

    @property
    def slices(self) -> list[slice]:
        stops = np.cumsum(self.counts).tolist()
        return [slice(stop - n, stop) for stop, n in zip(stops, self.counts, strict=True)]

    def seed(self, party: int, chunk: int) -> bytes:
        return derive(seed_of("chunks"), "chunk", party, chunk)

    def deal(self, chunks: list[int]) -> list[list[bytes]]:
        rows = np.r_[tuple(self.slices[chunk] for chunk in chunks)]
        masks = {number: mask[rows] for number, mask in self.known.items()}
        seeds = [[self.seed(p, chunk) for chunk in chunks] for p in self.plan.everybody]
        counts = [self.counts[chunk] for chunk in chunks]
        return DealTask(self.plan, masks, seeds, counts, TREE_KEY).payloads()

    def inputs(self, party: int, rows: slice, names: tuple[str, ...] = ()) -> ChunkInputs:
        own = [n for n in self.known if self.plan.pattern[self.plan.places[n].slot] == party]
        records = {slot: take(self.records[slot], rows) for slot in self.plan.own_slots(party)}
        places = {number: place[rows] for number, place in self.places.items()}
        masks = {number: self.known[number][rows] for number in own}
        return ChunkInputs(places, masks, records, rows.stop - rows.start, names)

    def names(self, chunk: int) -> tuple[str, ...]:
        return tuple(f"node-{chunk}-{party}" for party in self.plan.everybody)

    def alone(self, party: int, chunk: int, material: bytes) -> OwnerBatch:
        inputs = self.inputs(party, self.slices[chunk], self.names(chunk))
        names, counts, seeds = [self.names(chunk)], [inputs.count], [self.seed(party, chunk)]
        return OwnerBatch(party, self.plan, inputs, names, counts, [material], seeds, TREE_KEY)

    def together(self, party: int, material: list[list[bytes]]) -> OwnerBatch:
        chunks = range(len(self.counts))
        return OwnerBatch(
            party,
            self.plan,
            self.inputs(party, slice(0, sum(self.counts))),
            [self.names(chunk) for chunk in chunks],
            self.counts,
            [of_chunk[party] for of_chunk in material],
            [self.seed(party, chunk) for chunk in chunks],
            TREE_KEY,
        )


def chunks_of(kernel: Kernel, pattern, label: str = "chunks") -> Chunks:
    ring = RINGS[0] if program_of(kernel, RINGS[0], pattern).word_bits <= 32 else RINGS[1]
    program = program_of(kernel, ring, pattern)
    plan = program.plans[pattern]
    rng, count = generator(label), sum(COUNTS)
    corners = corner_edges(len(pattern))
    rows = rng.integers(0, len(corners[0]["x"]), count // 2)
    records = [
        {
            name: np.concatenate([slot[name][rows], values])
            for name, values in random_records(rng, count - len(rows)).items()
        }
        for slot in corners
    ]
    slots = range(len(pattern))
    masks = [wire_masks(program, derive(seed_of(label), "masks", slot), count) for slot in slots]
    masked = [masked_wires(program, records[slot], masks[slot], count) for slot in slots]
    places = {n: place for n, place in enumerate(plan.places) if isinstance(place, RecordPlace)}
    return Chunks(
        plan,
        {number: masks[place.slot][place.wire] for number, place in places.items()},
        {number: masked[place.slot][place.wire] for number, place in places.items()},
        records,
    )


def run_together(rounds: list[TaskRounds]) -> tuple[list, list]:
    """Return all parties' results, and for each round each party's messages."""
    heard: list[tuple] = [() for _ in rounds]
    sent = []
    while True:
        said = [each.after(of_party) for each, of_party in zip(rounds, heard, strict=True)]
        if isinstance(said[0], Finished):
            return [each.result for each in said], sent
        sent.append(said)
        for party in range(len(rounds)):
            others = [said[other] for other in range(len(rounds)) if other != party]
            heard[party] += (tuple(zip(*others, strict=True)),)


@pytest.mark.parametrize(("kernels", "name", "pattern"), CASES)
def test_a_batch_deals_sends_and_ends_as_its_chunks_do_alone(kernels, name, pattern):
    made = chunks_of(kernels[name], pattern)
    everybody = made.plan.everybody
    material = made.deal(list(range(len(COUNTS))))
    results, sent = run_together([TaskRounds(made.together(p, material)) for p in everybody])
    for chunk in range(len(COUNTS)):
        assert made.deal([chunk]) == [material[chunk]]
        tasks = [made.alone(p, chunk, material[chunk][p]) for p in everybody]
        alone, lines = run_in_memory([task.alone(FixedKeyHash(TREE_KEY)) for task in tasks])
        assert [of_party[chunk] for of_party in results] == alone
        messages = [
            (number + 1, party, of_party[chunk])
            for number, of_round in enumerate(sent)
            for party, of_party in enumerate(of_round)
            if of_party[chunk].width
        ]
        assert messages == [(line.round, line.party, line.message) for line in lines]


@pytest.fixture
def three() -> Chunks:
    """Return chunks of three owners."""
    return chunks_of(TRIPLE_KERNELS["leaning"], (0, 1, 2))


def test_a_batch_that_another_process_computes_again_says_the_same():
    three = chunks_of(TRIPLE_KERNELS["wide_leaning"], (0, 1, 2))  # of several rounds
    material = three.deal(list(range(len(COUNTS))))
    rounds = [TaskRounds(three.together(party, material)) for party in range(3)]
    results, sent = run_together(rounds)
    heard = tuple(tuple(zip(*of_round[1:], strict=True)) for of_round in sent)
    assert len(heard) > 1
    copy = pickle.loads(pickle.dumps(rounds[0]))
    assert copy.after(heard).result == results[0]
    assert repr(three.together(0, material)) == "OwnerBatch(7 chunks, <redacted>)"
    with pytest.raises(LocalProtocolError, match="serve once"):
        copy.after((heard[0][::-1],))


@pytest.mark.parametrize("chunk", [0, 2, 6])
@pytest.mark.parametrize("what", ["length", "padding"])
def test_a_malformed_message_in_a_batch_names_its_sender(three, chunk, what):
    material = three.deal(list(range(len(COUNTS))))
    rounds = [TaskRounds(three.together(party, material)) for party in range(3)]
    said = [each.after(()) for each in rounds]
    wrong = said[2][chunk]
    bits = len(three.plan.opened_bits(0, 2)) * COUNTS[chunk]
    assert bits % 8, "padding follows the bits"
    payload = bytearray(wrong.payload)
    payload[bits // 8] |= 0x80
    broken = bytes(payload) if what == "padding" else wrong.payload + b"\0"
    theirs: list[Message] = list(said[2])
    theirs[chunk] = replace(wrong, payload=broken)
    with pytest.raises(RemoteProtocolError) as caught:
        rounds[0].after((tuple(zip(said[1], theirs, strict=True)),))
    assert (caught.value.culprit, caught.value.step) == (f"node-{chunk}-2", "open")


def test_malformed_material_of_one_chunk_is_refused(three):
    material = three.deal(list(range(len(COUNTS))))
    material[3][2] += b"\0"
    with pytest.raises(EncodingError, match="16 edges"):
        TaskRounds(three.together(2, material))
