"""The public facts of a committee's coins without a dealer: ranges, levels, and all messages.

`coins_from_transfers.py` says how the coins are tossed, and `checked_bits.py` how the bits are made
that turn coins into numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from umpc.crypto.mesh import joined_rounds
from umpc.crypto.prg import SEED_BYTES
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Message, silence
from umpc.mpc.arrays import WordArray
from umpc.mpc.masked.committee_coins import WIDTH, CoinToss
from umpc.mpc.transfers.message_shapes import (
    EXTEND,
    TOSS,
    check_message,
    extend_shape,
    multiple_bits,
    multiples,
    open_message,
)
from umpc.study.frames import MAX_PAYLOAD

FEW_ANDS = 1 << 13
"""ANDs with every other member, up to which a round of a toss is short."""
FACTOR = 8
"""Random bits that become numbers for each coin. All but one of them are opened."""
SLACK = 1 << 13
"""Bytes of a message that do not grow with the coins: proofs of a batch, and a nonce."""


@dataclass(frozen=True)
class TossPlan:
    """The public facts of one toss.

    members: their number. tosses: the coins of each sum.
    """

    members: int
    ring: Ring
    tosses: tuple[CoinToss, ...]

    @cached_property
    def thresholds(self) -> WordArray:
        """The coins' thresholds, of all sums one after the other: (coins,) uint64."""
        return np.array([c for toss in self.tosses for c in toss.thresholds], dtype=np.uint64)

    @cached_property
    def width(self) -> int:
        """The bits that decide: those below are 0 in every threshold."""
        joined = int(np.bitwise_or.reduce(self.thresholds, initial=np.uint64(0)))
        return WIDTH - (joined & -joined).bit_length() + 1 if joined else 1

    @property
    def levels(self) -> tuple[int, ...]:
        """The ANDs of one coin, level by level."""
        return levels_of(self.width)

    @property
    def ands(self) -> int:
        """The ANDs of one coin."""
        return sum(self.levels)

    @property
    def work(self) -> int:
        """The ANDs and the conversions of all coins, with every other member."""
        return len(self.thresholds) * (self.ands + FACTOR) * (self.members - 1)

    @cached_property
    def ranges(self) -> tuple[slice, ...]:
        """The coins that are tossed at once, so that no message is too large."""
        count = len(self.thresholds)
        # a coin's bytes in the largest message: both extensions, or both corrections
        most = max(8 * self.ands + 4 * FACTOR, 2 * self.ands + 8 * FACTOR)
        step = (MAX_PAYLOAD - SLACK) // most
        return tuple(slice(start, min(start + step, count)) for start in range(0, count, step))

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.shapes(0, 1))

    def shapes(self, sender: int, receiver: int) -> list[Message]:
        """One member's messages to another, round by round, with zero bytes as content.

        A message has width 0 where the member is silent.
        """
        shapes: list[Message] = []
        for number, part in enumerate(self.ranges):
            count = part.stop - part.start
            shapes += joined_rounds(TOSS, *self.together(number, sender, receiver))
            shapes.append(open_message(bytes((count + 7) // 8), count))
        return shapes

    def together(self, number: int, sender: int, receiver: int) -> tuple[list[Message], ...]:
        """Both protocols that go side by side for a range: the comparison, and checked bits."""
        part = self.ranges[number]
        count = part.stop - part.start
        batch = number * (1 + bool(self.ands)) + 1
        compared: list[Message] = []
        if self.ands:
            compared += self._triples(sender, receiver, self.ands * count, batch)
            compared += [
                open_message(bytes((2 * ands * count + 7) // 8), 2 * ands * count)
                for ands in self.levels
            ]
        checked = joined_rounds(TOSS, *self.converted(number, sender, receiver))
        opened = (FACTOR - 1) * count * self.ring.bytes
        sizes = SEED_BYTES, SEED_BYTES, SEED_BYTES + opened
        checked += [check_message(bytes(size), each) for each, size in enumerate(sizes, 2)]
        return compared, checked

    def converted(self, number: int, sender: int, receiver: int) -> tuple[list[Message], ...]:
        """The first rounds of the checked bits of a range: conversion, and first commitment."""
        part = self.ranges[number]
        count = FACTOR * (part.stop - part.start)
        batch = (number + 1) * (1 + bool(self.ands))
        width = self.ring.bits - 1
        due = multiples(bytes(count * multiple_bits(width) // 8), count, width)
        corrections = [
            due if sender < receiver == member else silence(due.step)
            for member in range(1, self.members)
        ]
        extension = self._extension(sender, receiver, count, batch)
        return [extension, *corrections], [check_message(bytes(SEED_BYTES), 1)]

    def _extension(self, sender: int, receiver: int, count: int, batch: int) -> Message:
        """The choices of the later of two members."""
        if sender < receiver:
            return silence(EXTEND)
        return extend_shape(count, batch)

    def _triples(self, sender: int, receiver: int, count: int, batch: int) -> list[Message]:
        """The two rounds that make triples."""
        due = multiples(bytes(2 * count), 2 * count, 1)
        choices = self._extension(sender, receiver, 2 * count, batch)
        return [choices, silence(due.step) if sender > receiver else due]


def levels_of(width: int) -> tuple[int, ...]:
    """The ANDs of each level of a comparison of `width` bits.

    The leaves take one a pair, and the levels above two, but one where [=] is not needed.
    """
    levels: list[int] = []
    items = width
    while items > 1:
        pairs = items // 2
        levels.append(2 * pairs - (items % 2 == 0) if levels else pairs)
        items -= pairs
    return tuple(levels)
