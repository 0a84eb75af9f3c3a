"""Noise inside MPC from transfers: a committee tosses coins that none of its members knows.

    coin = [u < c]       u = ⊕ of all members' random numbers, c public

u is uniform to all members but one together, as long as that one draws its number uniformly. The
law, its thresholds, weights and δ are those of dealt coins (`masked/material.py`,
`umpc/dp/committee.py`). Nothing here depends on a dealer, also where the study has one. All coins
of all sums go in one row. Two protocols run in the same rounds, and then one round joins them:

| round | what | between |
|---|---|---|
| 1, 2 | triples: shares of a_i·b_j + a_j·b_i of members' bits (`send_multiples`) | each pair |
| next L | a level of the comparison: every AND opens x ⊕ a, y ⊕ b (`and_bits`) | all to all |
| beside these, m + 3 | random bits that are shared as numbers, and checked | |
| last | coin ⊕ bit, with one checked bit for each coin | all to all |

Comparison. c is public, so shares of [bit < bit of c] and [bit = bit of c] are local. Two
neighbours combine: [<] = [<]' ⊕ [=]'·[<]'', [=] = [=]'·[=]'', up a tree of L = ⌈log2 of the bits⌉
levels. At its leaves both take the same product of two bits of u. The lowest bit's [=] is not
needed. Low bits that are 0 in all thresholds decide nothing and are left out: a fair coin is the
top bit of u, and takes no AND at all.

Numbers. d = coin ⊕ bit is public, so shares of coin = d + (1 − 2·d)·bit are local. The weighted sum
of a member's shares is its share of the noise, mod 2^w.

Reveals, as long as one other member keeps its own numbers and messages to itself:

- Extensions: pseudorandom whatever the choices are (`correlated_ot.py`). They choose by bits of
  triples, and by random bits.
- Corrections: each masked by a pad that is pseudorandom to whoever lacks Δ, which all but the
  sender do (`ot_products.py`). So a member's share of every product is uniform to it, whatever the
  other factor is.
- Opened bits: x ⊕ a and y ⊕ b of each AND, where a and b are ⊕ of all members' bits; and coin ⊕
  bit. The bits of a member outside the coalition are uniform, serve one AND or one coin, and stand
  in nothing else that is opened. So opened bits are uniform, independent of u, of all other opened
  bits and of the coins. No bit of u and no coin is ever opened; everything computed from them is
  linear in shares.
- Opened numbers: of random bits that serve no coin.
- A member's result: its share of each sum of coins. Together with all messages it is what the
  member could make itself, from its own randomness and uniform bits: the simulator of Goldreich,
  Micali & Wigderson 1987 with transfers as its only tool.

Any members together but one see the sum of their views, in which each link to the last one has Δ,
pads and bits of its own. A link's channel is one for coins alone (`channels.py`), or a
fork of the one that garbled edges use: the same Δ under a hash of another key, with numbers of its
own (`garbled/cells.py`).

Semi-honest, but for the check of numbers and that of choices (`correlated_ot.py`). A member
that deviates can flip bits that it opens, or an input of any AND, which is as if it gave a product
with another bit than its own. Coins then have other odds, and nobody notices. Some coins of odds
below 1/4 become almost constant in this way, and are then known to it. docs/privacy.md says what
that costs.

Papers: Goldreich, Micali & Wigderson 1987; Beaver 1991 (triples); Dwork et al. 2006, section 4
(coins).

Cost, m members, A ANDs a coin (89 of 64 bits), for each pair and coin: 2·A + 8 transfers; of
corrections 2·A bytes and 8 numbers of the ring; each way 2·A + 1 bits and 7 numbers opened. Rounds:
the larger of 2 + L and m + 3, and one, for every MAX_PAYLOAD / 8A coins.

*Checked bits.* Random bits of a committee as numbers that are shared among its members, checked by
opening.

    b = ⊕ of all members' bits      Σ of all members' shares = b mod 2^w

Every member draws FACTOR bits for each coin. All of them become numbers, and the members open all
but one in FACTOR, chosen at random. The others serve coins.

| round | what | between |
|---|---|---|
| 1 | the extension of transfers chosen by the later member's bits, j → i for i < j | each pair |
| 1 | a commitment to 32 random bytes | all to all |
| 2 … m | shares become numbers: corrections to member 1, then to member 2, … | to one |
| next | the random bytes; together they are the challenge, which says what is opened | all to all |
| next | a commitment to the shares of the opened numbers, and 32 random bytes | all to all |
| next | these; every sum of shares must be 0 or 1 | all to all |

Numbers. Member 0 has its bit as a number s. Member k's bit b makes it s ⊕ b = s + b − 2·s·b, where
all before k share s and k alone has b. That is one `send_multiples` of s_i mod 2^(w−1) from each i
< k. So the lowest bit of a member's share is its own bit, and the bits need no opening of their
own.

Why numbers are opened. A sender that lies can put any number e in the place of its share. The other
member's bit b then counts 1 − 2·e instead of 1 or −1, and stands in high bits of whatever is made
of the number: the liar reads it there. Two such numbers cannot be compared with each other: a liar
that scales both in the same way passes. So each number is compared with what a bit can be.

The risk of a changed number. Let h be a member that follows the protocol. In a conversion to h,
only the liar's own bit, or the turned bit with a share that is shifted by one, gives a bit for both
values of h's bit, which the liar does not know when it commits to its shares. The second only turns
the coin. So any other number that is opened passes with probability 1/2 at most. The challenge is
uniform, and unknown until all honest members have their corrections. A liar that changes t of 8·n
numbers for n coins has u of them in coins, unnoticed, with probability at most

    C(t, u)·C(8n − t, n − u)/C(8n, n)·2^(u−t)

Whatever t is, a liar reads one of 18 coins with odds of 1/8 at most, two with 0.0215, and three
with 0.00376. It reads all with 10^−18. `python -m bench coins` prints these odds. A member that
chooses by different bits towards two others makes a sum that nobody knows, and passes with 2^(1−w).
So does one that gives two others different random bytes, for they open different numbers.
`tests/mpc/transfers/test_checked_bits.py` and `tests/attacks/test_scaled_coins.py` show each lie.

Reveals: the opened numbers' shares, which serve nothing else. Shares of honest members are uniform
but for their lowest bits and their sum, because the pads of each transfer between them are unknown
to all others. With one honest member its share follows from its bit and what the others know. The
pads of opened transfers become known; they are hashes under Δ and their number, and say nothing of
others. A member that tests bits of its peer's Δ by its choices is named before anything is opened
(`correlated_ot.py`), and Δ serves nothing after a run that failed.

No message depends on data, and the check ends before any does. A failed check says that a member
deviated, and no more.

Papers: Goldreich, Micali & Wigderson 1987 (shares of bits); Rotaru & Wood 2019 (bits that are
shared as bits and as numbers, and the cut-and-choose of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from umpc.crypto.prg import SEED_BYTES, Stream, derive, digest
from umpc.crypto.rounds import Mesh, Message, Protocol, beside, check_reply, side_by_side, to_all
from umpc.errors import FailedCheck, RemoteProtocolError
from umpc.mpc.arrays import BitArray, IndexArray, WordArray
from umpc.mpc.masked.material import WIDTH
from umpc.mpc.transfers.channels import CommitteeMember
from umpc.mpc.transfers.message_shapes import FACTOR, TOSS, TossPlan, check_message
from umpc.mpc.transfers.ot_products import (
    BitTriples,
    and_bits,
    correct,
    open_bits,
    receive_corrected,
    receive_multiples,
    receiver_pads,
    send_multiples,
    sender_pads,
)


def drawn_numbers(seed: bytes, count: int) -> WordArray:
    """A member's own random numbers: (count,) uint64."""
    return Stream(derive(seed, "toss", "numbers")).words(count)


def part_seed(seed: bytes, number: int) -> bytes:
    """The seed of a member's checked bits of a range of coins."""
    return derive(seed, "toss", "checked bits", number)


def toss(plan: TossPlan, seat: CommitteeMember, seed: bytes) -> Mesh[list[int]]:
    """This member's share of each sum of coins, mod 2^w, offsets not counted.

    Args: seed: 32 uniform bytes of this member's own, for this call alone.
    Raises: RemoteProtocolError on a message of another shape.
    """
    # GMW 1987: own share of every u, uniform
    numbers = drawn_numbers(seed, len(plan.thresholds))
    parts = [np.empty(0, dtype=np.uint64)]
    for number, part in enumerate(plan.ranges):
        # what must come, by the public plan
        due = {peer: plan.together(number, peer, seat.number) for peer in seat.peers}
        # shares of [u < c]
        comparing = _coins(plan, seat, part, numbers[part], seed)
        # Rotaru & Wood 2019: bits shared as bits and as numbers
        checking = checked_bits(plan, number, seat, part_seed(seed, number))
        coins, bits = yield from beside(TOSS, [comparing, checking], due, seat.names)
        # from XOR shares to shares mod 2^w
        parts.append((yield from _as_numbers(seat, coins, bits)))
    shares = np.concatenate(parts)
    sums = []
    start = 0
    for each in plan.tosses:
        weights = np.array([weight & (2**64 - 1) for weight in each.weights], dtype=np.uint64)
        # weighted sum of shares: linear, so no message
        total = (weights * shares[start : start + each.count]).sum(dtype=np.uint64)
        sums.append(plan.ring.encode(int(total)))
        start += each.count
    return sums


def _as_numbers(seat: CommitteeMember, coins: BitArray, bits: WordArray) -> Mesh[WordArray]:
    """Additive shares mod 2^w of coins, from their XOR shares: (n,) uint64.

    Args: bits: shares of one checked random bit for each coin, which serves it alone.
    """
    lowest = (bits & np.uint64(1)).astype(np.uint8)
    names = [seat.names[peer] for peer in seat.peers]
    # open coin ⊕ bit: uniform, as the bit is
    d = yield from to_all(open_bits(coins ^ lowest, *names), seat.peers)
    # coin = d ⊕ bit = d + (1 − 2·d)·bit, and d is public
    flipped = d.astype(np.uint64)
    shares: WordArray = np.where(d == 1, np.uint64(0) - bits, bits) + flipped * seat.leads
    return shares


def _coins(
    plan: TossPlan, seat: CommitteeMember, part: slice, numbers: WordArray, seed: bytes
) -> Mesh[BitArray]:
    """XOR shares of [u < c]: (n,) uint8."""
    # spec/coins.py, `column`
    u = _rows(numbers, plan.width)
    c = _rows(plan.thresholds[part], plan.width)
    if not plan.ands:
        # one deciding bit: [u < c] is linear in u
        below: BitArray = c[0] & (u[0] ^ seat.leads)
        return below
    count = plan.ands * len(numbers)
    # spec/coins.py, `triples`
    triples = yield from _triples(seat, count, derive(seed, "toss", "triples", part.start))
    # spec/coins.py, `compare`
    first, *levels = plan.levels
    own = _taken(triples, 0, first * len(numbers))
    # The leaves: u'·u'' of every pair of neighbours gives both [<] and [=].
    product = yield from _ands(seat, u[: 2 * first : 2], u[1 : 2 * first : 2], own)
    less, same = _leaves(u, c, product, seat.leads)
    done = first * len(numbers)
    for ands in levels:
        # A level above: [<] = [<]' ⊕ [=]'·[<]'' and [=] = [=]'·[=]''.
        own = _taken(triples, done, ands * len(numbers))
        product = yield from _ands(seat, *_factors(less, same), own)
        less, same = _combined(less, product)
        done += ands * len(numbers)
    result: BitArray = less[0]
    return result


def _taken(triples: BitTriples, start: int, count: int) -> BitTriples:
    """A range of triples."""
    part = slice(start, start + count)
    return BitTriples(triples.a[part], triples.b[part], triples.c[part])


def _ands(seat: CommitteeMember, x: BitArray, y: BitArray, triples: BitTriples) -> Mesh[BitArray]:
    """XOR shares of x ∧ y, among all members, in the shape of x."""
    names = [seat.names[peer] for peer in seat.peers]
    # Beaver 1991, among all members
    opening = and_bits(bool(seat.leads), x.ravel(), y.ravel(), triples, *names)
    return (yield from to_all(opening, seat.peers)).reshape(x.shape)


def _rows(values: WordArray, width: int) -> BitArray:
    """The top `width` bits of 64, the highest first: (width, n) uint8."""
    places = np.arange(WIDTH - 1, WIDTH - 1 - width, -1, dtype=np.uint64)[:, None]
    return (values >> places & np.uint64(1)).astype(np.uint8)


def _leaves(
    u: BitArray, c: BitArray, product: BitArray, one: np.uint8
) -> tuple[BitArray, BitArray]:
    """[<] and [=] of pairs of bits, from the products u'·u''.

    (u' ⊕ 1 ⊕ c')·(u'' ⊕ k) is u'u'' ⊕ k·u' ⊕ n·u'' ⊕ n·k, with n = 1 ⊕ c'.
    """
    pairs = 2 * len(product)
    high, low = u[:pairs:2], u[1:pairs:2]
    c_high, c_low = c[:pairs:2], c[1:pairs:2]
    n_high = c_high ^ np.uint8(1)
    n_low = c_low ^ np.uint8(1)
    rest = product ^ n_high & low
    less = c_high & (high ^ one) ^ c_low & (rest ^ high ^ n_high & one)
    same = rest ^ n_low & high ^ n_high & n_low & one
    # an odd lowest bit stands alone
    odd = c[pairs:] & (u[pairs:] ^ one)
    return np.concatenate([less, odd]), same[: len(less) + len(odd) - 1]


def _factors(less: BitArray, same: BitArray) -> tuple[BitArray, BitArray]:
    """The factors of a level: [=]' by [<]'', then [=]' by [=]''. same lacks the lowest item."""
    pairs = len(less) // 2
    high = same[: 2 * pairs : 2]
    low = same[1 : 2 * pairs : 2]
    return np.concatenate([high, high[: len(low)]]), np.concatenate([less[1 : 2 * pairs : 2], low])


def _combined(less: BitArray, product: BitArray) -> tuple[BitArray, BitArray]:
    """[<] and [=] of a level, from those below and from the products of its factors."""
    pairs = len(less) // 2
    # [<] = [<]' ⊕ [=]'·[<]''
    combined = less[: 2 * pairs : 2] ^ product[:pairs]
    return np.concatenate([combined, less[2 * pairs :]]), product[pairs:]


def _triples(seat: CommitteeMember, count: int, seed: bytes) -> Mesh[BitTriples]:
    """XOR shares of random a, b and of a ∧ b, among all members."""
    a, b = (Stream(derive(seed, name)).bits(count) for name in "ab")
    # GMW: a·b is the sum of all a_i·b_i, and of a_i·b_j + a_j·b_i of each pair.
    c = a & b
    # cross terms with each other member, in the same rounds
    halves = yield from side_by_side({peer: _crossed(seat, peer, a, b) for peer in seat.peers})
    for half in halves.values():
        # XOR of both cross terms' shares
        c ^= (half[:count] ^ half[count:]).astype(np.uint8)
    return BitTriples(a, b, c)


def _crossed(seat: CommitteeMember, peer: int, a: BitArray, b: BitArray) -> Protocol[WordArray]:
    """Shares of a_i·b_j, then of b_i·a_j, for i before j."""
    if seat.number < peer:
        # Gilboa 1999, width 1: a_i·b_j and b_i·a_j
        numbers = np.concatenate([a, b]).astype(np.uint64)
        return send_multiples(seat.senders[peer], numbers, 1)
    choices = np.concatenate([b, a])
    return receive_multiples(seat.receivers[peer], choices, 1, seat.names[peer])


# --- checked bits ---------------------------------------------------------------------------------


def drawn_bits(seed: bytes, count: int) -> BitArray:
    """A member's own random bits: (count,) uint8."""
    return Stream(derive(seed, "bits")).bits(count)


def checked_bits(
    plan: TossPlan, number: int, seat: CommitteeMember, seed: bytes
) -> Mesh[WordArray]:
    """This member's additive shares mod 2^w of random bits, one for each coin of a range.

    The lowest bits of all members' shares add up to the bit, mod 2.

    Args: number: of the range. seed: 32 uniform bytes of this member's own, for this call alone.

    Raises: FailedCheck where an opened number is no bit; RemoteProtocolError on a message of
        another shape, or one that does not fit its sender's commitment.
    """
    part = plan.ranges[number]
    count = part.stop - part.start
    # FACTOR for each coin, of which one survives
    bits = drawn_bits(seed, FACTOR * count)
    own = derive(seed, "challenge")
    due = {peer: plan.converted(number, peer, seat.number) for peer in seat.peers}
    # commit before any number is fixed
    sealed = _tell(seat, 1, _commitment(seat.number, own))
    converting = as_numbers(seat, bits, plan.ring.bits)
    # GMW 1987: shares of bits become numbers
    shares, commitments = yield from beside(TOSS, [converting, sealed], due, seat.names)
    # All numbers are fixed now. All members together choose which are opened.
    told = yield from _tell(seat, 2, own)
    # nobody chose its bytes by the others'
    _check_commitments(seat, commitments, told, 2)
    # cut and choose (spec/checked_bits.py, `chosen`)
    used, opened = chosen(joint_challenge(_in_order(seat, told, own)), count)
    # Every member says its shares before it sees another one's.
    kind = plan.ring.dtype.newbyteorder("<")
    # a nonce, for the shares' few bits could be guessed
    own = derive(seed, "nonce") + shares[opened].astype(kind).tobytes()
    commitments = yield from _tell(seat, 3, _commitment(seat.number, own))
    told = yield from _tell(seat, 4, own)
    _check_commitments(seat, commitments, told, 4)
    rows = [np.frombuffer(each[SEED_BYTES:], kind) for each in _in_order(seat, told, own)]
    # Σ of all shares is 0 or 1, or somebody lied
    check_opened(np.sum(rows, axis=0, dtype=kind))
    unopened: WordArray = shares[used]
    return unopened


def joint_challenge(seeds: Sequence[bytes]) -> bytes:
    """The challenge of all members. Args: seeds: of each, in their order."""
    return digest(b"umpc coin challenge 1", *seeds)


def chosen(challenge: bytes, count: int) -> tuple[IndexArray, IndexArray]:
    """The places of FACTOR·count bits that are used, in the order of the coins, and all others."""
    # random order by sorting uniform words
    words = Stream(derive(challenge, "coin check")).words(FACTOR * count)
    order = np.argsort(words, kind="stable")
    return order[:count], order[count:]


def check_opened(numbers: np.ndarray) -> None:
    """Whether all opened numbers are bits. Raises: FailedCheck."""
    if (numbers > 1).any():
        raise FailedCheck(
            "a random number of the committee's noise is no bit: a member of the committee "
            "deviated from the protocol, or its memory failed; nothing says which. Find the cause "
            "before the study is run again",
            step="prepare",
        )


def _check_commitments(
    seat: CommitteeMember, sealed: Mapping[int, bytes], told: Mapping[int, bytes], number: int
) -> None:
    """Whether every peer told what it had committed to. Raises: RemoteProtocolError."""
    for peer in seat.peers:
        if _commitment(peer, told[peer]) != sealed[peer]:
            raise RemoteProtocolError(
                f"{seat.names[peer]} sent a message of the check of coins ({TOSS} {number}) that "
                "does not fit its commitment, so the study ends",
                culprit=seat.names[peer],
                step=TOSS,
            )


def _commitment(member: int, content: bytes) -> bytes:
    """A member's commitment to a content that holds 32 bytes which only the member knows."""
    return digest(b"umpc coin commitment 1", member.to_bytes(8, "little"), content)


def _in_order(seat: CommitteeMember, told: Mapping[int, bytes], own: bytes) -> list[bytes]:
    """The messages of all members, in their order."""
    every = {**told, seat.number: own}
    return [every[member] for member in sorted(every)]


def _tell(seat: CommitteeMember, number: int, payload: bytes) -> Mesh[dict[int, bytes]]:
    """Tell all others, in one round. Returns: what each of them told."""
    names = [seat.names[peer] for peer in seat.peers]
    replies = yield from to_all(_told(check_message(payload, number), names), seat.peers)
    return dict(zip(seat.peers, replies, strict=True))


def _told(mine: Message, names: list[str]) -> Protocol[list[bytes]]:
    replies = yield mine
    for name, reply in zip(names, replies, strict=True):
        check_reply(reply, mine, name)
    return [reply.payload for reply in replies]


def as_numbers(seat: CommitteeMember, bits: BitArray, width: int) -> Mesh[WordArray]:
    """Additive shares mod 2^width of bits of which all members have XOR shares: (n,) uint64."""
    # round 1: extensions between every two members
    pads = yield from side_by_side(
        {peer: _pads(seat, peer, bits, width - 1) for peer in seat.peers}
    )
    mine = bits.astype(np.uint64)
    # member 0 begins with its bit as a number
    shares = mine if seat.number == 0 else np.zeros_like(mine)
    for member in range(1, len(seat.names)):
        # s ⊕ b = s + b − 2·s·b, for the bit b of this member
        ends = _corrections(seat, member, pads, shares, bits, width - 1)
        if not ends:
            yield {}
            continue
        if seat.number == member:
            shares = mine
        for product in (yield from side_by_side(ends)).values():
            # − 2·s·b, of which each has a share
            shares = shares - (product << np.uint64(1))
    return shares & np.uint64((1 << width) - 1)


def _corrections(
    seat: CommitteeMember,
    member: int,
    pads: Mapping[int, WordArray],
    shares: WordArray,
    bits: BitArray,
    width: int,
) -> dict[int, Protocol[WordArray]]:
    """The products by one member's bits: every member before it sends to it."""
    if seat.number < member:
        # before the member: send own share of s
        return {member: correct(pads[member], shares, width, seat.names[member])}
    # the member: choose by its bit, towards all before it
    senders = range(member if seat.number == member else 0)
    return {peer: receive_corrected(pads[peer], bits, width, seat.names[peer]) for peer in senders}


def _pads(seat: CommitteeMember, peer: int, bits: BitArray, width: int) -> Protocol[WordArray]:
    """The pads of the products with one peer."""
    if seat.number < peer:
        return sender_pads(seat.senders[peer], len(bits), width)
    return receiver_pads(seat.receivers[peer], bits, width, seat.names[peer])
