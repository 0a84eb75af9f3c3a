"""The messages of transfers between two nodes: names, numbers and bytes, and nothing of content.

Both ends check what comes against them, and predictions count them. A coordinator, which has no
part in transfers, loads this file alone of its package.

| messages | by |
|---|---|
| OFFER, CHOICE, TREES | the set-up of a channel by curve points (`channel_set_up.py`) |
| EXTEND | one batch of a channel (`correlated_ot.py`) |
| MULTIPLES, OPEN_BITS | products and masked bits (`ot_products.py`) |
| TOSS | several of these in one, and the check of numbers (`coins_from_transfers.py`) |

*Toss plan.* The public facts of a committee's coins without a dealer: ranges, levels, and all
messages. `coins_from_transfers.py` says how the coins are tossed, and how the bits are made that
turn coins into numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from umpc.crypto.prg import BLOCK_BYTES, SEED_BYTES
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Message, joined_rounds, silence
from umpc.mpc.arrays import WordArray
from umpc.mpc.masked.material import WIDTH, CoinToss
from umpc.study.messages import MAX_PAYLOAD

OFFER, CHOICE, TREES = "ot_offer", "ot_choice", "ot_trees"
EXTEND = "ot_extend"
MULTIPLES, OPEN_BITS = "ot_multiples", "ot_open_bits"
TOSS = "toss"
POINT_BYTES = 32
"""RFC 8032, section 5.1.2: y, and the lowest bit of x."""
BLOCK_BITS = 128
FOLD = 4
FOLDS = (1, 2, 4, 8)
PART = 1 << 17
"""Transfers made together, whose rows lie together in a message."""
CHECK_BYTES = BLOCK_BYTES + SEED_BYTES
"""h of the choices, and the hash of h of all columns (`correlated_ot.py`)."""
CHECK_ROOM = 1 << 14
"""Bytes of a full message that are free for what the proofs of its choices add to them."""
PROOF_OF_LEAF = 2 * SEED_BYTES
"""Bytes of s_x (`channel_set_up.py`)."""


# --- the set-up of a channel --------------------------------------------------------------------


def key_message(step: str, count: int) -> Message:
    """A message of `count` points, with zero bytes in place of its content."""
    return Message(step, bytes(POINT_BYTES * count), count, 8 * POINT_BYTES)


def set_up_shapes(fold: int = FOLD) -> list[tuple[bool, Message]]:
    """The set-up, round by round: whether the sender speaks, and its message.

    Each message has zero bytes in place of its content.
    """
    trees = trees_message(bytes(trees_bytes(fold)), fold)
    # Naor & Pinkas 2001: offer, choices; then the trees of Roy 2022
    messages = [
        (False, key_message(OFFER, 2)),
        (True, key_message(CHOICE, BLOCK_BITS)),
        (False, trees),
    ]
    return [(speaks, message) for speaks, message in messages if message.width]


def link_shapes(sender: int, receiver: int) -> list[Message]:
    """One member's messages to another in a set-up, with zero bytes in place of their content.

    Args: sender, receiver: their places, in the study's order or in the committee's.
    """
    # the earlier of two speaks as sender
    is_first = sender < receiver
    return [message for first_speaks, message in set_up_shapes() if first_speaks == is_first]


def sums_bytes(fold: int) -> int:
    """Bytes of the masked sums of one digit."""
    # two sums for each level but the top
    return (fold - 1) * 2 * SEED_BYTES


def proof_bytes(digits: int) -> int:
    """Bytes of the proof of all digits' trees."""
    return digits * PROOF_OF_LEAF + SEED_BYTES


def trees_bytes(fold: int) -> int:
    """Bytes of all trees of a channel: masked sums, and their proof. Fold 1 has no trees."""
    proof = proof_bytes(BLOCK_BITS // fold) if fold > 1 else 0
    return BLOCK_BITS // fold * sums_bytes(fold) + proof


def trees_message(trees: bytes, fold: int) -> Message:
    """The last message of a set-up by points.

    It is filled up with zeros to the bytes of a set-up from a former channel
    (`channels.py`), so that a study's bytes do not depend on which of the two it had.
    """
    if fold == 1:
        return silence(TREES)
    chained = extension_bytes(BLOCK_BITS, fold) + extension_bytes(BLOCK_BITS, 1)
    size = trees_bytes(fold) + chained - (2 + BLOCK_BITS) * POINT_BYTES
    return Message(TREES, trees.ljust(size, b"\0"), size, 8)


# --- batches ------------------------------------------------------------------------------------


def row_bytes(count: int) -> int:
    """Bytes of a row of `count` choices and the additional ones: whole blocks, and one more."""
    return -(-count // BLOCK_BITS) * BLOCK_BYTES + BLOCK_BYTES


def extension_bytes(count: int, fold: int = FOLD) -> int:
    """Bytes of a batch's one message, receiver to sender: for each part its rows, and a proof."""
    return sum(
        # Roy 2022: d has a row for each digit, and the proof
        BLOCK_BITS // fold * row_bytes(min(PART, count - start)) + CHECK_BYTES
        for start in range(0, count, PART)
    )


def extend_shape(count: int, batch: int, fold: int = FOLD) -> Message:
    """A batch's one message, with zero bytes in place of its content. batch: its number, from 1."""
    return extend_message(bytes(extension_bytes(count, fold)), batch)


def extend_message(payload: bytes, batch: int) -> Message:
    """A batch's message."""
    return Message(EXTEND, payload, len(payload), 8, batch)


# --- products -----------------------------------------------------------------------------------


def multiples(payload: bytes, count: int, width: int) -> Message:
    """The correction of `count` numbers × bits."""
    return Message(MULTIPLES, payload, count, multiple_bits(width))


def multiple_bits(width: int) -> int:
    """Bits of correction a number × bit."""
    return 8 * number_bytes(width)


def number_bytes(width: int) -> int:
    """Bytes that hold `width` bits."""
    return (width + 7) // 8


def open_message(payload: bytes, count: int) -> Message:
    """`count` masked bits: both of every AND."""
    return Message(OPEN_BITS, payload, count, 1)


def check_message(payload: bytes, number: int) -> Message:
    """A message of the check of numbers. number: which of its four, from 1."""
    return Message(TOSS, payload, len(payload), 8, number)


# --- toss plan ------------------------------------------------------------------------------------

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
        # bits below the lowest that any threshold has decide nothing
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
        # bytes a coin
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
            # coin ⊕ bit
            shapes.append(open_message(bytes((count + 7) // 8), count))
        return shapes

    def together(self, number: int, sender: int, receiver: int) -> tuple[list[Message], ...]:
        """Both protocols that go side by side for a range: the comparison, and checked bits."""
        part = self.ranges[number]
        count = part.stop - part.start
        batch = number * (1 + bool(self.ands)) + 1
        compared: list[Message] = []
        if self.ands:
            # comparison: triples, then one opening a level
            compared += self._triples(sender, receiver, self.ands * count, batch)
            compared += [
                open_message(bytes((2 * ands * count + 7) // 8), 2 * ands * count)
                for ands in self.levels
            ]
        checked = joined_rounds(TOSS, *self.converted(number, sender, receiver))
        opened = (FACTOR - 1) * count * self.ring.bytes
        sizes = SEED_BYTES, SEED_BYTES, SEED_BYTES + opened
        # challenge, commitment, opened shares
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
            # only the member whose turn it is hears corrections
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
