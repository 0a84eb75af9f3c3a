"""A committee's coins: random bits with public odds that no member knows, by transfers.

Sinh & Ramon 2025, appendix B.1, shares noise that is drawn under secret sharing, and section 4 lets
a random group do it for all. Here (Dwork et al. 2006, section 4) each coin is

    [u < c]      u = ⊕ of all members' 64 random bits      c: public, from `noise.committee_law`

u is uniform to all members but one together, as long as that one draws its bits uniformly. Nothing
is dealt. Σ weight · coin is the noise, which nobody ever sees. For it the shares of the coins turn
into additive shares, by products of transfers (Gilboa 1999); that step is not specified here.

Lists of shares are [member][item], and an item is a row: a bit of every coin.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from spec.prg import bits_of, derive, words
from spec.sharing import and_bits
from spec.transfers import multiples

Row = list[int]
Shares = list[list[Row]]
Channels = dict[tuple[int, int], Any]
"""A channel of each two members; the earlier one sends in its transfers."""


def deciding_bits(thresholds: list[int]) -> int:
    """The highest bits that decide: those below are 0 in every threshold."""
    joined = 0
    for threshold in thresholds:
        joined |= threshold
    return 64 - (joined & -joined).bit_length() + 1


def xor(*rows: Row) -> Row:
    """⊕ of rows."""
    return [sum(bits) % 2 for bits in zip(*rows, strict=True)]


def triples(seeds: list[bytes], count: int, channels: Channels) -> list[list[Row]]:
    """Each member's shares of random a and b, and of c = a ∧ b.

    Goldreich, Micali & Wigderson 1987: a·b is the sum of all a_i·b_i, and of a_i·b_j + a_j·b_i of
    each pair, which are products of one member's bits with the other's choices.
    """
    drawn = [[bits_of(derive(seed, name), count) for name in "ab"] for seed in seeds]
    made = [[a, b, [x & y for x, y in zip(a, b, strict=True)]] for a, b in drawn]
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
    # one member adds constants
    leads = [int(member == 0) for member in range(len(seeds))]
    ands = sum(ands_of(width)) * count
    made = triples([derive(seed, "toss", "triples", 0) for seed in seeds], ands, channels)
    opened: list[list[bytes]] = []
    used = 0

    def multiply(x: Shares, y: Shares) -> Shares:
        """Shares of x ∧ y, item by item, with the next triples. Beaver 1991."""
        nonlocal used
        size = len(x[0]) * count
        part = [[row[used : used + size] for row in member] for member in made]
        used += size
        one, other = ([[bit for row in m for bit in row] for m in side] for side in (x, y))
        found = and_bits(one, other, part, names, None if opened else last_sent)
        opened.append(found["messages"])
        return [[each[k : k + count] for k in range(0, size, count)] for each in found["shares"]]

    # leaves: two neighbouring bits take one product for both [<] and [=]
    pairs = width // 2
    less: Shares = [[] for _ in seeds]
    same: Shares = [[] for _ in seeds]
    if pairs:
        high, low = ([m[k : 2 * pairs : 2] for m in u] for k in (0, 1))
        for member, products in enumerate(multiply(high, low)):
            for k, row in enumerate(products):
                both = high[member][k], low[member][k], c[2 * k], c[2 * k + 1], row
                found = [leaf(*bits, leads[member]) for bits in zip(*both, strict=True)]
                less[member].append([bit for bit, _ in found])
                same[member].append([bit for _, bit in found])
    for member, lead in enumerate(leads):
        if width % 2:
            last = zip(c[-1], u[member][-1], strict=True)
            less[member].append([threshold & (bit ^ lead) for threshold, bit in last])
        # the lowest item's [=] decides nothing
        same[member] = same[member][: len(less[member]) - 1]
    # levels above: [<] = [<]' ⊕ [=]'·[<]'' and [=] = [=]'·[=]''
    while len(less[0]) > 1:
        pairs = len(less[0]) // 2
        highs, lows = ([m[k : 2 * pairs : 2] for m in same] for k in (0, 1))
        left = [high + high[: len(low)] for high, low in zip(highs, lows, strict=True)]
        right = [m[1 : 2 * pairs : 2] + low for m, low in zip(less, lows, strict=True)]
        for member, mine in enumerate(multiply(left, right)):
            pair = zip(less[member][: 2 * pairs : 2], mine[:pairs], strict=True)
            less[member] = [xor(*rows) for rows in pair] + less[member][2 * pairs :]
            same[member] = mine[pairs:]
    return {"opened": opened, "coins": [member[0] for member in less]}


def leaf(high: int, low: int, c_high: int, c_low: int, product: int, lead: int) -> tuple[int, int]:
    """A member's shares of [u'u'' < c'c''] and of [u'u'' = c'c''], from those of u', u'', u'·u''.

    [u = c] is u ⊕ n with n = 1 ⊕ c, and [u < c] is c·(u ⊕ 1). Args: lead: the member's share of 1.
    """
    n_high, n_low = 1 - c_high, 1 - c_low
    # (u' ⊕ n')·u'', and then (u' ⊕ n')·(u'' ⊕ 1) and (u' ⊕ n')·(u'' ⊕ n'')
    rest = product ^ n_high & low
    less = c_high & (high ^ lead) ^ c_low & (rest ^ high ^ n_high & lead)
    return less, rest ^ n_low & high ^ n_high & n_low & lead


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
