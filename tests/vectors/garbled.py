"""Vectors of garbled circuits: half gates with additive shares of weighted sums as output."""

from __future__ import annotations

import numpy as np

from tests.vectors.part import Bad, Part, Values, blocks_of, fixed, integers, texts_of
from umpc.crypto.ring import Ring
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.garbled.circuits import Circuit, Gate, InputBit, WeightedSum
from umpc.mpc.garbled.garbling import GarbledEdges, active_labels, evaluate, garble
from umpc.mpc.garbled.gates import GateHash


def circuit_of(given: Values) -> Circuit:
    """Read a circuit: its inputs, its gates ("and" or "xor" of two wires), and its sums."""
    return Circuit(
        tuple(InputBit(*bit) for bit in given["inputs"]),
        tuple(Gate(kind == "and", left, right) for kind, left, right in given["gates"]),
        tuple(
            WeightedSum(each["constant"], tuple((wire, weight) for wire, weight in each["terms"]))
            for each in given["sums"]
        ),
    )


def garbling(inputs: Values) -> Values:
    """Garble for some edges, and evaluate. A given `garbled` replaces what the garbler sends."""
    circuit, ring = circuit_of(inputs["circuit"]), Ring(inputs["ring_bits"])
    bits = np.array(inputs["bits"], dtype=np.uint8)
    (delta,) = blocks_of([inputs["delta"]])
    labels = np.stack([blocks_of(row) for row in inputs["labels"]])
    tree = GateHash(bytes.fromhex(inputs["hash_key"])), inputs["first_edge"]
    edges, kept = garble(circuit, ring, delta, labels, tree[1], tree[0])
    sent = bytes.fromhex(inputs["garbled"]) if "garbled" in inputs else edges.encode()
    active = active_labels(labels, bits, delta)
    received = GarbledEdges.decode(sent, circuit, ring, bits.shape[1])
    found = evaluate(circuit, ring, received, active, tree[1], tree[0])
    return {
        "garbled": sent.hex(),
        "active_labels": [texts_of(row) for row in active],
        "garbler_shares": [integers(row) for row in kept],
        "evaluator_shares": [integers(row) for row in found],
        "sums": [
            [ring.decode(int(mine) + int(other)) for mine, other in zip(*rows, strict=True)]
            for rows in zip(kept, found, strict=True)
        ],
    }


CIRCUIT = {
    "inputs": [[0, "x", 0], [0, "x", 1], [1, "x", 0]],
    "gates": [["and", 0, 2], ["xor", 1, 2], ["and", 3, 4]],
    "sums": [
        {"constant": -2, "terms": [[3, 3], [4, -1]]},
        {"constant": 0, "terms": [[5, 5]]},
    ],
}
GIVEN = {
    "circuit": CIRCUIT,
    "ring_bits": 32,
    "hash_key": fixed(1, 16),
    "first_edge": 40,
    "delta": fixed(3, 16)[:1] + "1" + fixed(3, 16)[2:],
    "labels": [[fixed(16 * wire + edge, 16) for edge in range(4)] for wire in (5, 6, 7)],
    "bits": [[0, 1, 1, 1], [0, 1, 0, 0], [0, 1, 0, 1]],
}
SENT = garbling(GIVEN)["garbled"]

PARTS = {
    "garbling": Part(
        "Half gates (Zahur, Rosulek and Evans 2015) and additive shares of weighted sums of bits. "
        "Wires are numbered: inputs first, then gates. Each input wire has a label of bit 0 for "
        "every edge. The shares of a sum add up to constant + Σ weight · bit.",
        garbling,
        {"two_ands_and_a_xor": GIVEN, "ring_of_64_bits": {**GIVEN, "ring_bits": 64}},
        {
            "garbled_edges_one_byte_short": Bad({**GIVEN, "garbled": SENT[:-2]}, EncodingError),
            "garbled_edges_one_byte_long": Bad({**GIVEN, "garbled": SENT + "00"}, EncodingError),
            "offset_with_lowest_bit_zero": Bad(
                {**GIVEN, "delta": fixed(3, 16)}, LocalProtocolError
            ),
            "labels_of_one_wire_missing": Bad(
                {**GIVEN, "labels": GIVEN["labels"][:2], "bits": GIVEN["bits"][:2]},
                LocalProtocolError,
            ),
        },
    ),
}
