"""Shared by the tests of tossed coins: seats with channels without curve points, and tosses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np

from tests.support.garbled import without_points
from tests.support.mpc_studies import seed_of
from tests.support.transfers import Change, open_channel
from umpc.crypto.ring import RINGS, Ring
from umpc.crypto.rounds import Mesh, MeshLine, Message, run_mesh
from umpc.mpc.masked.material import CoinToss
from umpc.mpc.transfers.channels import CommitteeMember
from umpc.mpc.transfers.coins_from_transfers import chosen, drawn_numbers, joint_challenge, toss
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.mpc.transfers.message_shapes import TossPlan


@cache
def _channels(members: int) -> dict:
    with without_points():
        return {(i, j): open_channel(f"toss {i} {j}") for i, j in combinations(range(members), 2)}


def seats(members: int, label: str) -> list[CommitteeMember]:
    """Seats of members that never met before: every label has forks of its own."""
    names = [f"node-{number}" for number in range(members)]
    senders: list[dict[int, CorrelatedSender]] = [{} for _ in names]
    receivers: list[dict[int, CorrelatedReceiver]] = [{} for _ in names]
    for (i, j), (sender, receiver) in _channels(members).items():
        senders[i][j] = sender.fork(label)
        senders[i][j].peer = names[j]
        receivers[j][i] = receiver.fork(label)
    return [
        CommitteeMember(number, names, senders[number], receivers[number])
        for number in range(members)
    ]


class Tossed:
    """Coins of these sums, tossed by some members, whose numbers may be given."""

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
        """The noise, put together."""
        return [self.plan.ring.decode(sum(shares)) for shares in zip(*self.shares, strict=True)]

    @property
    def numbers(self) -> np.ndarray:
        """u, which nobody knows."""
        return np.bitwise_xor.reduce(
            [drawn_numbers(seed, len(self.plan.thresholds)) for seed in self.seeds]
        )

    @property
    def coins(self) -> np.ndarray:
        """In the clear, from all members' random numbers."""
        return (self.numbers < self.plan.thresholds).astype(np.int64)

    def parts(self, line: MeshLine) -> dict[str, bytes]:
        """The parts of a message of the first range of coins."""
        return parts_of(self.plan, line)

    @property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """The places of the checked bits that serve coins, and of those that were opened."""
        told = {
            line.sender: part["challenge"]
            for line in self.told
            if "challenge" in (part := self.parts(line))
        }
        challenge = joint_challenge([told[member] for member in sorted(told)])
        return chosen(challenge, len(self.plan.thresholds))

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


CHECKS = "commitment", "challenge", "second commitment", "opened"
"""The four messages of the check of numbers."""


def parts_of(plan: TossPlan, line: MeshLine) -> dict[str, bytes]:
    """The parts of a message of the first range of coins: compared, converted, one of CHECKS."""
    pair, number = (line.sender, line.receiver), line.round - 1
    compared, checked = plan.together(0, *pair)
    converted, (commitment,) = plan.converted(0, *pair)
    due: dict[str, Message] = {}
    if number == max(len(compared), len(checked)):
        return {"coins": line.message.payload}
    if number < len(compared):
        due["compared"] = compared[number]
    if number < len(converted):
        due["converted"] = converted[number]
    elif number < len(checked):
        due[CHECKS[number - len(converted) + 1]] = checked[number]
    if number == 0:
        due["commitment"] = commitment
    parts, start = {}, 0
    for name, shape in due.items():
        if shape.width:
            parts[name] = line.message.payload[start : start + len(shape.payload)]
            start += len(shape.payload)
    assert start == len(line.message.payload)
    return parts


def altered_part(
    plan: TossPlan,
    liar: int,
    party: Mesh,
    name: str,
    change: Callable[[int, bytes], bytes],
) -> Mesh:
    """A member whose part of this name is changed on the way. Args: change: of receiver, part."""
    came: Mapping[int, Message] | None = None
    number = 0
    while True:
        try:
            messages = party.send(came)
        except StopIteration as stop:
            return stop.value
        number += 1
        changed = {}
        for to, said in messages.items():
            parts = parts_of(plan, MeshLine(number, liar, to, said))
            if name in parts:
                parts[name] = change(to, parts[name])
            changed[to] = replace(said, payload=b"".join(parts.values()))
        came = yield changed


def altered_mesh(party: Mesh, step: str, change: Change) -> Mesh:
    """A party whose messages of one step are changed on the way; None: they do not arrive."""
    came = None
    while True:
        try:
            messages = party.send(came)
        except StopIteration as stop:
            return stop.value
        changed = {to: change(said) if said.step == step else said for to, said in messages.items()}
        came = yield {to: said for to, said in changed.items() if said is not None}
