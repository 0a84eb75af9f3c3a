"""Which ε and δ a ledger takes, and how it says that too little of one is left.

Nothing here touches a file. Amounts are exact fractions of numbers of bounded size: no study can bloat the ledger.
"""

from __future__ import annotations

import math
from fractions import Fraction

from umpc.errors import InsufficientBudget, InvalidEpsilon, LedgerError
from umpc.node.budget.budget_account import Balance

BITS = 128
"""An amount's numerator and denominator have at most so many bits."""
DELTA_BITS = 120
"""A study's δ is rounded up to a multiple of 2^-DELTA_BITS."""
DEFAULT_DELTA = Fraction(1, 10**9)
"""For all studies of a data set together, where [budget] says nothing."""
INSTEAD = {
    "epsilon": "Ask for at most what is left, wait until open studies end,",
    "delta": 'Ask with noise = "distributed" (of noisy pairs "randomised_response"), which costs no delta, wait until '
    "open studies end,",
}


def exact_delta(delta: Fraction) -> Fraction:
    """A study's δ as the ledger charges it: itself, or up to the next multiple of 2^-DELTA_BITS if it is too long."""
    if not 0 <= delta <= 1:
        raise LedgerError(
            f"a study's delta was expected between 0 and 1, and {delta!r} came. This is a fault; report it"
        )
    return (
        Fraction(math.ceil(delta * 2**DELTA_BITS), 2**DELTA_BITS)
        if _too_long(delta)
        else Fraction(delta)
    )


def check_epsilon(epsilon: Fraction) -> None:
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise InvalidEpsilon(
            f"epsilon was expected to be an exact fraction above 0, and {epsilon!r} came. "
            f"Correct epsilon in the study, or under [budget]"
        )
    if _too_long(epsilon):
        raise InvalidEpsilon(
            f"epsilon was expected as a fraction of numbers of at most {BITS} bits. "
            f"Round epsilon in the study, or under [budget]"
        )


def check_delta(delta: Fraction) -> None:
    if not isinstance(delta, Fraction) or delta < 0 or _too_long(delta):
        raise LedgerError(
            f"delta was expected to be an exact fraction, 0 or more, of numbers of at most {BITS} bits, and {delta!r} "
            "came. Correct delta under [budget]"
        )


def _too_long(amount: Fraction) -> bool:
    return max(amount.numerator.bit_length(), amount.denominator.bit_length()) > BITS


def shown(amount: Fraction) -> str:
    """Exact while a person can read it: sums of many fractions grow long."""
    return str(amount) if amount.denominator < 10**6 else f"about {float(amount):.6g}"


def insufficient(dataset: str, what: str, balance: Balance, asked: Fraction) -> InsufficientBudget:
    """Args: what: "epsilon" or "delta", whichever does not suffice."""
    error = InsufficientBudget(
        f"data set {dataset!r}: the study asks for {what} {shown(asked)}, and {shown(balance.left)} is left "
        f"of {shown(balance.total)} (spent {shown(balance.spent)}, reserved {shown(balance.reserved)}). "
        f"{INSTEAD[what]} or have the site's administrator raise {what} under [budget]"
    )
    error.spent, error.reserved = balance.spent, balance.reserved
    error.left, error.asked = balance.left, asked
    return error
