"""Pseudorandomness: streams from seeds, and the fixed-key hash of GGM trees.

Every seed has one purpose, named by the labels it is derived with. The numpy arrays that come out are read
little-endian, so all machines agree.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

SEED_BYTES = 32
BLOCK_BYTES = 16


def derive(seed: bytes, *labels: str | int | bytes) -> bytes:
    """A 32-byte seed for one purpose: HMAC-SHA-256 of the labels, each with its type and length."""
    parts = bytearray()
    for label in labels:
        kind, body = _encode(label)
        parts += kind + len(body).to_bytes(4, "little") + body
    return hmac.digest(seed, bytes(parts), "sha256")


def _encode(label: str | int | bytes) -> tuple[bytes, bytes]:
    if isinstance(label, int):
        return b"i", label.to_bytes(8, "little")
    return (b"s", label.encode()) if isinstance(label, str) else (b"b", label)


def digest(*parts: bytes) -> bytes:
    """SHA-256 over parts with their lengths."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "little") + part)
    return state.digest()


class Stream:
    """The AES-256-CTR key stream of a seed, read from the start; each value is handed out once."""

    def __init__(self, seed: bytes):
        self._encryptor = Cipher(algorithms.AES(seed), modes.CTR(bytes(BLOCK_BYTES))).encryptor()

    def __repr__(self) -> str:
        return "Stream(<redacted>)"

    def bytes(self, count: int) -> bytes:
        return self._encryptor.update(bytes(count))

    def words(self, count: int, dtype: np.dtype | type = np.uint64) -> np.ndarray:
        """(count,) uniform integers of the type's full width."""
        kind = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(self.bytes(count * kind.itemsize), dtype=kind).astype(
            dtype, copy=False
        )

    def bits(self, count: int) -> np.ndarray:
        """(count,) uint8 of uniform 0 and 1."""
        packed = np.frombuffer(self.bytes((count + 7) // 8), dtype=np.uint8)
        return np.unpackbits(packed, count=count, bitorder="little")


class FixedKeyHash:
    """x ↦ π(x) ⊕ x for a fixed AES-128 key: Matyas–Meyer–Oseas, the PRG step of a GGM tree.

    Good for trees whose seeds are independent of each other (Guo et al., eprint 2019/074, section 4: an
    ideal permutation gives a correlation-robust hash). Garbling needs more: never use it there.
    The key is public and differs between attempts, so attempts do not share a permutation.
    """

    def __init__(self, key: bytes):
        self.key = key[:BLOCK_BYTES]
        self._encryptor = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()

    def __call__(self, blocks: np.ndarray) -> np.ndarray:
        """Hash every block: (n, 2) uint64, contiguous → (n, 2) uint64."""
        return self.into(blocks, np.empty((len(blocks) + 1, 2), dtype=np.uint64))

    def into(self, blocks: np.ndarray, room: np.ndarray) -> np.ndarray:
        """The same into the first n rows of `room`, which are returned. The cipher wants one row more than it fills."""
        out = room[: len(blocks)]
        if blocks.size:
            self._encryptor.update_into(memoryview(blocks).cast("B"), memoryview(room).cast("B"))
        np.bitwise_xor(out, blocks, out=out)
        return out
