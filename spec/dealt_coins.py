"""A committee's coins from a dealer's one-hot rows: the other way in which the noise is drawn.

Sinh & Ramon 2025, appendix B.1: noise that nobody knows, drawn under secret sharing; its law is
`noise.committee_law`. The dealer's r and the members' û make the random number of a coin:

    coin = [û ⊕ r < c]      û = Σ of every member's random bits and masks      r = Σ of the masks

The dealer knows r and never sees û; the members know û, and r only if all of them pool their seeds.
So a coin is uniform unless the dealer helps a member. r is dealt in one-hot rows of pieces of 4
bits. A dealer that deals rows of zeros makes all coins 0, unnoticed: it must follow the protocol.
"""

from __future__ import annotations

from typing import Any

from spec.masked_dealing import deal, expand, read
from spec.masked_pairs import bit_share, output_share, read_bits
from spec.masked_plan import Plan, empty_plan, layers
from spec.prg import pack, unpack
from spec.refused import require
from spec.sharing import decode

WIDTH, PIECE, FAN = 64, 4, 4
"""Bits of a number and of a piece, and the pieces that one round combines into one."""


def coin_plan(ring: int) -> Plan:
    """Bits of all pieces, of groups of four pieces, and of the coin: three rounds after û."""
    plan = empty_plan(ring, [WIDTH])
    plan["tables"] = [[0, low, PIECE] for low in range(WIDTH - PIECE, -1, -PIECE)]
    pieces = len(plan["tables"])
    plan["bits"] = [["less", table, -1] for table in range(pieces)]
    plan["bits"] += [["equal", table, -1] for table in range(pieces - 1)]
    less, equal = list(range(pieces)), list(range(pieces, 2 * pieces - 1))
    while len(less) > FAN:
        groups = range(0, len(less), FAN)
        borrows = [_add(plan, _borrow(less[g : g + FAN], equal[g : g + FAN])) for g in groups]
        equal = [_add(plan, [equal[g : g + FAN]]) for g in groups[:-1]]
        less = borrows
    plan["terms"] = [[1, [_add(plan, _borrow(less, equal))], []]]
    return plan


def _borrow(less: list[int], equal: list[int]) -> list[list[int]]:
    """[<] of pieces, the highest first: lt_1 ⊕ eq_1·lt_2 ⊕ eq_1·eq_2·lt_3 ⊕ …"""
    return [[*equal[:place], bit] for place, bit in enumerate(less)]


def _add(plan: Plan, conjunctions: list[list[int]]) -> int:
    plan["bits"].append(["and", conjunctions, -1])
    return len(plan["bits"]) - 1


def piece_bit(row: int, kind: str, masked: int, threshold: int) -> int:
    """A share of [u < c] or [u = c] of a piece, u = û ⊕ r, from a share of the row of r."""
    places = (place for place in range(1 << PIECE) if row >> place & 1)
    if kind == "equal":
        return sum(place ^ masked == threshold for place in places) % 2
    return sum(place ^ masked < threshold for place in places) % 2


def toss(
    thresholds: list[int],
    weights: list[int],
    ring: int,
    numbers: list[list[int]],
    chunk_seeds: list[bytes],
    names: list[str],
    last_sent: bytes | None = None,
) -> dict[str, Any]:
    """Additive shares of the noise. Offsets are not counted.

    Args: numbers: of each member its own 64 random bits for each coin. last_sent: what the last
    member sends in the round of û, in place of what is due.
    """
    plan, count, members = coin_plan(ring), len(thresholds), len(names)
    parts = [expand(plan, seed, count) for seed in chunk_seeds]
    r = [sum(masks) % (1 << WIDTH) for masks in zip(*(p["places"] for p in parts), strict=True)]
    dealt = deal(plan, [[r], [[0] * count]], chunk_seeds, b"")
    parties = []
    for member, part in enumerate(parts):
        is_last = member == members - 1
        parties.append(part | read(plan, dealt[member], is_last, count))
        parties[member]["number"] = member
    # round 1: û, to which every member adds its bits and its mask
    messages = []
    for own, part in zip(numbers, parts, strict=True):
        masked = [(x + a) % (1 << WIDTH) for x, a in zip(own, part["places"], strict=True)]
        messages.append([pack(masked, WIDTH)])
    if last_sent is not None:
        messages[-1] = [last_sent]
    for name, (sent,) in zip(names, messages, strict=True):
        require(len(sent) == 8 * count, "length of opened bits", name)
    came = zip(*(unpack(sent, count, WIDTH) for (sent,) in messages), strict=True)
    total = [sum(each) % (1 << WIDTH) for each in came]
    # rounds 2 to 4: bits of pieces, of groups, and of the coins, each under its mask
    opened: dict[int, list[int]] = {}
    for layer in layers(plan):
        shares = []
        for party, said in zip(parties, messages, strict=True):
            bits = []
            for number in layer:
                mine = _share(plan, party, number, total, thresholds, opened)
                bits += [b ^ s for b, s in zip(mine, party["sigma"][number], strict=True)]
            said.append(pack(bits, 1))
            shares.append(read_bits(said[-1], len(bits), names[party["number"]]))
        joined = [sum(bits) % 2 for bits in zip(*shares, strict=True)]
        for place, number in enumerate(layer):
            opened[number] = joined[place * count : (place + 1) * count]
    # no round: each coin's share times its weight
    found = [output_share(plan, party, [[total]], opened, weights) for party in parties]
    noise = decode(sum(found), ring)
    return {"material": dealt[-1], "messages": messages, "shares": found, "noise": noise}


def _share(
    plan: Plan,
    party: dict[str, Any],
    number: int,
    total: list[int],
    thresholds: list[int],
    opened: dict[int, list[int]],
) -> list[int]:
    """A member's shares of one bit of all coins."""
    kind, where, _ = plan["bits"][number]
    if kind == "and":
        return bit_share(plan, party, number, [[total]], opened, b"")
    _, low, size = plan["tables"][where]
    cut = [[value >> low & (1 << size) - 1 for value in each] for each in (total, thresholds)]
    rows = zip(party["tables"][where], *cut, strict=True)
    return [piece_bit(row, kind, masked, threshold) for row, masked, threshold in rows]
