"""Oblivious transfers on one core: base transfers, correlated ones, triples and products.

The tables have rates a second, and bytes. Seconds are those of the processor, so that other work on
the machine does not count.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from bench.table import show
from umpc.crypto.rounds import Protocol, run_in_memory
from umpc.mpc.transfers.base_ot import receive_seeds, send_seeds
from umpc.mpc.transfers.chained_set_up import open_chained_receiver, open_chained_sender
from umpc.mpc.transfers.correlated_ot import (
    BLOCK_BITS,
    FOLDS,
    CorrelatedReceiver,
    CorrelatedSender,
    extension_bytes,
    fresh_delta,
    open_receiver,
    open_sender,
)
from umpc.mpc.transfers.kept_roots import KeptRoots
from umpc.mpc.transfers.ot_products import (
    multiple_bits,
    product_bits,
    receive_multiples,
    receive_products,
    receive_triples,
    send_multiples,
    send_products,
    send_triples,
)

TRANSFERS = 1 << 20
RUNS = 5


def main() -> None:
    base_table()
    set_up_table()
    extension_table()
    product_table()


def base_table() -> None:
    sender, receiver, parties = [], [], ("sender", "receiver")
    for _ in range(RUNS):
        choices = list(np.frombuffer(os.urandom(BLOCK_BITS), dtype=np.uint8) & 1)
        seconds = seconds_each(
            [
                send_seeds(os.urandom(32), BLOCK_BITS, b"bench", "receiver"),
                receive_seeds(os.urandom(32), choices, b"bench", "sender"),
            ]
        )
        sender.append(seconds[0])
        receiver.append(seconds[1])
    rows = [
        (name, f"{statistics.median(each):.3f}")
        for name, each in zip(parties, (sender, receiver), strict=True)
    ]
    show(
        f"{BLOCK_BITS} base oblivious transfers on edwards25519, medians of {RUNS}",
        ("party", "seconds"),
        rows,
    )


def set_up_table() -> None:
    """A garbled link's set-up: by points, and by roots, of which each study leaves the next."""
    rows = []
    for checked in (False, True):
        shelves = [KeptRoots(time.monotonic) for _ in range(2)]
        spent = [_set_up(shelves, str(number), checked=checked) for number in range(RUNS + 1)]
        kind = "checked" if checked else "unchecked"
        rows.append((f"{kind}, by points", *(f"{1e3 * each:.1f}" for each in spent[0])))
        later = [statistics.median(each) for each in zip(*spent[1:], strict=True)]
        rows.append((f"{kind}, from a root", *(f"{1e3 * each:.1f}" for each in later)))
    columns = ("set-up of a garbled link", "garbler, ms", "evaluator, ms")
    show(f"A set-up's processor time; by points once, from roots medians of {RUNS}", columns, rows)


def _set_up(shelves: Sequence[KeptRoots], session: str, *, checked: bool) -> list[float]:
    """Processor seconds of both sides for one set-up, whose roots are kept."""
    roots = [shelf.of(b"own", b"peer", "role") for shelf in shelves]
    delta = fresh_delta(os.urandom(32))
    name = session.encode()
    seconds = seconds_each(
        [
            open_chained_sender(os.urandom(32), delta, name, "b", roots[0], checked=checked),
            open_chained_receiver(os.urandom(32), name, "a", roots[1], checked=checked),
        ]
    )
    for each in roots:
        each.end(keep=True)
    return seconds


def extension_table() -> None:
    rows = []
    for fold in FOLDS:
        sender, receiver = open_channel(fold)
        choices = random_bits(TRANSFERS)
        receiving, sending = [], []
        for _ in range(RUNS):
            started = time.process_time()
            _, message = receiver.extend(choices)
            sent = time.process_time()
            sender.extend(message, TRANSFERS)
            receiving.append(sent - started)
            sending.append(time.process_time() - sent)
        rows.append(
            (
                f"fold {fold}",
                f"{TRANSFERS / statistics.median(sending) / 1e6:.1f}",
                f"{TRANSFERS / statistics.median(receiving) / 1e6:.1f}",
                f"{extension_bytes(TRANSFERS, fold) / TRANSFERS:.0f}",
            )
        )
    columns = ("correlated transfers", "sender, M/s", "receiver, M/s", "bytes each")
    show(f"Correlated oblivious transfers on one core, medians of {RUNS}", columns, rows)


def product_table() -> None:
    ends = open_channel()
    bits, numbers = (
        random_bits(TRANSFERS),
        np.frombuffer(os.urandom(8 * TRANSFERS), dtype=np.uint64),
    )
    few = 1 << 13
    rows = [
        rate_row(
            "bit triples",
            TRANSFERS,
            lambda: [
                send_triples(ends[0], TRANSFERS),
                receive_triples(ends[1], TRANSFERS, os.urandom(32), "sender"),
            ],
            2,
            0,
        ),
        rate_row(
            "number × bit, 64 bits",
            TRANSFERS,
            lambda: [
                send_multiples(ends[0], numbers, 64),
                receive_multiples(ends[1], bits, 64, "sender"),
            ],
            1,
            multiple_bits(64),
        ),
    ]
    for width in (32, 40, 64):
        rows.append(
            rate_row(
                f"number × number, {width} bits",
                few,
                lambda width=width: [
                    send_products(ends[0], numbers[:few], width),
                    receive_products(ends[1], numbers[-few:], width, "sender"),
                ],
                width,
                product_bits(width),
            )
        )
    columns = (
        "made of transfers",
        "sender, k/s",
        "receiver, k/s",
        "bytes to sender",
        "bytes to receiver",
    )
    show(f"Products without a dealer, on one core a party, medians of {RUNS}", columns, rows)


def rate_row(
    name: str, count: int, protocols: Callable[[], list[Protocol]], transfers: int, correction: int
) -> Sequence[str]:
    seconds = [seconds_each(protocols()) for _ in range(RUNS)]
    rates = [count / statistics.median(each) / 1e3 for each in zip(*seconds, strict=True)]
    asked = extension_bytes(count * transfers) / count
    return (name, *(f"{rate:.0f}" for rate in rates), f"{asked:.0f}", f"{correction / 8:.0f}")


def seconds_each(protocols: Sequence[Protocol]) -> list[float]:
    """Processor seconds of each of two parties, without the time that it waits."""
    seconds = [0.0] * len(protocols)

    def watched(party: int) -> Protocol:
        reply = None
        while True:
            started = time.process_time()
            try:
                message = protocols[party].send(reply)
            except StopIteration:
                return
            finally:
                seconds[party] += time.process_time() - started
            reply = yield message

    run_in_memory([watched(party) for party in range(len(protocols))])
    return seconds


def open_channel(fold: int = 4) -> tuple[CorrelatedSender, CorrelatedReceiver]:
    sides = [
        open_sender(os.urandom(32), fresh_delta(os.urandom(32)), b"bench", "receiver", fold),
        open_receiver(os.urandom(32), b"bench", "sender", fold),
    ]
    return tuple(run_in_memory(sides)[0])


def random_bits(count: int) -> np.ndarray:
    return np.frombuffer(os.urandom(count), dtype=np.uint8) & 1


if __name__ == "__main__":
    main()
