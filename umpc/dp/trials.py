"""Rejection in a fixed number of trials: every draw makes all of them.

A trial proposes a value and accepts it with certain odds. The first value accepted is the answer.
To stop there would make the number of trials visible, and with it how dear the accepted one was.
So all trials are made, and the first accepted value is picked by arithmetic, without a branch.

With odds of acceptance a in each trial, none of w is accepted with probability (1-a)^w. `TRIALS`
and `MORE_TRIALS` keep that below 2^-64; then the same number is made again. The law is exact:
trials are independent, and a comparison that 128 bits of the uniform leave open gets more bits and
a sharper ball (probability below 2^-110).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flint import arb

from umpc.dp.fixed_coins import WIDTH, is_below, prefixes_of, random_words, resume
from umpc.dp.random_bits import RandomBits
from umpc.errors import LocalProtocolError

TRIALS = 36
"""Trials where each is accepted with probability 0.72 or more: 0.28^36 < 2^-66."""

MORE_TRIALS = 80
"""Trials where each is accepted with probability 0.45 or more: 0.55^80 < 2^-68."""

MOST_BATCHES = 16
"""Batches of trials that a working source does not get to."""


def first_accepted(
    propose: Callable[[int, RandomBits], list[int]],
    odds: Callable[[int], arb],
    sharper_odds: Callable[[int, int], arb],
    trials: int,
    bits: RandomBits,
) -> int:
    """The first accepted proposal. Secret.

    Args:
        propose: (count, bits) to independent proposals.
        odds: a proposal's odds of acceptance as a ball, in the same steps for every proposal.
        sharper_odds: the same at a given working precision.
        trials: how many are made in any case.
        bits: the source of randomness.

    Raises:
        LocalProtocolError: the source of randomness is broken.
    """
    for _ in range(MOST_BATCHES):
        proposals = propose(trials, bits)
        words = random_words(trials, bits)
        answer, found = 0, 0
        for row, (v, y) in enumerate(zip(prefixes_of(words), proposals, strict=True)):
            number = odds(y)
            certain = bool(arb((v + 1, -WIDTH)) <= number)
            refused = bool(arb((v, -WIDTH)) >= number)
            if certain == refused:
                certain = is_below(resume(words[row : row + 1], bits), partial(sharper_odds, y))
            taken = int(certain) & (1 - found)
            answer += taken * y
            found |= taken
        if found:
            return answer
    raise LocalProtocolError(
        f"expected one of {MOST_BATCHES * trials} proposals to be accepted, none was; a working "
        "source of randomness never does that: check the source, then start again"
    )
