"""Pseudorandomness: streams from seeds, and the fixed-key hash of GGM trees.

Every seed has one purpose, named by the labels from which it is derived. All numpy arrays are read
from the stream little-endian, so all machines agree.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeVar, overload

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from umpc.crypto.signing import digest as digest

SEED_BYTES = 32
BLOCK_BYTES = 16
FROM_THE_START = modes.CTR(bytes(BLOCK_BYTES))
"""Every key serves one stream, so all streams count from zero."""

_ZEROS = memoryview(bytes(1 << 16))
"""The bytes that a stream encrypts, part by part."""

NUMBER = b"i" + (8).to_bytes(4, "little")
"""The kind and the length of an integer, which go before it in a list of labels."""

Word = TypeVar("Word", bound=np.generic)
"""The numpy type of a stream's words."""


def derive(seed: bytes, *labels: str | int | bytes) -> bytes:
    """A 32-byte seed for one purpose: HMAC-SHA-256, keyed by the seed, of the labels.

    Each label enters with its type and length, so two different lists of labels never read alike.

    Args: labels: integers are in 0 .. 2^64 − 1.
    """
    # spec/prg.py, `derive`
    return hmac.digest(seed, _encoded(labels), "sha256")


def derive_each(seeds: Sequence[bytes], *labels: str | int | bytes) -> list[bytes]:
    """`derive` from each of these seeds, with labels that are encoded once."""
    message = _encoded(labels)
    return [hmac.digest(seed, message, "sha256") for seed in seeds]


def _encoded(labels: Sequence[str | int | bytes]) -> bytes:
    return b"".join(map(_encode, labels))


def _encode(label: str | int | bytes) -> bytes:
    """A label's kind, its length and its bytes."""
    if isinstance(label, int):
        return NUMBER + label.to_bytes(8, "little")
    # kind and length make the encoding injective
    kind, body = (b"s", label.encode()) if isinstance(label, str) else (b"b", label)
    return kind + len(body).to_bytes(4, "little") + body


class Stream:
    """The AES-256-CTR key stream of a seed, from its start. Each byte is handed out once.

    Args: seed: 32 bytes. first_block: blocks of 16 bytes that are left out.
    """

    def __init__(self, seed: bytes, first_block: int = 0):
        # spec/prg.py, `stream`
        start = (
            modes.CTR(first_block.to_bytes(BLOCK_BYTES, "big")) if first_block else FROM_THE_START
        )
        self._encryptor = Cipher(algorithms.AES(seed), start).encryptor()

    def __repr__(self) -> str:
        return "Stream(<redacted>)"

    def bytes(self, count: int) -> bytes:
        """The next `count` bytes."""
        return self._encryptor.update(bytes(count))

    def octets(self, count: int) -> NDArray[np.uint8]:
        """The next `count` bytes: (count,) uint8. They are encrypted in place, without a copy."""
        # The cipher asks for a block more than it fills.
        room = np.empty(count + BLOCK_BYTES, dtype=np.uint8)
        for start in range(0, count, len(_ZEROS)):
            size = min(len(_ZEROS), count - start)
            target = room.data[start : start + size + BLOCK_BYTES]
            self._encryptor.update_into(_ZEROS[:size], target)
        return room[:count]

    @overload
    def words(self, count: int) -> NDArray[np.uint64]: ...

    @overload
    def words(self, count: int, dtype: type[Word] | np.dtype[Word]) -> NDArray[Word]: ...

    def words(self, count: int, dtype: Any = np.uint64) -> NDArray[Any]:
        """(count,) uniform integers of the type's full width."""
        kind = np.dtype(dtype).newbyteorder("<")
        words: NDArray[Any] = self.octets(count * kind.itemsize).view(kind)
        return words.astype(dtype, copy=False)

    def reals(self, count: int) -> NDArray[np.float64]:
        """(count,) uniform draws from [0, 1), of 53 bits each. For simulations, never for noise."""
        return np.asarray((self.words(count) >> np.uint64(11)) * 2.0**-53)

    def bits(self, count: int) -> NDArray[np.uint8]:
        """(count,) uniform bits, as uint8 of value 0 or 1."""
        return np.unpackbits(self.octets((count + 7) // 8), count=count, bitorder="little")


class FixedKeyHash:
    """x ↦ π(x) ⊕ x, π being AES-128 under a fixed key: the PRG step of a GGM tree.

    This is the Matyas–Meyer–Oseas construction. It suits trees whose seeds are independent of each
    other (Guo et al. 2020, eprint 2019/074, section 4: with an ideal permutation it is a
    correlation-robust hash). Garbled gates need a stronger hash and must not use this one. The
    tables of pieces (`mpc/garbled/piece_tables.py`) may: inputs of a record's rows differ by
    nonzero multiples of Δ, and what their pads hide does not depend on Δ, so nothing is circular.

    Args: key: its first 16 bytes are the AES key. The key is public. It differs between attempts,
    so attempts do not share a permutation.
    """

    def __init__(self, key: bytes):
        self.key = key[:BLOCK_BYTES]

    @cached_property
    def _encryptor(self) -> CipherContext:
        """The cipher, made when it is first needed: most chunks have no tree."""
        return Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()

    def __call__(self, blocks: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The hash of every block: (n, 2) uint64 → (n, 2) uint64."""
        # spec/prg.py, `tree_hash`: π(x) ⊕ x
        permuted = np.frombuffer(self._encryptor.update(blocks.tobytes()), dtype=np.uint64)
        return permuted.reshape(blocks.shape) ^ blocks
