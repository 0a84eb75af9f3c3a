"""What the dealer deals for one chunk of a cell, and the part that each owner expands from its own seed.

| | first owner (party 0) | second owner (party 1) |
|---|---|---|
| from its seed | roots, σ shares, its element shares | roots, σ shares |
| dealt | keys | keys, corrected element shares |

σ = s ⊕ msb(r) for a less bit, σ = s for an equality bit, where s is the mask under which the bit is opened: the seeds
fix σ, so neither msb(r) nor s needs to be sent. Every piece is bound to (attempt, cell, chunk) through the
labels that its seed is derived with, and used once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from umpc.errors import EncodingError
from umpc.mpc.comparison import ComparisonKeys, key_bytes
from umpc.mpc.plan import PairPlan
from umpc.mpc.prg import Stream, derive


def chunk_seed(node_seed: bytes, cell: tuple[int, int], chunk: int) -> bytes:
    """The seed of one node's part of one chunk."""
    return derive(node_seed, "chunk", *cell, chunk)


@dataclass(frozen=True)
class SeededPart:
    """What a party expands from its chunk seed.

    roots: per comparison (n, 2) uint64. sigma: (bits, n) uint8. elements: (elements, n) of the ring, party 0 only.
    """

    roots: tuple[np.ndarray, ...]
    sigma: np.ndarray
    elements: np.ndarray | None

    def __repr__(self) -> str:
        return "SeededPart(<redacted>)"

    @classmethod
    def expand(cls, plan: PairPlan, seed: bytes, party: int, count: int) -> SeededPart:
        roots = Stream(derive(seed, "roots"))
        sigma = Stream(derive(seed, "sigma"))
        elements = Stream(derive(seed, "elements"))
        return cls(
            roots=tuple(roots.words(2 * count).reshape(count, 2) for _ in plan.comparisons),
            sigma=sigma.bits(plan.bits * count).reshape(plan.bits, count),
            elements=elements.words(len(plan.elements) * count, plan.ring.dtype).reshape(len(plan.elements), count)
            if party == 0
            else None,
        )


@dataclass(frozen=True)
class DealtPart:
    """What the dealer sends: keys per comparison, and for party 1 its element shares (elements, n)."""

    keys: tuple[ComparisonKeys, ...]
    elements: np.ndarray | None

    def __repr__(self) -> str:
        return "DealtPart(<redacted>)"

    def encode(self) -> bytes:
        parts = [keys.encode() for keys in self.keys]
        if self.elements is not None:
            parts.append(self.elements.astype(self.elements.dtype.newbyteorder("<")).tobytes())
        return b"".join(parts)

    @classmethod
    def decode(cls, plan: PairPlan, data: bytes, party: int, count: int) -> DealtPart:
        """Raises: EncodingError on a wrong length."""
        expected = dealt_bytes(plan, party) * count
        if len(data) != expected:
            raise EncodingError(f"material of {count} edges takes {expected} bytes, got {len(data)}")
        view, start, keys = memoryview(data), 0, []
        for gate in plan.comparisons:
            size = key_bytes(gate.width) * count
            keys.append(ComparisonKeys.decode(view[start : start + size], gate.width, count))
            start += size
        if party == 0:
            return cls(tuple(keys), None)
        kind = plan.ring.dtype.newbyteorder("<")
        return cls(tuple(keys), np.frombuffer(view[start:], dtype=kind).reshape(len(plan.elements), count))


def dealt_bytes(plan: PairPlan, party: int) -> int:
    """Bytes per edge that the dealer sends to a party."""
    return plan.key_bytes + (plan.element_bytes if party == 1 else 0)
