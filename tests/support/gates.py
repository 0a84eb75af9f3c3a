"""One garbled gate, or any circuit, garbled and evaluated over many edges."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from tests.support.mpc_studies import seed_of
from umpc.crypto.prg import Stream
from umpc.crypto.ring import Ring
from umpc.mpc.garbled.circuits import (
    Circuit,
    Gate,
    InputBit,
    WeightedSum,
)
from umpc.mpc.garbled.garbling import (
    GarbledEdges,
    active_labels,
    evaluate,
    garble,
)
from umpc.mpc.garbled.gates import GateHash

HASH = GateHash(seed_of("gates"))
RING = Ring(64)


def one_gate(is_and: bool, weight: int = 1, garbled: bool = False) -> Circuit:
    """A gate of two bits a and b, or with `garbled` its XOR with a.

    An AND that a gate reads is garbled as a gate.
    """
    bits = (InputBit(0, "x", 0), InputBit(1, "x", 0))
    gates = (Gate(is_and, 0, 1), Gate(False, 0, 2))
    return Circuit(bits, gates[: 1 + garbled], (WeightedSum(0, ((2 + garbled, weight),)),))


AND = one_gate(True, garbled=True)
"""One garbled gate: a·b ⊕ a."""
PRODUCT = one_gate(True)
"""One product among the outputs: a·b."""
BOTH = pytest.mark.parametrize("circuit", [AND, PRODUCT], ids=["gate", "product"])


@dataclass
class Run:
    """One garbling and its evaluation. labels: of bit 0, (inputs, n, 2)."""

    delta: np.ndarray
    labels: np.ndarray
    active: np.ndarray
    garbled: GarbledEdges
    kept: np.ndarray
    found: np.ndarray

    @property
    def values(self) -> np.ndarray:
        return (self.kept + self.found).view(f"i{self.kept.dtype.itemsize}").astype(np.int64)


def offset(label: str) -> np.ndarray:
    delta = Stream(seed_of(label + " offset")).words(2).copy()
    delta[0] |= np.uint64(1)
    return delta


def run(
    circuit: Circuit, bits: np.ndarray, label: str, ring: Ring = RING, first_edge: int = 0
) -> Run:
    delta, count = offset(label), bits.shape[1]
    labels = Stream(seed_of(label)).words(2 * len(bits) * count).reshape(len(bits), count, 2)
    active = active_labels(labels, bits, delta)
    garbled, kept = garble(circuit, ring, delta, labels, first_edge, HASH)
    sent = GarbledEdges.decode(garbled.encode(), circuit, ring, count)
    return Run(
        delta,
        labels,
        active,
        garbled,
        kept,
        evaluate(circuit, ring, sent, active, first_edge, HASH),
    )


def inputs(count: int, *bits: int) -> np.ndarray:
    return np.tile(np.array(bits, dtype=np.uint8)[:, None], count)


FOUR = np.array(list(product((0, 1), repeat=2)), dtype=np.uint8).T
