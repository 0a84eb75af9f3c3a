"""Correlated oblivious transfers: from 128 base transfers as many as are needed, and products.

Sinh & Ramon 2025, A.3: correlated randomness, here without a dealer. The extension is SoftSpokenOT
with the repetition code (Roy 2022, sections 3.1 and 5), semi-honest:

    sender: Δ, and a block q_j for each transfer      receiver: bits r_j, and t_j = q_j ⊕ r_j·Δ

The lowest bit of Δ is 1. A block is an integer of 128 bits. Δ is cut into digits of `fold` bits.
Each digit has a tree of seeds. The receiver has all its 2^fold leaves, and the sender lacks the one
whose number is the digit.
"""

from __future__ import annotations

from hashlib import shake_256
from typing import Any

from spec.base_transfers import base_transfers
from spec.prg import aes, derive, digest, pack, stream, tree_hash
from spec.refused import require

# --- the trees of a channel ---


def xor(*parts: bytes) -> bytes:
    """⊕ of byte strings of one length."""
    total = 0
    for part in parts:
        total ^= int.from_bytes(part, "little")
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


def proof_of_trees(digits: list[list[bytes]]) -> bytes:
    """Roy 2022, its malicious variant: T = ⊕ s_x of each digit, and a hash of all s_x.

    s_x are further bytes of leaf x. T is masked by the one that the other end lacks.
    """
    known = [[of_leaf(leaf) for leaf in leaves] for leaves in digits]
    return b"".join(xor(*each) for each in known) + _joint(known)


def trees_hold(ends: list[list[bytes]], places: list[int], proof: bytes) -> bool:
    """Whether the leaves are those that were proved.

    A receiver whose sums fit some values of a digit only passes if it guessed the digit.

    Args: ends: as `punctured`. places: Δ's digits.
    """
    known = []
    for number, (leaves, place) in enumerate(zip(ends, places, strict=True)):
        others = [of_leaf(leaf) for leaf in leaves]
        renumbered = [xor(proof[64 * number : 64 * number + 64], *others), *others]
        known.append([renumbered[x ^ place] for x in range(len(renumbered))])
    return proof[64 * len(ends) :] == _joint(known)


def of_leaf(leaf: bytes) -> bytes:
    """s_x."""
    return shake_256(b"ot tree check" + leaf).digest(64)


def _joint(known: list[list[bytes]]) -> bytes:
    return digest(b"umpc tree check 1", *(b"".join(each) for each in known))


def set_up(
    session: bytes,
    fold: int,
    delta: int,
    sender_seed: bytes,
    receiver_seed: bytes,
    trees: bytes | None = None,
    checked: bool = False,
) -> dict[str, Any]:
    """A channel: its messages, the leaves of both ends by digit, and its first root.

    Args: trees: what the receiver sends in place of its trees. checked: whether it proves them.
    """
    bits = [delta >> place & 1 for place in range(128)]
    starts = range(0, 128, fold)
    # Ishai et al. 2003, step 1: the extension's sender receives the base transfers
    base = base_transfers(session, receiver_seed, sender_seed, [1 - bit for bit in bits])
    whole = [tree(base["sender_pairs"][place : place + fold]) for place in starts]
    leaves = [each for each, _ in whole]
    sums = b"".join(each for _, each in whole)
    due = sums + (proof_of_trees(leaves) if checked else b"")
    messages = base["messages"]
    if fold > 1:
        # filled up to the bytes of a set-up from an earlier channel
        filled = 4096 // fold + 32 if checked else 2048 // fold - 16
        sent = due + bytes(filled) if trees is None else trees
        require(len(sent) == len(due) + filled, "shape of a message", "receiver")
        require(not any(sent[len(due) :]), "nothing follows the trees", "receiver")
        messages["ot_trees"] = sent
        due = sent[: len(due)]
    ends, size = [], 64 * (fold - 1)
    for digit, place in enumerate(starts):
        part = slice(place, place + fold)
        of_digit = due[digit * size : (digit + 1) * size]
        ends.append(punctured(base["receiver_seeds"][part], bits[part], of_digit))
    if checked:
        places = [delta >> place & (1 << fold) - 1 for place in starts]
        require(trees_hold(ends, places, due[len(sums) :]), "the trees fit", "receiver")
    public = derive(bytes(32), "ot leaves", session)
    return {
        "session": session,
        "fold": fold,
        "delta": delta,
        "messages": messages,
        "sender": [[bytes(32), *known] for known in ends],
        "receiver": leaves,
        "key": public[:16],
        "root": derive(public, "ot batches"),
    }


def fork(channel: dict[str, Any], *labels: int | str) -> dict[str, Any]:
    """Another channel of the same Δ and leaves, by labels that both know and use once."""
    return {**channel, "root": derive(channel["root"], "ot fork", *labels)}


def leaf_stream(channel: dict[str, Any], leaf: bytes, width: int) -> int:
    """The first bytes of a leaf's stream, as an integer.

    Guo et al. 2020, section 7.4: block j is the hash TMMO of the leaf with the tweak tag ⊕ j.
    """
    tag = int.from_bytes(channel["root"][:16], "little")
    start = aes(channel["key"], int.from_bytes(leaf[:16], "little")) ^ tag
    blocks = (tree_hash(channel["key"], start ^ j) << 128 * j for j in range(-(-width // 16)))
    return sum(blocks) % (1 << 8 * width)


def columns(channel: dict[str, Any], end: str, width: int) -> tuple[list[int], list[int]]:
    """Column i: ⊕ of the leaves' streams whose number has bit i. Also u of each digit: ⊕ of all."""
    rows, sums = [], []
    for leaves in channel[end]:
        streams = [leaf_stream(channel, leaf, width) for leaf in leaves]
        for bit in range(channel["fold"]):
            row = 0
            for number, each in enumerate(streams):
                row ^= each * (number >> bit & 1)
            rows.append(row)
        total = 0
        for each in streams:
            total ^= each
        sums.append(total)
    return rows, sums


def blocks_of(rows: list[int], count: int) -> list[int]:
    """128 columns as blocks: bit i of block j is bit j of column i."""
    return [sum((row >> j & 1) << i for i, row in enumerate(rows)) for j in range(count)]


def extend(
    channel: dict[str, Any], choices: list[int], sent: bytes | None = None
) -> dict[str, Any]:
    """The first batch of a channel. Args: sent: what the receiver sends in place of its message."""
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
    return {
        "extension": message,
        "sender_blocks": blocks_of(own, count),
        "receiver_blocks": blocks_of(rows, count),
    }


def fresh_delta(seed: bytes) -> int:
    """Δ: uniform but for its lowest bit, which is 1."""
    return int.from_bytes(stream(derive(seed, "ot delta"), 16), "little") | 1


def correlated(
    session: bytes,
    fold: int,
    delta_seed: bytes,
    sender_seed: bytes,
    receiver_seed: bytes,
    choices: list[int],
    forks: list[list[int | str]],
    trees: bytes | None = None,
    sent: bytes | None = None,
) -> dict[str, Any]:
    """Set both ends up and make one batch, of the channel itself or of a fork of forks."""
    channel = set_up(session, fold, fresh_delta(delta_seed), sender_seed, receiver_seed, trees)
    for labels in forks:
        channel = fork(channel, *labels)
    keys = ("delta", "messages")
    return {key: channel[key] for key in keys} | extend(channel, choices, sent)


# --- products ---


def pads(session: bytes, blocks: list[int], width: int, word: int = 0) -> list[int]:
    """Bits of the hash TMMO of each block with its transfer's number: π(π(x) ⊕ i) ⊕ π(x)."""
    key = derive(derive(bytes(32), "ot hash", session), 0)[:16]
    once = [aes(key, x) for x in blocks]
    hashed = [aes(key, y ^ number) ^ y for number, y in enumerate(once)]
    return [value >> 64 * word & (1 << width) - 1 for value in hashed]


def multiples(
    channel: dict[str, Any], numbers: list[int], choices: list[int], width: int
) -> dict[str, Any]:
    """Additive shares modulo 2^width of number × bit. Gilboa 1999, section 4.1."""
    batch, modulus = extend(channel, choices), 1 << width
    blocks = batch["sender_blocks"]
    zero = pads(channel["session"], blocks, width)
    one = pads(channel["session"], [q ^ channel["delta"] for q in blocks], width)
    # one transfer a bit, of −p and of number − p; its second message is corrected
    corrections = [(p - q + x) % modulus for p, q, x in zip(zero, one, numbers, strict=True)]
    mine = pads(channel["session"], batch["receiver_blocks"], width)
    rows = zip(mine, choices, corrections, strict=True)
    return {
        "corrections": b"".join(c.to_bytes((width + 7) // 8, "little") for c in corrections),
        "sender_shares": [-pad % modulus for pad in zero],
        "receiver_shares": [(pad + bit * c) % modulus for pad, bit, c in rows],
    }
