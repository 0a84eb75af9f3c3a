"""Noise inside MPC without a dealer: a committee tosses coins that none of its members knows.

    coin = [u < c]       u = ⊕ of all members' random numbers, c public

u is uniform to all members but one together, as long as that one draws its number uniformly. The law, its thresholds,
weights and δ are those of a dealer's committee (`noise.py`, `dp/committee.py`); all coins of all sums go in one row.

| round | what | between |
|---|---|---|
| 1, 2 | triples of bits a_k and b_k that each draws: shares of a_i·b_j + a_j·b_i by `send_multiples` | each pair |
| next L | one level of the comparison: x ⊕ a and y ⊕ b of every AND are opened (`and_bits`) | all to all |
| next 1 | the extension of transfers that choose by each member's share of the coins, j → i for i < j | each pair |
| next m − 1 | the coins' shares become numbers: corrections to member 1, then to member 2, … | to one |

Comparison. c is public, so shares of [bit < bit of c] and [bit = bit of c] are local. Two neighbours combine:
[<] = [<]' ⊕ [=]'·[<]'', [=] = [=]'·[=]'', up a tree of L = ⌈log2 of the bits⌉ levels; at its leaves both take the same
product of two bits of u, and of the lowest bit [=] is not asked for. Low bits that are 0 in all thresholds decide
nothing and are left out: a fair coin is the top bit of u, and takes no AND at all.

Numbers. Member 0 has its share of the coin as a number s; member k's share b makes it s ⊕ b = s + b − 2·s·b, where all
before k share s and k alone has b: one `send_multiples` of s_i mod 2^(w−1) from each i < k, whose first round does not
depend on s and was had before. The weighted sum of a member's shares is its share of the noise, mod 2^w.

What a member sees, and why it learns nothing more, as long as one other member keeps to itself what it knows:

- Extensions: pseudorandom whatever the choices are (`correlated_ot.py`). They choose by bits of triples, and by shares.
- Corrections: each masked by a pad that is pseudorandom to whoever lacks Δ, which all but the sender do
  (`ot_products.py`); so its share of every product is uniform to it, whatever the other factor is.
- Opened bits: of each AND x ⊕ a and y ⊕ b, where a and b are ⊕ of all members' bits. The bits of a member that is not
  looked at are uniform, serve one AND, and stand in nothing else that is opened: so opened bits are uniform,
  independent of u, of all other opened bits and of the coins. No bit of u and no coin is ever opened; what is computed
  from them is linear in shares.
- Its result: its share of each sum of coins. Together with all messages it is what it could make itself, from its own
  randomness and uniform bits: the simulator of Goldreich, Micali & Wigderson 1987 with transfers as its only tool.

Any members together but one see the sum of their views, in which each link to the last one has Δ, pads and bits of its
own. A link's channel is a fork of the one that garbled edges use: the same Δ under a hash of another key, with numbers
of its own (`garbled_cells.py`). Semi-honest: who deviates can spoil the noise, as with a dealer.

Papers: Goldreich, Micali & Wigderson 1987; Beaver 1991 (triples); Dwork et al. 2006, section 4 (coins).

Cost, m members, A ANDs a coin (89 of 64 bits), for each pair and coin: 2·A + 1 transfers; of corrections 2·A bytes, and
4 or 8; 2·A bits opened each way. Rounds: 2 + L + 1 + (m − 1), for every MAX_PAYLOAD / 8A coins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from umpc.crypto.mesh import Mesh, side_by_side, to_all
from umpc.crypto.prg import Stream, derive
from umpc.crypto.ring import Ring
from umpc.crypto.rounds import Message, Protocol
from umpc.mpc.masked.committee_coins import WIDTH, CoinToss
from umpc.mpc.transfers.base_ot import silence
from umpc.mpc.transfers.correlated_ot import (
    EXTEND,
    CorrelatedReceiver,
    CorrelatedSender,
    extend_shape,
)
from umpc.mpc.transfers.ot_products import (
    BitTriples,
    and_bits,
    correct,
    multiple_bits,
    multiples,
    open_message,
    receive_corrected,
    receive_multiples,
    receiver_pads,
    send_multiples,
    sender_pads,
)
from umpc.study.frames import MAX_PAYLOAD

Channel = CorrelatedSender | CorrelatedReceiver


@dataclass(frozen=True)
class TossPlan:
    """What everybody knows of it. members: how many, numbered. tosses: the coins of each sum."""

    members: int
    ring: Ring
    tosses: tuple[CoinToss, ...]

    @cached_property
    def thresholds(self) -> np.ndarray:
        """(coins,) uint64: of all sums, one after the other."""
        return np.array([c for toss in self.tosses for c in toss.thresholds], dtype=np.uint64)

    @cached_property
    def width(self) -> int:
        """Bits that decide: those below are 0 in every threshold."""
        joined = int(np.bitwise_or.reduce(self.thresholds, initial=np.uint64(0)))
        return WIDTH - (joined & -joined).bit_length() + 1 if joined else 1

    @property
    def levels(self) -> tuple[int, ...]:
        """ANDs of one coin, level by level."""
        return levels_of(self.width)

    @property
    def ands(self) -> int:
        return sum(self.levels)

    @cached_property
    def ranges(self) -> tuple[slice, ...]:
        """Coins tossed at once: no message is too large."""
        count = len(self.thresholds)
        step = MAX_PAYLOAD // (8 * max(1, self.ands)) - 8
        return tuple(slice(start, min(start + step, count)) for start in range(0, count, step))

    @property
    def rounds(self) -> int:
        return len(self.shapes(0, 1))

    def shapes(self, sender: int, receiver: int) -> list[Message]:
        """What one member says to another, round by round, but for the content; nothing, with a width of 0."""
        shapes, batch = [], 0
        for part in self.ranges:
            count = part.stop - part.start
            if self.ands:
                batch += 1
                shapes += self._triples(sender, receiver, self.ands * count, batch)
                shapes += [
                    open_message(bytes((2 * ands * count + 7) // 8), 2 * ands * count)
                    for ands in self.levels
                ]
            batch += 1
            shapes.append(extend_shape(count, batch) if sender > receiver else silence(EXTEND))
            width = self.ring.bits - 1
            due = multiples(bytes(count * multiple_bits(width) // 8), count, width)
            for member in range(1, self.members):
                shapes.append(due if sender < receiver == member else silence(due.step))
        return shapes

    @staticmethod
    def _triples(sender: int, receiver: int, count: int, batch: int) -> list[Message]:
        due = multiples(bytes(2 * count), 2 * count, 1)
        if sender > receiver:
            return [extend_shape(2 * count, batch), silence(due.step)]
        return [silence(EXTEND), due]


def levels_of(width: int) -> tuple[int, ...]:
    """ANDs a level of comparing `width` bits: one a pair at the leaves, then two, but one where [=] is not needed."""
    levels, items = [], width
    while items > 1:
        pairs = items // 2
        levels.append(2 * pairs - (items % 2 == 0) if levels else pairs)
        items -= pairs
    return tuple(levels)


@dataclass(frozen=True)
class CommitteeMember:
    """One member's place. names: of all members, for errors.

    channels: to every other member, this one's end: it sends to those after it, receives from those before.
    """

    number: int
    names: Sequence[str]
    channels: Mapping[int, Channel]

    def __repr__(self) -> str:
        return f"CommitteeMember({self.names[self.number]}, <redacted>)"

    @property
    def leads(self) -> np.uint8:
        """Constants are added by the first member."""
        return np.uint8(self.number == 0)

    @property
    def peers(self) -> list[int]:
        return [number for number in range(len(self.names)) if number != self.number]


def drawn_numbers(seed: bytes, count: int) -> np.ndarray:
    """(count,) uint64: a member's own random numbers."""
    return Stream(derive(seed, "toss", "numbers")).words(count)


def toss(plan: TossPlan, seat: CommitteeMember, seed: bytes) -> Mesh[list[int]]:
    """This member's share of each sum of coins, mod 2^w, offsets not counted.

    Args: seed: 32 uniform bytes of this member's own, for this call alone.
    Raises: RemoteProtocolError on a message of another shape.
    """
    numbers, parts = drawn_numbers(seed, len(plan.thresholds)), []
    for part in plan.ranges:
        coins = yield from _coins(plan, seat, part, numbers[part], seed)
        parts.append((yield from _as_numbers(seat, coins, plan.ring.bits)))
    shares, start, sums = np.concatenate([np.empty(0, dtype=np.uint64), *parts]), 0, []
    for each in plan.tosses:
        weights = np.array([weight & (2**64 - 1) for weight in each.weights], dtype=np.uint64)
        sums.append(
            plan.ring.encode(
                int((weights * shares[start : start + each.count]).sum(dtype=np.uint64))
            )
        )
        start += each.count
    return sums


def _coins(
    plan: TossPlan, seat: CommitteeMember, part: slice, numbers: np.ndarray, seed: bytes
) -> Mesh[np.ndarray]:
    """(n,) uint8: XOR shares of [u < c]."""
    u, c = (_rows(values, plan.width) for values in (numbers, plan.thresholds[part]))
    triples = None
    if plan.ands:
        triples = yield from _triples(
            seat, plan.ands * len(numbers), derive(seed, "toss", "triples", part.start)
        )
    done = 0
    below, same = c & (u ^ seat.leads), None
    for level, ands in enumerate(plan.levels):
        if level:
            x, y = _factors(below, same)
        else:
            x, y = u[: 2 * ands : 2], u[1 : 2 * ands : 2]
        stop = done + x.size
        own = BitTriples(triples.a[done:stop], triples.b[done:stop], triples.c[done:stop])
        opening = and_bits(
            bool(seat.leads), x.ravel(), y.ravel(), own, *(seat.names[peer] for peer in seat.peers)
        )
        product = (yield from to_all(opening, seat.peers)).reshape(x.shape)
        done = stop
        below, same = (
            _combined(below, same, product) if level else _leaves(u, c, product, seat.leads)
        )
    return below[0]


def _rows(values: np.ndarray, width: int) -> np.ndarray:
    """(width, n) uint8: the top bits of 64, the highest first."""
    places = np.arange(WIDTH - 1, WIDTH - 1 - width, -1, dtype=np.uint64)[:, None]
    return (values >> places & np.uint64(1)).astype(np.uint8)


def _leaves(
    u: np.ndarray, c: np.ndarray, product: np.ndarray, one: np.uint8
) -> tuple[np.ndarray, np.ndarray]:
    """[<] and [=] of pairs of bits, from u'·u'': (u' ⊕ 1 ⊕ c')·(u'' ⊕ k) is u'u'' ⊕ k·u' ⊕ n·u'' ⊕ n·k, n = 1 ⊕ c'."""
    pairs = 2 * len(product)
    (high, low), (c_high, c_low) = ((rows[:pairs:2], rows[1:pairs:2]) for rows in (u, c))
    n_high, n_low = c_high ^ 1, c_low ^ 1
    rest = product ^ n_high & low
    below = c_high & (high ^ one) ^ c_low & (rest ^ high ^ n_high & one)
    same = rest ^ n_low & high ^ n_high & n_low & one
    odd = c[pairs:] & (u[pairs:] ^ one)
    return np.concatenate([below, odd]), same[: len(below) + len(odd) - 1]


def _factors(below: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a level multiplies: [=]' by [<]'', then [=]' by [=]''. same lacks the lowest item."""
    pairs = len(below) // 2
    high, low = same[: 2 * pairs : 2], same[1 : 2 * pairs : 2]
    return np.concatenate([high, high[: len(low)]]), np.concatenate([below[1 : 2 * pairs : 2], low])


def _combined(
    below: np.ndarray, same: np.ndarray, product: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    pairs = len(below) // 2
    combined = below[: 2 * pairs : 2] ^ product[:pairs]
    return np.concatenate([combined, below[2 * pairs :]]), product[pairs:]


def _triples(seat: CommitteeMember, count: int, seed: bytes) -> Mesh[BitTriples]:
    """XOR shares of random a, b and of a ∧ b, among all members."""
    a, b = (Stream(derive(seed, name)).bits(count) for name in "ab")
    c = a & b
    for half in (
        yield from side_by_side({peer: _crossed(seat, peer, a, b) for peer in seat.peers})
    ).values():
        c ^= (half[:count] ^ half[count:]).astype(np.uint8)
    return BitTriples(a, b, c)


def _crossed(
    seat: CommitteeMember, peer: int, a: np.ndarray, b: np.ndarray
) -> Protocol[np.ndarray]:
    """Shares of a_i·b_j, then of b_i·a_j, for i before j."""
    channel = seat.channels[peer]
    if seat.number < peer:
        return send_multiples(channel, np.concatenate([a, b]), 1)
    return receive_multiples(channel, np.concatenate([b, a]), 1, seat.names[peer])


def _as_numbers(seat: CommitteeMember, bits: np.ndarray, width: int) -> Mesh[np.ndarray]:
    """(n,) uint64: additive shares mod 2^width of bits of which all members have XOR shares."""
    pads = yield from side_by_side(
        {peer: _pads(seat, peer, bits, width - 1) for peer in seat.peers}
    )
    mine = bits.astype(np.uint64)
    shares = mine if seat.number == 0 else np.zeros_like(mine)
    for member in range(1, len(seat.names)):
        ends = _corrections(seat, member, pads, shares, bits, width - 1)
        if not ends:
            yield {}
            continue
        if seat.number == member:
            shares = mine
        for product in (yield from side_by_side(ends)).values():
            shares = shares - (product << np.uint64(1))
    return shares & np.uint64((1 << width) - 1)


def _corrections(
    seat: CommitteeMember,
    member: int,
    pads: Mapping[int, np.ndarray],
    shares: np.ndarray,
    bits: np.ndarray,
    width: int,
) -> dict[int, Protocol[np.ndarray]]:
    """Of the products by one member's bits: everybody before it sends to it."""
    if seat.number < member:
        return {member: correct(pads[member], shares, width, seat.names[member])}
    senders = range(member if seat.number == member else 0)
    return {peer: receive_corrected(pads[peer], bits, width, seat.names[peer]) for peer in senders}


def _pads(seat: CommitteeMember, peer: int, bits: np.ndarray, width: int) -> Protocol[np.ndarray]:
    channel = seat.channels[peer]
    if seat.number < peer:
        return sender_pads(channel, len(bits), width)
    return receiver_pads(channel, bits, width, seat.names[peer])
