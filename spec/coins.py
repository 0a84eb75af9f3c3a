"""A committee's coins: random bits with public odds that no member knows, by transfers.

Sinh & Ramon 2025, appendix B.1, shares noise that is drawn under secret sharing, and section 4 lets
a random group do it for all. Here (Dwork et al. 2006, section 4) each coin is

    [u < c]      u = ⊕ of all members' 64 random bits      c: public, from `noise.committee_law`

u is uniform to all members but one together, as long as that one draws its bits uniformly. Nothing
is dealt. The members' shares of the coins then become additive shares by products of transfers
(Gilboa 1999), and Σ weight · coin is the noise, which nobody ever sees.

Lists of shares are [member][item], and an item is a row: a bit of every coin.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from spec.prg import bits_of, derive, words
from spec.sharing import and_bits
from spec.transfers import multiples

Row = list[int]
Channels = dict[tuple[int, int], Any]
"""Of each two members a channel; the earlier one sends in its transfers."""


def deciding_bits(thresholds: list[int]) -> int:
    """The highest bits that decide: those below are 0 in every threshold."""
    joined = 0
    for threshold in thresholds:
        joined |= threshold
    return 64 - (joined & -joined).bit_length() + 1


def xor(*rows: Row) -> Row:
    """⊕ of rows."""
    return [sum(bits) % 2 for bits in zip(*rows, strict=True)]


def both(one: Row, other: Row) -> Row:
    """∧ of two rows."""
    return [a & b for a, b in zip(one, other, strict=True)]


def triples(seeds: list[bytes], count: int, channels: Channels) -> list[list[Row]]:
    """Of each member its shares of random a and b, and of c = a ∧ b.

    Goldreich, Micali & Wigderson 1987: a·b is the sum of all a_i·b_i, and of a_i·b_j + a_j·b_i of
    each pair, which are products of one member's bits with the other's choices.
    """
    drawn = [[bits_of(derive(seed, name), count) for name in "ab"] for seed in seeds]
    made = [[a, b, both(a, b)] for a, b in drawn]
    for i, j in combinations(range(len(seeds)), 2):
        (a_i, b_i), (a_j, b_j) = drawn[i], drawn[j]
        found = multiples(channels[i, j], a_i + b_i, b_j + a_j, 1)
        for member, side in ((i, "sender_shares"), (j, "receiver_shares")):
            made[member][2] = xor(made[member][2], found[side][:count], found[side][count:])
    return made


def toss(
    thresholds: list[int],
    seeds: list[bytes],
    names: list[str],
    channels: Channels,
    last_sent: bytes | None = None,
) -> dict[str, Any]:
    """XOR shares of the coins.

    Args: seeds: 32 random bytes of each member, for this toss alone. last_sent: what the last
    member opens first in place of what is due.

    Returns: of each level what each member opens, and each member's share of each coin.
    """
    width, count = deciding_bits(thresholds), len(thresholds)
    drawn = [words(derive(seed, "toss", "numbers"), count) for seed in seeds]
    u = [[[x >> 63 - bit & 1 for x in numbers] for bit in range(width)] for numbers in drawn]
    c = [[threshold >> 63 - bit & 1 for threshold in thresholds] for bit in range(width)]
    opened: list[list[bytes]] = []
    levels = ands_of(width)
    made = triples(
        [derive(seed, "toss", "triples", 0) for seed in seeds], sum(levels) * count, channels
    )

    def multiply(x: list[list[Row]], y: list[list[Row]]) -> list[list[Row]]:
        """Shares of x ∧ y of rows, with the next triples. Beaver 1991."""
        size = len(x[0]) * count
        start = sum(len(each) for each in spent)
        spent.append([0] * size)
        part = [[row[start : start + size] for row in member] for member in made]
        one, other = ([[bit for row in m for bit in row] for m in side] for side in (x, y))
        found = and_bits(one, other, part, names, None if opened else last_sent)
        opened.append(found["messages"])
        return [[each[k : k + count] for k in range(0, size, count)] for each in found["shares"]]

    spent: list[Row] = []
    if not levels:
        # a fair coin is the highest bit of u
        lead = [[[int(member == 0)] * count] for member in range(len(seeds))]
        return {"opened": [], "coins": [both(c[0], xor(u[m][0], *lead[m])) for m in range(len(u))]}
    # leaves: two neighbouring bits u', u'' take one product for both [<] and [=]
    pairs = width // 2
    product = multiply([m[: 2 * pairs : 2] for m in u], [m[1 : 2 * pairs : 2] for m in u])
    less: list[list[Row]] = [[] for _ in seeds]
    same: list[list[Row]] = [[] for _ in seeds]
    for member, bits in enumerate(u):
        one = [int(member == 0)] * count
        for k in range(pairs):
            high, low, c_high, c_low = bits[2 * k], bits[2 * k + 1], c[2 * k], c[2 * k + 1]
            n_high, n_low = ([1 - bit for bit in row] for row in (c_high, c_low))
            # [=] of a bit is u ⊕ n with n = 1 ⊕ c, and [<] is c·(1 ⊕ u)
            rest = xor(product[member][k], both(n_high, low))
            first = both(c_high, xor(high, one))
            less[member].append(xor(first, both(c_low, xor(rest, high, both(n_high, one)))))
            same[member].append(xor(rest, both(n_low, high), both(both(n_high, n_low), one)))
        if width % 2:
            less[member].append(both(c[-1], xor(bits[-1], one)))
        # the lowest item's [=] decides nothing
        same[member] = same[member][: len(less[member]) - 1]
    # levels above: [<] = [<]' ⊕ [=]'·[<]'' and [=] = [=]'·[=]''
    while len(less[0]) > 1:
        pairs = len(less[0]) // 2
        highs = [m[: 2 * pairs : 2] for m in same]
        lows = [m[1 : 2 * pairs : 2] for m in same]
        left = [high + high[: len(low)] for high, low in zip(highs, lows, strict=True)]
        right = [m[1 : 2 * pairs : 2] + low for m, low in zip(less, lows, strict=True)]
        product = multiply(left, right)
        for member, mine in enumerate(product):
            kept = less[member][2 * pairs :]
            combined = zip(less[member][: 2 * pairs : 2], mine[:pairs], strict=True)
            less[member] = [xor(*rows) for rows in combined] + kept
            same[member] = mine[pairs:]
    return {"opened": opened, "coins": [member[0] for member in less]}


def ands_of(width: int) -> list[int]:
    """The ANDs of each level of one coin's comparison."""
    levels: list[int] = []
    items = width
    while items > 1:
        pairs = items // 2
        levels.append(2 * pairs - (items % 2 == 0) if levels else pairs)
        items -= pairs
    return levels


def noise_of(thresholds: list[int], weights: list[int], seeds: list[bytes]) -> int:
    """The noise in the clear, which no party of the protocol can compute."""
    total = 0
    drawn = [words(derive(seed, "toss", "numbers"), len(thresholds)) for seed in seeds]
    for number, (threshold, weight) in enumerate(zip(thresholds, weights, strict=True)):
        u = 0
        for numbers in drawn:
            u ^= numbers[number]
        total += weight * (u < threshold)
    return total
