"""A toy protocol: every node sends the sum of a kernel over its records, with noise of its own.

It shows that a protocol needs one folder and one entry point. Nothing in `umpc` knows it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from umpc.dp.calibration import DistributedLaplace
from umpc.dp.random_bits import RandomBits
from umpc.errors import EncodingError, StudyError
from umpc.protocols.base.one_message import OneMessage
from umpc.protocols.base.one_message_protocol import OneMessageProtocol
from umpc.study.document import Study
from umpc.study.settings import Settings, describe
from umpc.study.sizes import ClassCounts
from umpc.ustat.clear import Columns
from umpc.ustat.kernel import Kernel


class ToySettings(
    Settings,
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="protocol",
    tag="toy-sum",
):
    """Each node's noisy sum is released."""

    width: Annotated[int, describe("The bytes of a node's message.")] = 16


@dataclass(frozen=True)
class ToyEstimate:
    """The estimate: its noise is taken as Laplace noise without a grid (`MessageEstimate`)."""

    value: float
    std: float
    step: float = 0.0
    shape: float = 1.0


@dataclass(frozen=True)
class ToyMessages(OneMessage):
    """A node's sum in units of the kernel, plus discrete Laplace noise of scale Δf/ε."""

    kernel: Kernel
    noise: DistributedLaplace
    nodes: int
    width: int

    def randomise(self, columns: Columns, counts: ClassCounts, bits: RandomBits) -> bytes:
        total = int(self.kernel.evaluate([columns]).sum(dtype=object)) if sum(counts) else 0
        return (total + self.noise.draw(bits)).to_bytes(self.width, "little", signed=True)

    def message_bytes(self, counts: ClassCounts) -> int:
        return self.width

    def check(self, message: bytes, counts: ClassCounts) -> None:
        if len(message) != self.width:
            raise EncodingError(f"{self.width} bytes were due, {len(message)} came")

    def aggregate(self, messages: Sequence[bytes], counts: Sequence[ClassCounts]) -> ToyEstimate:
        total = sum(int.from_bytes(message, "little", signed=True) for message in messages)
        records = sum(map(sum, counts))
        return ToyEstimate(float(total * self.kernel.unit / records), self._std(records))

    def _std(self, records: int) -> float:
        return self.noise.std * self.nodes**0.5 * float(self.kernel.unit) / records

    def predicted_std(self, columns: Columns, first: int) -> float:
        return self._std(len(next(iter(columns.values()))))


class ToyProtocol(OneMessageProtocol):
    """A mean over single records, from each node's noisy sum."""

    settings: type[Settings] = ToySettings

    def check(self, study: Study) -> None:
        if (study.degree, study.estimator, len(study.kernels)) != (1, "mean", 1):
            raise StudyError('"toy-sum" computes the mean of one kernel over single records')

    def check_new_run(self, study: Study) -> None:
        """Refuse all new runs, where the test says so by an environment variable."""
        if os.environ.get("TOY_REFUSES"):
            raise StudyError('"toy-sum" has no new runs; take another protocol')

    def messages(self, study: Study) -> ToyMessages:
        (kernel,) = study.parsed_kernels
        noise = DistributedLaplace(study.exact_epsilon, kernel.sensitivity_units, 1, 1)
        width = study.settings_as(ToySettings).width
        return ToyMessages(kernel, noise, len(study.nodes), width)
