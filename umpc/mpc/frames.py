"""A message on the wire between nodes, or from the dealer: where it belongs, and its packed bytes."""

from __future__ import annotations

from dataclasses import dataclass

from umpc.ustat.hypergraph import Owners

MAX_PAYLOAD = 1 << 20
"""Largest payload in bytes; checked before anything is allocated."""

STEPS = {"node_seed": 1, "material": 2, "masked_fields": 3, "open_bits": 4}
"""The names of the steps and their numbers on the wire."""


@dataclass(frozen=True)
class Frame:
    """`count` values of `width` bits for one chunk of one cell (material: `count` edges)."""

    step: str
    owners: Owners
    chunk: int
    count: int
    width: int
    payload: bytes

    def __repr__(self) -> str:
        return f"Frame({self.label}, {self.count} × {self.width} bits)"

    @property
    def label(self) -> str:
        """The frame's place, as errors name it."""
        return f"{self.step} of cell {self.owners}, chunk {self.chunk}"

    @property
    def key(self) -> tuple[str, Owners, int]:
        return self.step, self.owners, self.chunk

    @property
    def wire_bytes(self) -> int:
        return frame_bytes(self.step, self.owners, self.chunk, self.count, self.width, len(self.payload))


def frame_bytes(step: str, owners: Owners, chunk: int, count: int, width: int, payload: int) -> int:
    """Bytes of a frame as protobuf sends it: known from its shape alone, so costs can be predicted."""
    numbers = (STEPS[step], *owners, chunk, count, width)
    header = sum(1 + _varint_bytes(number) for number in numbers if number)
    return header + (1 + _varint_bytes(payload) + payload if payload else 0)


def _varint_bytes(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))
