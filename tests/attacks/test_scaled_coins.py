"""A committee member that scales the others' bits where bits become numbers.

The first member of a committee sends the number e in a conversion, where its share of a bit is due.
The bit's number is then s + b − 2·e·b, for its own share s and the other's share b. With
e = −2^(k−1) that is s + (1 + 2^k)·b: all the noise that the liar does not know stands in the high
bits of the total once more. The liar and the coordinator subtract it, and read the exact sum.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.support.tossing import Tossed
from umpc.crypto.ring import RINGS
from umpc.crypto.rounds import Mesh, run_mesh
from umpc.dp.committee import CommitteeBinomial, CommitteeLaplace
from umpc.errors import FailedCheck
from umpc.mpc.masked.material import CoinToss
from umpc.mpc.transfers.coins_from_transfers import chosen, drawn_bits, joint_challenge, part_seed
from umpc.mpc.transfers.message_shapes import FACTOR
from umpc.testing import without

LINE = "a committee member scales the others' share of the noise"
LAWS = {
    "in_mpc": CommitteeLaplace(Fraction(1), 40),
    "binomial": CommitteeBinomial(Fraction(1), Fraction(1, 10**6), 2),
}
RING = RINGS[1]
SHIFT = 24
"""k. A sum with its noise is below 2^23."""
RUNS = 8


class ScalingMember:
    """The first of two members, which sends −2^(k−1) in place of each of its shares.

    It tells what it needs for the rest: its own bits, the opened bits and the challenge.
    """

    def __init__(self, tossed: Tossed):
        self.plan = tossed.plan
        self.count = len(self.plan.thresholds)
        self.bits = drawn_bits(part_seed(tossed.seeds[0], 0), FACTOR * self.count)
        self.opened = np.zeros(self.count, dtype=np.uint64)
        self.seeds: list[bytes] = []

    def party(self, honest: Mesh) -> Mesh:
        """Its part in the toss."""
        messages = next(honest)
        for number in range(1, self.plan.rounds + 1):
            if number == 2:  # the corrections of the checked bits end the message
                messages = {1: self._scaled(messages[1])}
            came = yield messages
            self._look(number, messages, came)
            try:
                messages = honest.send(came)
            except StopIteration as stop:
                return stop.value
        raise AssertionError("the toss goes on after its last round")

    def _scaled(self, message):
        size = 8 * len(self.bits)
        words = np.frombuffer(message.payload[-size:], dtype="<u8")
        lie = np.uint64(2**64 - 2 ** (SHIFT - 1))
        changed = (words + lie - self.bits) & np.uint64(2**63 - 1)
        return type(message)(
            message.step,
            message.payload[:-size] + changed.astype("<u8").tobytes(),
            message.count,
            message.width,
            message.round,
        )

    def _look(self, number, sent, came) -> None:
        if number == 3:  # the challenges end both messages
            self.seeds = [each.payload[-32:] for each in (sent[1], came[1])]
        if number == self.plan.rounds:
            for each in (sent[1], came[1]):
                bits = np.frombuffer(each.payload, dtype=np.uint8)
                self.opened ^= np.unpackbits(bits, count=self.count, bitorder="little")

    def exact(self, released: int) -> int:
        """The sum without noise, as the liar and the coordinator compute it."""
        (toss,) = self.plan.tosses
        own = self.bits[chosen(joint_challenge(self.seeds), self.count)[0]]
        known = sum(
            weight * int(d + (1 - 2 * d) * s)
            for weight, d, s in zip(toss.weights, self.opened.astype(int), own, strict=True)
        )
        rest = released + toss.offset - known
        unknown = (rest + 2 ** (SHIFT - 1)) >> SHIFT
        return rest - (1 + 2**SHIFT) * unknown


def attacked(law: str, run: int) -> tuple[int, int]:
    """The exact sum, and what the liar reads of it."""
    noise = LAWS[law]
    tossed = Tossed(
        f"scaled {law} {run}", 2, [CoinToss(noise.thresholds, noise.weights, noise.offset)]
    )
    liar = ScalingMember(tossed)
    first, second = tossed.parties()
    (mine, theirs), _ = run_mesh([liar.party(first), second])
    exact = 1000 + run
    released = RING.decode(exact + mine[0] + theirs[0] - noise.offset)
    return exact, liar.exact(released)


@pytest.mark.attack(LINE, "honest", "noticed: no number of the noise is scaled")
@pytest.mark.parametrize("law", LAWS)
def test_a_scaled_share_ends_the_study(law):
    for run in range(RUNS):
        with pytest.raises(FailedCheck):
            attacked(law, run)


@pytest.mark.parametrize("law", LAWS)
def test_without_the_check_the_liar_reads_the_exact_sum(law):
    """The power of the test above: the attack works in every run, at ε = 1."""
    with without("numbers of coins are bits"):
        found = [attacked(law, run) for run in range(RUNS)]
    assert [exact for exact, _ in found] == [read for _, read in found]
