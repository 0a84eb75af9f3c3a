"""A committee's coins: random bits with public odds that no member knows, by transfers.

Sinh & Ramon 2025, appendix B.1, shares noise that is drawn under secret sharing, and section 4 lets
a random group do it for all. Here (Dwork et al. 2006, section 4) each coin is

    [u < c]      u = ⊕ of all members' 64 random bits      c: public, from `noise.committee_law`

u is uniform to all members but one together, as long as that one draws its bits uniformly. Nothing
is dealt. Σ weight · coin is the noise, which nobody ever sees. For it the shares of the coins turn
into additive shares, by random bits that are shared in both ways (`checked_bits.py`).

Shares in a comparison are [member][item]; an item is an integer, and bit n of it is of coin n.
"""

from functools import reduce
from itertools import combinations
from operator import or_
from typing import Any

from spec.checked_bits import HONEST, Channels, Lie, Row, checked_bits
from spec.prg import bits_of, cut, derive, pack, words
from spec.sharing import and_bits, decode
from spec.transfers import multiples

Shares = list[list[int]]


def deciding_bits(thresholds: list[int]) -> int:
    """The highest bits that decide: those below are 0 in every threshold."""
    joined = reduce(or_, thresholds)
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
    for i, j in combinations(range(len(seeds)), 2) if count else ():
        (a_i, b_i), (a_j, b_j) = drawn[i], drawn[j]
        found = multiples(channels[i, j], a_i + b_i, b_j + a_j, 1)
        for member, side in ((i, "sender_shares"), (j, "receiver_shares")):
            made[member][2] = xor(made[member][2], found[side][:count], found[side][count:])
    return made


def toss(
    thresholds: list[int],
    weights: list[int],
    ring: int,
    seeds: list[bytes],
    names: list[str],
    channels: Channels,
    lie: Lie = HONEST,
) -> dict[str, Any]:
    """Each member's additive share of the noise, modulo 2^ring; and the noise, which nobody sees.

    Args: seeds: 32 random bytes of each member, for this toss alone.
    """
    compared = compare(thresholds, seeds, names, channels, lie)
    own = [derive(seed, "toss", "checked bits", 0) for seed in seeds]
    checked = checked_bits(own, len(thresholds), ring, names, channels, lie)
    bits = checked.pop("shares")
    # open d = coin ⊕ bit, which is uniform, since the bit is random and serves this coin alone
    pairs = zip(compared["coins"], bits, strict=True)
    masked = [[coin ^ b & 1 for coin, b in zip(*rows, strict=True)] for rows in pairs]
    d = xor(*masked)
    # coin = d ⊕ bit = d + (1 − 2·d)·bit, and one member adds the public d
    shares = []
    for member, row in enumerate(bits):
        rows = zip(weights, d, row, strict=True)
        terms = (w * ((1 - 2 * flip) * b + flip * (member == 0)) for w, flip, b in rows)
        shares.append(sum(terms) % (1 << ring))
    last = [pack(row, 1) for row in masked]
    messages = {"compared": compared["opened"], **checked, "coins": last}
    return {"messages": messages, "shares": shares, "noise": decode(sum(shares), ring)}


def compare(
    thresholds: list[int], seeds: list[bytes], names: list[str], channels: Channels, lie: Lie
) -> dict[str, Any]:
    """XOR shares of the coins.

    Returns: of each level what each member opens, and each member's share of each coin.
    """
    width, count = deciding_bits(thresholds), len(thresholds)
    drawn = [words(derive(seed, "toss", "numbers"), count) for seed in seeds]
    u = [[column(numbers, place) for place in range(width)] for numbers in drawn]
    c = [column(thresholds, place) for place in range(width)]
    # shares of 1 in all coins: the first member adds constants
    ones = [(1 << count) - 1] + [0] * (len(seeds) - 1)
    ands = ands_of(width) * count
    made = triples([derive(seed, "toss", "triples", 0) for seed in seeds], ands, channels)
    opened: list[list[bytes]] = []
    used = 0

    def multiply(x: Shares, y: Shares) -> Shares:
        """Shares of x ∧ y, item by item, with the next triples. Beaver 1991."""
        nonlocal used
        size = len(x[0]) * count
        part = [[row[used : used + size] for row in member] for member in made]
        used += size
        one, other = (
            [[item >> n & 1 for item in m for n in range(count)] for m in side] for side in (x, y)
        )
        is_lie = lie[0] == "compared" and not opened
        found = and_bits(one, other, part, names, lie[1] if is_lie else None)
        opened.append(found["messages"])
        return [
            [sum(bit << n for n, bit in enumerate(row)) for row in cut(each, count)]
            for each in found["shares"]
        ]

    # leaves: two neighbouring bits take one product for both [<] and [=]
    paired = width // 2 * 2
    high, low = ([m[k:paired:2] for m in u] for k in (0, 1))
    products = multiply(high, low) if paired else high
    less, same = [], []
    for member, one in enumerate(ones):
        rows = high[member], low[member], c[:paired:2], c[1:paired:2], products[member]
        found = [leaf(*row, one) for row in zip(*rows, strict=True)]
        single = [c[-1] & (u[member][-1] ^ one)] if width % 2 else []
        less.append([each for each, _ in found] + single)
        # the lowest item's [=] decides nothing
        same.append([each for _, each in found][: len(less[member]) - 1])
    # levels above: [<] = [<]' ⊕ [=]'·[<]'' and [=] = [=]'·[=]''
    while len(less[0]) > 1:
        pairs = len(less[0]) // 2
        highs, lows = ([m[k : 2 * pairs : 2] for m in same] for k in (0, 1))
        left = [high + high[: len(low)] for high, low in zip(highs, lows, strict=True)]
        right = [m[1 : 2 * pairs : 2] + low for m, low in zip(less, lows, strict=True)]
        for member, mine in enumerate(multiply(left, right)):
            upper = zip(less[member][: 2 * pairs : 2], mine[:pairs], strict=True)
            less[member] = [a ^ b for a, b in upper] + less[member][2 * pairs :]
            same[member] = mine[pairs:]
    coins = [[coin >> n & 1 for n in range(count)] for (coin,) in less]
    return {"opened": opened, "coins": coins}


def column(numbers: list[int], place: int) -> int:
    """A bit of 64 of each number, from the highest: bit n of the result is that of number n."""
    return sum((x >> 63 - place & 1) << n for n, x in enumerate(numbers))


def leaf(high: int, low: int, c_high: int, c_low: int, product: int, one: int) -> tuple[int, int]:
    """A member's shares of [u'u'' < c'c''] and of [u'u'' = c'c''], from those of u', u'', u'·u''.

    [u = c] is u ⊕ n with n = 1 ⊕ c, and [u < c] is c·(u ⊕ 1). Args: one: the member's share of 1.
    """
    # (u' ⊕ n')·u'', and then (u' ⊕ n')·(u'' ⊕ 1) and (u' ⊕ n')·(u'' ⊕ n'')
    rest = product ^ ~c_high & low
    less = c_high & (high ^ one) ^ c_low & (rest ^ high ^ ~c_high & one)
    return less, rest ^ ~c_low & high ^ ~c_high & ~c_low & one


def ands_of(width: int) -> int:
    """The ANDs of one coin's comparison: one a pair of bits, then k − 1 for k items of a level."""
    total, items = width // 2, (width + 1) // 2
    while items > 1:
        total, items = total + items - 1, (items + 1) // 2
    return total
