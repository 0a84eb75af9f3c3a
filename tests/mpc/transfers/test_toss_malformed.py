"""A wrong message ends the toss with the member's name and the step, or is harmless."""

from __future__ import annotations

import pytest

from tests.support.tossing import Tossed, altered_mesh
from tests.support.transfers import WRONG_SHAPES, count_outcomes, due_outcomes
from umpc.crypto.rounds import run_mesh
from umpc.errors import RemoteProtocolError
from umpc.mpc.masked.material import CoinToss

LIARS = {"toss": 2, "ot_multiples": 0, "ot_open_bits": 1}
"""For each step, one of three members that speaks in it."""
COINS = CoinToss((2**63 - 1, 3 << 60, 2**20), (1, 2, -4))


def tossed_by_a_liar(step: str, change, liar: int) -> list[list[int]]:
    tossed = Tossed(f"liar {step} {liar}", 3, [COINS])
    parties = tossed.parties()
    parties[liar] = altered_mesh(parties[liar], step, change)
    return run_mesh(parties)[0]


def test_an_honest_toss_is_not_refused():
    assert tossed_by_a_liar("toss", lambda message: message, 2)


@pytest.mark.parametrize("shape", [*WRONG_SHAPES, "no message"])
@pytest.mark.parametrize("step", LIARS)
def test_a_message_of_another_shape_names_its_sender(step, shape):
    with pytest.raises(RemoteProtocolError) as caught:
        tossed_by_a_liar(step, WRONG_SHAPES.get(shape, lambda message: None), LIARS[step])
    # What does not come is missed first by the first protocol that the message joins.
    missed = "ot_extend" if (step, shape) == ("toss", "no message") else step
    assert (caught.value.culprit, caught.value.step) == (f"node-{LIARS[step]}", missed)


def test_who_speaks_in_anothers_turn_is_named():
    """The later member extends; an earlier one that does so in the same round is refused."""
    tossed = Tossed("turn", 2, [COINS])
    parties = tossed.parties()
    sent = [next(party) for party in parties]
    assert len(sent[0][1].payload) == 32 < len(sent[1][0].payload)
    with pytest.raises(RemoteProtocolError) as caught:
        parties[1].send({0: sent[1][0]})
    assert (caught.value.culprit, caught.value.step) == ("node-0", "toss")


@pytest.mark.parametrize("step", LIARS)
def test_a_damaged_message_is_noticed_or_gives_other_shares(step):
    """A cut is always noticed. A flipped bit is in no shape: it breaks a commitment or a proof of
    choices, or turns a coin.
    """

    def are_shares(change) -> bool:
        shares = tossed_by_a_liar(step, change, LIARS[step])
        return all(0 <= share < 1 << 64 for member in shares for share in member)

    steps = ("toss", "ot_extend") if step == "toss" else (step,)
    outcomes = count_outcomes(2, are_shares, f"node-{LIARS[step]}", *steps)
    assert outcomes == due_outcomes(2, flips="noticed" if step == "toss" else "harmless")
