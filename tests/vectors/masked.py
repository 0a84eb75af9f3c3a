"""Vectors of evaluation under masks: comparison keys, and a chunk of edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.fields import number_field
from tests.vectors.part import (
    Bad,
    Part,
    Values,
    blocks_of,
    fixed,
    integers,
    with_message,
    words,
)
from umpc.crypto.prg import FixedKeyHash, derive
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import run_in_memory
from umpc.errors import EncodingError, RemoteProtocolError
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.compiler import compile_program
from umpc.mpc.masked.dcf import ComparisonKeys, evaluate, generate
from umpc.mpc.masked.dealing import deal_chunk
from umpc.mpc.masked.evaluation import evaluate_chunk
from umpc.mpc.masked.masks import masked_wires, wire_masks
from umpc.mpc.masked.material import DealtPart, SeededPart
from umpc.mpc.masked.plan import RecordPlace
from umpc.ustat.kernel import Kernel
from umpc.ustat.schema import Schema


def comparison(inputs: Values) -> Values:
    """Make a comparison key for each mask, and evaluate it as both parties."""
    width, mask, masked = inputs["width"], words(inputs["mask"]), words(inputs["masked"])
    roots = np.stack([blocks_of(inputs["roots"][party]) for party in (0, 1)])
    tree_hash = FixedKeyHash(bytes.fromhex(inputs["hash_key"]))
    keys = generate(width, mask, roots, tree_hash)
    shares = [evaluate(party, keys, masked, roots[party], tree_hash) for party in (0, 1)]
    return {
        "keys": keys.encode().hex(),
        "less_shares": [integers(less) for less, _ in shares],
        "equal_shares": [integers(equal) for _, equal in shares],
        "less": integers(shares[0][0] ^ shares[1][0] ^ (mask >> np.uint64(width - 1)).astype("u1")),
        "equal": integers(shares[0][1] ^ shares[1][1]),
    }


def read_keys(inputs: Values) -> object:
    data = bytes.fromhex(inputs["keys"])
    return ComparisonKeys.decode(memoryview(data), inputs["width"], inputs["count"])


def chunk(inputs: Values) -> Values:
    """Deal and evaluate one chunk of edges between two nodes.

    Edge j joins record j of either node. `material` and `sent` replace what party 1 would get
    from the dealer, and what party 1 would send in its first round.
    """
    schema = Schema(
        [number_field(name, *bounds).schema() for name, bounds in inputs["fields"].items()]
    )
    ring, pattern = Ring(inputs["ring_bits"]), (0, 1)
    kernel = Kernel.from_text(inputs["kernel"], schema)
    program = compile_program([kernel], ring, [pattern], few=inputs.get("few", False))
    plan = program.plans[pattern]
    count = len(next(iter(inputs["records"][0].values())))
    tree_hash = FixedKeyHash(bytes.fromhex(inputs["hash_key"]))
    records = [
        {name: np.array(column, dtype=np.int64) for name, column in table.items()}
        for table in inputs["records"]
    ]
    masks = [
        wire_masks(program, derive(bytes.fromhex(seed), "masks"), count)
        for seed in inputs["node_seeds"]
    ]
    masked = [
        masked_wires(program, table, mask, count)
        for table, mask in zip(records, masks, strict=True)
    ]
    places = {
        number: place for number, place in enumerate(plan.places) if isinstance(place, RecordPlace)
    }
    seeds = [bytes.fromhex(seed) for seed in inputs["chunk_seeds"]]
    known = {number: masks[place.slot][place.wire] for number, place in places.items()}
    dealt = [part.encode() for part in deal_chunk(plan, known, seeds, count, tree_hash)]
    if "material" in inputs:
        dealt[1] = bytes.fromhex(inputs["material"])
    parties = []
    for party in (0, 1):
        own = {n: mask for n, mask in known.items() if pattern[places[n].slot] == party}
        chunk_inputs = ChunkInputs(
            {n: masked[place.slot][place.wire] for n, place in places.items()},
            own,
            {slot: records[slot] for slot in plan.own_slots(party)},
            count,
            ["north", "south"],
        )
        material = DealtPart.decode(plan, dealt[party], party, count)
        seeded = SeededPart.expand(plan, seeds[party], party, count)
        parties.append(evaluate_chunk(party, plan, chunk_inputs, material, seeded, tree_hash))
    if "sent" in inputs:
        parties[1] = with_message(parties[1], "open", bytes.fromhex(inputs["sent"]))
    shares, transcript = run_in_memory(parties)
    return {
        "masked_records": [[integers(wire) for wire in wires] for wires in masked],
        "material": [part.hex() for part in dealt],
        "messages": [
            {
                "round": line.round,
                "party": line.party,
                "bits_per_edge": line.message.width,
                "payload": line.message.payload.hex(),
            }
            for line in transcript
        ],
        "shares": [share[0] for share in shares],
        "sum": ring.decode(shares[0][0] + shares[1][0]),
    }


KEYS = {
    "hash_key": fixed(2, 16),
    "roots": [
        [fixed(number, 16) for number in (3, 4, 5, 6)],
        [fixed(number, 16) for number in (9, 10, 11, 12)],
    ],
}
GATES = {
    **KEYS,
    "width": 8,
    "mask": [0, 77, 200, 255],
    "masked": [200, 77, 199, 0],
}
GATE_BYTES = 4 * (2 * 16 + 12)


def small(kernel: str, **changes: Any) -> Values:
    facts = {
        "kernel": kernel,
        "fields": {"x": ["0", "7"], "y": ["-4", "3"]},
        "ring_bits": 32,
        "hash_key": fixed(2, 16),
        "node_seeds": [fixed(3), fixed(5)],
        "chunk_seeds": [fixed(7), fixed(11)],
        "records": [
            {"x": [1, 7, 3], "y": [-4, 0, 3]},
            {"x": [6, 7, 2], "y": [3, 0, -4]},
        ],
    }
    return {**facts, **changes}


TAU = "sign(a.x - b.x) * sign(a.y - b.y)"
PRODUCT = "a.x * b.x"


def broken_material(change: slice) -> Values:
    material = chunk(small(PRODUCT))["material"][1] + "00"
    return small(PRODUCT, material=material[change])


def _opened() -> bytes:
    return bytes.fromhex(chunk(small(TAU))["messages"][1]["payload"])


OPENED = _opened()
WIDE = {
    "fields": {"x": ["0", "7"], "y": ["0", "131071"]},
    "records": [
        {"x": [1, 7, 3], "y": [131071, 4096, 70000]},
        {"x": [6, 7, 2], "y": [0, 4096, 70001]},
    ],
}
"""Differences of 4 and of 18 bits."""

PARTS = {
    "comparison_keys": Part(
        "Distributed comparison functions (Boyle et al. 2021) of a masked difference of `width` "
        "bits: less = [d < 0], equal = [d = 0] for d = masked − mask. Shares are XORed; `less` "
        "takes the mask's highest bit besides. `roots` has a block per party and gate.",
        comparison,
        {
            "width_8": GATES,
            "width_6_has_no_levels_above_the_leaf": {
                **GATES,
                "width": 6,
                "mask": [0, 63, 31, 32],
                "masked": [0, 0, 33, 1],
            },
            "width_33": {
                **GATES,
                "width": 33,
                "mask": [0, 1, 8589934591, 4294967296],
                "masked": [1, 1, 0, 1234567],
            },
        },
        {
            "keys_one_byte_short": Bad(
                {"keys": "00" * (GATE_BYTES - 1), "width": 8, "count": 4}, EncodingError
            ),
            "keys_of_another_width": Bad(
                {"keys": "00" * GATE_BYTES, "width": 9, "count": 4}, EncodingError
            ),
        },
        read_keys,
    ),
    "masked_chunk": Part(
        "One chunk of edges between two nodes, from the dealer's material to the shares of the "
        "sum (Sinh and Ramon 2025, protocol 3.1). The product needs no round. Kendall's kernel "
        "opens bits in one: of one table for each difference, of 4 bits here. Wider fields than 8 "
        "bits are compared by pieces, in two rounds, or by keys where `few` says that the study "
        "has few edges.",
        chunk,
        {
            "product_of_two_records": small(PRODUCT),
            "kendall": small(TAU),
            "kendall_in_pieces": small(TAU, **WIDE),
            "kendall_by_a_key": small(TAU, **WIDE, few=True),
        },
        {
            "material_one_byte_short": Bad(broken_material(slice(0, -4)), EncodingError),
            "material_one_byte_long": Bad(broken_material(slice(None)), EncodingError),
            "opened_bits_one_byte_short": Bad(
                small(TAU, sent=OPENED[:-1].hex()), RemoteProtocolError, "open", "south"
            ),
            "padding_of_opened_bits_is_set": Bad(
                small(TAU, sent=(OPENED[:-1] + bytes([OPENED[-1] | 0x80])).hex()),
                RemoteProtocolError,
                "open",
                "south",
            ),
        },
    ),
}
