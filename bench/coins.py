"""The noise of a committee: coins from transfers beside coins that the dealer deals.

Whole studies run in this process, with curve points and without a network. Seconds are those of the
processor, divided by the number of nodes, less those of the same study whose nodes draw their own
noise. A study that has run before is measured, so that plans and thresholds are known. The rows of
cut-and-choose are computed: docs/papers.md says why it was not taken.
"""

from __future__ import annotations

import statistics
import time
from fractions import Fraction
from math import comb, log2
from typing import NamedTuple

import numpy as np

from bench.kendall import kendall_study
from bench.table import show
from umpc.crypto.prg import Stream
from umpc.mpc.attempt import SharedAttempt
from umpc.mpc.transfers.message_shapes import FACTOR
from umpc.planning.seconds import rounds_before
from umpc.simulation import Simulated, simulate
from umpc.study.document import Study

NODES = (2, 4, 16)
RECORDS = 50
RUNS = 3
UNNOTICED_BITS = 40
"""A dealer that cheats in cut-and-choose may stay unnoticed with 2^-UNNOTICED_BITS."""


class Cost(NamedTuple):
    """rounds: before the data. bytes: before the data, all processes. seconds: of all nodes."""

    rounds: int
    bytes: int
    seconds: float
    coins: int


def main() -> None:
    rows = []
    for nodes in NODES:
        own, dealt, tossed = (measured(nodes, *kind) for kind in KINDS)
        for name, cost in (("dealt", dealt), ("transfers", tossed)):
            seconds = (cost.seconds - own.seconds) / nodes
            dealt_seconds = (dealt.seconds - own.seconds) / nodes
            rows.append(
                (
                    f"{nodes} nodes, {name}",
                    f"{cost.coins}",
                    f"{cost.rounds}",
                    f"{cost.bytes - own.bytes:,}",
                    f"{(cost.bytes - own.bytes) / nodes:,.0f}",
                    f"{(cost.bytes - own.bytes) / (dealt.bytes - own.bytes):.0f}×",
                    f"{seconds:.3f}",
                    f"{seconds / dealt_seconds:.0f}×",
                )
            )
        rows.append(cut_and_choose(nodes, dealt.coins, dealt.bytes - own.bytes))
    columns = ("noise", "coins", "rounds", "bytes", "a node", "ratio", "s a node", "ratio")
    show(f"Noise drawn by a committee, {RECORDS} records a node, |E| = 2n, ε = 1", columns, rows)
    odds = [
        (f"{coins}", f"{read}", f"{float(odds_of_reading(coins, read)):.3g}")
        for coins in (2, 18, 200)
        for read in sorted({1, 2, 3, coins})
        if read <= coins
    ]
    columns = ("coins", "read", "odds at most")
    show("A member that lies in conversions, and is not noticed", columns, odds)


def odds_of_reading(coins: int, read: int) -> Fraction:
    """The most with which a lying member reads so many coins, or more, and nobody notices.

    It lies in the conversions of some of FACTOR·coins random bits. One that is opened passes with
    probability 1/2 at most, and coins use the others
    (`umpc/mpc/transfers/coins_from_transfers.py`).
    """
    bits = FACTOR * coins
    best = Fraction(0)
    for lies in range(read, bits + 1):
        odds = Fraction(0)
        for used in range(read, min(lies, coins) + 1):
            ways = comb(lies, used) * comb(bits - lies, coins - used)
            odds += Fraction(ways, comb(bits, coins) << (lies - used))
        best = max(best, odds)
    return best


KINDS = (("distributed", "transfers"), ("in_mpc", "dealt"), ("in_mpc", "transfers"))
"""Noise and source of coins. The first kind has no committee."""


def measured(nodes: int, noise: str, coins: str) -> Cost:
    study = study_of(nodes, noise, coins)
    runs = 1 if nodes > 4 else RUNS
    _run(study, 0)
    seconds = []
    for number in range(1, 1 + runs):
        started = time.process_time()
        run = _run(study, number)
        seconds.append(time.process_time() - started)
    attempt = run.attempt
    assert isinstance(attempt, SharedAttempt)
    count = sum(each.count for each in attempt.coins)
    rounds = rounds_before(attempt)
    return Cost(rounds, run.report.bytes_offline, statistics.median(seconds), count)


def study_of(nodes: int, noise: str, coins: str) -> Study:
    """Kendall's tau of two fields of 7 bits."""
    return kendall_study(nodes, 127, "1", noise=noise, coins=coins)


def _run(study: Study, number: int) -> Simulated:
    stream = Stream(number.to_bytes(32, "little"))
    tables = [
        {name: (stream.words(RECORDS) >> np.uint64(57)).astype(np.int64) for name in "xy"}
        for _ in study.nodes
    ]
    return simulate(study, tables, stream.bytes)


def cut_and_choose(nodes: int, coins: int, dealt: int) -> tuple[str, ...]:
    """A lower bound of the bytes: buckets of dealt numbers, of which one good number suffices.

    A dealer that spoils one whole bucket stays unnoticed if no spoilt number is opened, and all of
    them fall into one bucket. It costs at least as many times the dealt bytes as a bucket is large.
    """
    size, opened = least_bucket(coins)
    times = size + opened / coins
    return (
        f"{nodes} nodes, cut-and-choose (bound)",
        f"{coins}",
        "6",
        f"{times * dealt:,.0f}",
        f"{times * dealt / nodes:,.0f}",
        f"{times:.0f}×",
        "",
        "",
    )


def least_bucket(coins: int) -> tuple[int, int]:
    """The size of a bucket, and the opened numbers, that cost least."""
    found = []
    for size in range(2, 64):
        for opened in range(coins * 4):
            if log2(coins) - log2(comb(coins * size + opened, size)) <= -UNNOTICED_BITS:
                found.append((coins * size + opened, size, opened))
                break
    _, size, opened = min(found)
    return size, opened
