"""Garbled edges as studies run them: a chunk's tables, transfers and gates, and their share of AES.

Run `python -m bench.pieces`. The title says what computes: a kind of the compiled kernel, or numpy,
which `UMPC_NATIVE=0` chooses. Seconds are those of the processor. The AES figure is measured in
turn with the work.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bench.limits import aes_blocks_per_second
from bench.table import Figure, show
from umpc.crypto.prg import FixedKeyHash
from umpc.crypto.ring import RINGS
from umpc.mpc.garbled.circuits import Circuit
from umpc.mpc.garbled.garbling import active_labels, aes_blocks, evaluate, garble
from umpc.mpc.garbled.gates import GateHash
from umpc.mpc.garbled.piece_tables import Places, bits_of_wires, make_tables, read_tables
from umpc.mpc.garbled.plan import GarbledPlan
from umpc.mpc.transfers.channel_set_up import bits_of as bits_of_delta
from umpc.mpc.transfers.channel_set_up import receiver_channel, sender_channel
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender, fresh_delta
from umpc.mpc.transfers.message_shapes import BLOCK_BITS, FOLD
from umpc.native.garbled import CHOSEN

RUNS = 9
LIMIT_SECONDS = 0.05
TARGET = 0.25
EDGES_OF_RECORD = 4
"""Edges of a chunk with one record of the evaluator: those of the bank table's 4n pairs that two
nodes share, in the order of `GarbledCells`."""


@dataclass(frozen=True)
class Stage:
    """One party's work on a part of a chunk. blocks: AES blocks that it takes."""

    name: str
    work: Callable[[], object]
    blocks: float


class ChunkWork:
    """The work of both parties on one chunk of random records. checked: its transfers are."""

    def __init__(self, circuit: Circuit, *, checked: bool = False):
        self.plan = GarbledPlan(circuit, RINGS[0], checked=checked)
        self.count = self.plan.chunk_edges
        self.delta = fresh_delta(os.urandom(32))
        self.ends = _channel(self.delta, checked=checked)
        self.places = Places.of(np.arange(self.count) // EDGES_OF_RECORD)

    def garbler(self) -> list[Stage]:
        """Tables, transfers and gates of the garbler."""
        plan, count = self.plan, self.count
        sender, receiver = self.ends
        inputs = _words(len(plan.circuit.inputs), count, 2)
        choices = _bits(plan.coin_count(count))
        messages = iter([receiver.fork("t", i).extend(choices)[1] for i in range(RUNS + 1)])
        forks = iter([sender.fork("t", i) for i in range(RUNS + 1)])
        gate_hash = GateHash(os.urandom(16))
        gates = aes_blocks(plan.circuit, plan.ring)[0]
        stages = [
            Stage(
                "gates",
                lambda: garble(plan.circuit, plan.ring, self.delta, inputs, 0, gate_hash)[
                    0
                ].encode(),
                gates * count,
            )
        ]
        if plan.pieces:
            per_transfer = BLOCK_BITS // FOLD * ((1 << FOLD) - 1) / BLOCK_BITS
            stages += [
                Stage("tables", self._make_tables(), self._rows()),
                Stage(
                    "transfers",
                    lambda: next(forks).extend(next(messages), len(choices)),
                    per_transfer * len(choices),
                ),
            ]
        return stages

    def evaluator(self) -> list[Stage]:
        """Tables, transfers and gates of the evaluator."""
        plan, count = self.plan, self.count
        receiver = self.ends[1]
        inputs = _words(len(plan.circuit.inputs), count, 2)
        gate_hash = GateHash(os.urandom(16))
        garbled, _ = garble(plan.circuit, plan.ring, self.delta, inputs, 0, gate_hash)
        bits = _bits(len(inputs) * count).reshape(len(inputs), count)
        active = active_labels(inputs, bits, self.delta)
        choices = _bits(plan.coin_count(count))
        forks = iter([receiver.fork("e", i) for i in range(RUNS + 1)])
        gates = aes_blocks(plan.circuit, plan.ring)[1]
        stages = [
            Stage(
                "gates",
                lambda: evaluate(plan.circuit, plan.ring, garbled, active, 0, gate_hash),
                gates * count,
            )
        ]
        if plan.pieces:
            per_transfer = BLOCK_BITS // FOLD * (1 << FOLD) / BLOCK_BITS
            stages += [
                Stage("tables", self._read_tables(), len(self.places.record) * len(plan.pieces)),
                Stage(
                    "transfers", lambda: next(forks).extend(choices), per_transfer * len(choices)
                ),
            ]
        return stages

    def _rows(self) -> int:
        return len(self.places.record) * sum(each.piece.rows for each in self.plan.pieces)

    def _keys_and_values(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        keys = [_words(len(self.places.records), 2) for _ in self.plan.pieces]
        rng = np.random.default_rng(2)
        values = [rng.integers(0, each.piece.rows, self.count) for each in self.plan.pieces]
        return keys, values

    def _make_tables(self) -> Callable[[], bytes]:
        keys, values = self._keys_and_values()
        masks = _bits(2 * len(self.plan.pieces) * self.count).reshape(-1, self.count)
        row_hash = FixedKeyHash(os.urandom(16))
        return lambda: make_tables(
            self.plan.pieces,
            keys,
            values,
            masks,
            self.places,
            self.delta,
            row_hash,
            0,
            is_first=True,
        )

    def _read_tables(self) -> Callable[[], object]:
        keys, values = self._keys_and_values()
        payload = os.urandom(self.plan.table_bits // 8 * self.count)
        row_hash = FixedKeyHash(os.urandom(16))
        pieces = self.plan.pieces
        return lambda: bits_of_wires(
            pieces, read_tables(payload, pieces, keys, values, self.places, row_hash, 0)
        )


def show_pieces(circuits: dict[str, Circuit]) -> list[Figure]:
    """Print the table of these circuits. Returns: each party's share of AES, with the target."""
    rows, figures = [], []
    for name, circuit in circuits.items():
        work = ChunkWork(circuit)
        bytes_each = f"{work.plan.edge_bits / 8:.0f}"
        for party, stages in (("garbler", work.garbler()), ("evaluator", work.evaluator())):
            seconds, limit = _measured(stages)
            blocks = sum(stage.blocks for stage in stages)
            share = blocks / limit / sum(seconds.values())
            spent = [f"{1e6 * seconds.get(part, 0) / work.count:.2f}" for part in PARTS]
            total = f"{1e6 * sum(seconds.values()) / work.count:.2f}"
            met = "met" if share >= TARGET else "missed"
            rows.append(
                (name, party, bytes_each, *spent, total, f"{share:.0%}", f"{TARGET:.0%} {met}")
            )
            figure = f"garbled edge, {name}, {party}: of the AES limit"
            figures.append(
                Figure(figure, f"{share:.0%}", f"at least {TARGET:.0%}", share >= TARGET)
            )
    columns = ("", "party", "bytes", *(f"{part} µs" for part in PARTS), "µs", "of AES", "target")
    title = f"Garbled edges as they run, processor µs an edge by chunks, medians of {RUNS}"
    show(f"{title} ({CHOSEN or 'numpy'}; ring of 32 bits)", columns, rows)
    return figures


PARTS = ("tables", "transfers", "gates")


def _measured(stages: list[Stage]) -> tuple[dict[str, float], float]:
    """Median processor seconds of each stage, and AES blocks a second beside them."""
    limits = []
    seconds: dict[str, list[float]] = {stage.name: [] for stage in stages}
    for stage in stages:
        stage.work()
    for _ in range(RUNS):
        limits.append(aes_blocks_per_second(LIMIT_SECONDS))
        for stage in stages:
            started = time.process_time()
            stage.work()
            seconds[stage.name].append(time.process_time() - started)
    found = {name: statistics.median(each) for name, each in seconds.items()}
    return found, statistics.median(limits)


def _channel(
    delta: np.ndarray, *, checked: bool = False
) -> tuple[CorrelatedSender, CorrelatedReceiver]:
    """Both ends of a channel, over base seeds without points."""
    pairs = [(os.urandom(32), os.urandom(32)) for _ in range(BLOCK_BITS)]
    bits = bits_of_delta(delta).tolist()
    keys = [pair[1 - bit] for pair, bit in zip(pairs, bits, strict=True)]
    receiver, trees = receiver_channel(pairs, b"bench", FOLD, os.urandom(32) if checked else b"")
    return sender_channel(delta, keys, trees, b"bench", "bench", checked=checked), receiver


def _words(*shape: int) -> np.ndarray:
    return np.frombuffer(os.urandom(8 * int(np.prod(shape))), np.uint64).reshape(shape).copy()


def _bits(count: int) -> np.ndarray:
    return np.frombuffer(os.urandom(count), dtype=np.uint8) & 1


def main() -> list[Figure]:
    """Print the table of the bank table's fields."""
    from bench.garbling import pieced_circuits

    return show_pieces(pieced_circuits())


if __name__ == "__main__":
    main()
