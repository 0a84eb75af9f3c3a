"""Base oblivious transfers: two random seeds for each transfer, of which the receiver chose one.

Naor & Pinkas 2001, in the group of prime order of edwards25519 (RFC 8032). One C and one
r serve all transfers, since the hash takes the transfer's number. The receiver's key is uniform
whatever it chose. It learns only one seed under CDH, for SHA-256 as a random oracle. Every point is
checked: outside the group, C − k·G would tell the choice.
"""

from __future__ import annotations

from typing import Any

from nacl import bindings as sodium

from spec.prg import derive, digest, stream
from spec.refused import require


def scalars(seed: bytes, side: str, count: int) -> list[bytes]:
    """Numbers below the group's order, from 64 bytes of a stream each."""
    data = stream(derive(seed, "base ot", side), 64 * count)
    parts = (data[64 * n : 64 * n + 64] for n in range(count))
    return [sodium.crypto_core_ed25519_scalar_reduce(part) for part in parts]


def times(scalar: bytes, point: bytes | None = None) -> bytes:
    """scalar · point, or scalar · G."""
    if point is None:
        return sodium.crypto_scalarmult_ed25519_base_noclamp(scalar)
    return sodium.crypto_scalarmult_ed25519_noclamp(scalar, point)


def is_point(data: bytes) -> bool:
    """Whether these bytes are the one encoding of a point of prime order."""
    return sodium.crypto_core_ed25519_is_valid_point(data)


def base_transfers(
    session: bytes,
    sender_seed: bytes,
    receiver_seed: bytes,
    choices: list[int],
    step: str = "",
    payload: bytes = b"",
) -> dict[str, Any]:
    """Two seeds for each transfer, and the one that the receiver chose.

    Args: step, payload: a message that is sent in place of another one.
    """
    r, c = scalars(sender_seed, "sender", 2)
    ks = scalars(receiver_seed, "receiver", len(choices))
    # Naor & Pinkas, initialization: the sender publishes C, whose logarithm the receiver lacks
    offer = payload if step == "ot_offer" else times(c) + times(r)
    require(len(offer) == 64, "shape of a message", "sender")
    big_c, a = offer[:32], offer[32:]
    require(is_point(big_c) and is_point(a), "an offer is of points", "sender")
    # transfer, step 1: the receiver has the logarithm of one of P and C − P, and shows P
    keys = []
    for choice, k in zip(choices, ks, strict=True):
        keys.append(sodium.crypto_core_ed25519_sub(big_c, times(k)) if choice else times(k))
    sent = payload if step == "ot_choice" else b"".join(keys)
    require(len(sent) == 32 * len(choices), "shape of a message", "receiver")
    # step 2: the sender's seeds are hashes of r·P and of r·(C − P)
    pairs = []
    r_c = times(r, big_c)
    for number in range(len(choices)):
        key = sent[32 * number : 32 * number + 32]
        require(key != big_c, "a key is not the offer", "receiver")
        require(is_point(key), "a key is a point", "receiver")
        shared = times(r, key)
        other = sodium.crypto_core_ed25519_sub(r_c, shared)
        both = enumerate((shared, other))
        pairs.append([_seed(session, number, offer, key, bit, point) for bit, point in both])
    # step 3: the receiver computes the one that it chose as k·A
    chosen = [
        _seed(session, n, offer, keys[n], choice, times(ks[n], a))
        for n, choice in enumerate(choices)
    ]
    return {
        "messages": {"ot_offer": offer, "ot_choice": sent},
        "sender_pairs": pairs,
        "receiver_seeds": chosen,
    }


def _seed(session: bytes, number: int, offer: bytes, key: bytes, bit: int, shared: bytes) -> bytes:
    place = number.to_bytes(4, "little") + bytes([bit])
    return digest(b"umpc base ot", session, place, offer, key, shared)
