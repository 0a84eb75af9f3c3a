"""Sums over all sets of records by tables: with a dealer of masks, and without a dealer.

For E = all pairs (Sinh & Ramon 2025, section 3, U_{f,C}), where a record falls into one of D cells
and f is a public matrix A of its values between cells. With h the table of all records,

    2·S = hᵀA h − ⟨diagonal of A, h⟩        over unordered pairs of different records.

*With a dealer* the nodes open Ĥ = h + a, the sum of tables h_u under masks a_u. Everything else is
linear in what a node knows: A symmetric, hᵀA h = ĤᵀAĤ − 2·⟨a, A·Ĥ⟩ + aᵀA a, and the dealer deals
shares of the last number. *Without a dealer* each cross term ⟨h_u, A·h_v⟩ is shared by transfers.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import combinations
from typing import Any

from spec.joint_seed import is_signature, point, sign
from spec.prg import derive, digest, pack, unpack, words
from spec.refused import require
from spec.sharing import decode, share
from spec.transfers import extend, pads

Matrix = list[list[int]]
Table = list[int]
"""The number of records in each cell."""


def image(matrix: Matrix, table: list[int]) -> list[int]:
    """A·h."""
    return [inner(row, table) for row in matrix]


def inner(one: list[int], other: list[int]) -> int:
    """⟨one, other⟩."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def mask_of(seed: bytes, attempt: bytes, cells: int, ring: int) -> list[int]:
    """A node's mask: one stream of its seed for each attempt, so no mask serves two tables."""
    return words(derive(seed, "grid mask", attempt), cells, ring)


def deal(
    matrix: Matrix, seeds: list[bytes], randoms: list[int], attempt: bytes, ring: int
) -> list[int]:
    """The dealer's shares of aᵀA a for all nodes. It never sees a table, masked or not.

    Args: seeds: of each node. randoms: uniform numbers, the shares of all nodes but the last.
    """
    masks = [mask_of(seed, attempt, len(matrix), ring) for seed in seeds]
    total = [sum(column) for column in zip(*masks, strict=True)]
    return share(inner(total, image(matrix, total)), randoms, ring)


def total_statement(attempt: bytes, total: bytes) -> bytes:
    """The bytes that every node signs of the total before it makes its share."""
    return digest(b"umpc total 1", attempt, sha256(total).digest())


def run(
    matrix: Matrix,
    ring: int,
    attempt: bytes,
    seeds: list[bytes],
    randoms: list[int],
    tables: list[Table],
    signing: list[list[int]],
    relay: str,
    told: bytes | None = None,
    last_signature: bytes | None = None,
) -> dict[str, Any]:
    """One attempt with a dealer, from tables to shares of 2·S without noise.

    Args: signing: each node's key and the nonce of its signature. relay: the coordinator. told:
    what it tells the last node in place of the total. last_signature: in place of the last node's.
    """
    cells, modulus = len(matrix), 1 << ring
    dealt = deal(matrix, seeds, randoms, attempt, ring)
    # round 1: each node sends its table under its mask, once
    masks = [mask_of(seed, attempt, cells, ring) for seed in seeds]
    masked = [
        [(h + a) % modulus for h, a in zip(*rows, strict=True)]
        for rows in zip(tables, masks, strict=True)
    ]
    total = pack([sum(column) % modulus for column in zip(*masked, strict=True)], ring)
    came = [total] * (len(seeds) - 1) + [total if told is None else told]
    require(all(len(each) == cells * ring // 8 for each in came), "shape of a total", relay)
    # everybody signs the total that it got, and makes its share only if all signed the same one: a
    # node that gets another total would give a function of its own table
    points = [point(key) for key, _ in signing]
    rows = zip(came, signing, strict=True)
    signatures = [sign(key, total_statement(attempt, each), nonce) for each, (key, nonce) in rows]
    if last_signature is not None:
        signatures[-1] = last_signature
    for each in came:
        for key_point, signature in zip(points, signatures, strict=True):
            fits = is_signature(key_point, total_statement(attempt, each), signature)
            require(fits, "all signed the total", relay)
    shares = []
    opened = unpack(total, cells, ring)
    diagonal = [matrix[cell][cell] for cell in range(cells)]
    for node, (table, mask, number) in enumerate(zip(tables, masks, dealt, strict=True)):
        part = number - 2 * inner(mask, image(matrix, opened)) - inner(diagonal, table)
        if node == 0:
            part += inner(opened, image(matrix, opened))
        shares.append(part % modulus)
    return {
        "dealt": dealt,
        "masked": masked,
        "total": total,
        "signatures": signatures,
        "shares": shares,
        "twice_the_sum": decode(sum(shares), ring),
    }


# --- without a dealer ---


def inner_products(
    channel: dict[str, Any],
    vectors: list[list[int]],
    numbers: list[int],
    bits: int,
    width: int,
) -> dict[str, Any]:
    """Shares modulo 2^width of ⟨numbers, vector⟩ for each of the sender's vectors.

    Gilboa 1999, section 4.1: one transfer for each bit of the chooser's numbers. Only the low
    width − j bits of a vector count for bit j, and no more are corrected.
    """
    count = len(numbers)
    choices = [number >> bit & 1 for bit in range(bits) for number in numbers]
    batch = extend(channel, choices)
    q, t = batch["sender_blocks"], batch["receiver_blocks"]
    sent, shares, chosen_shares = b"", [], []
    for number, vector in enumerate(vectors):
        # a hash makes the pads of two vectors, and every two further vectors have another key
        session = digest(b"umpc inner pads 1", channel["session"], str(number // 2).encode())
        zero, one, chosen = (
            pads(session, blocks, 64, number % 2)
            for blocks in (q, [block ^ channel["delta"] for block in q], t)
        )
        mine = theirs = 0
        for place, choice in enumerate(choices):
            bit, size = place // count, width - place // count
            correction = (zero[place] - one[place] + vector[place % count]) % (1 << size)
            sent += correction.to_bytes((size + 7) // 8, "little")
            mine -= zero[place] << bit
            theirs += chosen[place] + choice * correction << bit
        shares.append(mine % (1 << width))
        chosen_shares.append(theirs % (1 << width))
    return {
        "extension": batch["extension"],
        "corrections": sent,
        "sender_shares": shares,
        "chooser_shares": chosen_shares,
    }


def without_dealer(
    matrix: Matrix, ring: int, tables: list[Table], channels: dict[tuple[int, int], Any]
) -> list[int]:
    """Each node's share of 2·S. Args: channels: of each pair of nodes, as (sender, chooser)."""
    diagonal = [matrix[cell][cell] for cell in range(len(matrix))]
    shares = [inner(h, image(matrix, h)) - inner(diagonal, h) for h in tables]
    for first, second in combinations(range(len(tables)), 2):
        # the node with fewer records chooses by the bits of its table; a cross term counts twice
        sender, chooser = first, second
        if sum(tables[first]) < sum(tables[second]):
            sender, chooser = second, first
        records = sum(tables[chooser])
        if records:
            found = inner_products(
                channels[sender, chooser],
                [image(matrix, tables[sender])],
                tables[chooser],
                records.bit_length(),
                ring - 1,
            )
            shares[sender] += 2 * found["sender_shares"][0]
            shares[chooser] += 2 * found["chooser_shares"][0]
    return [each % (1 << ring) for each in shares]
