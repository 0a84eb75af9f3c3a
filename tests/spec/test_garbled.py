"""Garbled pairs: every byte of the garbler, and both parties' shares of each edge."""

from __future__ import annotations

from itertools import product

import numpy as np

from spec.cases.garbled import PAIR, labels_of
from spec.garbled import pair as pair_of_spec
from tests.spec.blocks import blocks_of
from tests.spec.replaying import replay_tests
from tests.spec.test_transfers import channel_of
from umpc.crypto.ring import Ring
from umpc.mpc.garbled.circuits import Circuit, Gate, InputBit, WeightedSum
from umpc.mpc.garbled.garbling import GarbledEdges, active_labels, evaluate, garble
from umpc.mpc.garbled.gates import GateHash


def circuit_of(given) -> Circuit:
    return Circuit(
        tuple(InputBit(0, "x", number) for number in range(given["inputs"])),
        tuple(Gate(kind == "and", left, right) for kind, left, right in given["gates"]),
        tuple(
            WeightedSum(each["constant"], tuple(tuple(term) for term in each["terms"]))
            for each in given["sums"]
        ),
    )


def garbled(circuit, ring, delta, labels, active, first_edge, hash_key, sent):
    parsed, of_ring, gate_hash = circuit_of(circuit), Ring(ring), GateHash(hash_key)
    made, kept = garble(parsed, of_ring, delta, labels, first_edge, gate_hash)
    message = made.encode() if sent is None else sent
    came = GarbledEdges.decode(message, parsed, of_ring, labels.shape[1])
    found = evaluate(parsed, of_ring, came, active, first_edge, gate_hash)
    return {"garbled": message, "garbler": kept.T.tolist(), "evaluator": found.T.tolist()}


def rows_of(labels) -> np.ndarray:
    return np.stack([blocks_of(row) for row in labels])


def edges(circuit, ring, delta, labels, active, first_edge, hash_key, sent=None):
    (offset,) = blocks_of([delta])
    both = rows_of(labels), rows_of(active)
    return garbled(circuit, ring, offset, *both, first_edge, hash_key, sent)


def pair(circuit, ring, bits, own_labels, first_edge, session, hash_key, seeds, sent=None):
    sender, receiver, _ = channel_of(session, 4, *seeds)
    own, rows = rows_of(own_labels), np.array(bits, dtype=np.uint8)
    choices = rows[len(own) :]
    mine, message = receiver.extend(choices.ravel())
    theirs = sender.extend(message, choices.size)
    shape = (*choices.shape, 2)
    labels = np.concatenate([own, theirs.blocks.reshape(shape)])
    known = active_labels(own, rows[: len(own)], sender.delta)
    active = np.concatenate([known, mine.blocks.reshape(shape)])
    return garbled(circuit, ring, sender.delta, labels, active, first_edge, hash_key, sent)


test_good_vectors, test_bad_vectors, test_each_check_is_needed = replay_tests(
    "garbled", {"edges": edges, "pair": pair}
)


def test_all_numbers_of_two_bits_against_the_clear():
    every = list(product((0, 1), repeat=4))
    bits = [list(row) for row in zip(*every, strict=True)]
    found = pair_of_spec(**{**PAIR, "bits": bits, "own_labels": labels_of(16)})
    for (a, b, c, d), ours, theirs in zip(every, found["garbler"], found["evaluator"], strict=True):
        x, y = a + 2 * b, c + 2 * d
        total = [(one + other) % 2**32 for one, other in zip(ours, theirs, strict=True)]
        assert total == [abs(x - y), int(x < y)]
