"""The check that a receiver of transfers chose one bit for each transfer, in all digits of Δ.

A receiver that puts other choices into one digit learns from the next message whether that digit of
Δ has a certain value, and whoever has Δ reads all labels. Roy 2022, its consistency check (the idea
is of Keller, Orsini & Scholl 2015): a linear hash h is drawn after the message d. The receiver
sends h(r), and a hash of h(t_i) of all 128 columns. The sender computes h(q_i) ⊕ Δ_i·h(r).

Who deviates passes only if it guessed the bits of Δ on which its deviation depends. Guessing c bits
ends the study with probability 1 − 2^−c, and names the receiver.
"""

from __future__ import annotations

from typing import Any

from spec.prg import aes, derive, digest, pack
from spec.refused import require
from spec.transfers import blocks_of, columns

ROUND_POLYNOMIAL = 0xE1 << 120


def multiply(x: int, y: int) -> int:
    """The field of GCM (NIST SP 800-38D, section 6.3): the first bit of a block is its highest."""
    product = 0
    for place in range(127, -1, -1):
        product ^= y * (x >> place & 1)
        y = y >> 1 ^ ROUND_POLYNOMIAL * (y & 1)
    return product


def row_hash(key: bytes, row: bytes) -> int:
    """h: GHASH under a public key, linear on rows of one length. Args: row: whole blocks."""
    point = int.from_bytes(aes(key, 0).to_bytes(16, "little"), "big")
    found = 0
    for start in range(0, len(row), 16):
        found = multiply(found ^ int.from_bytes(row[start : start + 16], "big"), point)
    return multiply(found, point)


def joint(hashes: list[int]) -> bytes:
    """The hash of h of all columns."""
    return digest(b"umpc correlation check 2", b"".join(h.to_bytes(16, "big") for h in hashes))


def extend(
    channel: dict[str, Any],
    choices: list[int],
    check_seed: bytes,
    lie: int = 0,
    sent: bytes | None = None,
) -> dict[str, Any]:
    """The first batch of a checked channel.

    Args: check_seed: 32 random bytes of the receiver's own. lie: what a liar adds to its choices in
    the first digit alone. sent: what the receiver sends in place of its message.
    """
    count = len(choices)
    width = -(-count // 128) * 16 + 16
    # 128 further choices hide h(r); the first ones are filled up to whole blocks
    packed = pack(choices, 1).ljust(width - 16, b"\0") + derive(check_seed, "mask", 1, 0)[:16]
    r = int.from_bytes(packed, "little")
    rows, sums = columns(channel, "receiver", width)
    chosen = [r ^ lie, *[r] * (len(sums) - 1)]
    d = b"".join((u ^ own).to_bytes(width, "little") for u, own in zip(sums, chosen, strict=True))
    key = key_after(channel, d)
    proof = row_hash(key, packed).to_bytes(16, "big") + joint(hashes_of(key, rows, width))
    message = d + proof if sent is None else sent
    require(len(message) == len(d) + 48, "shape of a message", "receiver")
    # the sender: q's columns, and the same hashes of them
    d, proof = message[: len(d)], message[len(d) :]
    own, _ = columns(channel, "sender", width)
    for place in range(128):
        digit = place // channel["fold"]
        part = int.from_bytes(d[digit * width : (digit + 1) * width], "little")
        own[place] ^= part * (channel["delta"] >> place & 1)
    of_choices = int.from_bytes(proof[:16], "big")
    found = hashes_of(key_after(channel, d), own, width)
    due = [h ^ of_choices * (channel["delta"] >> i & 1) for i, h in enumerate(found)]
    require(proof[16:] == joint(due), "the choices fit", "receiver")
    return {
        "extension": message,
        "sender_blocks": blocks_of(own, count),
        "receiver_blocks": blocks_of(rows, count),
    }


def key_after(channel: dict[str, Any], d: bytes) -> bytes:
    """The key of h, of which nothing was known when d was chosen (Fiat & Shamir 1986)."""
    place = (1).to_bytes(8, "little") + bytes(8)
    return digest(b"umpc correlation check 1", channel["root"], place, d)[:16]


def hashes_of(key: bytes, rows: list[int], width: int) -> list[int]:
    """h of all columns."""
    return [row_hash(key, row.to_bytes(width, "little")) for row in rows]
