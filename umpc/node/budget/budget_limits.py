"""The ε and δ that a ledger accepts, and its refusal when too little is left.

Nothing here touches a file. Amounts are exact fractions of numbers of bounded size, so that no
study can bloat the ledger.
"""

from __future__ import annotations

import math
from fractions import Fraction

from umpc.dp.composition import BASIC
from umpc.errors import InsufficientBudget, InvalidEpsilon, LedgerError
from umpc.node.budget.budget_account import Balance

BITS = 128
"""Largest number of bits of an amount's numerator and denominator."""
DELTA_BITS = 120
"""A study's δ is rounded up to a multiple of 2^-DELTA_BITS."""
DEFAULT_DELTA = Fraction(1, 10**9)
"""Total δ for all studies of a data set, if [budget] names none."""
DEFAULT_HOLD_SECONDS = 86_400.0
"""How long a run, and then its finished attempt, may reserve budget, if [budget] says nothing."""
INSTEAD = {
    "epsilon": "Ask for less, wait until open studies end,",
    "delta": 'Ask with noise = "distributed" (of noisy pairs "randomised_response"), which costs '
    "no delta, wait until open studies end,",
}
"""Advice to a coordinator when too little of an amount is left."""


def exact_delta(delta: Fraction) -> Fraction:
    """Return a study's δ as the ledger charges it.

    A δ that is too long is rounded up to the next multiple of 2^-DELTA_BITS.

    Raises: LedgerError unless 0 <= δ <= 1.
    """
    if not 0 <= delta <= 1:
        raise LedgerError(
            f"a study's delta was expected between 0 and 1, and {delta!r} came. "
            "This is a fault; report it"
        )
    if _too_long(delta):
        return Fraction(math.ceil(delta * 2**DELTA_BITS), 2**DELTA_BITS)
    return Fraction(delta)


def check_epsilon(epsilon: Fraction) -> None:
    """Check that ε is an exact fraction above 0 of bounded size. Raises: InvalidEpsilon."""
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise InvalidEpsilon(
            f"epsilon was expected to be an exact fraction above 0, and {epsilon!r} came. "
            "Correct epsilon in the study, or under [budget]"
        )
    if _too_long(epsilon):
        raise InvalidEpsilon(
            f"epsilon was expected as a fraction of numbers of at most {BITS} bits. "
            "Round epsilon in the study, or under [budget]"
        )


def check_delta(delta: Fraction) -> None:
    """Check that δ is an exact fraction, 0 or more, of bounded size. Raises: LedgerError."""
    if not isinstance(delta, Fraction) or delta < 0 or _too_long(delta):
        raise LedgerError(
            "delta was expected to be an exact fraction, 0 or more, of numbers of at most "
            f"{BITS} bits, and {delta!r} came. Correct delta under [budget]"
        )


def _too_long(amount: Fraction) -> bool:
    return max(amount.numerator.bit_length(), amount.denominator.bit_length()) > BITS


def shown(amount: Fraction) -> str:
    """Return an amount for people: exact if it is short, else to 6 digits.

    Sums of many fractions grow long.
    """
    return str(amount) if amount.denominator < 10**6 else f"about {float(amount):.6g}"


def insufficient(
    dataset: str, amount: str, balance: Balance, asked: Fraction, composition: str = BASIC
) -> InsufficientBudget:
    """Return the refusal of a study. Args: amount: "epsilon" or "delta", the one that lacks.

    The coordinator reads only that the site's budget is not enough. The balance is for the site's
    administrator.
    """
    error = InsufficientBudget(
        f"the study asks for {amount} {shown(asked)}, and the site's budget has less left. "
        f"{INSTEAD[amount]} or have the site's administrator raise {amount} under [budget]",
        detail=f"data set {dataset!r}: the study asks for {amount} {shown(asked)}, and "
        f"{shown(balance.left)} is left of {shown(balance.total)} (spent {shown(balance.spent)}, "
        f"reserved {shown(balance.reserved)}"
        f"{'' if composition == BASIC else f', all composed by {composition}'})",
    )
    error.spent = balance.spent
    error.reserved = balance.reserved
    error.left = balance.left
    error.asked = asked
    return error
