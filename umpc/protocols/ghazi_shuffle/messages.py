"""The messages of `ghazi-shuffle`: from a node to two shufflers, and from these to the coordinator.

Paper: Sinh & Ramon 2025, section 5 (GhaziSM). `mechanism.py` is the protocol for one shuffler that
is trusted; here are two shufflers, and neither sees anything. A node's message consists of numbers
m of w bits. The first shuffler gets m − p mod 2^w of each, and the second gets a seed that expands
to all p of the node. Both apply the same permutations, from a seed that only they know, and the
coordinator adds up what comes.

*Reveals*, to each alone and whatever nodes it colludes with:

- First shuffler: m − p, uniform and independent of m, because p is (AES-256-CTR of a seed that the
  first shuffler lacks).
- Second shuffler: seeds, which are drawn without the data.
- Coordinator: π(m − p) and π(p). Given π(m), π(p) is uniform, because the p are independent of m
  and of π. The coordinator therefore has what one trusted shuffler would give it, and numbers that
  it could draw itself.

*Replay.* A released study that is asked for again gives the same m and p in another order: rows of
(m − p, p) in the order of π', and π' π^-1 is uniform and independent of the first heap. Whoever has
the first heap can draw the second by shuffling its rows, so nothing is charged. New pads would not
change that either, but stored ones need no entropy.

Any two of the three together see m, node by node, as the node sent it. A node therefore puts its
own shares out of order before it sends them. The two then know, for a node with c records, its
counts with noise of shape c/h. If c >= h, (ε, δ) still holds; this is so for every node if all
others may collude. If c < h, the protection is less than was promised.

*Cost*: d r w bits a record to the first shuffler, 32 bytes a node to the second, d n r w bits from
either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from umpc.crypto.packing import pack, unpack
from umpc.crypto.prg import SEED_BYTES, Stream, derive
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, LocalProtocolError, RangeError, TooFewRecords
from umpc.protocols.arrays import Words
from umpc.protocols.ghazi_shuffle.mechanism import GhaziShuffle
from umpc.protocols.ghazi_shuffle.split_mix import LEAST_USERS, mix
from umpc.protocols.local.estimate import LocalEstimate
from umpc.protocols.local.settings import quantiser_of
from umpc.study.document import Study
from umpc.study.frames import MAX_PAYLOAD, Frame, frame_bytes
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns

MOST_MESSAGE = 8 << 20
"""The most bytes of a node's message: its ledger keeps it, and reads it at every start."""
MOST_HEAP = 32 << 20
"""The most bytes of all messages.

Either shuffler sorts them in memory, which takes about thirty bytes for one of these.
"""


@dataclass(frozen=True)
class Sealed:
    """A node's message under a pad, for the first shuffler; the pad's seed, for the second."""

    masked: bytes = field(repr=False)
    seed: bytes = field(repr=False)


@dataclass(frozen=True)
class ShuffleMessages:
    """A kernel of pairs; messages of all records of all nodes, whose numbers the protocol knows."""

    protocol: GhaziShuffle

    # --- the node ------------------------------------------------------------------------------

    def seal(self, columns: Columns, bits: RandomBits) -> Sealed:
        """A node's message in two halves.

        Args: columns: field → (records,) int64. bits: the node's own entropy.
        """
        order = bits(8 * SEED_BYTES).to_bytes(SEED_BYTES, "little")
        seed = bits(8 * SEED_BYTES).to_bytes(SEED_BYTES, "little")
        numbers = mix(self.protocol.split_records(columns, bits), Stream(order))
        width = self.protocol.width
        masked = (numbers - self.pad(seed, numbers.shape[1])) & self.mask
        return Sealed(pack(masked.reshape(-1), width), seed)

    def frames(self, place: int, node: int, records: int, sealed: Sealed) -> Iterator[Frame]:
        """The frames that node number `node` sends to shuffler `place`."""
        if place:
            yield pad_frame(node, sealed.seed)
        else:
            yield from self._pieces("shares", (node,), sealed.masked, self.numbers(records))

    # --- the shufflers -------------------------------------------------------------------------

    def inbox(self, place: int, node: int, records: int) -> Inbox:
        """The place for the frames that shuffler `place` gets from a node."""
        if place:
            return Inbox("pad", (node,), 1, 8 * SEED_BYTES)
        return Inbox("shares", (node,), self.numbers(records), self.protocol.width)

    def part(self, place: int, message: bytes, records: int) -> np.ndarray:
        """(d, records r) uint64: a node's message at shuffler `place`. Raises: EncodingError."""
        columns = records * self.protocol.shares
        if place:
            return self.pad(message, columns)
        return unpack(message, self.numbers(records), self.protocol.width).reshape(
            self.protocol.dimension, columns
        )

    def heap(self, place: int, parts: Sequence[np.ndarray], seed: bytes) -> Iterator[Frame]:
        """All nodes' parts, each coordinate in the order that both shufflers draw from one seed."""
        heap = mix(np.concatenate(parts, axis=1), Stream(derive(seed, "order")))
        return self._pieces(
            "heap", (place,), pack(heap.reshape(-1), self.protocol.width), heap.size
        )

    # --- the coordinator -----------------------------------------------------------------------

    def heap_inbox(self, place: int) -> Inbox:
        return Inbox("heap", (place,), self.numbers(self.protocol.records), self.protocol.width)

    def decode_heap(self, data: bytes) -> np.ndarray:
        """(d n r,) uint64: a shuffler's heap. Raises: EncodingError."""
        return unpack(data, self.numbers(self.protocol.records), self.protocol.width)

    def aggregate(self, first: np.ndarray, second: np.ndarray) -> LocalEstimate:
        """From both shufflers' heaps."""
        return self.protocol.estimate(self._mixed(first, second))

    def is_possible(self, first: np.ndarray, second: np.ndarray) -> bool:
        """Whether both heaps add up to counts that records and noise can give."""
        return self.protocol.is_possible(self._mixed(first, second))

    def _mixed(self, first: np.ndarray, second: np.ndarray) -> Words:
        total: Words = (first + second) & self.mask
        return total.reshape(self.protocol.dimension, -1)

    # --- sizes ---------------------------------------------------------------------------------

    def numbers(self, records: int) -> int:
        return self.protocol.dimension * records * self.protocol.shares

    def message_bytes(self, counts: ClassCounts) -> int:
        return self.protocol.message_bytes(sum(counts))

    def sent_bytes(self, node: int, counts: ClassCounts) -> dict[str, int]:
        """Bytes that a node sends to either shuffler, framing included."""
        pad = pad_frame(node, bytes(SEED_BYTES)).wire_bytes
        return {
            "shares": self._wire_bytes("shares", (node,), self.numbers(sum(counts))),
            "pad": pad,
        }

    def heap_bytes(self, place: int) -> int:
        return self._wire_bytes("heap", (place,), self.numbers(self.protocol.records))

    def check_sizes(self, names: Sequence[str], counts: Sequence[ClassCounts]) -> None:
        """Raises: RangeError where a message is too large for a ledger, or all for a shuffler."""
        advice = "take fewer bins, or a smaller part of the records"
        for name, both in zip(names, counts, strict=True):
            if (size := self.message_bytes(both)) > MOST_MESSAGE:
                raise RangeError(
                    f"the message of {name} would have {size:,} bytes for its {sum(both):,} "
                    f"records, of which its ledger keeps at most {MOST_MESSAGE:,}; {advice}, or "
                    f"split its table over several nodes",
                    culprit=name,
                )
        if (size := self.protocol.message_bytes(self.protocol.records)) > MOST_HEAP:
            raise RangeError(
                f"the messages of all nodes would have {size:,} bytes, of which a shuffler takes "
                f"at most {MOST_HEAP:,}; {advice}"
            )

    # --- the numbers ---------------------------------------------------------------------------

    def predicted_std(self, columns: Columns, first: int) -> float:
        """The standard deviation of the noise, over these records of all nodes."""
        return sqrt(self.protocol.predicted_mse(columns))

    def quantised(self, columns: Columns, first: int) -> float:
        """The statistic of the records' cells, which the estimate is near to."""
        return self.protocol.cells.quantised(columns)

    @property
    def mask(self) -> np.uint64:
        return np.uint64((1 << self.protocol.width) - 1)

    def pad(self, seed: bytes, columns: int) -> np.ndarray:
        """(d, columns) uint64 below 2^w, uniform to whoever lacks the seed."""
        words = Stream(derive(seed, "pad")).words(self.protocol.dimension * columns)
        return words.reshape(self.protocol.dimension, columns) & self.mask

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


def shuffle_messages(study: Study, counts: Sequence[ClassCounts]) -> ShuffleMessages:
    """The messages of a checked study, whose noise the records of h nodes suffice for.

    Args: counts: of every node, in the study's order.

    Raises: TooFewRecords where they are too few to shuffle; InvalidEpsilon.
    """
    if len(counts) != len(study.nodes):
        raise LocalProtocolError(
            f"{study.protocol} takes the records of {len(study.nodes)} nodes, got {len(counts)}"
        )
    records = [sum(both) for both in counts]
    honest = honest_records(records, study.max_colluding)
    if honest < LEAST_USERS:
        raise TooFewRecords(
            f"without the {study.max_colluding} node(s) with most records {honest} records are "
            f"left, and shuffling hides nothing provably among fewer than {LEAST_USERS}; lower "
            f"max_colluding, or take larger nodes"
        )
    mechanism = GhaziShuffle(study.exact_epsilon, quantiser_of(study), sum(records), honest)
    return ShuffleMessages(mechanism)


def honest_records(counts: Sequence[int], colluding: int) -> int:
    """h: the records that are left if the nodes that collude are those with most records."""
    return sum(sorted(counts)[: len(counts) - colluding])


def pieces(count: int, width: int) -> Iterator[tuple[int, int]]:
    """(first, how many) numbers of each frame; all but the last end with a byte."""
    most = 8 * MAX_PAYLOAD // width // 8 * 8
    for start in range(0, max(count, 1), most):
        yield start, min(most, count - start)


def pad_frame(node: int, seed: bytes) -> Frame:
    return Frame("pad", (node,), 0, 1, 8 * SEED_BYTES, seed)


class Inbox:
    """The frames of one message, which must come one after the other, and the whole message."""

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
        """Raises: EncodingError for a frame of another place, size or number than the next one."""
        if self.is_complete:
            raise EncodingError(f"{frame.label} came after all that was due")
        due = self._due[len(self._came)]
        if (frame.key, frame.count, frame.width) != (due.key, due.count, due.width):
            raise EncodingError(
                f"{due.label}, {due.count} × {due.width} bits, was due, and {frame.label}, "
                f"{frame.count} × {frame.width} bits, came"
            )
        if len(frame.payload) != (due.count * due.width + 7) // 8:
            raise EncodingError(f"{frame.label} came with {len(frame.payload)} bytes")
        self._came.append(frame.payload)
        self.wire_bytes += frame.wire_bytes
