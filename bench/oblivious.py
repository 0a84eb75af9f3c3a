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
from umpc.mpc.transfers.channel_set_up import open_receiver, open_sender, receive_seeds, send_seeds
from umpc.mpc.transfers.channels import chain_receiver, chain_sender
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender, fresh_delta
from umpc.mpc.transfers.message_shapes import BLOCK_BITS, FOLDS, extension_bytes, multiple_bits
from umpc.mpc.transfers.ot_products import (
    receive_multiples,
    send_multiples,
)

TRANSFERS = 1 << 20
Ends = tuple[CorrelatedSender, CorrelatedReceiver]
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
    """The set-up of a channel: by points, and from a channel that is there."""
    rows = []
    by_points, from_channel = [], []
    for _ in range(RUNS):
        seconds, ends = _set_up(None)
        by_points.append(seconds)
        from_channel.append(_set_up(ends)[0])
    for name, spent in (("by points", by_points), ("from a channel", from_channel)):
        each = [statistics.median(party) for party in zip(*spent, strict=True)]
        rows.append((name, *(f"{1e3 * taken:.1f}" for taken in each)))
    columns = ("set-up of a channel", "sender, ms", "receiver, ms")
    show(f"A set-up's processor time, medians of {RUNS}", columns, rows)


def _set_up(last: Ends | None) -> tuple[list[float], Ends]:
    """Processor seconds of both sides for one set-up, and the channel.

    Args: last: the channel from which it is made; None: by points.
    """
    seeds = [os.urandom(32), os.urandom(32)]
    delta = fresh_delta(os.urandom(32))
    if last is None:
        sender = open_sender(seeds[0], delta, b"bench", "b")
        parties = [sender, open_receiver(seeds[1], b"bench", "a")]
    else:
        sender = chain_sender(last[0], seeds[0], delta, b"bench")
        parties = [sender, chain_receiver(last[1], seeds[1], b"bench", "a")]
    made: list = []
    seconds = seconds_each(parties, made)
    return seconds, tuple(made)


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
    rows = [
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


def seconds_each(protocols: Sequence[Protocol], made: list | None = None) -> list[float]:
    """Processor seconds of each of two parties, without the time that it waits.

    Args: made: gets the results.
    """
    seconds = [0.0] * len(protocols)

    def watched(party: int) -> Protocol:
        reply = None
        while True:
            started = time.process_time()
            try:
                message = protocols[party].send(reply)
            except StopIteration as stop:
                return stop.value
            finally:
                seconds[party] += time.process_time() - started
            reply = yield message

    results, _ = run_in_memory([watched(party) for party in range(len(protocols))])
    if made is not None:
        made += results
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
