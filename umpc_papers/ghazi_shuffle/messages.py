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

*Rows.* Long rows of packed numbers, of which only one row and one batch are unpacked at a time.

A message of 54,000 records has some eight million numbers of twenty bits. Unpacked they take 8
bytes each, and while they are packed or unpacked one byte for each bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from umpc.crypto.prg import SEED_BYTES, Stream, derive
from umpc.crypto.ring import pack, packed_size, unpack
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, LocalProtocolError, RangeError, TooFewRecords
from umpc.mpc.arrays import Words
from umpc.study.document import Study
from umpc.study.messages import Frame, frame_bytes
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns
from umpc_papers.ghazi_shuffle.inbox import HeapInbox, Inbox, numbers_of_frame, pieces
from umpc_papers.ghazi_shuffle.mechanism import GhaziShuffle
from umpc_papers.ghazi_shuffle.split_mix import LEAST_USERS, mix_rows
from umpc_papers.local.estimate import LocalEstimate
from umpc_papers.local.settings import quantiser_of

MOST_MESSAGE = 64 << 20
"""The most bytes of a node's message: its ledger keeps it, and reads it at every start."""
MOST_HEAP = 256 << 20
"""The most bytes of all messages.

Either shuffler keeps them in memory, packed. It unpacks and sorts one coordinate at a time, and
sends the heap in chunks.
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
        numbers = self.protocol.split_records(columns, bits)
        pads = self.pads(seed, numbers.shape[1])
        mixed = mix_rows(numbers, Stream(order))
        masked = ((row - pad) & self.mask for row, pad in zip(mixed, pads, strict=True))
        return Sealed(pack_rows(masked, self.protocol.width), seed)

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

    def rows(self, place: int, message: bytes, records: int) -> Iterator[Words]:
        """A node's message at shuffler `place`: d rows, each (records r,) uint64.

        Raises: EncodingError, at once.
        """
        columns = records * self.protocol.shares
        if place:
            return self.pads(message, columns)
        return unpack_rows(message, self.protocol.dimension, columns, self.protocol.width)

    def heap(
        self, place: int, messages: Sequence[bytes], records: Sequence[int], seed: bytes
    ) -> Iterator[Frame]:
        """All nodes' messages, each coordinate in the order that both shufflers draw from one seed.

        Args: messages: of every node, as `rows` takes them. records: of every node.
        """
        parts = [
            self.rows(place, message, count)
            for message, count in zip(messages, records, strict=True)
        ]
        together = (np.concatenate(row) for row in zip(*parts, strict=True))
        mixed = mix_rows(together, Stream(derive(seed, "order")))
        width = self.protocol.width
        for number, numbers in enumerate(batches(mixed, numbers_of_frame(width))):
            payload = pack(numbers, width)
            yield Frame("heap", (place,), number, len(numbers), width, payload)

    # --- the coordinator -----------------------------------------------------------------------

    def heap_inbox(self, place: int) -> HeapInbox:
        """The place for a shuffler's heap, which adds up each coordinate."""
        columns = self.protocol.records * self.protocol.shares
        return HeapInbox("heap", (place,), self.protocol.dimension, columns, self.protocol.width)

    def aggregate(self, first: Words, second: Words) -> LocalEstimate:
        """From the sums of both shufflers' heaps: (d,) uint64 each."""
        return self.protocol.estimate(self._total(first, second))

    def is_possible(self, first: Words, second: Words) -> bool:
        """Whether both heaps add up to counts that records and noise can give."""
        return self.protocol.is_possible(self._total(first, second))

    def _total(self, first: Words, second: Words) -> Words:
        """(d, 1) uint64 below 2^w: a heap of one number for each coordinate."""
        total: Words = (first + second) & self.mask
        return total.reshape(self.protocol.dimension, 1)

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

    def pads(self, seed: bytes, columns: int) -> Iterator[Words]:
        """d rows, each (columns,) uint64 below 2^w, uniform to whoever lacks the seed."""
        stream = Stream(derive(seed, "pad"))
        return (stream.words(columns) & self.mask for _ in range(self.protocol.dimension))

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


def pad_frame(node: int, seed: bytes) -> Frame:
    return Frame("pad", (node,), 0, 1, 8 * SEED_BYTES, seed)


# --- rows -----------------------------------------------------------------------------------------


ALIGNED = 8
"""This many numbers of any width fill whole bytes."""
AT_ONCE = 1 << 17
"""Numbers that are packed or unpacked at once; a multiple of ALIGNED."""


def batches(rows: Iterable[Words], size: int) -> Iterator[Words]:
    """The numbers of all rows, one after the other, in batches of `size`; the last has the rest."""
    waiting: list[Words] = []
    count = 0
    for row in rows:
        at = 0
        while count + len(row) - at >= size:
            end = at + size - count
            yield np.concatenate([*waiting, row[at:end]])
            waiting, count, at = [], 0, end
        if at < len(row):
            waiting.append(row[at:])
            count += len(row) - at
    if count:
        yield np.concatenate(waiting)


def pack_rows(rows: Iterable[Words], width: int) -> bytes:
    """Pack all rows one after the other, as `pack` does with their concatenation."""
    return b"".join(pack(batch, width) for batch in batches(rows, AT_ONCE))


def unpack_rows(data: bytes, rows: int, columns: int, width: int) -> Iterator[Words]:
    """The rows of packed numbers: each (columns,) uint64. Raises: EncodingError, at once."""
    check_packed(data, rows * columns, width)
    return (_range(data, row * columns, (row + 1) * columns, width) for row in range(rows))


def check_packed(data: bytes, count: int, width: int) -> None:
    """Raises: EncodingError on a wrong length or on set padding bits."""
    expected = packed_size(count, width)
    if len(data) != expected:
        raise EncodingError(
            f"{count} values of {width} bits take {expected} bytes, got {len(data)}"
        )
    padding = 8 * expected - count * width
    if padding and data[-1] >> (8 - padding):
        raise EncodingError(f"the padding after {count} values of {width} bits is not zero")


def _range(data: bytes, start: int, stop: int, width: int) -> Words:
    """Numbers start .. stop − 1: (stop − start,) uint64."""
    found = np.empty(stop - start, dtype=np.uint64)
    first = start // ALIGNED * ALIGNED
    view = memoryview(data)
    for at in range(first, stop, AT_ONCE):
        count = min(AT_ONCE, stop - at)
        begin = at * width // 8
        piece = bytearray(view[begin : begin + packed_size(count, width)])
        if spare := -count * width % 8:
            piece[-1] &= (1 << (8 - spare)) - 1  # the next row begins in this byte
        numbers = unpack(bytes(piece), count, width)
        low = max(start, at)
        found[low - start : at + count - start] = numbers[low - at :]
    return found
