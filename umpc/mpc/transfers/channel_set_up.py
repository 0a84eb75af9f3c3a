"""The set-up of a channel of correlated transfers (`correlated_ot.py`) by 128 base transfers.

Papers: Ishai, Kilian, Nissim & Petrank 2003, step 1; Roy 2022, SoftSpokenOT (eprint 2022/192),
section 5.

    receiver → sender   the base transfers' offer
    sender → receiver   its choices: the complement of Δ
    receiver → sender   masked sums of its trees of seeds, which the sender punctures at Δ's digits,
                        and the proof that they are trees

Each base transfer gives the receiver of the channel two seeds and its sender one of them. A tree of
`fold` levels has 2^fold leaves, of which the sender lacks the one numbered by a digit of Δ.
`correlated_ot.py` says what each party sees. `channels.py` makes a channel from another
one, with the same trees.

*Seed trees.* The trees of seeds of a channel's digits, and the proof that a digit's tree is one
tree.

Papers: Goldreich, Goldwasser & Micali 1986 (trees); Roy 2022, SoftSpokenOT (eprint 2022/192),
section 5: one party has all leaves, the other all but one, whose number is its digit.
It holds the first party's base seeds of the other bits, and gets each level's sums under them.

A first party that lies sends sums that fit only some digits. Whoever has another digit computes
other leaves than the liar expects, and the liar would see by the next message which. The proof ends
that (Boyle et al. 2019, eprint 2019/1159; Roy 2022, its malicious variant):

    each leaf gives 64 further bytes s_x;  sent: T = ⊕ s_x for each digit, and H of all s_x
    the other party computes all s_x but one, that one from T, and compares H

If H fits, then all s_x are those of the liar's own trees, for a collision-resistant H. So the
leaves do not depend on the digits. A lie passes only for digits that the liar guessed. T tells
nothing: it is masked by the missing s_x, which stands in H alone, a random oracle.

*Base ot.* Base oblivious transfers: random seeds, of which the other party gets one of two.

Paper: Naor & Pinkas, Efficient oblivious transfer protocols, SODA 2001: the transfers of Bellare &
Micali (CRYPTO '89), from Diffie–Hellman. All transfers share one C and one r, which the paper
allows because the hash takes the transfer's number. The group is the subgroup of prime order of
edwards25519 (RFC 8032, sections 5.1 and 5.1.2), by libsodium (docs/papers.md says why).

| sender | | receiver with choice bits b_i |
|---|---|---|
| C = c·G, A = r·G | → | |
| | ← | P_i = k_i·G if b_i = 0, C − k_i·G if b_i = 1 |
| seeds H(r·P_i) and H(r·C − r·P_i) | | seed b_i is H(k_i·A) |

Reveals, and why that is safe:

- The sender sees P_i, which is uniform over the group without zero (up to 2^−250) whatever b_i is.
  So the receiver's choices are hidden from any sender, even from one of unbounded power that breaks
  the protocol. This takes no assumption, but C must lie in the group: C − k_i·G would carry the
  part of C outside, and k_i·G would not. The receiver checks C and A before it uses them.
- The receiver sees C and A. If it could hash both r·P_i and r·C − r·P_i, their sum would be r·C,
  the Diffie–Hellman value of C and A. So under CDH in this group, with H (SHA-256) a random oracle,
  the seed not chosen is uniform to it. That holds for a receiver that deviates as well. Simulating
  such a receiver needs more: its choice shows only in its queries to H (the caveat of Chou &
  Orlandi 2015 too). We claim no more than semi-honest security.
- A third party that listens learns no seed, under CDH.

H takes the session, the transfer's number and bit, both messages and the point, each with its
length. The curve has 8 times as many points as the group. A point is refused if its bytes are not
its one encoding, if it is not on the curve, or if it is not in the group without zero. libsodium
checks all of it, `is_point` for C and A, and the scalar product itself for P_i. It takes the same
time for all scalars.

Cost: two rounds, 64 bytes and 32 a transfer. Scalar products: sender 1 a transfer, receiver 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import shake_256

import numpy as np
from nacl import bindings as sodium
from nacl.exceptions import CryptoError

from umpc.crypto.prg import SEED_BYTES, Stream, derive, digest
from umpc.crypto.rounds import Message, Protocol, check_reply, silence
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.transfers.batch_columns import ChannelLeaves
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    CHOICE,
    FOLD,
    FOLDS,
    OFFER,
    POINT_BYTES,
    PROOF_OF_LEAF,
    TREES,
    key_message,
    sums_bytes,
    trees_bytes,
    trees_message,
)


def open_sender(
    seed: bytes,
    delta: WordArray,
    session: bytes,
    peer: str,
    fold: int = FOLD,
) -> Protocol[CorrelatedSender]:
    """The sender's side of the set-up, three rounds.

    Args:
        seed: 32 uniform bytes, for this call alone.
        delta: (2,) uint64, lowest bit 1; may serve several sessions of this sender.
        session: names this run; the same for both parties, no two runs alike.
        peer: the receiver's name, for errors.

    Raises: RemoteProtocolError.
    """
    # Ishai et al. 2003; Roy 2022: set-up from base transfers
    _check_fold(fold)
    if delta.shape != (2,) or delta.dtype != np.uint64 or not int(delta[0]) & 1:
        raise LocalProtocolError("the offset is two 64-bit words, the lowest bit 1")
    # IKNP, step 1: base transfers, in which the sender chooses by s = Δ, here by its complement
    choices = [1 - bit for bit in bits_of(delta).tolist()]
    # roles are exchanged: the sender of the extension chooses here
    keys = yield from receive_seeds(seed, choices, session, peer)
    (reply,) = yield silence(TREES)
    # Roy 2022: the receiver's trees, from which one leaf stays unknown
    size = trees_bytes(fold)
    check_reply(reply, trees_message(bytes(size), fold), peer)
    if any(reply.payload[size:]):
        raise RemoteProtocolError(
            f"{peer} sent bits after its trees ({TREES})", culprit=peer, step=TREES
        )
    return sender_channel(delta, keys, reply.payload[:size], session, peer, fold)


def open_receiver(
    seed: bytes, session: bytes, peer: str, fold: int = FOLD
) -> Protocol[CorrelatedReceiver]:
    """The receiver's side of the set-up; arguments and failures are those of open_sender."""
    _check_fold(fold)
    # spec/base_transfers.py, `base_transfers`
    pairs = yield from send_seeds(seed, BLOCK_BITS, session, peer)
    channel, trees = receiver_channel(pairs, session, derive(seed, "channel check"), fold)
    (reply,) = yield trees_message(trees, fold)
    check_reply(reply, silence(TREES), peer)
    return channel


def bits_of(delta: WordArray) -> BitArray:
    """The bits of Δ: (128,) uint8."""
    return np.unpackbits(delta.astype("<u8").view(np.uint8), bitorder="little")


def sender_channel(
    delta: WordArray,
    keys: Sequence[bytes],
    trees: bytes,
    session: bytes,
    peer: str,
    fold: int = FOLD,
) -> CorrelatedSender:
    """The sender's end, from its base transfers and the receiver's trees.

    keys: for each bit of Δ the base seed of the other bit.
    trees: `trees_bytes` bytes.

    Raises: RemoteProtocolError where the trees do not fit together.
    """
    # spec/transfers.py, `set_up`
    bits = bits_of(delta)
    # SoftSpoken, section 5: the receiver's sums puncture the trees at Δ's digits
    size = sums_bytes(fold)
    digits = []
    for number, place in enumerate(range(0, BLOCK_BITS, fold)):
        sums = trees[number * size : (number + 1) * size]
        digit = bits[place : place + fold].tolist()
        digits.append(punctured(keys[place : place + fold], digit, sums))
    if fold > 1:
        places = np.packbits(bits.reshape(-1, fold), axis=1, bitorder="little")[:, 0]
        proof = trees[number * size + size :]
        # Boyle et al. 2019: one tree for every Δ, or the receiver is named
        if not trees_hold(digits, places.tolist(), proof):
            raise RemoteProtocolError(
                f"{peer} sent trees of seeds that do not fit together ({TREES}); such a message "
                "can test secret bits, so the study ends",
                culprit=peer,
                step=TREES,
            )
    leaves = ChannelLeaves.of(digits, session, lacks_first=True)
    return CorrelatedSender(delta, bits, leaves, session, peer)


def receiver_channel(
    pairs: Sequence[tuple[bytes, bytes]], session: bytes, check_seed: bytes, fold: int = FOLD
) -> tuple[CorrelatedReceiver, bytes]:
    """The receiver's end from its base transfers, and the trees for the sender.

    check_seed: as of CorrelatedReceiver.
    """
    # one tree for each digit of Δ
    trees = [tree(pairs[place : place + fold]) for place in range(0, BLOCK_BITS, fold)]
    digits = [leaves for leaves, _ in trees]
    message = b"".join(sums for _, sums in trees)
    if fold > 1:
        # Boyle et al. 2019: proof that a tree of seeds is one tree
        message += proof_of_trees(digits)
    leaves = ChannelLeaves.of(digits, session, lacks_first=False)
    return CorrelatedReceiver(leaves, session, check_seed), message


def _check_fold(fold: int) -> None:
    if fold not in FOLDS:
        raise LocalProtocolError(f"the fold is one of {FOLDS}, not {fold}")


# --- seed trees -----------------------------------------------------------------------------------


def tree(pairs: Sequence[tuple[bytes, bytes]]) -> tuple[list[bytes], bytes]:
    """All leaves of one digit, lowest bit first, and each lower level's two masked sums."""
    # spec/transfers.py, `tree`: both base seeds are the top level
    nodes = list(pairs[0])
    sums = b""
    for pair in pairs[1:]:
        children = _children(nodes)
        # Σ of all left and of all right children, each under one base seed
        sums += b"".join(_xor(key, *side) for key, side in zip(pair, children, strict=True))
        nodes = children[0] + children[1]
    return nodes, sums


def punctured(keys: Sequence[bytes], bits: Sequence[int], sums: bytes) -> list[bytes]:
    """The leaves without number Δ, renumbered: at place y − 1 the leaf y ⊕ Δ. Place 0 is missing.

    keys: at each level that of the bit that Δ does not have.
    """
    # spec/transfers.py, `punctured`
    nodes = [keys[0]]  # those after the missing one
    for level, (key, bit) in enumerate(zip(keys[1:], bits[1:], strict=True)):
        # children of all nodes but the missing one
        known = _children(nodes)
        start = 2 * SEED_BYTES * level + SEED_BYTES * (1 - bit)
        # the masked sum gives the missing node's sibling
        sibling = _xor(key, sums[start : start + SEED_BYTES], *known[1 - bit])
        nodes = [*known[bit], sibling, *known[1 - bit]]
    return nodes


def proof_of_trees(digits: Sequence[Sequence[bytes]]) -> bytes:
    """T of each digit, and H. digits: for each digit all its leaves."""
    # spec/transfers.py, `proof_of`: s_x of every leaf
    known = [[_of_leaf(leaf) for leaf in leaves] for leaves in digits]
    return b"".join(_xor(*each, size=PROOF_OF_LEAF) for each in known) + _joint(known)


def trees_hold(digits: Sequence[Sequence[bytes]], places: Sequence[int], proof: bytes) -> bool:
    """Whether the proof fits. digits: leaves as `punctured` has them. places: Δ's digits."""
    known = []
    for number, (leaves, place) in enumerate(zip(digits, places, strict=True)):
        # T = ⊕ s_x, so the missing leaf's s_x follows
        told = proof[number * PROOF_OF_LEAF : (number + 1) * PROOF_OF_LEAF]
        others = [_of_leaf(leaf) for leaf in leaves]
        missing = _xor(told, *others, size=PROOF_OF_LEAF)
        renumbered = [missing, *others]
        # back to the receiver's numbers: y ⊕ Δ
        known.append([renumbered[x ^ place] for x in range(len(renumbered))])
    return proof[len(digits) * PROOF_OF_LEAF :] == _joint(known)


def _joint(known: Sequence[Sequence[bytes]]) -> bytes:
    return digest(b"umpc tree check 1", *(b"".join(each) for each in known))


def _of_leaf(leaf: bytes) -> bytes:
    return expanded(leaf, "ot tree check", PROOF_OF_LEAF)


def _children(nodes: Sequence[bytes]) -> list[list[bytes]]:
    """The lower children of all nodes, and then the upper ones (GGM 1986)."""
    # GGM 1986: length-doubling generator
    both = [expanded(node, "ot tree", 2 * SEED_BYTES) for node in nodes]
    return [[pair[:SEED_BYTES] for pair in both], [pair[SEED_BYTES:] for pair in both]]


def expanded(seed: bytes, purpose: str, size: int) -> bytes:
    """SHAKE-256 of the purpose and a seed of 32 bytes. It costs a sixth of `derive`."""
    return shake_256(purpose.encode() + seed).digest(size)


def _xor(*seeds: bytes, size: int = SEED_BYTES) -> bytes:
    total = 0
    for seed in seeds:
        total ^= int.from_bytes(seed, "little")
    return total.to_bytes(size, "little")


# --- base ot --------------------------------------------------------------------------------------

ZERO = b"\1" + bytes(POINT_BYTES - 1)
"""The encoding of the group's zero. No message may contain it."""


def send_seeds(
    seed: bytes, count: int, session: bytes, peer: str
) -> Protocol[list[tuple[bytes, bytes]]]:
    """The sender's side of `count` transfers: two random 32-byte seeds each.

    Args:
        seed: 32 uniform bytes, for this call alone.
        session: names this run; the same for both, no two runs alike.
        peer: the receiver's name, for errors.

    Raises: RemoteProtocolError on a message of the wrong shape, on bytes that are no point of the
        group, and on zero.
    """
    stream = Stream(derive(seed, "base ot", "sender"))
    r = random_scalar(stream)
    # Naor & Pinkas, initialization: C and A = r·G
    # the receiver must not know log C, so the sender draws it
    c_point = base_multiple(random_scalar(stream))
    offer = c_point + base_multiple(r)
    (reply,) = yield Message(OFFER, offer, 2, 8 * POINT_BYTES)
    check_reply(reply, silence(OFFER), peer)
    # r·C once, for all transfers
    r_c = multiple(r, c_point, peer, CHOICE)
    # Naor & Pinkas, transfer: the keys P_i come from the receiver
    (reply,) = yield silence(CHOICE)
    check_reply(reply, key_message(CHOICE, count), peer)
    pairs = []
    for number, public in enumerate(_split(reply.payload)):
        # then C − P_i is zero, and one seed is known to all
        if public == c_point:
            raise _not_a_key("the offered point itself", peer, CHOICE)
        # The two seeds are H(r·P_i) and H(r·C − r·P_i).
        shared = multiple(r, public, peer, CHOICE)
        # r·(C − P_i) = r·C − r·P_i
        other = sodium.crypto_core_ed25519_sub(r_c, shared)
        transcript = session, number, offer, public
        pairs.append((_hash(*transcript, 0, shared), _hash(*transcript, 1, other)))
    return pairs


def receive_seeds(
    seed: bytes, choices: Sequence[int], session: bytes, peer: str
) -> Protocol[list[bytes]]:
    """The receiver's side: for each transfer the seed of its choice bit.

    Arguments and failures are those of send_seeds.
    """
    if any(choice not in (0, 1) for choice in choices):
        raise LocalProtocolError("a choice in an oblivious transfer is 0 or 1")
    # The multiples k_i·G need no offer, so they are made before it comes.
    stream = Stream(derive(seed, "base ot", "receiver"))
    # spec/base_transfers.py, `scalars`
    scalars = [random_scalar(stream) for _ in choices]
    multiples = [base_multiple(k) for k in scalars]
    (reply,) = yield silence(OFFER)
    check_reply(reply, key_message(OFFER, 2), peer)
    offer = reply.payload
    c_point, a_point = _split(offer)
    for point in (c_point, a_point):
        # C outside the group would show the choice
        if not is_point(point):
            raise _not_a_key("other bytes", peer, OFFER)
    publics: list[bytes] = []
    for choice, own in zip(choices, multiples, strict=True):
        # P_i = k_i·G if b_i = 0, C − k_i·G if b_i = 1
        public = (own, sodium.crypto_core_ed25519_sub(c_point, own))[choice]
        if public == ZERO:
            raise _start_again()
        publics.append(public)
    (reply,) = yield Message(CHOICE, b"".join(publics), len(publics), 8 * POINT_BYTES)
    check_reply(reply, silence(CHOICE), peer)
    # The seed of b_i is H(k_i·A). The sender computes its own ones at the same time.
    seeds = []
    for number, (choice, k, public) in enumerate(zip(choices, scalars, publics, strict=True)):
        shared = multiple(k, a_point, peer, OFFER)
        # spec/base_transfers.py, `_seed`
        seeds.append(_hash(session, number, offer, public, choice, shared))
    return seeds


def is_point(data: bytes) -> bool:
    """Whether these bytes are the one encoding of a point of the group other than zero."""
    return len(data) == POINT_BYTES and sodium.crypto_core_ed25519_is_valid_point(data)


def base_multiple(scalar: bytes) -> bytes:
    """scalar·G. Raises: LocalProtocolError for zero, which is drawn once in 2^252 runs."""
    try:
        return sodium.crypto_scalarmult_ed25519_base_noclamp(scalar)
    except CryptoError:
        raise _start_again() from None


def multiple(scalar: bytes, point: bytes, culprit: str, step: str) -> bytes:
    """scalar·point, for a scalar other than zero.

    Raises: RemoteProtocolError naming culprit and step, unless is_point(point).
    """
    try:
        return sodium.crypto_scalarmult_ed25519_noclamp(scalar, point)
    except CryptoError:
        raise _not_a_key("other bytes", culprit, step) from None


def _start_again() -> LocalProtocolError:
    return LocalProtocolError(
        "a number or key of the base oblivious transfers came out as zero; start again"
    )


def _not_a_key(what: str, culprit: str, step: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        f"{culprit} sent {what} where a point of edwards25519 of prime order was due ({step})",
        culprit=culprit,
        step=step,
    )


def _split(payload: bytes) -> list[bytes]:
    return [payload[start : start + POINT_BYTES] for start in range(0, len(payload), POINT_BYTES)]


def random_scalar(stream: Stream) -> bytes:
    """A number below the group's order, uniform up to 2^−256, as 32 bytes."""
    # 512 bits mod the order: bias below 2^-256
    return sodium.crypto_core_ed25519_scalar_reduce(stream.bytes(64))


def _hash(
    session: bytes, number: int, offer: bytes, public: bytes, bit: int, shared: bytes
) -> bytes:
    # each transfer and bit hashes apart
    place = number.to_bytes(4, "little") + bytes([bit])
    return digest(b"umpc base ot", session, place, offer, public, shared)
