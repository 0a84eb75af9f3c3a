"""Pseudorandomness: seeds with one purpose each, their streams, packed integers, the tree's hash.

Sinh & Ramon 2025, section 3: the parties make one seed together, and expand it by a pseudorandom
generator, so that all of them draw the same E. Every other seed of the protocol is expanded in the
same way. Integers are little-endian everywhere.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from spec.refused import require

SEED_BYTES = 32
BLOCK_BYTES = 16


def digest(*parts: bytes) -> bytes:
    """SHA-256 of all parts, each after its length: no two lists of parts read alike."""
    return hashlib.sha256(b"".join(len(p).to_bytes(8, "little") + p for p in parts)).digest()


def derive(seed: bytes, *labels: int | str | bytes) -> bytes:
    """A seed for one purpose: HMAC-SHA-256 under `seed` of all labels, with types and lengths."""
    text = b""
    for label in labels:
        if isinstance(label, int):
            kind, body = b"i", label.to_bytes(8, "little")
        elif isinstance(label, str):
            kind, body = b"s", label.encode()
        else:
            kind, body = b"b", label
        text += kind + len(body).to_bytes(4, "little") + body
    return hmac.digest(seed, text, "sha256")


def stream(seed: bytes, size: int) -> bytes:
    """The first bytes of the key stream of AES-256-CTR under `seed`; the counter begins at 0."""
    cipher = Cipher(algorithms.AES(seed), modes.CTR(bytes(BLOCK_BYTES))).encryptor()
    return cipher.update(bytes(size))


def words(seed: bytes, count: int, bits: int = 64, skip: int = 0) -> list[int]:
    """Integers of `bits` bits (8, 16, 32 or 64) from a stream, after `skip` bytes of it."""
    size = bits // 8
    data = stream(seed, skip + count * size)[skip:]
    return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]


def bits_of(seed: bytes, count: int) -> list[int]:
    """Bits from a stream, the lowest bit of a byte first."""
    data = stream(seed, (count + 7) // 8)
    return [data[place // 8] >> place % 8 & 1 for place in range(count)]


def aes(key: bytes, block: int) -> int:
    """AES-128 of one block, an integer of 128 bits: the permutation π of a public key."""
    return int.from_bytes(_cipher(key).update(block.to_bytes(BLOCK_BYTES, "little")), "little")


@lru_cache
def _cipher(key: bytes) -> CipherContext:
    """AES under a key; a block does not depend on those before it."""
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


def tree_hash(key: bytes, block: int) -> int:
    """π(x) ⊕ x. Guo et al. 2020, section 4: correlation robust if π is an ideal permutation."""
    return aes(key, block) ^ block


def pack(values: list[int], width: int) -> bytes:
    """Integers of `width` bits one after the other, the lowest bit first; the rest is zero."""
    whole = sum(value << width * place for place, value in enumerate(values))
    return whole.to_bytes((width * len(values) + 7) // 8, "little")


def unpack(packed: bytes, count: int, width: int) -> list[int]:
    """The inverse of `pack`."""
    require(len(packed) == (width * count + 7) // 8, "packed length")
    whole = int.from_bytes(packed, "little")
    require(whole >> width * count == 0, "packed padding")
    return [whole >> width * place & (1 << width) - 1 for place in range(count)]
