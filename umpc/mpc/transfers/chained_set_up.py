"""The set-up of a channel of correlated transfers from a root that the last study left.

It is the set-up of `correlated_ot.py`, with other base transfers where both parties have a root of
the same id (`kept_roots.py`). The *sender* of the channel has Δ, the *receiver* chooses:

    receiver → sender   points C and A of base transfers; the id of the root that it has, or zeros
    sender → receiver   that id and an extension of the root, or zeros and points of base transfers
    receiver → sender   the channel's trees, and an extension of the channel for the next root

The second message has one length in both cases. So messages do not tell who worked together before,
and a study's bytes do not depend on it.

**From a root to base transfers.** In the root the sender of the channel has 128 pairs of keys, and
the receiver one key of each, by 128 uniform choices. That is the set-up of correlated transfers of
fold 1 in which both change places: the receiver's choices are an offset Δ' of its own. The sender
extends it once, choosing by the complement of its new Δ. It gets t_j, the receiver q_j and
q_j ⊕ Δ'. Hashed (`ot_products.hash_blocks`), these are the 128 base transfers of the new channel:
each has one of two uniform keys of the receiver (Beaver 1996; Ishai et al. 2003).

**The next root.** The receiver extends a fork of the new channel by 128 uniform choices, and both
hash again. The sender gets both keys of each transfer, the receiver one.

Reveals, and gains of a party that lies:

- The receiver sees rows of the root's extension, pseudorandom to it whatever Δ is: of each pair of
  keys it lacks one. Keys and Δ of a study are fresh; no study's seeds follow from a later one's.
- The sender sees the extension for the next root, pseudorandom whatever the choices are.
- A sender that lies in the root's extension could test bits of Δ', and with Δ' it would have both
  keys of all base transfers, so the receiver's inputs. The extension is therefore always checked
  (`correlation_check.py`). A sender that lies in base transfers by points learns nothing of the
  receiver's inputs, and this stays so up to what that check leaves.
- A receiver that lies in an unchecked channel can learn Δ, as before. With Δ it also gets both keys
  of the next root, and so Δ of the studies that follow from it. In a checked channel it cannot.
  So a checked study takes a root of a checked study only.
- Who reads a process's memory gets its unused roots, at most two for a peer and role. It can read
  later studies of that peer that use them, and no earlier one: keys and trees are gone, and a hash
  stands between a root and the channel that made it.

Cost: as `correlated_ot.py`, and set_up_bytes less its messages; no curve point but C and A where a
root is used.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from umpc.crypto.prg import BLOCK_BYTES, SEED_BYTES, Stream, derive, digest
from umpc.crypto.rounds import Message, Protocol, check_reply
from umpc.errors import LocalProtocolError, RemoteProtocolError
from umpc.mpc.arrays import WordArray
from umpc.mpc.transfers.base_ot import (
    CHOICE,
    OFFER,
    POINT_BYTES,
    receive_seeds,
    send_seeds,
    silence,
)
from umpc.mpc.transfers.correlated_ot import (
    BLOCK_BITS,
    EXTEND,
    FOLD,
    TREES,
    Blocks,
    CorrelatedReceiver,
    CorrelatedSender,
    bits_of,
    extend_shape,
    extension_bytes,
    receiver_channel,
    sender_channel,
    trees_bytes,
)
from umpc.mpc.transfers.kept_roots import NO_ROOT, ROOT_ID_BYTES, PeerRoots, Root
from umpc.mpc.transfers.ot_products import hash_blocks
from umpc.mpc.transfers.seed_trees import expanded

Seeds = TypeVar("Seeds")

ROOT_FOLD = 1
"""Fold of a root's extension: it needs no trees, so no check of them."""


def chained_shapes(*, checked: bool = False) -> list[tuple[bool, Message]]:
    """The set-up, round by round: whether the sender speaks, and its message without content."""
    return [
        (False, _offer(bytes(2 * POINT_BYTES), NO_ROOT)),
        (True, _choice(NO_ROOT, b"")),
        (False, _trees(bytes(_trees_bytes(checked)), checked)),
    ]


def open_chained_sender(
    seed: bytes,
    delta: WordArray,
    session: bytes,
    peer: str,
    roots: PeerRoots | None = None,
    *,
    checked: bool = False,
) -> Protocol[CorrelatedSender]:
    """The sender's side of the set-up, three rounds.

    Args: as of `correlated_ot.open_sender`.
        roots: those that may be used, and where the next one is left; None without any.
        checked: whether the receiver proves its trees and batches.

    Raises: RemoteProtocolError, EncodingError.
    """
    (reply,) = yield silence(OFFER)
    check_reply(reply, _offer(bytes(2 * POINT_BYTES), NO_ROOT), peer)
    offer, root_id = reply.payload[:-ROOT_ID_BYTES], reply.payload[-ROOT_ID_BYTES:]
    wanted = [1 - bit for bit in bits_of(delta).tolist()]
    root = None
    if roots is not None and root_id != NO_ROOT:
        root = roots.claim(root_id, checked=checked)
    if root is None:
        base = receive_seeds(seed, wanted, session, peer)
        next(base)
        points = base.send([Message(OFFER, offer, 2, 8 * POINT_BYTES)])
        (reply,) = yield _choice(NO_ROOT, points.payload)
        check_reply(reply, silence(CHOICE), peer)
        keys = _result(base, [silence(CHOICE)])
    else:
        receiver = _root_receiver(root, session, derive(seed, "root check"))
        blocks, extension = receiver.extend(np.array(wanted, dtype=np.uint8))
        (reply,) = yield _choice(root.id, extension.payload)
        check_reply(reply, silence(CHOICE), peer)
        keys = _keys(hash_blocks(blocks, _session(root.id, session)))
    (reply,) = yield silence(TREES)
    check_reply(reply, _trees(bytes(_trees_bytes(checked)), checked), peer)
    trees, extension_payload = _split(reply.payload, checked)
    channel = sender_channel(delta, keys, trees, session, peer, checked=checked)
    fork = channel.fork("next root")
    shape = extend_shape(BLOCK_BITS, 1, checked=checked)
    made = fork.extend(Message(EXTEND, extension_payload, shape.count, shape.width, 1), BLOCK_BITS)
    if roots is not None:
        roots.leave(_pairs_root(made, delta, session, checked=checked))
    return channel


def open_chained_receiver(
    seed: bytes,
    session: bytes,
    peer: str,
    roots: PeerRoots | None = None,
    *,
    checked: bool = False,
) -> Protocol[CorrelatedReceiver]:
    """The receiver's side of the set-up; arguments and failures are those of the sender's."""
    base = send_seeds(seed, BLOCK_BITS, session, peer)
    root = None if roots is None else roots.take(checked=checked)
    offered = NO_ROOT if root is None else root.id
    (reply,) = yield _offer(next(base).payload, offered)
    check_reply(reply, silence(OFFER), peer)
    (reply,) = yield silence(CHOICE)
    check_reply(reply, _choice(NO_ROOT, b""), peer)
    used, body = reply.payload[:ROOT_ID_BYTES], reply.payload[ROOT_ID_BYTES:]
    if used == NO_ROOT:
        if roots is not None:
            roots.unused()
        base.send([silence(OFFER)])
        points, rest = body[: BLOCK_BITS * POINT_BYTES], body[BLOCK_BITS * POINT_BYTES :]
        if any(rest):
            raise RemoteProtocolError(
                f"{peer} sent bits after the points of its base transfers ({CHOICE})",
                culprit=peer,
                step=CHOICE,
            )
        pairs = _result(base, [Message(CHOICE, points, BLOCK_BITS, 8 * POINT_BYTES)])
    elif root is not None and used == offered:
        pairs = _pairs_of_root(root, body, session, peer)
    else:
        raise RemoteProtocolError(
            f"{peer} answered with a root of transfers that was not offered ({CHOICE})",
            culprit=peer,
            step=CHOICE,
        )
    check_seed = derive(seed, "channel check") if checked else b""
    channel, trees = receiver_channel(pairs, session, FOLD, check_seed)
    choices = Stream(derive(seed, "next root")).bits(BLOCK_BITS)
    made, extension = channel.fork("next root").extend(choices)
    (reply,) = yield _trees(trees + extension.payload, checked)
    check_reply(reply, silence(TREES), peer)
    if roots is not None:
        packed = np.packbits(choices, bitorder="little").view("<u8").astype(np.uint64)
        keys = hash_blocks(made, _next_session(session))
        roots.leave(Root(_root_id(session), checked, keys=keys, choices=packed))
    return channel


def _root_receiver(root: Root, session: bytes, check_seed: bytes) -> CorrelatedReceiver:
    """The end of a root's channel that has both keys of every pair."""
    if root.pairs is None:
        raise LocalProtocolError("the root of transfers is of the other side")
    pairs = list(zip(_keys(root.pairs[0]), _keys(root.pairs[1]), strict=True))
    channel, _ = receiver_channel(pairs, _session(root.id, session), ROOT_FOLD, check_seed)
    return channel


def _pairs_of_root(root: Root, body: bytes, session: bytes, peer: str) -> list[tuple[bytes, bytes]]:
    """The receiver's 128 pairs of base seeds. Raises: RemoteProtocolError where a check fails."""
    if root.keys is None or root.choices is None:
        raise LocalProtocolError("the root of transfers is of the other side")
    # Its choices are the complement of the offset, as in every set-up.
    offset = ~root.choices
    name = _session(root.id, session)
    channel = sender_channel(offset, _keys(root.keys), b"", name, peer, ROOT_FOLD, checked=True)
    shape = extend_shape(BLOCK_BITS, 1, ROOT_FOLD, checked=True)
    made = channel.extend(Message(EXTEND, body, shape.count, shape.width, 1), BLOCK_BITS)
    both = [hash_blocks(made, name), hash_blocks(_turned(made, offset), name)]
    return list(zip(*map(_keys, both), strict=True))


def _pairs_root(made: Blocks, delta: WordArray, session: bytes, *, checked: bool) -> Root:
    name = _next_session(session)
    pairs = np.stack([hash_blocks(made, name), hash_blocks(_turned(made, delta), name)])
    return Root(_root_id(session), checked, pairs=pairs)


def _turned(blocks: Blocks, delta: WordArray) -> Blocks:
    return Blocks(blocks.start, blocks.blocks ^ delta)


def _keys(blocks: WordArray) -> list[bytes]:
    """Blocks as seeds of 16 bytes, spread to the size of a seed."""
    octets = blocks.astype("<u8").tobytes()
    starts = range(0, len(octets), BLOCK_BYTES)
    return [
        expanded(octets[start : start + BLOCK_BYTES], "ot base seed", SEED_BYTES)
        for start in starts
    ]


def _session(root_id: bytes, session: bytes) -> bytes:
    """The name of a root's one channel."""
    return digest(b"umpc root channel 1", root_id, session)


def _next_session(session: bytes) -> bytes:
    """The name under which the next root is hashed."""
    return digest(b"umpc next root 1", session)


def _root_id(session: bytes) -> bytes:
    return digest(b"umpc root 1", session)


def _result(base: Protocol[Seeds], replies: list[Message]) -> Seeds:
    """The result of base transfers, whose last message has come."""
    try:
        base.send(replies)
    except StopIteration as stop:
        seeds: Seeds = stop.value
        return seeds
    raise LocalProtocolError("the base transfers did not end")


def _offer(points: bytes, root_id: bytes) -> Message:
    return Message(OFFER, points + root_id, 3, 8 * POINT_BYTES)


def _choice(root_id: bytes, body: bytes) -> Message:
    """The sender's message, of one length for both kinds of base transfers."""
    size = extension_bytes(BLOCK_BITS, ROOT_FOLD, checked=True)
    payload = root_id + body + bytes(size - len(body))
    return Message(CHOICE, payload, len(payload), 8)


def _trees_bytes(checked: bool) -> int:
    extension = extension_bytes(BLOCK_BITS, FOLD, checked=checked)
    return trees_bytes(FOLD, checked=checked) + extension


def _trees(payload: bytes, checked: bool) -> Message:
    return Message(TREES, payload, len(payload), 8)


def _split(payload: bytes, checked: bool) -> tuple[bytes, bytes]:
    size = trees_bytes(FOLD, checked=checked)
    return payload[:size], payload[size:]
