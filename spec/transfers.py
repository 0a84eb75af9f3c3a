"""Correlated oblivious transfers: from 128 base transfers as many as are needed, and products.

Sinh & Ramon 2025, A.3: correlated randomness, here without a dealer. The extension is SoftSpokenOT
with the repetition code (Roy 2022, sections 3.1 and 5), semi-honest:

    sender: Δ, and a block q_j for each transfer      receiver: bits r_j, and t_j = q_j ⊕ r_j·Δ

The lowest bit of Δ is 1. A block is an integer of 128 bits. Δ is cut into digits of `fold` bits.
Each digit has a tree of seeds. The receiver has all its 2^fold leaves, and the sender lacks the one
whose number is the digit.
"""

import operator
from functools import reduce
from hashlib import shake_256
from typing import Any

from spec.base_transfers import base_transfers
from spec.prg import aes, cut, derive, pack, stream, tree_hash
from spec.refused import require

# --- the trees of a channel ---


def xor(*parts: bytes) -> bytes:
    """⊕ of byte strings of one length."""
    total = reduce(operator.xor, (int.from_bytes(part, "little") for part in parts))
    return total.to_bytes(len(parts[0]), "little")


def children(nodes: list[bytes]) -> list[list[bytes]]:
    """Goldreich, Goldwasser & Micali 1986: all lower children, and then all upper ones."""
    both = [shake_256(b"ot tree" + node).digest(64) for node in nodes]
    return [[pair[:32] for pair in both], [pair[32:] for pair in both]]


def tree(pairs: list[list[bytes]]) -> tuple[list[bytes], bytes]:
    """A digit's leaves, lowest bit first, and the sums of each level under the base seeds."""
    nodes, sums = pairs[0], b""
    for pair in pairs[1:]:
        sides = children(nodes)
        sums += xor(pair[0], *sides[0]) + xor(pair[1], *sides[1])
        nodes = sides[0] + sides[1]
    return nodes, sums


def punctured(keys: list[bytes], bits: list[int], sums: bytes) -> list[bytes]:
    """The leaves without number Δ_digit: at place y − 1 stands leaf y ⊕ Δ_digit.

    Args: keys: at each level the base seed of the bit that Δ does not have.
    """
    nodes = [keys[0]]
    for level, (key, bit) in enumerate(zip(keys[1:], bits[1:], strict=True)):
        known = children(nodes)
        start = 64 * level + 32 * (1 - bit)
        sibling = xor(key, sums[start : start + 32], *known[1 - bit])
        nodes = [*known[bit], sibling, *known[1 - bit]]
    return nodes


def set_up(
    session: bytes,
    fold: int,
    delta: int,
    sender_seed: bytes,
    receiver_seed: bytes,
    trees: bytes | None = None,
) -> dict[str, Any]:
    """A channel: its messages, the leaves of both ends by digit, and its first root.

    It counts the transfers that were made, and the blocks of its streams that they took.

    Args: trees: what the receiver sends in place of its trees.
    """
    bits = [delta >> place & 1 for place in range(128)]
    starts = range(0, 128, fold)
    # Ishai et al. 2003, step 1: the extension's sender receives the base transfers
    base = base_transfers(session, receiver_seed, sender_seed, [1 - bit for bit in bits])
    whole = [tree(base["sender_pairs"][place : place + fold]) for place in starts]
    leaves = [each for each, _ in whole]
    sums = b"".join(each for _, each in whole)
    messages = base["messages"]
    if fold > 1:
        # filled up to the bytes of a set-up from an earlier channel
        filled = 2048 // fold - 16
        sent = sums + bytes(filled) if trees is None else trees
        require(len(sent) == len(sums) + filled, "shape of a message", "receiver")
        require(not any(sent[len(sums) :]), "nothing follows the trees", "receiver")
        messages["ot_trees"] = sent
        sums = sent[: len(sums)]
    ends, size = [], 64 * (fold - 1)
    for digit, place in enumerate(starts):
        part = slice(place, place + fold)
        of_digit = sums[digit * size : (digit + 1) * size]
        known = punctured(base["receiver_seeds"][part], bits[part], of_digit)
        ends.append([bytes(32), *known])
    public = derive(bytes(32), "ot leaves", session)
    return {
        "session": session,
        "fold": fold,
        "delta": delta,
        "messages": messages,
        "sender": ends,
        "receiver": leaves,
        "key": public[:16],
        "root": derive(public, "ot batches"),
        "transfers": 0,
        "blocks": 0,
    }


def fork(channel: dict[str, Any], *labels: int | str) -> dict[str, Any]:
    """Another channel of the same Δ and leaves, by labels that both know and use once."""
    root = derive(channel["root"], "ot fork", *labels)
    return {**channel, "root": root, "transfers": 0, "blocks": 0}


def leaf_stream(channel: dict[str, Any], leaf: bytes, width: int) -> int:
    """The next bytes of a leaf's stream, as an integer.

    Guo et al. 2020, section 7.4: block j is the hash TMMO of the leaf with the tweak tag ⊕ j.
    """
    tag = int.from_bytes(channel["root"][:16], "little")
    start = aes(channel["key"], int.from_bytes(leaf[:16], "little")) ^ tag
    numbers = (start ^ channel["blocks"] + j for j in range(-(-width // 16)))
    blocks = (tree_hash(channel["key"], each) << 128 * j for j, each in enumerate(numbers))
    return sum(blocks) % (1 << 8 * width)


def columns(channel: dict[str, Any], end: str, width: int) -> tuple[list[int], list[int]]:
    """Column i: ⊕ of the leaves' streams whose number has bit i. Also u of each digit: ⊕ of all."""
    rows, sums = [], []
    for leaves in channel[end]:
        streams = [leaf_stream(channel, leaf, width) for leaf in leaves]
        for bit in range(channel["fold"]):
            chosen = (each for number, each in enumerate(streams) if number >> bit & 1)
            rows.append(reduce(operator.xor, chosen))
        sums.append(reduce(operator.xor, streams))
    return rows, sums


def blocks_of(rows: list[int], count: int) -> list[int]:
    """128 columns as blocks: bit i of block j is bit j of column i."""
    return [sum((row >> j & 1) << i for i, row in enumerate(rows)) for j in range(count)]


def extend(
    channel: dict[str, Any], choices: list[int], sent: bytes | None = None
) -> dict[str, Any]:
    """The next batch of a channel. Args: sent: what the receiver sends in place of its message."""
    count, width = len(choices), (len(choices) + 7) // 8
    # Roy 2022, section 3.1: t's columns are v_i, and the receiver sends d = u ⊕ r for each digit
    rows, sums = columns(channel, "receiver", width)
    r = int.from_bytes(pack(choices, 1), "little")
    due = b"".join((each ^ r).to_bytes(width, "little") for each in sums)
    message = due if sent is None else sent
    require(len(message) == len(due), "shape of a message", "receiver")
    # the sender's columns are v_i ⊕ Δ_i·u without the leaf that it lacks, and then Δ_i·d is added
    own, _ = columns(channel, "sender", width)
    for place in range(128):
        digit = place // channel["fold"]
        d = int.from_bytes(message[digit * width : (digit + 1) * width], "little")
        own[place] ^= d * (channel["delta"] >> place & 1)
    first = channel["transfers"]
    channel["transfers"] += count
    channel["blocks"] += -(-width // 16)
    return {
        "first": first,
        "extension": message,
        "sender_blocks": blocks_of(own, count),
        "receiver_blocks": blocks_of(rows, count),
    }


def fresh_delta(seed: bytes) -> int:
    """Δ: uniform but for its lowest bit, which is 1."""
    return int.from_bytes(stream(derive(seed, "ot delta"), 16), "little") | 1


# --- products ---


def pads(session: bytes, blocks: list[int], width: int, first: int = 0, word: int = 0) -> list[int]:
    """Bits of the hash TMMO of each block with its transfer's number: π(π(x) ⊕ i) ⊕ π(x)."""
    key = derive(derive(bytes(32), "ot hash", session), 0)[:16]
    once = [aes(key, x) for x in blocks]
    hashed = [aes(key, y ^ number) ^ y for number, y in enumerate(once, first)]
    return [value >> 64 * word & (1 << width) - 1 for value in hashed]


def multiples(
    channel: dict[str, Any],
    numbers: list[int],
    choices: list[int],
    width: int,
    sent: bytes | None = None,
) -> dict[str, Any]:
    """Additive shares modulo 2^width of number × bit. Gilboa 1999, section 4.1.

    Nothing here shows which numbers were taken. Args: sent: in place of the corrections.
    """
    batch, modulus, size = extend(channel, choices), 1 << width, (width + 7) // 8
    q, t = batch["sender_blocks"], batch["receiver_blocks"]
    zero, one, mine = (
        pads(channel["session"], blocks, width, batch["first"])
        for blocks in (q, [block ^ channel["delta"] for block in q], t)
    )
    # one transfer a bit, of −p and of number − p; its second message is corrected
    rows = zip(zero, one, numbers, strict=True)
    due = b"".join(((p - q + x) % modulus).to_bytes(size, "little") for p, q, x in rows)
    message = due if sent is None else sent
    require(len(message) == len(due), "shape of a message", "sender")
    came = [int.from_bytes(part, "little") for part in cut(message, size)]
    own = zip(mine, choices, came, strict=True)
    return {
        "corrections": message,
        "sender_shares": [-pad % modulus for pad in zero],
        "receiver_shares": [(pad + bit * c) % modulus for pad, bit, c in own],
    }
