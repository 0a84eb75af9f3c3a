"""`gopa` as a study has it: a federated mean of which every node publishes its own sum under noise that cancels.

A node's value is the sum of the kernel over its records, in steps: units divided by a power of two, so fine that the
integers of the privacy proof lose nothing (`dp.gopa`). Replacing one record moves it by at most Δf. The coordinator
adds all messages up; what nodes share has then gone, and their own noise is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from umpc.errors import EncodingError, RangeError, StudyError
from umpc.protocols.gopa.calibration import PairwiseNoise, calibrate_pairwise
from umpc.protocols.local.estimate import LocalEstimate
from umpc.study.document import Study
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel

Counts = tuple[int, int]
"""As in `onemessage`; here without classes."""

LEAST_STEPS = 1 << 24
"""By which one record moves a sum, at least: then rounding costs less than 10^-4 of the noise for up to 64 nodes."""
TAIL_BITS = 64


@dataclass(frozen=True)
class OfGopa:
    """kernel: of one record. scale: steps in a unit. noise: of all nodes."""

    kernel: Kernel
    scale: int
    noise: PairwiseNoise

    # --- the node ---------------------------------------------------------------------------------------------

    def message(self, columns: Columns, counts: Counts, noise: int) -> bytes:
        """x + noise, fixed bytes. Raises: RangeError where the noise is larger than it ever should be."""
        value = self._total(columns) * self.scale + noise
        if abs(value) > self._bound(counts):
            raise RangeError(
                "the noise drawn does not fit its message, which hardly ever happens; run the study again"
            )
        return value.to_bytes(self.message_bytes(counts), "little", signed=True)

    def _total(self, columns: Columns) -> int:
        """Σ kernel, in units: halves of 32 bits, which cannot overflow and take the same time whatever they are."""
        values = self.kernel.evaluate([columns])
        return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())

    # --- the coordinator --------------------------------------------------------------------------------------

    def check(self, message: bytes, counts: Counts) -> None:
        """Raises: EncodingError where a message does not decode."""
        if len(message) != (due := self.message_bytes(counts)):
            raise EncodingError(f"a number of {due} bytes was due, {len(message)} bytes came")
        if abs(_decoded(message)) > self._bound(counts):
            raise EncodingError("its number is outside the range of sums with their noise")

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[Counts]) -> LocalEstimate:
        """The mean over all records, and the standard deviation of its noise, which is known."""
        records = sum(map(sum, counts))
        mean = self._value(sum(map(_decoded, messages)), records)
        return LocalEstimate(float(mean), self._std(records), records)

    def _value(self, steps: int, records: int) -> Fraction:
        return steps * self.kernel.unit / (self.scale * records)

    def _std(self, records: int) -> float:
        return self.noise.std * float(self._value(1, records))

    # --- cost and theory --------------------------------------------------------------------------------------

    def _bound(self, counts: Counts) -> int:
        """Of a node's number, but for a probability of 2^-64."""
        return sum(counts) * self.kernel.magnitude_units * self.scale + self.noise.tail_bound(
            TAIL_BITS
        )

    def message_bytes(self, counts: Counts) -> int:
        return (self._bound(counts).bit_length() + 8) // 8

    def predicted_std(self, columns: Columns, first: int) -> float:
        return self._std(len(next(iter(columns.values()))))

    def quantised(self, columns: Columns, first: int) -> float:
        """The mean itself: no record becomes a bin."""
        return float(np.mean(self.kernel.evaluate([columns]) * float(self.kernel.unit)))


def gopa_of(study: Study) -> OfGopa:
    """The protocol of a checked study.

    Raises: StudyError where the kernel is constant; InvalidEpsilon where no amount of noise suffices.
    """
    (kernel,) = study.parsed_kernels
    if not (change := kernel.sensitivity_units):
        raise StudyError(
            "the kernel is the same for all records, so there is nothing to estimate; correct it"
        )
    scale = 1 << (-(-LEAST_STEPS // change) - 1).bit_length()
    nodes, budget = len(study.nodes), (study.exact_epsilon, study.exact_delta)
    return OfGopa(kernel, scale, calibrate_pairwise(*budget, change * scale, nodes, study.honest))


def _decoded(message: bytes) -> int:
    return int.from_bytes(message, "little", signed=True)
