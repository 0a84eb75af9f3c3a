"""Measure how much a clock learns about noise: `python -m bench.timing`.

A clock stands right before and right after a node's own draw, in the same process. It counts the
processor time of the drawing thread, so that other work on the machine does not hide a leak.
Whoever waits outside sees this time with more noise on it. For each law the table has the AUC of
guessing [noise = 0] and [|noise| > its median] from that time; 0.5 is a guess in the dark, and 0.04
tells as much as 0.96. The last columns are the former draw of the same law. They show that the
measurement would notice a leak.

`--rows 0 2` measures only these laws, in the order of `ROWS`.

With n draws of each kind an AUC is uncertain by about 1/sqrt(6 n) for n on the smaller side. So
`--sessions 10000` resolves 0.02, and fewer do not. Only the first rows take all sessions. A third
of the draws comes first without being counted: processors change their pace.
"""

from __future__ import annotations

import argparse
import gc
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import repeat

import numpy as np
from scipy import stats

from bench.baselines.inversion import invert_polya
from bench.baselines.rejection import reject_gaussian, reject_skellam
from bench.table import show
from umpc.crypto.prg import Stream
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.gaussian import DiscreteGaussian
from umpc.dp.polya import sample_polyas
from umpc.dp.random_bits import RandomBits
from umpc.dp.skellam import SkellamShare
from umpc.protocols.gopa.node import random_bits

Draw = Callable[[RandomBits], int]

SCALES = {"1": 1, "10^3": 10**3, "10^6": 10**6, "10^9": 10**9, "2^50": 2**50}
CELLS = 100


@dataclass(frozen=True)
class Row:
    """One law: how it is drawn, how it was drawn before, and its part of the sessions."""

    name: str
    draw: Draw
    former: Draw
    part: float


def former_share(honest: int, log_ratio: Fraction, bits: RandomBits) -> int:
    """A node's share of discrete Laplace noise, by inversion."""
    shape = Fraction(1, honest)
    return invert_polya(shape, log_ratio, bits) - invert_polya(shape, log_ratio, bits)


def cells(bits: RandomBits) -> int:
    """The noise of `ghazi-shuffle` in 100 cells at once; the first cell's is the one to guess."""
    drawn = sample_polyas(Fraction(1, 4), Fraction(1, 50), 2 * CELLS, bits)
    return drawn[0] - drawn[CELLS]


def former_cells(bits: RandomBits) -> int:
    """Draw former shares one after the other; the clock guesses the first cell's noise."""
    drawn = [former_share(4, Fraction(1, 50), bits) for _ in range(CELLS)]
    return drawn[0]


def pair_noise(_: RandomBits) -> int:
    """Noise that two nodes of `gopa` draw alike, from a stream of a fresh seed."""
    return DiscreteGaussian(Fraction(10**6)).draw(random_bits(Stream(secrets.token_bytes(16))))


ROWS = (
    Row(
        "u-mpc: share of 1/16, scale 1000",
        DistributedLaplace(Fraction(1), 1000, 32, 16).draw,
        partial(former_share, 16, Fraction(1, 1000)),
        1,
    ),
    Row(
        "u-mpc: share of 1/2, scale 2^20",
        DistributedLaplace(Fraction(1), 2**20, 4, 2).draw,
        partial(former_share, 2, Fraction(1, 2**20)),
        0.1,
    ),
    Row(
        "u-mpc: skellam share, variance 10",
        SkellamShare(Fraction(10), 2, 1).draw,
        partial(reject_skellam, Fraction(10)),
        1,
    ),
    Row(
        "u-mpc: skellam share, variance 10^6",
        SkellamShare(Fraction(10**6), 2, 1).draw,
        partial(reject_skellam, Fraction(10**6)),
        0.1,
    ),
    Row(
        "gopa: own noise, parameter 4",
        DiscreteGaussian(Fraction(4)).draw,
        partial(reject_gaussian, Fraction(4)),
        0.1,
    ),
    Row(
        "gopa: noise of a pair, parameter 10^6",
        pair_noise,
        partial(reject_gaussian, Fraction(10**6)),
        0.1,
    ),
    Row("ghazi-shuffle: 100 cells, scale 50", cells, former_cells, 0.02),
)


def measure(draw: Draw, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of so many draws, in seconds, and their magnitudes."""
    times, sizes = [], []
    gc.collect()
    gc.disable()
    try:
        for _ in repeat(None, count + count // 3):
            begun = time.thread_time_ns()
            value = draw(secrets.randbits)
            times.append(time.thread_time_ns() - begun)
            sizes.append(abs(value))
    finally:
        gc.enable()
    sizes_seen = np.array([float(size) for size in sizes[-count:]])
    return np.array(times[-count:]) / 1e9, sizes_seen


def auc(times: np.ndarray, event: np.ndarray) -> float | None:
    """Return the chance that a draw with the event took longer than one without; None if rare."""
    here, there = times[event], times[~event]
    if min(len(here), len(there)) < 20:
        return None
    return float(stats.mannwhitneyu(here, there).statistic) / (len(here) * len(there))


def guesses(draw: Draw, count: int) -> tuple[str, str, str, float]:
    """Return both AUCs, their uncertainty, and the median time in milliseconds."""
    draw(secrets.randbits)
    times, sizes = measure(draw, count)
    zero = auc(times, sizes == 0)
    large = auc(times, sizes > np.median(sizes))
    least = max(20, min((sizes == 0).sum(), (sizes > 0).sum()))
    texts = ["-" if value is None else f"{value:.3f}" for value in (zero, large)]
    return texts[0], texts[1], f"{1 / (6 * least) ** 0.5:.3f}", 1e3 * float(np.median(times))


def aucs(sessions: int, chosen: Sequence[Row]) -> None:
    """Print what the clock guesses, now and with the former draws."""
    rows = []
    for row in chosen:
        count = max(100, int(sessions * row.part))
        zero, large, error, milliseconds = guesses(row.draw, count)
        before = guesses(row.former, max(100, count // 5))
        rows.append(
            (row.name, str(count), zero, large, error, f"{milliseconds:.2f}", before[0], before[1])
        )
    head = ("law", "draws", "[= 0]", "[> median]", "+-", "ms", "former [= 0]", "[> median]")
    show("AUC of guessing the noise from the time of its draw", head, rows)


def costs() -> None:
    """Print milliseconds of the first draw of a law, which makes its tables, and of later ones."""
    rows = []
    for name, scale in SCALES.items():
        shown = [name]
        for law in (
            DistributedLaplace(Fraction(1), scale, 2, 1),
            DistributedLaplace(Fraction(1), scale, 32, 16),
            SkellamShare(Fraction(scale) ** 2, 2, 1),
            DiscreteGaussian(Fraction(scale) ** 2),
        ):
            first, _ = measure(law.draw, 1)
            later, _ = measure(law.draw, 30)
            shown.append(f"{1e3 * float(first[0]):.1f} / {1e3 * float(np.median(later)):.2f}")
        rows.append(tuple(shown))
    head = ("scale", "share of 1", "share of 1/16", "skellam", "gaussian")
    show("Milliseconds of the first draw of a law / of a later one", head, rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.timing", description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--rows", type=int, nargs="*", default=list(range(len(ROWS))))
    parsed = parser.parse_args(arguments)
    aucs(parsed.sessions, [ROWS[number] for number in parsed.rows])
    costs()


if __name__ == "__main__":
    main()
