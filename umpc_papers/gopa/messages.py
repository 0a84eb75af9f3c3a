"""The messages of `gopa`: a federated mean of which every node publishes its own sum under noise.

A node's value is the sum of the kernel over its records, in steps: units divided by a power of two,
so fine that the integers of the privacy proof lose nothing (`calibration.py`). Replacing one record
moves the value by at most Δf. The coordinator adds all messages up; the noise that nodes share is
then gone, and their own noise is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter

import numpy as np

from umpc.dp.calibration import NORMAL_SHAPE
from umpc.dp.distributed_gaussian import DiscreteGaussian
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, LocalProtocolError, RangeError, StudyError
from umpc.protocols.base.one_message import OneMessage
from umpc.study.document import Study
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel
from umpc_papers.gopa.calibration import PairwiseNoise, calibrate_pairwise
from umpc_papers.gopa.settings import GopaSettings
from umpc_papers.local.estimate import LocalEstimate

LEAST_STEPS = 1 << 24
"""The fewest steps by which one record moves a sum.

Rounding then costs less than 10^-4 of the noise for up to 64 nodes.
"""
TAIL_BITS = 64


@dataclass(frozen=True)
class GopaMessages(OneMessage):
    """kernel: a function of one record. scale: steps in a unit. noise: the noise of all nodes."""

    kernel: Kernel
    scale: int
    noise: PairwiseNoise

    # --- the node -----------------------------------------------------------------------------

    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        """The noise is shared between nodes, so entropy alone makes no message."""
        raise LocalProtocolError("a sum is published under noise that was drawn before")

    def message(self, columns: Columns, counts: ClassCounts, noise: int) -> bytes:
        """x + noise in a fixed number of bytes.

        Raises: RangeError where the noise is larger than it ever should be.
        """
        value = self.total(columns) * self.scale + noise
        if abs(value) > self.bound(counts):
            raise RangeError(
                "the noise drawn does not fit its message, which hardly ever happens; run the "
                "study again"
            )
        return value.to_bytes(self.message_bytes(counts), "little", signed=True)

    def total(self, columns: Columns) -> int:
        """Σ kernel, in units.

        Halves of 32 bits cannot overflow, and take the same time whatever their values are.
        """
        values = self.kernel.evaluate([columns])
        return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())

    # --- the coordinator -----------------------------------------------------------------------

    def check(self, message: bytes, counts: ClassCounts) -> None:
        due = self.message_bytes(counts)
        if len(message) != due:
            raise EncodingError(f"a number of {due} bytes was due, {len(message)} bytes came")
        if abs(_decoded(message)) > self.bound(counts):
            raise EncodingError("its number is outside the range of sums with their noise")

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> LocalEstimate:
        """The mean over all records, and the law of its noise, which is normal on a fine grid."""
        records = sum(map(sum, counts))
        mean = self._value(sum(map(_decoded, messages)), records)
        return LocalEstimate(float(mean), self._std(records), records, shape=NORMAL_SHAPE)

    def possible(self, counts: Sequence[ClassCounts]) -> tuple[float, float]:
        """The kernel's range, and the tail of all nodes' own noise, whose parameters add up."""
        records = sum(map(sum, counts))
        tail = DiscreteGaussian(Fraction(self.noise.nodes * self.noise.own)).tail_bound(TAIL_BITS)
        margin = self._value(tail, records)
        ends = self.kernel.interval.low - margin, self.kernel.interval.high + margin
        # outwards, as the value is rounded to a float too
        return nextafter(float(ends[0]), -inf), nextafter(float(ends[1]), inf)

    def _value(self, steps: int, records: int) -> Fraction:
        return steps * self.kernel.unit / (self.scale * records)

    def _std(self, records: int) -> float:
        return self.noise.std * float(self._value(1, records))

    # --- cost and theory -----------------------------------------------------------------------

    def bound(self, counts: ClassCounts) -> int:
        """A bound of a node's number, but for a probability of 2^-64."""
        largest = sum(counts) * self.kernel.magnitude_units * self.scale
        return largest + self.noise.tail_bound(TAIL_BITS)

    def message_bytes(self, counts: ClassCounts) -> int:
        return (self.bound(counts).bit_length() + 8) // 8

    def predicted_std(self, columns: Columns, first: int) -> float:
        return self._std(len(next(iter(columns.values()))))

    def quantised(self, columns: Columns, first: int) -> float:
        """The mean itself: no record becomes a bin."""
        return float(np.mean(self.kernel.evaluate([columns]) * float(self.kernel.unit)))


def gopa_messages(study: Study) -> GopaMessages:
    """The messages of a checked study.

    Raises: StudyError where the kernel is constant; InvalidEpsilon where no noise suffices.
    """
    (kernel,) = study.parsed_kernels
    change = kernel.sensitivity_units
    if not change:
        raise StudyError(
            "the kernel is the same for all records, so there is nothing to estimate; correct it"
        )
    scale = 1 << (-(-LEAST_STEPS // change) - 1).bit_length()
    noise = calibrate_pairwise(
        study.exact_epsilon,
        study.exact_delta,
        change * scale,
        len(study.nodes),
        study.honest,
        complete=not study.settings_as(GopaSettings).neighbours,
    )
    return GopaMessages(kernel, scale, noise)


def _decoded(message: bytes) -> int:
    return int.from_bytes(message, "little", signed=True)
