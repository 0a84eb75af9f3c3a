"""Measure how much a clock learns about noise: `python -m bench.timing`.

**Sessions** (`--sessions 10000`): the times of all messages of whole sessions, as the coordinator
and a peer see them (`timed_sessions.py`). The watched node draws a share of 1/16 of noise of scale
1000, so that 0 is frequent. The table has the AUC of guessing [noise = 0] and [|noise| > its
median] from each time alone, by two clocks, and from all times of both clocks together
(`guessing.py`). The second table has the former draw in the same sessions. It shows that the
measurement would notice a leak. 12,000 sessions take about 20 minutes on a busy machine.

**Draws** (`--draws 10000`): a clock stands right before and right after a node's own draw. It
counts the processor time of the drawing thread, so that other work on the machine does not hide a
leak. The last columns are the former draw of the same law. `--rows 0 2` measures only these laws,
in the order of `ROWS`. Only the first rows take all draws. A third of the draws comes first without
being counted: processors change their pace.

With n events an AUC is uncertain by about 1/sqrt(6 n), so 10,000 resolve 0.02, and fewer do not.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import repeat
from pathlib import Path

import numpy as np

from bench.guessing import auc, combined, standard_error
from bench.table import show
from bench.timed_sessions import Session, drawing, read_once, small_study
from reproduction.baselines.inversion import invert_polya
from reproduction.baselines.rejection import reject_gaussian, reject_skellam
from umpc.crypto.prg import Stream
from umpc.dp.calibration import DistributedLaplace
from umpc.dp.distributed_gaussian import DiscreteGaussian
from umpc.dp.polya import sample_polyas
from umpc.dp.random_bits import RandomBits
from umpc.dp.skellam import SkellamShare
from umpc_papers.gopa.node import random_bits

Draw = Callable[[RandomBits], int]

SCALES = {"1": 1, "10^3": 10**3, "10^6": 10**6, "10^9": 10**9, "2^50": 2**50}
CELLS = 100


@dataclass(frozen=True)
class Row:
    """One law: how it is drawn, how it was drawn before, and its part of the draws."""

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


def guesses(draw: Draw, count: int) -> tuple[str, str, str, float]:
    """Return both AUCs, their uncertainty, and the median time in milliseconds."""
    draw(secrets.randbits)
    times, sizes = measure(draw, count)
    zero = auc(times, sizes == 0)
    large = auc(times, sizes > np.median(sizes))
    least = max(20, min((sizes == 0).sum(), (sizes > 0).sum()))
    texts = ["-" if value is None else f"{value:.3f}" for value in (zero, large)]
    return texts[0], texts[1], f"{1 / (6 * least) ** 0.5:.3f}", 1e3 * float(np.median(times))


def aucs(draws: int, chosen: Sequence[Row]) -> None:
    """Print what the clock guesses, now and with the former draws."""
    rows = []
    for row in chosen:
        count = max(100, int(draws * row.part))
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


SHARE = DistributedLaplace(Fraction(1), 1000, 32, 16)
"""The noise of the watched node. Its own study has too few nodes for shares of 1/16."""
UNCOUNTED = 50
"""Sessions that come first: processors change their pace, and tables of the law are made."""
COLLECT = 50
"""Sessions between two collections of garbage. None runs within a session."""
CLOCKS = ("wall", "cpu")


async def timed(draw: Draw, count: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Run so many sessions.

    Returns: name of a time → (count, 2) nanoseconds by both clocks; and the watched node's noise.
    """
    study = small_study()
    found: list[dict[str, tuple[int, int]]] = []
    noise: list[float] = []
    gc.collect()
    gc.disable()
    try:
        with drawing(draw) as drawn, read_once(study):
            for number in range(count + UNCOUNTED):
                session = Session(study)
                await session.run()
                found.append(session.times)
                noise.append(float(drawn[-1]))  # the watched node is asked last
                if number % COLLECT == COLLECT - 1:
                    gc.collect()
    finally:
        gc.enable()
    counted = found[UNCOUNTED:]
    times = {name: np.array([each[name] for each in counted], float) for name in counted[0]}
    return times, np.array(noise[UNCOUNTED:])


def sessions(title: str, draw: Draw, count: int, folder: Path | None) -> None:
    """Run sessions, and print what their times tell.

    Args: folder: keeps all times. Sessions whose times are there already are not run again.
    """
    kept = folder / f"{title}, {count}.npz" if folder is not None else None
    if kept is not None and kept.exists():
        with np.load(kept) as file:
            found = dict(file)
        report(title, found, found.pop("noise"), float(found.pop("seconds")))
        return
    started = time.perf_counter()
    times, noise = asyncio.run(timed(draw, count))
    seconds = time.perf_counter() - started
    if kept is not None:
        np.savez_compressed(kept, noise=noise, seconds=seconds, **times)
    report(title, times, noise, seconds)


def report(title: str, times: dict[str, np.ndarray], noise: np.ndarray, seconds: float) -> None:
    """Print what the times of sessions tell about their noise."""
    sizes = np.abs(noise)
    events = {"[= 0]": sizes == 0, "[> median]": sizes > np.median(sizes)}
    rows = [session_row(name, values, events) for name, values in times.items()]
    everything = np.concatenate(list(times.values()), axis=1)
    together = {name: combined(everything, event) for name, event in events.items()}
    for model in next(iter(together.values())):
        values = [shown(found[model]) for found in together.values()]
        rows.append((f"all, {model}", values[0], "", values[1], "", ""))
    errors = [f"{standard_error(event):.4f}" for event in events.values()]
    rows.append(("standard error", errors[0], errors[0], errors[1], errors[1], ""))
    guessed = [f"{name} {clock}" for name in events for clock in CLOCKS]
    show(
        f"{title}: {len(noise)} sessions in {seconds:.0f} s; the noise is 0 in "
        f"{np.mean(sizes == 0):.0%}, its median is {np.median(sizes):.0f}",
        ("AUC by the time of", *guessed, "ms"),
        rows,
    )


def session_row(
    name: str, values: np.ndarray, events: dict[str, np.ndarray]
) -> tuple[str, str, str, str, str, str]:
    """Return one time's AUCs for both guesses by both clocks, and its median in milliseconds."""
    cells = [shown(auc(values[:, clock], event)) for event in events.values() for clock in (0, 1)]
    return (name, cells[0], cells[1], cells[2], cells[3], f"{np.median(values[:, 0]) / 1e6:.2f}")


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.timing", description=__doc__)
    parser.add_argument("--sessions", type=int, help="whole sessions; only these are timed")
    parser.add_argument("--folder", type=Path, help="keeps all times of sessions, or has them")
    parser.add_argument("--draws", type=int, help="draws of a law; only these are timed")
    parser.add_argument("--rows", type=int, nargs="*", default=list(range(len(ROWS))))
    parsed = parser.parse_args(arguments)
    both = parsed.sessions is None and parsed.draws is None
    if parsed.sessions or both:
        count = parsed.sessions or 10_000
        former = partial(former_share, 16, Fraction(1, 1000))
        sessions("Present draw", SHARE.draw, count, parsed.folder)
        sessions("Former draw", former, count // 5, parsed.folder)
    if parsed.draws or both:
        aucs(parsed.draws or 10_000, [ROWS[number] for number in parsed.rows])
        costs()


if __name__ == "__main__":
    main()
