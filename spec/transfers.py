"""Correlated oblivious transfers: from 128 base transfers as many as are needed, and products.

Sinh & Ramon 2025, A.3: correlated randomness, here without a dealer. The extension is SoftSpokenOT
with the repetition code (Roy 2022, sections 3.1 and 5) and its checks:

    sender: Δ, and a block q_j for each transfer      receiver: bits r_j, and t_j = q_j ⊕ r_j·Δ

The lowest bit of Δ is 1. A block is an integer of 128 bits. Δ is cut into digits of `fold` bits.
Each digit has a tree of seeds. The receiver has all its 2^fold leaves, and the sender lacks the one
whose number is the digit.

A receiver that lies would test bits of Δ: by trees that fit some digits only, or by choices that
differ from digit to digit. So it proves both. A lie about c bits of Δ passes with 2^−c.
"""

import operator
from collections.abc import Callable
from functools import reduce
from hashlib import shake_256
from typing import Any

from spec.base_transfers import base_transfers
from spec.prg import aes, cut, derive, digest, pack, stream, tree_hash
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


def of_leaf(leaf: bytes) -> bytes:
    """s_x: 64 bytes of a leaf for the proof of its tree."""
    return shake_256(b"ot tree check" + leaf).digest(64)


def joint(digits: list[list[bytes]]) -> bytes:
    """A hash of all s_x of all digits."""
    return digest(b"umpc tree check 1", *(b"".join(each) for each in digits))


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
    proof = b""
    if fold > 1:
        # Boyle et al. 2019: each digit's ⊕ of all s_x, and a hash of them
        of_leaves = [[of_leaf(leaf) for leaf in each] for each in leaves]
        due = sums + b"".join(xor(*each) for each in of_leaves) + joint(of_leaves)
        # filled up to the bytes of a set-up from an earlier channel
        filled = 4096 // fold + 32
        sent = due + bytes(filled) if trees is None else trees
        require(len(sent) == len(due) + filled, "shape of a message", "receiver")
        require(not any(sent[len(due) :]), "nothing follows the trees", "receiver")
        messages["ot_trees"] = sent
        sums, proof = sent[: len(sums)], sent[len(sums) : len(due)]
    ends, size = [], 64 * (fold - 1)
    for digit, place in enumerate(starts):
        part = slice(place, place + fold)
        of_digit = sums[digit * size : (digit + 1) * size]
        known = punctured(base["receiver_seeds"][part], bits[part], of_digit)
        ends.append([bytes(32), *known])
    if fold > 1:
        # the sender has all s_x but one, which follows from the ⊕, and puts each in its place
        found = []
        for (_, *known), told, place in zip(ends, cut(proof, 64), starts, strict=False):
            others = [of_leaf(leaf) for leaf in known]
            renumbered, number = [xor(told, *others), *others], delta >> place & (1 << fold) - 1
            found.append([renumbered[x ^ number] for x in range(1 << fold)])
        require(proof[-32:] == joint(found), "trees of seeds are trees", "receiver")
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
        "check_seed": derive(receiver_seed, "channel check"),
        "batches": 0,
        "transfers": 0,
        "blocks": 0,
    }


def fork(channel: dict[str, Any], *labels: int | str) -> dict[str, Any]:
    """Another channel of the same Δ and leaves, by labels that both know and use once."""
    root = derive(channel["root"], "ot fork", *labels)
    own = derive(channel["check_seed"], "fork", *labels)
    return {**channel, "root": root, "check_seed": own, "batches": 0, "transfers": 0, "blocks": 0}


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


def row_hash(channel: dict[str, Any], sent: bytes, width: int) -> Callable[[int], int]:
    """h: rows of `width` bytes to 128 bits, linear over GF(2), by a key that follows what was sent.

    It is GHASH of AES-GCM (NIST SP 800-38D): Σ block_i · H^(m + 1 − i) for m blocks.
    """
    place = channel["batches"].to_bytes(8, "little") + bytes(8)
    key = digest(b"umpc correlation check 1", channel["root"], place, sent)[:16]
    point = int.from_bytes(aes(key, 0).to_bytes(16, "little"), "big")

    def h(row: int) -> int:
        total = 0
        for block in cut(row.to_bytes(width, "little"), 16):
            total = times(total ^ int.from_bytes(block, "big"), point)
        return times(total, point)

    return h


def times(x: int, y: int) -> int:
    """x·y in GCM's field of 2^128 elements; the highest bit is the coefficient of 1."""
    product = 0
    for place in reversed(range(128)):
        if y >> place & 1:
            product ^= x
        # x·α modulo α^128 + α^7 + α^2 + α + 1
        x = x >> 1 ^ (0xE1 << 120 if x & 1 else 0)
    return product


def proof_of(of_choices: int, of_columns: list[int]) -> bytes:
    """h of the choices, and a hash of h of all 128 columns of t."""
    told, *hashes = (each.to_bytes(16, "big") for each in (of_choices, *of_columns))
    return told + digest(b"umpc correlation check 2", b"".join(hashes))


def extend(
    channel: dict[str, Any], choices: list[int], sent: bytes | None = None
) -> dict[str, Any]:
    """The next batch of a channel, of up to 2^17 transfers.

    Args: sent: what the receiver sends in place of its message.
    """
    count = len(choices)
    # whole blocks, and one more of 128 uniform choices, which hides h of the choices
    width = -(-count // 128) * 16 + 16
    channel["batches"] += 1
    # Roy 2022, section 3.1: t's columns are v_i, and the receiver sends d = u ⊕ r for each digit
    rows, sums = columns(channel, "receiver", width)
    mask = derive(channel["check_seed"], "mask", channel["batches"], 0)[:16]
    r = int.from_bytes(pack(choices, 1), "little")
    r += int.from_bytes(mask, "little") << 8 * (width - 16)
    due = b"".join((each ^ r).to_bytes(width, "little") for each in sums)
    size, h = len(due), row_hash(channel, due, width)
    due += proof_of(h(r), [h(row) for row in rows])
    message = due if sent is None else sent
    require(len(message) == len(due), "shape of a message", "receiver")
    # the sender's columns are v_i ⊕ Δ_i·u without the leaf that it lacks, and then Δ_i·d is added
    own, _ = columns(channel, "sender", width)
    bits = [channel["delta"] >> place & 1 for place in range(128)]
    sent_rows = [int.from_bytes(part, "little") for part in cut(message[:size], width)]
    own = [v ^ sent_rows[i // channel["fold"]] * bits[i] for i, v in enumerate(own)]
    # Keller, Orsini & Scholl 2015; Roy 2022: h(q_i) ⊕ Δ_i·h(r) is h(t_i) for one r in all digits
    h = row_hash(channel, message[:size], width)
    told = int.from_bytes(message[size : size + 16], "big")
    hashes = [h(row) ^ told * bit for row, bit in zip(own, bits, strict=True)]
    fits = message[size:] == proof_of(told, hashes)
    require(fits, "choices are the same in all digits", "receiver")
    first = channel["transfers"]
    channel["transfers"] += count
    channel["blocks"] += width // 16
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
