"""Pairs under masks: every byte that the dealer deals and the parties send, and the shares."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from spec.cases.joint_seed import MEMBERS, OPENINGS, STUDY
from spec.cases.masked_pairs import PAIRS
from spec.masked_pairs import chunk as chunk_of_spec
from tests.spec.replaying import replaced, replay_tests
from tests.spec.studies import study_of
from tests.spec.test_joint_seed import member_of
from tests.support.fields import number_field
from tests.support.mpc_studies import deal_chunk
from tests.support.one_chunk import dealt_part, encoded_part, evaluate_chunk, seeded_part
from tests.support.studies import KENDALL
from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import run_in_memory
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.chunks import Chunk
from umpc.mpc.masked.compiler import compile_program
from umpc.mpc.masked.edge_layout import masked_wires, wire_masks
from umpc.mpc.masked.material import ChunkInputs
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema

KERNELS = {"product": "a.x * b.x", "kendall": KENDALL}
NAMES = ["north", "south"]


def chunk(
    kernel,
    bounds,
    ring,
    by_keys,
    records,
    node_seeds,
    chunk_seeds,
    hash_key,
    material=None,
    sent=None,
):
    fields = "xy"[: len(bounds)]
    schema = Schema(
        [
            number_field(name, *map(str, ends)).schema()
            for name, ends in zip(fields, bounds, strict=True)
        ]
    )
    parsed = Kernel.from_text(KERNELS[kernel], schema)
    program = compile_program([parsed], Ring(ring), [(0, 1)], few=by_keys)
    plan, count = program.plans[0, 1], len(records[0][0])
    tree_hash = FixedKeyHash(hash_key)
    columns = [
        {name: np.array(row, dtype=np.int64) for name, row in zip(fields, table, strict=True)}
        for table in records
    ]
    masks = [wire_masks(program, derive(seed, "masks"), count) for seed in node_seeds]
    masked = [
        masked_wires(program, table, mask, count)
        for table, mask in zip(columns, masks, strict=True)
    ]
    places = dict(enumerate(plan.places))
    known = {number: masks[place.slot][place.wire] for number, place in places.items()}
    dealt = [encoded_part(part) for part in deal_chunk(plan, known, chunk_seeds, count, tree_hash)]
    if material is not None:
        dealt[1] = material
    parties = []
    for party in (0, 1):
        inputs = ChunkInputs(
            {number: masked[place.slot][place.wire] for number, place in places.items()},
            {number: mask for number, mask in known.items() if places[number].slot == party},
            {slot: columns[slot] for slot in plan.own_slots(party)},
            count,
            NAMES,
        )
        part = dealt_part(plan, dealt[party], party, count)
        seeded = seeded_part(plan, chunk_seeds[party], party, count)
        parties.append(evaluate_chunk(party, plan, inputs, part, seeded, tree_hash))
    if sent is not None:
        parties[1] = replaced(parties[1], "open", sent)
    shares, transcript = run_in_memory(parties)
    return {
        "masked_records": [[wire.tolist() for wire in wires] for wires in masked],
        "material": dealt,
        "messages": [
            {"round": line.round, "party": line.party, "payload": line.message.payload}
            for line in transcript
        ],
        "shares": [share[0] for share in shares],
        "sum": Ring(ring).decode(shares[0][0] + shares[1][0]),
    }


def seeds(attempt, node_seed, owners, number):
    study = study_of(STUDY, [each["name"] for each in MEMBERS])
    made = SharedAttempt(study, [member_of(each) for each in MEMBERS], OPENINGS, Ring(32))
    assert made.id == attempt
    return {
        "tree_key": made.tree_hash().key,
        "chunk_seed": made.chunk_seed(node_seed, Chunk(tuple(owners), number, 0, 1)),
    }


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "masked_pairs", {"chunk": chunk, "seeds": seeds}
)


CLEAR = {
    "product": lambda a, b: a * b,
    "kendall": lambda x, y, u, v: ((x > u) - (x < u)) * ((y > v) - (y < v)),
}


@pytest.mark.parametrize(
    ("kernel", "fields", "top", "least"),
    [
        ("product", 1, 7, 0),
        ("kendall", 2, 3, 0),
        ("kendall", 2, 2, -600),  # two pieces a field
    ],
)
def test_all_pairs_of_a_small_domain_against_the_clear(kernel, fields, top, least):
    every = list(product(range(top + 1), repeat=2 * fields))
    columns = [list(column) for column in zip(*every, strict=True)]
    for by_keys in (False, True):
        found = chunk_of_spec(
            kernel,
            [[least, top]] * fields,
            32,
            by_keys,
            [columns[:fields], columns[fields:]],
            PAIRS["node_seeds"],
            PAIRS["chunk_seeds"],
            PAIRS["hash_key"],
        )
        assert found["sum"] == sum(CLEAR[kernel](*each) for each in every)
