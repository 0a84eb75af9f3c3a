"""Sign gates a second and core, beside the AES limit: in numpy, and compiled, kind by kind.

The widths are those of an age, a balance and a 40-bit number. The limit, evaluation and generation
take turns, so a busy machine slows all of them. The compared figures are medians of the ratios
within one turn. Seconds are those that the processor spent on this process.

Studies of more than 1,000 edges compare by tables (`umpc/mpc/masked/tasks.py`).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.limits import aes_blocks_per_second
from bench.table import show
from umpc.cli.memory import tune_memory
from umpc.crypto.prg import FixedKeyHash
from umpc.mpc.masked import dcf
from umpc.mpc.masked.dcf import evaluate_in_numpy, generate_in_numpy, key_bytes, levels
from umpc.mpc.masked.plan import MATERIAL_BYTES

GATES = 1 << 16
RUNS = 9
LIMIT_SECONDS = 0.05


@dataclass(frozen=True)
class Way:
    """One implementation of the sign gate.

    evaluate: (party, width, corrections, leaves, masked, roots) → shares.
    generate: (width, mask, roots) → keys.
    """

    name: str
    evaluate: Callable[..., object]
    generate: Callable[..., tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Turn:
    """The figures of one turn.

    share: evaluation of all gates, as a share of the AES limit.
    chunk_share: the same for the gates of one chunk of material.
    evaluated, generated: gates a second.
    """

    share: float
    chunk_share: float
    evaluated: float
    generated: float


def main() -> None:
    tune_memory()
    rows = []
    for way in ways():
        for width in (8, 18, 41):
            turns = [turn(way, width) for _ in range(RUNS)]
            middle = partial(_median, turns)
            share, ratio = middle(lambda t: t.share), middle(lambda t: t.generated / t.evaluated)
            rows.append(
                (
                    f"{way.name}, w = {width}",
                    f"{middle(lambda t: t.evaluated) / 1e6:.2f}",
                    f"{100 * share:.0f} %",
                    f"{100 * middle(lambda t: t.chunk_share):.0f} %",
                    f"{middle(lambda t: t.generated) / 1e6:.2f}",
                    f"{ratio:.2f}",
                    f"{key_bytes(width)}",
                )
            )
    columns = (
        "sign gate",
        "evaluated, M/s",
        "of AES",
        "by chunks",
        "made, M/s",
        "made/eval.",
        "bytes",
    )
    limit = aes_blocks_per_second()
    show(
        f"Sign gates on one core, medians of {RUNS} (AES limit {limit / 1e6:.0f} M blocks/s)",
        columns,
        rows,
    )


def aes_blocks(width: int) -> int:
    """AES blocks that one party spends on one gate."""
    return levels(width) + 1


def ways() -> Iterator[Way]:
    key = os.urandom(16)
    tree_hash = FixedKeyHash(key)
    yield Way(
        "numpy",
        partial(evaluate_in_numpy, tree_hash=tree_hash),
        partial(generate_in_numpy, tree_hash=tree_hash),
    )
    if (kernel := dcf.KERNEL) is not None:
        for kind in kernel.kinds():
            yield Way(
                kind,
                partial(kernel.evaluate, key, kind=kind),
                partial(kernel.generate, key, kind=kind),
            )


def turn(way: Way, width: int) -> Turn:
    """Measure the limit, then one party's evaluation and the dealer's generation."""
    mask, masked = (
        np.frombuffer(os.urandom(8 * GATES), dtype=np.uint64) >> np.uint64(64 - width)
        for _ in range(2)
    )
    roots = np.frombuffer(os.urandom(32 * GATES), dtype=np.uint64).reshape(2, GATES, 2)
    chunk = min(GATES, MATERIAL_BYTES // key_bytes(width))
    keys = way.generate(width, mask, roots)
    few = way.generate(width, mask[:chunk], np.ascontiguousarray(roots[:, :chunk]))
    limit = aes_blocks_per_second(LIMIT_SECONDS) / aes_blocks(width)
    evaluated = GATES / _seconds(lambda: way.evaluate(0, width, *keys, masked, roots[0]))
    generated = GATES / _seconds(lambda: way.generate(width, mask, roots))
    by_chunk = chunk / _seconds(
        lambda: way.evaluate(0, width, *few, masked[:chunk], roots[0, :chunk])
    )
    return Turn(evaluated / limit, by_chunk / limit, evaluated, generated)


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds of a second call. The first one brings code and buffers into place."""
    work()
    started = time.process_time()
    work()
    return time.process_time() - started


def _median(turns: list[Turn], figure: Callable[[Turn], float]) -> float:
    return statistics.median(map(figure, turns))
