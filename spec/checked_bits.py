"""Random bits that a committee shares as bits and as numbers, checked by opening seven of eight.

The shares of a coin (`coins.py`) are bits, and noise is a sum of numbers. So each coin takes one
random bit b that is shared in both ways: the lowest bits of all shares of its number are shares of
the bit. With d = coin ⊕ b opened, coin = d + (1 − 2·d)·b is linear in the shares of the number.

A member that lies can put any number in the place of its share. Another member's bit then counts
more than 1, and the liar reads it in the high bits of the released sum. Rotaru & Wood 2019, its
cut-and-choose: FACTOR bits become numbers for each coin, and all but one of them are opened, chosen
at random once all are fixed. A lie about an opened number gives no bit for one of the two values of
the other member's bit, so it passes with probability 1/2 at most (docs/privacy.md).
"""

from typing import Any

from spec.prg import bits_of, derive, digest, pack, random_order, reader, unpack
from spec.refused import require
from spec.transfers import multiples

FACTOR = 8
Row = list[int]
Channels = dict[tuple[int, int], Any]
"""A channel of each two members; the earlier one sends in its transfers."""
Lie = tuple[str, bytes]
"""The step of a message and what is sent in its place: "converted" by the first member to the
second one, all other steps by the last member to all."""
HONEST = "", b""


def as_numbers(
    bits: list[Row], channels: Channels, width: int, lie: Lie = HONEST
) -> tuple[list[Row], list[bytes]]:
    """Additive shares modulo 2^width of the ⊕ of all members' bits, and all corrections."""
    modulus, corrections = 1 << width, []
    # the first member has its bit as a number s, and each further bit b makes it s ⊕ b
    shares = [bits[0]]
    for later in range(1, len(bits)):
        own = bits[later]
        for earlier in range(later):
            is_lie = lie[0] == "converted" and (earlier, later) == (0, 1)
            sent = lie[1] if is_lie else None
            channel = channels[earlier, later]
            found = multiples(channel, shares[earlier], bits[later], width - 1, sent)
            corrections.append(found["corrections"])
            # s ⊕ b = s + b − 2·s·b; so the lowest bit of a member's share stays its own bit
            pair = (shares[earlier], "sender_shares"), (own, "receiver_shares")
            shares[earlier], own = (
                [(x - 2 * p) % modulus for x, p in zip(row, found[side], strict=True)]
                for row, side in pair
            )
        shares.append(own)
    return shares, corrections


def commit_and_tell(
    contents: list[bytes], names: list[str], steps: tuple[str, str], lie: Lie
) -> dict[str, list[bytes]]:
    """Every member commits to its content, and tells it when all have. Args: steps: their names."""
    sealed = [commitment(member, content) for member, content in enumerate(contents)]
    rounds = {steps[0]: sealed, steps[1]: list(contents)}
    if lie[0] in rounds:
        rounds[lie[0]][-1] = lie[1]
    for member, (seal, content) in enumerate(zip(*rounds.values(), strict=True)):
        require(len(content) == len(contents[member]), "shape of a message", names[member])
        fits = commitment(member, content) == seal
        require(fits, "what is told of coins was committed to", names[member])
    return rounds


def commitment(member: int, content: bytes) -> bytes:
    """To a content with 32 bytes that only the member knows; it names the member."""
    return digest(b"umpc coin commitment 1", member.to_bytes(8, "little"), content)


def chosen(challenges: list[bytes], count: int) -> tuple[list[int], list[int]]:
    """The places of the bits that serve coins, and of those that are opened."""
    challenge = digest(b"umpc coin challenge 1", *challenges)
    order = random_order(FACTOR * count, reader(derive(challenge, "coin check")))
    return order[:count], order[count:]


def checked_bits(
    seeds: list[bytes],
    count: int,
    ring: int,
    names: list[str],
    channels: Channels,
    lie: Lie = HONEST,
) -> dict[str, Any]:
    """Each member's shares modulo 2^ring of `count` random bits. Args: seeds: used here alone."""
    bits = [bits_of(derive(seed, "bits"), FACTOR * count) for seed in seeds]
    numbers, corrections = as_numbers(bits, channels, ring, lie)
    # now all numbers are fixed, and all members together choose those that are opened. Commitments
    # went out before the numbers, so nobody chooses the challenge
    own = [derive(seed, "challenge") for seed in seeds]
    challenges = commit_and_tell(own, names, ("commitment", "challenge"), lie)
    used, opened = chosen(own, count)
    # every member is bound to its shares before it sees those of others, and could make them fit
    own = [
        derive(seed, "nonce") + pack([row[place] for place in opened], ring)
        for seed, row in zip(seeds, numbers, strict=True)
    ]
    told = commit_and_tell(own, names, ("second commitment", "opened"), lie)
    rows = [unpack(content[32:], len(opened), ring) for content in told["opened"]]
    totals = [sum(shares) % (1 << ring) for shares in zip(*rows, strict=True)]
    # nothing says which member lied
    require(all(total in (0, 1) for total in totals), "numbers of coins are bits")
    shares = [[row[place] for place in used] for row in numbers]
    return {"converted": corrections, **challenges, **told, "shares": shares}
