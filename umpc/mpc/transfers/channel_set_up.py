"""The set-up of a channel of correlated transfers (`correlated_ot.py`) by 128 base transfers.

Papers: Ishai, Kilian, Nissim & Petrank 2003, step 1; Roy 2022, SoftSpokenOT (eprint 2022/192),
section 5.

    receiver → sender   the base transfers' offer
    sender → receiver   its choices: the complement of Δ
    receiver → sender   masked sums of its trees of seeds, which the sender punctures at Δ's digits,
                        and the proof that they are trees

Each base transfer gives the receiver of the channel two seeds and its sender one of them. A tree of
`fold` levels (`seed_trees.py`) has 2^fold leaves, of which the sender lacks the one numbered by a
digit of Δ. `correlated_ot.py` says what each party sees. `chained_set_up.py` makes a channel from
another one, with the same trees.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from umpc.crypto.prg import derive
from umpc.crypto.rounds import Protocol, check_reply, silence
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import BitArray, WordArray
from umpc.mpc.transfers.base_ot import receive_seeds, send_seeds
from umpc.mpc.transfers.correlated_ot import CorrelatedReceiver, CorrelatedSender
from umpc.mpc.transfers.leaf_streams import ChannelLeaves
from umpc.mpc.transfers.message_shapes import (
    BLOCK_BITS,
    FOLD,
    FOLDS,
    TREES,
    sums_bytes,
    trees_bytes,
    trees_message,
)
from umpc.mpc.transfers.seed_trees import proof_of_trees, punctured, tree, trees_hold


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

    Raises: RemoteProtocolError, EncodingError.
    """
    _check_fold(fold)
    if delta.shape != (2,) or delta.dtype != np.uint64 or not int(delta[0]) & 1:
        raise LocalProtocolError("the offset is two 64-bit words, the lowest bit 1")
    # IKNP, step 1: base transfers, in which the sender chooses by s = Δ, here by its complement
    choices = [1 - bit for bit in bits_of(delta).tolist()]
    keys = yield from receive_seeds(seed, choices, session, peer)
    (reply,) = yield silence(TREES)
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
    trees = [tree(pairs[place : place + fold]) for place in range(0, BLOCK_BITS, fold)]
    digits = [leaves for leaves, _ in trees]
    message = b"".join(sums for _, sums in trees)
    if fold > 1:
        message += proof_of_trees(digits)
    leaves = ChannelLeaves.of(digits, session, lacks_first=False)
    return CorrelatedReceiver(leaves, session, check_seed), message


def _check_fold(fold: int) -> None:
    if fold not in FOLDS:
        raise LocalProtocolError(f"the fold is one of {FOLDS}, not {fold}")
