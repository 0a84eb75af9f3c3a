"""The messages of transfers between two nodes: names, numbers and bytes, and nothing of content.

Both ends check what comes against them, and predictions count them. A coordinator, which has no
part in transfers, loads this file alone of its package.

| messages | by |
|---|---|
| OFFER, CHOICE, TREES | the set-up of a channel by curve points (`channel_set_up.py`) |
| EXTEND | one batch of a channel (`correlated_ot.py`) |
| MULTIPLES, OPEN_BITS | products and masked bits (`ot_products.py`) |
| TOSS | several of these in one (`toss_plan.py`), and the check of numbers (`checked_bits.py`) |
"""

from __future__ import annotations

from umpc.crypto.prg import BLOCK_BYTES, SEED_BYTES
from umpc.crypto.rounds import Message, silence

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
"""h of the choices, and the hash of h of all columns (`correlation_check.py`)."""
CHECK_ROOM = 1 << 14
"""Bytes of a full message that are free for what the proofs of its choices add to them."""
PROOF_OF_LEAF = 2 * SEED_BYTES
"""Bytes of s_x (`seed_trees.py`)."""


# --- the set-up of a channel --------------------------------------------------------------------


def key_message(step: str, count: int) -> Message:
    """A message of `count` points, with zero bytes in place of its content."""
    return Message(step, bytes(POINT_BYTES * count), count, 8 * POINT_BYTES)


def set_up_shapes(fold: int = FOLD) -> list[tuple[bool, Message]]:
    """The set-up, round by round: whether the sender speaks, and its message.

    Each message has zero bytes in place of its content.
    """
    trees = trees_message(bytes(trees_bytes(fold)), fold)
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
    is_first = sender < receiver
    return [message for first_speaks, message in set_up_shapes() if first_speaks == is_first]


def sums_bytes(fold: int) -> int:
    """Bytes of the masked sums of one digit."""
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
    (`chained_set_up.py`), so that a study's bytes do not depend on which of the two it had.
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
