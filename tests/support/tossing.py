"""Shared by the tests of tossed coins: seats with channels without points, and whole tosses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations

import numpy as np

from tests.support.garbled import without_points
from tests.support.mpc_studies import seed_of
from tests.support.transfers import Change, open_channel
from umpc.crypto.mesh import Mesh, run_mesh
from umpc.crypto.ring import RINGS, Ring
from umpc.mpc.masked.committee_coins import CoinToss
from umpc.mpc.transfers.coins_from_transfers import CommitteeMember, TossPlan, drawn_numbers, toss


@cache
def _channels(members: int) -> dict:
    with without_points():
        return {(i, j): open_channel(f"toss {i} {j}") for i, j in combinations(range(members), 2)}


def seats(members: int, label: str) -> list[CommitteeMember]:
    """Return seats of members that never met before: every label has its own forks."""
    ends, names = [{} for _ in range(members)], [f"node-{number}" for number in range(members)]
    for (i, j), (sender, receiver) in _channels(members).items():
        ends[i][j], ends[j][i] = sender.fork(label), receiver.fork(label)
        ends[i][j].peer = names[j]
    return [CommitteeMember(number, names, own) for number, own in enumerate(ends)]


class Tossed:
    """The coins of these sums, tossed by some members, whose numbers may be given."""

    def __init__(self, label: str, members: int, sums: Sequence[CoinToss], ring: Ring = RINGS[1]):
        self.plan = TossPlan(members, ring, tuple(sums))
        self.seeds = [seed_of(f"{label} {number}") for number in range(members)]
        self.seats = seats(members, label)

    def parties(self) -> list[Mesh[list[int]]]:
        return [
            toss(self.plan, seat, seed) for seat, seed in zip(self.seats, self.seeds, strict=True)
        ]

    def run(self) -> Tossed:
        self.shares, self.told = run_mesh(self.parties())
        return self

    @property
    def sums(self) -> list[int]:
        """Return the noise, added up from all shares."""
        return [self.plan.ring.decode(sum(shares)) for shares in zip(*self.shares, strict=True)]

    @property
    def numbers(self) -> np.ndarray:
        """Return u, which no party knows."""
        return np.bitwise_xor.reduce(
            [drawn_numbers(seed, len(self.plan.thresholds)) for seed in self.seeds]
        )

    @property
    def coins(self) -> np.ndarray:
        """Return the coins in the clear, from all members' random numbers."""
        return (self.numbers < self.plan.thresholds).astype(np.int64)

    @property
    def expected(self) -> list[int]:
        starts = np.cumsum([0, *(each.count for each in self.plan.tosses)])
        return [
            sum(
                weight * int(coin)
                for weight, coin in zip(each.weights, self.coins[start:], strict=False)
            )
            for each, start in zip(self.plan.tosses, starts, strict=False)
        ]


def altered_mesh(party: Mesh, step: str, change: Change) -> Mesh:
    """Run a party whose message of one step is changed on the way; None drops it."""
    came = None
    while True:
        try:
            messages = party.send(came)
        except StopIteration as stop:
            return stop.value
        changed = {to: change(said) if said.step == step else said for to, said in messages.items()}
        came = yield {to: said for to, said in changed.items() if said is not None}
