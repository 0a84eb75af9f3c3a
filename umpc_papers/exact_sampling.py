"""Arrays of random draws whose probabilities are exactly the stated ones.

A node takes 256 bits from its `RandomBits` and expands them, so a million records cost one call.
Privacy rests on coins of probability threshold/2^64, compared in integers. Thresholds are fractions
rounded to the safe side by certified balls. So a claimed epsilon holds for the law that is drawn,
not for a law near it.

The expansion is SHAKE-256 of the standard library.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from umpc.dp.events import PRECISION, ball, below
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, InvalidEpsilon, LocalProtocolError

Words = NDArray[np.uint64]

SEED_BYTES = 32
CHUNK_BYTES = 1 << 16
COIN_BITS = 64
MOST_TURNS = 1024
"""Turns of a rejection that a working stream does not get to: each word is refused with chance
below 1/2."""


def draw_seed(bits: RandomBits) -> bytes:
    """256 fresh bits.

    Raises:
        LocalProtocolError: the source returned something else.
    """
    drawn = bits(8 * SEED_BYTES)
    if not 0 <= drawn < 1 << 8 * SEED_BYTES:
        raise LocalProtocolError(
            "expected 256 random bits; pass a function such as secrets.randbits"
        )
    return drawn.to_bytes(SEED_BYTES, "little")


def split_seed(message: bytes) -> tuple[bytes, bytes]:
    """Split a message into the public seed at its start and the rest.

    Raises: EncodingError if the message is shorter than a seed.
    """
    if len(message) < SEED_BYTES:
        raise EncodingError(
            f"a message starts with a seed of {SEED_BYTES} bytes, got {len(message)} bytes in all"
        )
    return message[:SEED_BYTES], message[SEED_BYTES:]


class ShakeStream:
    """The expansion of a seed for one purpose, read from the start; each byte is handed out once.

    Args:
        seed: 32 bytes.
        purpose: a word that keeps streams of one seed apart.

    Raises:
        LocalProtocolError: the seed has another length.
    """

    def __init__(self, seed: bytes, purpose: str):
        if len(seed) != SEED_BYTES:
            raise LocalProtocolError(f"a seed has {SEED_BYTES} bytes, got {len(seed)}")
        self._prefix = seed + len(purpose).to_bytes(2, "little") + purpose.encode()
        self._chunks = 0
        self._rest = b""

    def __repr__(self) -> str:
        return "ShakeStream(<redacted>)"

    def bytes(self, count: int) -> bytes:
        """The next `count` bytes."""
        parts = [self._rest[:count]]
        missing = count - len(self._rest)
        self._rest = self._rest[count:]
        while missing > 0:
            label = self._prefix + self._chunks.to_bytes(8, "little")
            chunk = hashlib.shake_256(label).digest(CHUNK_BYTES)
            self._chunks += 1
            parts.append(chunk[:missing])
            self._rest = chunk[missing:]
            missing -= len(chunk)
        return b"".join(parts)

    def words(self, count: int) -> Words:
        """(count,) uint64, uniform."""
        return np.frombuffer(self.bytes(8 * count), dtype="<u8").astype(np.uint64, copy=False)

    def coins(self, thresholds: int | Words, count: int) -> NDArray[np.bool_]:
        """(count,) bool, each true with probability threshold/2^64.

        Args:
            thresholds: one int, or (count,) uint64.
            count: number of coins.
        """
        return self.words(count) < np.asarray(thresholds, dtype=np.uint64)

    def below(self, bounds: int | Words, count: int) -> Words:
        """(count,) uint64, each uniform on 0 .. bound-1, exactly.

        Words past the last multiple of the bound are drawn again.

        Args:
            bounds: one int, or (count,) uint64; all above 0.
            count: number of integers.

        Raises:
            LocalProtocolError: a bound is 0, or the stream is broken.
        """
        bounds = np.broadcast_to(np.asarray(bounds, dtype=np.uint64), (count,))
        if count and not bounds.all():
            raise LocalProtocolError("a uniform integer below 0 does not exist")
        surplus = ((np.uint64(0) - bounds) % np.maximum(bounds, np.uint64(1))).astype(np.uint64)
        words = self.words(count)
        for _ in range(MOST_TURNS):
            again = np.flatnonzero(words < surplus)
            if not len(again):
                return words % bounds
            words = words.copy()
            words[again] = self.words(len(again))
        raise LocalProtocolError("a rejection did not end; a working stream never does that")

    def normals(self, count: int, dimension: int) -> NDArray[np.float64]:
        """(count, dimension) float64, standard normal to the accuracy of floats. Public use only.

        The method is Box and Muller's. An even number of values is drawn for each row, so rows do
        not depend on how many are asked for at once.
        """
        pairs = (dimension + 1) // 2
        words = self.words(2 * pairs * count).reshape(count, 2, pairs)
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        radius = np.sqrt(-2 * np.log(uniform[:, 0]))
        angle = 2 * np.pi * uniform[:, 1]
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        return np.asarray(both[:, :dimension], dtype=np.float64)


def respond(
    truth: NDArray[np.int64], answers: int, threshold: int, stream: ShakeStream
) -> NDArray[np.int64]:
    """Randomised response: each record's true answer, or a uniformly random one.

    Args:
        truth: (records,) int64, in 0 .. k-1.
        answers: k.
        threshold: the truth is told with probability threshold/2^64; from `truth_threshold`.
        stream: the source of all coins and answers.

    Returns:
        (records,) int64, in 0 .. k-1.
    """
    told = stream.coins(threshold, len(truth))
    return np.where(told, truth, stream.below(answers, len(truth)).astype(np.int64))


def truth_threshold(epsilon: Fraction, answers: int) -> int:
    """The T for which randomised response is epsilon-DP, locally.

    The truth is told with probability T/2^64; else one of k answers is drawn uniformly. So the
    truth comes with g + (1-g)/k and every other answer with (1-g)/k, g = T/2^64. Their ratio is
    1 + k g/(1-g), which is at most e^epsilon if g <= (e^epsilon - 1)/(e^epsilon - 1 + k). T is that
    bound times 2^64, rounded down.

    Args:
        epsilon: > 0, exact (a Fraction).
        answers: k >= 2.

    Raises:
        InvalidEpsilon: T is 0, so no answer would say anything.
    """
    with ctx.workprec(PRECISION + 64):
        gain = ball(epsilon).expm1() if epsilon < 64 else arb(64).expm1()
        share = below(gain / (gain + answers), COIN_BITS)
    threshold = int(share * (1 << COIN_BITS))
    if not 0 < threshold < 1 << COIN_BITS:
        raise InvalidEpsilon(
            f"epsilon {epsilon} is too small for {answers} answers: the truth would never be "
            "told; ask for a larger epsilon or fewer cells"
        )
    return threshold
