"""Garbled AND gates a second and core, bytes an edge, and circuits of all pair statistics.

The measured bytes are beside those of the formula. The gates are those without pieces. Where both
owners know their numbers, studies compare by pieces (`umpc/mpc/garbled/pieces.py`).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bench.limits import aes_blocks_per_second
from bench.table import show
from umpc.crypto.ring import RINGS, Ring
from umpc.mpc.garbled.circuits import Circuit, outputs_of
from umpc.mpc.garbled.garbling import active_labels, evaluate, garble, garbled_bits
from umpc.mpc.garbled.gates import GateHash, pad_hashes
from umpc.mpc.garbled.kernel_to_circuit import circuit_of_all
from umpc.ustat.expression import Field, Less
from umpc.ustat.polynomial import polynomial_of
from umpc.ustat.schema import FieldSchema, Schema
from umpc.ustat.statistics import LIBRARY

EDGES = 1 << 12
RUNS = 15
COMPARISON = "40 bits compared"
"""This circuit has almost only AND gates, and one output."""
TIMED = (
    COMPARISON,
    "duplicate_pair_ratio",
    "gini_mean_difference",
    "kendall_tau",
    "variance",
    "covariance",
)

BANK = Schema(
    [
        FieldSchema("age", Fraction(0), Fraction(127), Fraction(1)),
        FieldSchema("balance", Fraction(-3313), Fraction(71188), Fraction(1)),
        FieldSchema("label", Fraction(0), Fraction(1), Fraction(1)),
        FieldSchema("job", Fraction(0), Fraction(11), Fraction(1)),
    ]
)
"""The bank data's fields: differences of 8 and of 18 bits."""
FIELDS = {
    "x": "age",
    "y": "balance",
    "score": "balance",
    "label": "label",
    "stratum": "job",
    "time": "age",
    "event": "label",
    "x...": "balance",
    "z": "job",
    "score_a": "age",
    "score_b": "balance",
}
"""A field for each argument of the library's statistics of pairs."""
PARAMETERS = {
    "uniformity": {"cells": 128},
    "contrastive_loss": {"margin": 1000},
    "ranking_hinge": {"margin": 1000},
}


def main() -> None:
    show_rates()
    show_circuits()


def bank_circuit(name: str) -> Circuit:
    """The circuit of all sums of a pair statistic over age, balance and the label."""
    expressions = LIBRARY[name].expressions(
        [FIELDS[a] for a in LIBRARY[name].arguments], PARAMETERS.get(name, {})
    )
    units = [polynomial_of(each, BANK).unit for each in expressions]
    return circuit_of_all(expressions, BANK, units)


def comparison() -> Circuit:
    """[x < y] of two numbers of 40 bits."""
    schema = Schema([FieldSchema("x", Fraction(0), Fraction((1 << 40) - 1), Fraction(1))])
    less = Less(Field(0, "x"), Field(1, "x"))
    return circuit_of_all([less], schema, [Fraction(1)])


def aes_blocks(circuit: Circuit, ring: Ring) -> tuple[int, int]:
    """AES blocks an edge: of the garbler, and of the evaluator, in batches of one gate."""
    outputs = outputs_of(circuit)
    pads = sum(1 + pad_hashes(len(numbers), ring) for _, numbers in outputs.wires)
    return 8 * outputs.and_count + 2 * pads, 4 * outputs.and_count + pads


@dataclass(frozen=True)
class Rate:
    """The rates of garbling and of evaluating, in this order; medians of RUNS.

    edges: edges a second. aes: the share of the AES limit. bytes: of all garbled edges.
    """

    edges: tuple[float, float]
    aes: tuple[float, float]
    bytes: int


def show_rates() -> None:
    rows = []
    for name in TIMED:
        circuit = bank_circuit(name) if name in LIBRARY else comparison()
        rate = measure(circuit)
        rows.append(
            (
                name,
                f"{circuit.and_count}",
                f"{outputs_of(circuit).and_count}",
                f"{len(outputs_of(circuit).elements)}",
                *(f"{circuit.and_count * edges / 1e6:.1f}" for edges in rate.edges),
                *(f"{100 * share:.0f} %" for share in rate.aes),
                f"{rate.bytes / EDGES:.0f}",
                f"{garbled_bits(circuit, RINGS[-1]) / 8:.0f}",
            )
        )
    rates = ("garbled M/s", "eval. M/s", "AES", "AES")
    columns = ("", "ANDs", "gates", "elem.", *rates, "bytes/edge", "formula")
    title = f"Gates alone, without pieces: ANDs on one core, {EDGES:,} edges, ring of 64 bits"
    show(f"{title}, medians of {RUNS}, outputs included", columns, rows)


def measure(circuit: Circuit) -> Rate:
    """Measure AES and gates by turns, so that both meet the same load of the machine."""
    ring = RINGS[-1]
    gate_hash = GateHash(os.urandom(16))
    delta = _random(2)
    delta[0] |= np.uint64(1)
    labels = _random(len(circuit.inputs), EDGES, 2)
    active = active_labels(labels, _random(len(circuit.inputs), EDGES) & np.uint64(1), delta)
    garbled, _ = garble(circuit, ring, delta, labels, 0, gate_hash)
    limits, seconds = [], ([], [])
    for number in range(RUNS):
        if number % 5 == 0:
            limits.append(aes_blocks_per_second())
        seconds[0].append(_timed(lambda: garble(circuit, ring, delta, labels, 0, gate_hash)))
        seconds[1].append(_timed(lambda: evaluate(circuit, ring, garbled, active, 0, gate_hash)))
    edges = tuple(EDGES / statistics.median(each) for each in seconds)
    limit = statistics.median(limits)
    shares = tuple(
        rate * blocks / limit for rate, blocks in zip(edges, aes_blocks(circuit, ring), strict=True)
    )
    return Rate(edges, shares, len(garbled.encode()))


def show_circuits() -> None:
    rows = []
    for name in sorted(name for name, statistic in LIBRARY.items() if statistic.degree == 2):
        circuit = bank_circuit(name)
        fields = ", ".join(FIELDS[argument] for argument in LIBRARY[name].arguments)
        outputs = outputs_of(circuit)
        counts = (
            circuit.and_count,
            outputs.and_count,
            len(outputs.elements),
            circuit.depth,
            len(circuit.inputs),
        )
        rows.append(
            (
                name,
                fields,
                *map(str, counts),
                *(f"{garbled_bits(circuit, ring) / 8:.0f}" for ring in RINGS),
            )
        )
    columns = (
        "",
        "fields",
        "ANDs",
        "as gates",
        "elements",
        "depth",
        "inputs",
        "bytes an edge, 32",
        "64",
    )
    show(
        "Circuits of pair statistics: age of 7 bits, balance of 18 bits (differences of 8 and 18)",
        columns,
        rows,
    )


def _random(*shape: int) -> np.ndarray:
    return np.frombuffer(os.urandom(8 * int(np.prod(shape))), dtype=np.uint64).reshape(shape).copy()


def _timed(work: Callable[[], object]) -> float:
    """Processor seconds, as of the AES figure: other work on the machine does not count."""
    started = time.process_time()
    work()
    return time.process_time() - started
