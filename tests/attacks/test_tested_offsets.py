"""A node that tests bits of a peer's Δ by its choices in transfers.

Its first choice of each batch is another one in some digits of Δ than in all others, and its proof
is the best that there is. The peer then computes what depends on the bits of these digits. Without
the check nobody notices, and the coordinator's total shows the liar whether the bits are zero.
Whoever knows all of Δ reads what the transfers mask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.garbled import NO_DEALER, without_points
from tests.support.grid import grid_study, silent
from tests.support.studies import KENDALL, LOUD, Entropy, make_study, random_tables
from tests.support.tossing import Tossed
from tests.support.transfers import lie_in_digits
from umpc.dp.committee import CommitteeLaplace
from umpc.errors import FailedCheck, ImpossibleResult, RemoteProtocolError
from umpc.mpc.masked.material import CoinToss
from umpc.protocols.registry import checked
from umpc.protocols.u_mpc.settings import noisy_sums
from umpc.simulation import simulate
from umpc.testing import lying, without

LINE = "a node tests bits of a peer's secret offset in transfers"
CHECK = "choices are the same in all digits"
COINS = CommitteeLaplace(1, 40)
DIGITS = range(1, 32)
REFUSED = "refused"


def coins(label: str) -> int:
    """The noise of two members: the second one receives. Each label has other numbers."""
    toss = CoinToss(COINS.thresholds, COINS.weights, COINS.offset)
    return Tossed(f"tested {label}", 2, [toss]).run().sums[0]


def study(backend: str) -> Callable[[str], int]:
    """The sum over two nodes without a dealer: one of them receives in all transfers."""

    def total(label: str) -> int:
        if backend == "grid":
            asked = silent(grid_study(KENDALL, 2, preprocessing="none", dealer=None))
        else:
            changes: dict[str, Any] = {**NO_DEALER, "backend": backend, "edges": "all"}
            asked = make_study(KENDALL, 2, epsilon=LOUD, noise="distributed", **changes)
        run = simulate(checked(asked), random_tables([5, 4], "tested"), Entropy(backend))
        return noisy_sums(run.transcript.shares, 1)[0]

    return total


CASES = {"coins": coins, "triples": study("triples"), "grid": study("grid")}
CASES["garbled"] = study("garbled")
LIAR = {"coins": "node-1", "triples": "node-1", "grid": "node-1", "garbled": "node-1"}
"""The grid's node with fewer records chooses; else the later one does."""


def lied(case: str, label: str, *digits: int) -> int | str:
    """The outcome of a run in which one node lies: its total, a refusal, or the liar's name."""
    lie = lie_in_digits(*digits)
    with without_points(), lying("node", extend=lambda honest, *given: lie(*given)):
        try:
            return CASES[case](label)
        except (FailedCheck, ImpossibleResult):
            return REFUSED
        except RemoteProtocolError as error:
            assert error.step in ("ot_extend", "toss", "triples", "coins", "garbled")
            return str(error.culprit)


def honest(case: str, label: str) -> int:
    with without_points():
        return CASES[case](label)


@pytest.mark.attack(LINE, "honest", "noticed with 1 − 2^−c, and named")
@pytest.mark.parametrize("case", CASES)
def test_a_node_that_tests_bits_of_an_offset_is_named_unless_it_guessed_them(case):
    """It is named where the total would tell; the four bits of a digit are rarely all zero."""
    named = 0
    for digit in DIGITS[:: 1 if case == "coins" else 3]:
        label = f"digit {digit}"
        exact = honest(case, label)
        with without(CHECK):
            told = lied(case, label, digit)
        assert told != LIAR[case], "the power of the test: without the check nobody is named"
        assert lied(case, label, digit) == (exact if told == exact else LIAR[case])
        named += told != exact
    tested = len(DIGITS[:: 1 if case == "coins" else 3])
    assert tested // 2 < named <= tested


def test_without_the_check_some_lies_about_coins_change_the_noise_and_nobody_notices():
    """Seven of eight numbers are opened, so the check of numbers finds most lies, and not all."""
    outcomes = []
    with without(CHECK):
        for digit in DIGITS:
            label = f"digit {digit}"
            outcomes.append((lied("coins", label, digit), honest("coins", label)))
    assert REFUSED in {told for told, _ in outcomes}
    assert any(told not in (REFUSED, exact) for told, exact in outcomes)


def test_the_lowest_digit_holds_a_bit_that_is_one_so_whoever_tests_it_is_named():
    assert lied("coins", "lowest", 0) == LIAR["coins"]
