"""Comparisons by tables, as the chunks of studies make them: `python -m bench.comparisons`.

A chunk of any study above 1,000 edges compares by tables: in numpy, or by the compiled kernel where
there is one. Both are measured. The work of an owner is all from its seed and its material to its
shares of [d < 0] and [d = 0]: rows, masks, openings and combined pieces. The work of the dealer is
its material. A turn takes CHUNKS different chunks one after the other, as a study of so many does.
The first chunk after a pause finds cold caches, and is slower than the others.

A key of w bits takes w − 5 AES blocks of an owner. So the share "of AES" is that of an owner who
evaluates as many keys: a processor that did nothing but the blocks of keys would have 100 %.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from unittest.mock import patch

import numpy as np

from bench.limits import aes_blocks_per_second
from bench.table import Figure, show
from umpc.cli.memory import tune_memory
from umpc.crypto.prg import SEED_BYTES, FixedKeyHash
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import Finished, Message, resume
from umpc.mpc.masked.chunk_inputs import ChunkInputs
from umpc.mpc.masked.dcf import aes_blocks
from umpc.mpc.masked.lookup_comparison import compare
from umpc.mpc.masked.masks import modulus
from umpc.mpc.masked.plan import Plan
from umpc.mpc.masked.plan_builder import PlanBuilder
from umpc.mpc.masked.plan_items import Linear, RecordPlace
from umpc.mpc.masked.tasks import DealTask, OwnerTask
from umpc.native import CHOSEN

WIDTHS = (8, 18, 41)
RUNS, CHUNKS = 15, 8
LIMIT_SECONDS = 0.05
SHARE_TARGET = 0.25
OWNERS = 2


def comparing(width: int) -> Plan:
    """Both bits of a difference between the numbers of two owners."""
    builder = PlanBuilder()
    places = [builder.add_place(RecordPlace(owner, 0), 0) for owner in range(OWNERS)]
    difference = Linear(((places[0], 1), (places[1], -1)))
    for kind in ("less", "equal"):
        compare(builder, difference, width, kind, 1)
    return Plan(
        pattern=tuple(range(OWNERS)),
        ring=RINGS[0],
        places=tuple(builder.places),
        comparisons=(),
        tables=tuple(builder.tables),
        bits=tuple(builder.bits),
        layers=builder.layers(),
        outputs=(),
    )


class ComparedChunk:
    """One chunk of random numbers, with its material dealt, and the times of its computations."""

    def __init__(self, width: int):
        self.plan = comparing(width)
        self.count = self.plan.chunk_edges
        masks, masked = (
            {owner: _words(self.count) & modulus(width) for owner in range(OWNERS)}
            for _ in range(2)
        )
        seeds = [[os.urandom(SEED_BYTES)] for _ in range(OWNERS)]
        key = os.urandom(16)
        self._hash = FixedKeyHash(key)
        self._dealing = DealTask(self.plan, masks, seeds, [self.count], key)
        (payloads,) = self._dealing.payloads()
        self._owners = [
            OwnerTask(
                owner,
                self.plan,
                ChunkInputs(masked, {owner: masks[owner]}, {}, self.count, ("one", "other")),
                payloads[owner],
                seeds[owner][0],
                key,
            )
            for owner in range(OWNERS)
        ]
        self.bytes = sum(map(len, payloads)) / self.count

    def dealing_seconds(self) -> float:
        """Processor seconds of the dealer."""
        return _timed(self._dealing.payloads)[0]

    def owner_seconds(self) -> list[float]:
        """Processor seconds of each owner, over all rounds."""
        taken = [0.0] * OWNERS
        running = [owner.protocol(self._hash) for owner in self._owners]
        heard: Sequence[Sequence[Message] | None] = [None] * OWNERS
        while True:
            said = []
            for owner, rounds in enumerate(running):
                seconds, answer = _timed(partial(resume, rounds, heard[owner]))
                taken[owner] += seconds
                said.append(answer)
            if isinstance(said[0], Finished):
                return taken
            heard = [[said[1]], [said[0]]]


def main() -> list[Figure]:
    """Print the table. Returns: numpy's shares of AES, with the target."""
    tune_memory()
    rows, figures = [], []
    for width in WIDTHS:
        with patch("umpc.mpc.masked.tasks.serves", lambda plan: False):
            row, share = measured(width, "numpy")
        rows.append(row)
        if CHOSEN is not None:
            rows.append(measured(width, CHOSEN)[0])
        figures.append(
            Figure(
                f"comparison by tables, w = {width}, numpy, by chunks: of the AES limit of keys",
                f"{share:.0%}",
                f"at least {SHARE_TARGET:.0%}",
                share >= SHARE_TARGET,
            )
        )
    columns = ("", "by", "edges", "pieces", "first M/s", "last M/s", "dealt M/s")
    shares = ("first, of AES", "last, of AES", "bytes")
    title = f"Comparisons of {CHUNKS} chunks by tables, medians of {RUNS}"
    show(title, (*columns, *shares), rows)
    return figures


def measured(width: int, way: str) -> tuple[tuple[str, ...], float]:
    """A row of the table, and the smaller share of AES. Args: way: what computes the chunk."""
    chunks = [ComparedChunk(width) for _ in range(CHUNKS)]
    limits, dealt, owners = [], [], []
    for _ in range(RUNS):
        limits.append(aes_blocks_per_second(LIMIT_SECONDS))
        dealt.append(sum(chunk.dealing_seconds() for chunk in chunks))
        owners.append(
            [sum(taken) for taken in zip(*map(ComparedChunk.owner_seconds, chunks), strict=True)]
        )
    chunk, count = chunks[0], sum(chunk.count for chunk in chunks)
    blocks = aes_blocks(width) * count
    of_aes = [
        statistics.median(
            blocks / limit / each[owner] for limit, each in zip(limits, owners, strict=True)
        )
        for owner in range(OWNERS)
    ]
    rates = [count / statistics.median(each[o] for each in owners) for o in range(OWNERS)]
    rates.append(count / statistics.median(dealt))
    row = (
        f"w = {width}",
        way,
        f"{chunk.count:,}",
        f"{len(chunk.plan.tables)}",
        *(f"{rate / 1e6:.1f}" for rate in rates),
        *(f"{share:.0%}" for share in of_aes),
        f"{chunk.bytes:.0f}",
    )
    return row, min(of_aes)


def _words(count: int) -> np.ndarray:
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    """Processor seconds and the result."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


if __name__ == "__main__":
    main()
