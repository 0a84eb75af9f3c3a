"""`ghazi-shuffle` as a study has it: what a node gives to two shufflers, and what these give to the coordinator.

Paper: Sinh & Ramon 2025, section 5 (GhaziSM): `dp.local.ghazi_shuffle` is the protocol for a shuffler that is trusted;
here are two of whom neither sees anything. Of each number m of a node's message, w bits, the first shuffler gets
m - p mod 2^w, the second a seed that expands to all its p. Both apply the same permutations, from a seed that only
they know, and the coordinator adds up what comes.

*Reveals*, to each alone and whatever nodes it colludes with:
- first shuffler: m - p, uniform and independent of m, for p is (AES-256-CTR of a seed that it lacks).
- second shuffler: seeds, drawn without the data.
- coordinator: pi(m - p) and pi(p). Given pi(m), pi(p) is uniform, for the p are independent of m and of pi. So it has
  what one trusted shuffler would give it, and numbers that it could draw itself.

*Again.* A released study that is asked for again gives the same m and p in another order: rows of (m - p, p) in the
order of pi', and pi' pi^-1 is uniform and independent of the first heap. Whoever has that can draw the second by
shuffling its rows. So nothing is charged; nor would it be if the pads were new, but stored ones need no entropy.

Any two of the three together see m, node by node, as the node sent it. So a node puts its own shares out of order
before it sends them: of a node with c records they then know its counts with noise of shape c/h, and if c >= h, which
is so of every node if all others may collude, (epsilon, delta) still holds. If c < h it is less than was promised.

*Cost*: d r w bits a record to the first shuffler, 32 bytes a node to the second, d n r w bits from either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from umpc.crypto.packing import pack, unpack
from umpc.crypto.prg import SEED_BYTES, Stream, derive
from umpc.errors import EncodingError, RangeError
from umpc.protocols.ghazi_shuffle.mechanism import GhaziShuffle
from umpc.protocols.ghazi_shuffle.split_mix import mix
from umpc.protocols.local.estimate import LocalEstimate
from umpc.study.frames import MAX_PAYLOAD, Frame, frame_bytes
from umpc.ustat.clear import Columns

Counts = tuple[int, int]
RandomBits = Callable[[int], int]

MOST_MESSAGE = 8 << 20
"""Bytes of a node's message: its ledger keeps it, and reads it at every start."""
MOST_HEAP = 32 << 20
"""Bytes of all messages: either shuffler sorts them in memory, about thirty bytes for one of these."""


def honest_records(counts: Sequence[int], colluding: int) -> int:
    """h: the records that are left if the nodes that collude are those with most records."""
    return sum(sorted(counts)[: len(counts) - colluding])


@dataclass(frozen=True)
class Sealed:
    """What a node gives to the shufflers: its message under a pad to the first, the pad's seed to the second."""

    masked: bytes = field(repr=False)
    seed: bytes = field(repr=False)


@dataclass(frozen=True)
class OfShufflers:
    """A kernel of pairs; messages of all records of all nodes, whose numbers the protocol knows."""

    protocol: GhaziShuffle

    # --- the node -------------------------------------------------------------------------------------------

    def seal(self, columns: Columns, bits: RandomBits) -> Sealed:
        """A node's message in two halves. Args: columns: field → (records,) int64. bits: its own entropy."""
        order, seed = (bits(8 * SEED_BYTES).to_bytes(SEED_BYTES, "little") for _ in range(2))
        numbers, width = (
            mix(self.protocol.split_records(columns, bits), Stream(order)),
            self.protocol.width,
        )
        masked = (numbers - self._pad(seed, numbers.shape[1])) & self._mask
        return Sealed(pack(masked.reshape(-1), width), seed)

    def frames(self, place: int, node: int, records: int, sealed: Sealed) -> Iterator[Frame]:
        """What node number `node` sends to shuffler `place`."""
        if place:
            yield pad_frame(node, sealed.seed)
        else:
            yield from self._pieces("shares", (node,), sealed.masked, self.numbers(records))

    # --- the shufflers --------------------------------------------------------------------------------------

    def inbox(self, place: int, node: int, records: int) -> Inbox:
        """For what shuffler `place` gets from a node."""
        if place:
            return Inbox("pad", (node,), 1, 8 * SEED_BYTES)
        return Inbox("shares", (node,), self.numbers(records), self.protocol.width)

    def part(self, place: int, message: bytes, records: int) -> np.ndarray:
        """(d, records r) uint64: a node's message at shuffler `place`. Raises: EncodingError."""
        columns = records * self.protocol.shares
        if place:
            return self._pad(message, columns)
        return unpack(message, self.numbers(records), self.protocol.width).reshape(
            self.protocol.dimension, columns
        )

    def heap(self, place: int, parts: Sequence[np.ndarray], seed: bytes) -> Iterator[Frame]:
        """All nodes' parts, every coordinate in the order that both shufflers draw from one seed."""
        heap = mix(np.concatenate(parts, axis=1), Stream(derive(seed, "order")))
        return self._pieces(
            "heap", (place,), pack(heap.reshape(-1), self.protocol.width), heap.size
        )

    # --- the coordinator --------------------------------------------------------------------------------------

    def heap_inbox(self, place: int) -> Inbox:
        return Inbox("heap", (place,), self.numbers(self.protocol.records), self.protocol.width)

    def decode_heap(self, data: bytes) -> np.ndarray:
        """(d n r,) uint64: a shuffler's heap. Raises: EncodingError."""
        return unpack(data, self.numbers(self.protocol.records), self.protocol.width)

    def aggregate(self, first: np.ndarray, second: np.ndarray) -> LocalEstimate:
        """From both shufflers' heaps."""
        return self.protocol.estimate(
            ((first + second) & self._mask).reshape(self.protocol.dimension, -1)
        )

    # --- sizes ------------------------------------------------------------------------------------------------

    def numbers(self, records: int) -> int:
        return self.protocol.dimension * records * self.protocol.shares

    def message_bytes(self, counts: Counts) -> int:
        return self.protocol.message_bytes(sum(counts))

    def sent_bytes(self, node: int, counts: Counts) -> dict[str, int]:
        """Bytes that a node sends to either shuffler, framing included."""
        pad = pad_frame(node, bytes(SEED_BYTES)).wire_bytes
        return {
            "shares": self._wire_bytes("shares", (node,), self.numbers(sum(counts))),
            "pad": pad,
        }

    def heap_bytes(self, place: int) -> int:
        return self._wire_bytes("heap", (place,), self.numbers(self.protocol.records))

    def check_sizes(self, names: Sequence[str], counts: Sequence[Counts]) -> None:
        """Raises: RangeError where a message is too large for a ledger, or all of them for a shuffler."""
        advice = "take fewer bins, or a smaller part of the records"
        for name, both in zip(names, counts, strict=True):
            if (size := self.message_bytes(both)) > MOST_MESSAGE:
                raise RangeError(
                    f"the message of {name} would have {size:,} bytes for its {sum(both):,} records, of which its "
                    f"ledger keeps at most {MOST_MESSAGE:,}; {advice}, or split its table over several nodes",
                    culprit=name,
                )
        if (size := self.protocol.message_bytes(self.protocol.records)) > MOST_HEAP:
            raise RangeError(
                f"the messages of all nodes would have {size:,} bytes, of which a shuffler takes at most "
                f"{MOST_HEAP:,}; {advice}"
            )

    # --- the numbers ------------------------------------------------------------------------------------------

    def predicted_std(self, columns: Columns, first: int) -> float:
        """Of the noise, over these records of all nodes."""
        return self.protocol.predicted_mse(columns) ** 0.5

    def quantised(self, columns: Columns, first: int) -> float:
        """The statistic of the records' cells: what the estimate is near to."""
        return self.protocol.cells.quantised(columns)

    @property
    def _mask(self) -> np.uint64:
        return np.uint64((1 << self.protocol.width) - 1)

    def _pad(self, seed: bytes, columns: int) -> np.ndarray:
        """(d, columns) uint64 below 2^w, uniform to whoever lacks the seed."""
        words = Stream(derive(seed, "pad")).words(self.protocol.dimension * columns)
        return words.reshape(self.protocol.dimension, columns) & self._mask

    def _pieces(
        self, step: str, owners: tuple[int, ...], data: bytes, count: int
    ) -> Iterator[Frame]:
        """Packed numbers as frames, at least one."""
        width = self.protocol.width
        for number, (start, size) in enumerate(pieces(count, width)):
            at = start * width // 8
            payload = data[at : at + (size * width + 7) // 8]
            yield Frame(step, owners, number, size, width, payload)

    def _wire_bytes(self, step: str, owners: tuple[int, ...], count: int) -> int:
        width = self.protocol.width
        return sum(
            frame_bytes(step, owners, number, size, width, (size * width + 7) // 8)
            for number, (_, size) in enumerate(pieces(count, width))
        )


def pieces(count: int, width: int) -> Iterator[tuple[int, int]]:
    """(first, how many) numbers of each frame; all but the last end with a byte."""
    most = 8 * MAX_PAYLOAD // width // 8 * 8
    for start in range(0, max(count, 1), most):
        yield start, min(most, count - start)


def pad_frame(node: int, seed: bytes) -> Frame:
    return Frame("pad", (node,), 0, 1, 8 * SEED_BYTES, seed)


class Inbox:
    """Frames that must come one after the other, as `OfShufflers` cuts them, and what they make up."""

    def __init__(self, step: str, owners: tuple[int, ...], count: int, width: int):
        self._due = [
            Frame(step, owners, number, size, width, b"")
            for number, (_, size) in enumerate(pieces(count, width))
        ]
        self._came: list[bytes] = []
        self.wire_bytes = 0

    @property
    def is_complete(self) -> bool:
        return len(self._came) == len(self._due)

    @property
    def data(self) -> bytes:
        return b"".join(self._came)

    def take(self, frame: Frame) -> None:
        """Raises: EncodingError for a frame of another place, size or number than the next one due."""
        if self.is_complete:
            raise EncodingError(f"{frame.label} came after all that was due")
        due = self._due[len(self._came)]
        if (frame.key, frame.count, frame.width) != (due.key, due.count, due.width):
            raise EncodingError(
                f"{due.label}, {due.count} × {due.width} bits, was due, and {frame.label}, {frame.count} × "
                f"{frame.width} bits, came"
            )
        if len(frame.payload) != (due.count * due.width + 7) // 8:
            raise EncodingError(f"{frame.label} came with {len(frame.payload)} bytes")
        self._came.append(frame.payload)
        self.wire_bytes += frame.wire_bytes
