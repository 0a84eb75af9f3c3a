"""Random bits of a committee as numbers that are shared among its members, checked by opening.

    b = ⊕ of all members' bits      Σ of all members' shares = b mod 2^w

Every member draws FACTOR bits for each coin. All of them become numbers, and the members open all
but one in FACTOR, chosen at random. The others serve coins (`coins_from_transfers.py`).

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
(`correlation_check.py`), and Δ serves nothing after a run that failed.

No message depends on data, and the check ends before any does. A failed check says that a member
deviated, and no more.

Papers: Goldreich, Micali & Wigderson 1987 (shares of bits); Rotaru & Wood 2019 (bits that are
shared as bits and as numbers, and the cut-and-choose of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from umpc.crypto.mesh import Mesh, beside, side_by_side, to_all
from umpc.crypto.prg import SEED_BYTES, Stream, derive, digest
from umpc.crypto.rounds import Message, Protocol, check_reply
from umpc.errors import FailedCheck, RemoteProtocolError
from umpc.mpc.arrays import BitArray, IndexArray, WordArray
from umpc.mpc.transfers.committee_links import CommitteeMember
from umpc.mpc.transfers.message_shapes import TOSS, check_message
from umpc.mpc.transfers.ot_products import (
    correct,
    receive_corrected,
    receiver_pads,
    sender_pads,
)
from umpc.mpc.transfers.toss_plan import FACTOR, TossPlan


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
    bits = drawn_bits(seed, FACTOR * count)
    own = derive(seed, "challenge")
    due = {peer: plan.converted(number, peer, seat.number) for peer in seat.peers}
    sealed = _tell(seat, 1, _commitment(seat.number, own))
    converting = as_numbers(seat, bits, plan.ring.bits)
    shares, commitments = yield from beside(TOSS, [converting, sealed], due, seat.names)
    # All numbers are fixed now. All members together choose which are opened.
    told = yield from _tell(seat, 2, own)
    _check_commitments(seat, commitments, told, 2)
    used, opened = chosen(joint_challenge(_in_order(seat, told, own)), count)
    # Every member says its shares before it sees another one's.
    kind = plan.ring.dtype.newbyteorder("<")
    own = derive(seed, "nonce") + shares[opened].astype(kind).tobytes()
    commitments = yield from _tell(seat, 3, _commitment(seat.number, own))
    told = yield from _tell(seat, 4, own)
    _check_commitments(seat, commitments, told, 4)
    rows = [np.frombuffer(each[SEED_BYTES:], kind) for each in _in_order(seat, told, own)]
    check_opened(np.sum(rows, axis=0, dtype=kind))
    unopened: WordArray = shares[used]
    return unopened


def joint_challenge(seeds: Sequence[bytes]) -> bytes:
    """The challenge of all members. Args: seeds: of each, in their order."""
    return digest(b"umpc coin challenge 1", *seeds)


def chosen(challenge: bytes, count: int) -> tuple[IndexArray, IndexArray]:
    """The places of FACTOR·count bits that are used, in the order of the coins, and all others."""
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
    pads = yield from side_by_side(
        {peer: _pads(seat, peer, bits, width - 1) for peer in seat.peers}
    )
    mine = bits.astype(np.uint64)
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
        return {member: correct(pads[member], shares, width, seat.names[member])}
    senders = range(member if seat.number == member else 0)
    return {peer: receive_corrected(pads[peer], bits, width, seat.names[peer]) for peer in senders}


def _pads(seat: CommitteeMember, peer: int, bits: BitArray, width: int) -> Protocol[WordArray]:
    """The pads of the products with one peer."""
    if seat.number < peer:
        return sender_pads(seat.senders[peer], len(bits), width)
    return receiver_pads(seat.receivers[peer], bits, width, seat.names[peer])
