"""Studies whose committee tosses coins: exact sums plus the coins' sum, at the predicted cost."""

from __future__ import annotations

import numpy as np

from tests.protocols.u_mpc.test_library import check_cost
from tests.support.studies import (
    Entropy,
    clear_sums,
    random_tables,
)
from umpc.crypto.prg import derive
from umpc.mpc.backends import predict
from umpc.mpc.transfers.coins_from_transfers import drawn_numbers
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import Simulated, simulate

SET_UP = {"ot_offer", "ot_choice", "ot_trees"}
STEPS = SET_UP | {"ot_open_bits", "ot_multiples", "toss"}
"""The steps of the transfers that toss coins."""
SPLITS = {
    "two": [5, 4],
    "one has no records": [4, 0, 3],
    "five": [2, 1, 1, 2, 1],
    "all records at one": [6, 0, 0],
}
"""Records of each node."""


def steps_of(members: int) -> set[str]:
    """The steps that a committee's messages show: two members send no correction alone."""
    return STEPS - {"ot_multiples"} if members == 2 else STEPS


def noise_in_the_clear(run: Simulated) -> list[int]:
    """Each sum's noise: the coins that all members' random numbers make, which a test alone
    puts together.
    """
    attempt = run.attempt
    seeds = [derive(run.nodes[node].coin_seed, "toss") for node in attempt.committee]
    thresholds = [np.array(coins.thresholds, dtype=np.uint64) for coins in attempt.coins]
    u = np.bitwise_xor.reduce([drawn_numbers(seed, sum(map(len, thresholds))) for seed in seeds])
    sums, start = [], 0
    for coins, odds in zip(attempt.coins, thresholds, strict=True):
        fell = u[start : start + coins.count] < odds
        sums.append(
            sum(weight for weight, one in zip(coins.weights, fell, strict=True) if one)
            - coins.offset
        )
        start += coins.count
    return sums


def check(study, counts, label) -> Simulated:
    """The released sums are the exact ones plus the coins, to the unit; costs are the predicted
    ones.
    """
    tables = random_tables(counts, label, classes=study.two_sample)
    for number, one in enumerate(tables if study.two_sample else ()):
        one["label"][:1] = number % 2
    run = simulate(study, tables, Entropy(label))
    exact = clear_sums(study, tables, run.attempt.hypergraph)
    released = noisy_sums(run.transcript.shares, len(study.kernels))
    assert [a - b for a, b in zip(released, exact, strict=True)] == noise_in_the_clear(run), label
    check_cost(run)
    cost = predict(run.attempt)
    assert (cost.bytes_offline, cost.bytes_online) == (
        run.report.bytes_offline,
        run.report.bytes_online,
    )
    return run
