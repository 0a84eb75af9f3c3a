"""Base oblivious transfers: random seeds, of which the other party gets one of two.

Paper: Naor & Pinkas, Efficient oblivious transfer protocols, SODA 2001: the transfers of Bellare &
Micali (CRYPTO '89), from Diffie–Hellman. All transfers share one C and one r, which the paper
allows because the hash takes the transfer's number. The group is the subgroup of prime order of
edwards25519 (RFC 8032, sections 5.1 and 5.1.2), by libsodium
(docs/decisions/0034-base-transfers.md).

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

from nacl import bindings as sodium
from nacl.exceptions import CryptoError

from umpc.crypto.prg import Stream, derive, digest
from umpc.crypto.rounds import Message, Protocol, check_reply, silence
from umpc.errors import EncodingError, LocalProtocolError
from umpc.mpc.transfers.message_shapes import CHOICE, OFFER, POINT_BYTES, key_message

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

    Raises: RemoteProtocolError on a message of the wrong shape; EncodingError on bytes that are no
        point of the group, or zero.
    """
    stream = Stream(derive(seed, "base ot", "sender"))
    r = _scalar(stream)
    # Naor & Pinkas, initialization: C and A = r·G
    c_point = base_multiple(_scalar(stream))
    offer = c_point + base_multiple(r)
    (reply,) = yield Message(OFFER, offer, 2, 8 * POINT_BYTES)
    check_reply(reply, silence(OFFER), peer)
    r_c = multiple(r, c_point, peer, CHOICE)
    # Naor & Pinkas, transfer: the keys P_i come from the receiver
    (reply,) = yield silence(CHOICE)
    check_reply(reply, key_message(CHOICE, count), peer)
    pairs = []
    for number, public in enumerate(_split(reply.payload)):
        if public == c_point:
            raise _not_a_key("the offered point itself", peer, CHOICE)
        # The two seeds are H(r·P_i) and H(r·C − r·P_i).
        shared = multiple(r, public, peer, CHOICE)
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
    scalars = [_scalar(stream) for _ in choices]
    multiples = [base_multiple(k) for k in scalars]
    (reply,) = yield silence(OFFER)
    check_reply(reply, key_message(OFFER, 2), peer)
    offer = reply.payload
    c_point, a_point = _split(offer)
    for point in (c_point, a_point):
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

    Raises: EncodingError naming culprit and step, unless is_point(point).
    """
    try:
        return sodium.crypto_scalarmult_ed25519_noclamp(scalar, point)
    except CryptoError:
        raise _not_a_key("other bytes", culprit, step) from None


def _start_again() -> LocalProtocolError:
    return LocalProtocolError(
        "a number or key of the base oblivious transfers came out as zero; start again"
    )


def _not_a_key(what: str, culprit: str, step: str) -> EncodingError:
    return EncodingError(
        f"{culprit} sent {what} where a point of edwards25519 of prime order was due ({step})",
        culprit=culprit,
        step=step,
    )


def _split(payload: bytes) -> list[bytes]:
    return [payload[start : start + POINT_BYTES] for start in range(0, len(payload), POINT_BYTES)]


def _scalar(stream: Stream) -> bytes:
    """A number below the group's order, uniform up to 2^−256, as 32 bytes."""
    return sodium.crypto_core_ed25519_scalar_reduce(stream.bytes(64))


def _hash(
    session: bytes, number: int, offer: bytes, public: bytes, bit: int, shared: bytes
) -> bytes:
    place = number.to_bytes(4, "little") + bytes([bit])
    return digest(b"umpc base ot", session, place, offer, public, shared)
