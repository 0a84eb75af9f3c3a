"""Base oblivious transfers: random seeds, of which the other party gets one of two.

Paper: Naor & Pinkas, Efficient oblivious transfer protocols, SODA 2001: the transfers of Bellare &
Micali (CRYPTO '89), from Diffie–Hellman, here on P-256. All transfers share one C and one r, which
the paper allows because the hash takes the transfer's number.

| sender | | receiver with choice bits b_i |
|---|---|---|
| C = c·G, A = r·G | → | |
| | ← | P_i = k_i·G if b_i = 0, C − k_i·G if b_i = 1 |
| seeds H(r·P_i) and H(r·C − r·P_i) | | seed b_i is H(k_i·A) |

Reveals, and why that is safe:

- The sender sees P_i, which is uniform over the group without zero (up to 2^−128) whatever b_i is.
  So the receiver's choices are hidden from any sender, even from one of unbounded power that breaks
  the protocol. This takes no assumption.
- The receiver sees C and A. If it could hash both r·P_i and r·C − r·P_i, their sum would be r·C,
  the Diffie–Hellman value of C and A. So under CDH on P-256, with H (SHA-256) a random oracle, the
  seed not chosen is uniform to it. That holds for a receiver that deviates as well. Simulating such
  a receiver needs more: its choice shows only in its queries to H (the caveat of Chou & Orlandi
  2015 too). We claim no more than semi-honest security.
- A third party that listens learns no seed, under CDH.

H takes the session, the transfer's number and bit, both messages and the point, each with its
length. P-256 has prime order, so a point of the curve that is not infinity lies in the subgroup.
pycryptodome reduces coordinates modulo p and reads (0, 0) as infinity; both are refused here before
it is asked. Its scalar product is blinded with randomness of its own, which changes no result.

Cost: two rounds, 130 bytes and 65 a transfer. Scalar products: sender 1 a transfer, receiver 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from umpc.crypto.prg import Stream, derive, digest
from umpc.crypto.rounds import Message, Protocol, check_reply
from umpc.errors import EncodingError, LocalProtocolError

if TYPE_CHECKING:
    # The library re-exports the class without saying so.
    from Crypto.PublicKey.ECC import EccPoint  # type: ignore[attr-defined]

OFFER, CHOICE = "ot_offer", "ot_choice"
POINT_BYTES = 65
"""SEC 1, section 2.3.3, uncompressed: 4, x, y."""

PRIME = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


@cache
def generator() -> EccPoint:
    """G, from SEC 2, section 2.4.2."""
    return _point(
        0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
        0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
    )


def _point(x: int, y: int) -> EccPoint:
    """A point of P-256. Raises: ValueError off the curve.

    The library is imported here, as processes that take no transfers need no curve.
    """
    # The library re-exports the class without saying so.
    from Crypto.PublicKey.ECC import EccPoint  # type: ignore[attr-defined]

    return EccPoint(x, y, curve="P-256")


def send_seeds(
    seed: bytes, count: int, session: bytes, peer: str
) -> Protocol[list[tuple[bytes, bytes]]]:
    """The sender's side of `count` transfers: two random 32-byte seeds each.

    Args:
        seed: 32 uniform bytes, for this call alone.
        session: names this run; the same for both, no two runs alike.
        peer: the receiver's name, for errors.

    Raises: RemoteProtocolError on a message of the wrong shape; EncodingError on bytes that are no
        point.
    """
    stream = Stream(derive(seed, "base ot", "sender"))
    r = _scalar(stream)
    # Naor & Pinkas, initialization: C and A = r·G
    c_point = generator() * _scalar(stream)
    offer = encode_point(c_point) + encode_point(generator() * r)
    (reply,) = yield Message(OFFER, offer, 2, 8 * POINT_BYTES)
    check_reply(reply, silence(OFFER), peer)
    # Naor & Pinkas, transfer: the keys P_i come from the receiver
    (reply,) = yield silence(CHOICE)
    check_reply(reply, key_message(CHOICE, count), peer)
    r_c = c_point * r
    pairs = []
    for number, encoding in enumerate(_split(reply.payload)):
        public = decode_point(encoding, peer, CHOICE)
        if public == c_point:
            raise _not_a_key("the offered point itself", peer, CHOICE)
        # The two seeds are H(r·P_i) and H(r·C − r·P_i).
        shared = public * r
        transcript = session, number, offer, encoding
        pairs.append((_hash(*transcript, 0, shared), _hash(*transcript, 1, r_c + -shared)))
    return pairs


def receive_seeds(
    seed: bytes, choices: Sequence[int], session: bytes, peer: str
) -> Protocol[list[bytes]]:
    """The receiver's side: for each transfer the seed of its choice bit.

    Arguments and failures are those of send_seeds.
    """
    if any(choice not in (0, 1) for choice in choices):
        raise LocalProtocolError("a choice in an oblivious transfer is 0 or 1")
    (reply,) = yield silence(OFFER)
    check_reply(reply, key_message(OFFER, 2), peer)
    offer = reply.payload
    c_point, a_point = (decode_point(encoding, peer, OFFER) for encoding in _split(offer))
    stream = Stream(derive(seed, "base ot", "receiver"))
    encodings: list[bytes] = []
    seeds: list[bytes] = []
    for number, choice in enumerate(choices):
        # P_i = k_i·G if b_i = 0, C − k_i·G if b_i = 1
        k = _scalar(stream)
        own = generator() * k
        encodings.append(encode_point((own, c_point + -own)[choice]))
        # The seed of b_i is H(k_i·A).
        seeds.append(_hash(session, number, offer, encodings[-1], choice, a_point * k))
    (reply,) = yield Message(CHOICE, b"".join(encodings), len(encodings), 8 * POINT_BYTES)
    check_reply(reply, silence(CHOICE), peer)
    return seeds


def silence(step: str, round: int = 0) -> Message:
    """The message of a party that only listens in this round."""
    return Message(step, b"", 0, 0, round)


def encode_point(point: EccPoint) -> bytes:
    """The uncompressed encoding of a point.

    Raises: LocalProtocolError at infinity, which our scalars give once in 2^256 runs.
    """
    if point.is_point_at_infinity():
        raise LocalProtocolError(
            "a key of the base oblivious transfers is the point at infinity; start again"
        )
    x, y = point.xy
    return b"\x04" + int(x).to_bytes(32, "big") + int(y).to_bytes(32, "big")


def decode_point(data: bytes, culprit: str, step: str) -> EccPoint:
    """A point of P-256 other than infinity, from its one encoding.

    Raises: EncodingError naming culprit and step.
    """
    if len(data) != POINT_BYTES or data[0] != 4:
        raise _not_a_key(f"{len(data)} bytes that are no uncompressed point", culprit, step)
    x = int.from_bytes(data[1:33], "big")
    y = int.from_bytes(data[33:], "big")
    if x >= PRIME or y >= PRIME:
        raise _not_a_key("a coordinate beyond the field", culprit, step)
    if x == y == 0:
        raise _not_a_key("what the library reads as infinity", culprit, step)
    try:
        return _point(x, y)
    except ValueError:
        raise _not_a_key("a point off the curve", culprit, step) from None


def _not_a_key(what: str, culprit: str, step: str) -> EncodingError:
    return EncodingError(
        f"{culprit} sent {what} where a point of P-256 was due ({step})",
        culprit=culprit,
        step=step,
    )


def key_message(step: str, count: int) -> Message:
    """A message of `count` points, with zero bytes in place of its content."""
    return Message(step, bytes(POINT_BYTES * count), count, 8 * POINT_BYTES)


def _split(payload: bytes) -> list[bytes]:
    return [payload[start : start + POINT_BYTES] for start in range(0, len(payload), POINT_BYTES)]


def _scalar(stream: Stream) -> int:
    """A number in 1..ORDER − 1, uniform up to 2^−128."""
    return int.from_bytes(stream.bytes(48), "little") % (ORDER - 1) + 1


def _hash(
    session: bytes, number: int, offer: bytes, public: bytes, bit: int, shared: EccPoint
) -> bytes:
    place = number.to_bytes(4, "little") + bytes([bit])
    return digest(b"umpc base ot", session, place, offer, public, encode_point(shared))
